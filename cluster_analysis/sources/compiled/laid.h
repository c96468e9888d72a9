/* Rows of several files, laid by step: those of a step lie side by side, in the files' order. */
#ifndef CLUSTER_PROFILER_LAID_H
#define CLUSTER_PROFILER_LAID_H

#include "steps.h"

/* Rows that stay together, as they lay in the files: one for each level. */
struct run {
    size_t from, to, n;
};

struct runs {
    struct run *at; /* in the files' order */
    int32_t *order; /* their order by step */
    size_t n;
    bool is_same; /* the order by step is that of the files */
};

/* Find out where each row goes; false where there is no memory. */
bool runs_find(struct runs *runs, const struct steps *steps);
/* Move rows of so many bytes each. */
bool runs_lay(const struct runs *runs, struct column *column, size_t width);
bool runs_lay_texts(const struct runs *runs, struct texts *texts);
void runs_free(struct runs *runs);

#endif
