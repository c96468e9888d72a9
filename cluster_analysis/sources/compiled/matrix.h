/* communication_matrix.json of the usual form, as columns. */
#ifndef CLUSTER_PROFILER_MATRIX_H
#define CLUSTER_PROFILER_MATRIX_H

#include "steps.h"

enum link_column { KEYS_OF_LINKS, SOURCES, DESTINATIONS, TRANSPORTS_OF_LINKS, OPERATORS_OF_LINKS, SIZES_BYTES, TIMES_US, N_LINK_COLUMNS };

struct links {
    struct steps steps;
    /* A link each: int32, -1 for a transport or an operator that is not named; doubles for sizes and times. */
    struct column columns[N_LINK_COLUMNS];
    struct names key_names, transport_names, operator_names, end_names;
    int64_t n_levels, n_keys;
};

/* Read a text, whose byte behind the end is 0, behind those that were read before; the text may go then. False where
 * Python must read it, and where a link lacks its size or time, or has one below 0: then all that was read is to go. */
bool links_read(const char *text, size_t length, struct links *found);
void links_free(struct links *links);

#endif
