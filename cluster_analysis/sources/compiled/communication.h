/* communication.json of the usual form, as columns. */
#ifndef CLUSTER_PROFILER_COMMUNICATION_H
#define CLUSTER_PROFILER_COMMUNICATION_H

#include "operators.h"

/* Read a text, whose byte behind the end is 0, behind those that were read before; the text may go then. False where
 * Python must read it: then all that was read is to go. */
bool operators_read(const char *text, size_t length, struct operators *found);

#endif
