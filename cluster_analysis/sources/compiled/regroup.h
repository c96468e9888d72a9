/* Pieces of many files put behind one another, each with its label: the operators of Insight's communication file. */
#ifndef CLUSTER_PROFILER_REGROUP_H
#define CLUSTER_PROFILER_REGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct regroup {
    /* A piece each, those of one key side by side. */
    const int32_t *keys, *files, *lengths;
    const int64_t *offsets;
    size_t n_rows;
    /* What the keys stand for, as Arrow lays texts: n_keys + 1 offsets, and all letters. */
    const int32_t *key_offsets;
    const char *letters;
    size_t n_keys, n_letters;
    /* Of each file: the number that labels its pieces, and where it is open. */
    const int32_t *ranks, *descriptors;
    size_t n_files;
};

/* How many bytes `"key": {"rank": piece, …}, …` of all rows has; 0 where a row names what is not there. */
size_t regroup_size(const struct regroup *given);
/* Write them; false where a file is shorter than its pieces say, or cannot be read, or where there is no memory. */
bool regroup_write(const struct regroup *given, char *to);

#endif
