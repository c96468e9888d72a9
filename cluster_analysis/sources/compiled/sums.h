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
    const int64_t *rows;  /* which row of the columns each span has; NULL where it is the row itself */
    const int64_t *spans; /* begin and end of each, whose sum fits */
    size_t n_spans;
    struct column found; /* struct sum, in the order in which the keys come first; `first` is a span */
    int32_t *slots;      /* number of a sum by its keys, while spans are summed */
    size_t n_slots;
};

/* Sum the spans; false where a row is none of the columns, or where there is no memory. */
bool sums_make(struct sums *sums);

/* When tasks began and ended, and the id of each. */
struct tasks {
    const int64_t *begins, *ends, *ids;
    size_t n;
};

/* Sum the tasks whose id is that of a row of the columns (`ids`, one a row) and that do not end before they begin; `first` is
 * such a row. `rows` and `spans` are not used. False where ids are twice or far apart, times too long, or memory is out. */
bool sums_join(struct sums *sums, const struct tasks *tasks, const int64_t *ids);

#endif
