/* The outer form of both communication files: steps, in each the levels p2p and collective. */
#ifndef CLUSTER_PROFILER_STEPS_H
#define CLUSTER_PROFILER_STEPS_H

#include "columns.h"

struct steps {
    struct names names;
    struct column levels; /* struct level */
    /* How many rows there are, which `read_level` counts. */
    int32_t n_rows;
    int32_t n_files;
    /* Of all texts; so no count of anything in them overflows. */
    size_t n_bytes;
};

/* Rows of a file that are filed under one step as point to point, or not. */
struct level {
    int32_t step, is_p2p, n_rows, file;
};

/* Reads the object of one level and returns the place behind it, or NULL. */
typedef const char *(*read_level)(void *reader, const char *at);

/* Read a text, whose byte behind the end is 0, behind those before it; false where Python must. */
bool steps_read(const char *text, size_t length, struct steps *found, read_level level, void *reader);
void steps_free(struct steps *steps);

#endif
