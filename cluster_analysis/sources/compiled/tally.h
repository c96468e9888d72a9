/* Numbers for pairs of whole numbers, in the order in which they came first. */
#ifndef CLUSTER_PROFILER_TALLY_H
#define CLUSTER_PROFILER_TALLY_H

#include "columns.h"

struct tally {
    struct column known; /* pairs of uint64 */
    int32_t *slots;      /* number of a pair, -1 for none */
    size_t n_slots;
    int32_t n;
};

/* Return the number of a pair, which is `n` before the call for a new one; -1 where it cannot be kept. */
int32_t tally_number(struct tally *tally, uint64_t first, uint64_t second);
void tally_free(struct tally *tally);

#endif
