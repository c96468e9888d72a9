/* The outer form of both communication files: steps, in each the levels p2p and collective. */
#ifndef CLUSTER_PROFILER_STEPS_H
#define CLUSTER_PROFILER_STEPS_H

#include "columns.h"

struct steps {
    struct names names;
    /* A level each: number of the step, whether it is p2p, how many rows; int32. */
    struct column levels;
    /* How many rows there are, which `read_level` counts. */
    int32_t n_rows;
};

/* Reads the object of one level and returns the place behind it, or NULL. */
typedef const char *(*read_level)(void *reader, const char *at);

/* Read a text, whose byte behind the end is 0; false where Python must. */
bool steps_read(const char *text, size_t length, struct steps *found, read_level level, void *reader);
void steps_free(struct steps *steps);

#endif
