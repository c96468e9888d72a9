/* What the names of operators say: `hcom_allReduce__586_7_1`. */
#ifndef CLUSTER_PROFILER_OPERATOR_NAMES_H
#define CLUSTER_PROFILER_OPERATOR_NAMES_H

#include "columns.h"

/* The running number, here 7: behind the last `__` only numbers joined by `_`, and the second of at most 9 digits;
 * -1 for any other name. */
int32_t operator_index(struct text name);

/* What stands before the first `__`: the operation is told by it. */
struct text operator_stem(struct text name);

#endif
