/* Sums that are right to the last digit, whatever the order, as Python's `math.fsum` gives them. */
#ifndef CLUSTER_PROFILER_EXACT_H
#define CLUSTER_PROFILER_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sum pairs of numbers, those of `order` from one of the `begins` to the next. `sums` has a pair for each; false where an
 * index is impossible or Python must sum them, for what is not finite. */
bool exact_sums(const double *pairs, size_t n_pairs, const int64_t *order, size_t n, const int64_t *begins, size_t n_begins,
                double *sums);

#endif
