/* communication_matrix.json of the usual form, as columns. */
#ifndef CLUSTER_PROFILER_MATRIX_H
#define CLUSTER_PROFILER_MATRIX_H

#include "steps.h"

struct links {
    struct steps steps;
    /* A link each; -1 for a transport or an operator that is not named. */
    struct column keys, sources, destinations, transports, op_names; /* int32 */
    struct column sizes_bytes, times_us;                             /* double, NaN where the file does not say */
    struct names key_names, transport_names, operator_names, end_names;
    int32_t n_missing, n_negative;
};

/* Read a text, whose byte behind the end is 0; false where Python must. */
bool links_read(const char *text, size_t length, struct links *found);
void links_free(struct links *links);

#endif
