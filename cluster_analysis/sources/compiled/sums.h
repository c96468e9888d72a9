/* Times summed by keys. */
#ifndef CLUSTER_PROFILER_SUMS_H
#define CLUSTER_PROFILER_SUMS_H

#include "columns.h"

/* What rows with equal keys have together. */
struct sum {
    int64_t first, n, total, least, most;
};

struct sums {
    const int64_t *const *keys; /* columns of `n_known` numbers each */
    int n_keys;
    size_t n_known;
    const int64_t *rows;  /* which row of the columns each span has */
    const int64_t *spans; /* begin and end of each, whose sum fits */
    size_t n_spans;
    struct column found; /* struct sum, in the order in which the keys come first; `first` is a span */
};

/* Sum the spans; false where a row is none of the columns, or where there is no memory. */
bool sums_make(struct sums *sums);

#endif
