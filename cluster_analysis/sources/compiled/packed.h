/* Columns of a columns file: whole numbers of the planes that they were written as, and names with numbers in them. */
#ifndef CLUSTER_PROFILER_PACKED_H
#define CLUSTER_PROFILER_PACKED_H

#include "columns.h"

#define MAX_PLANES 8

/* Numbers as `packing` of the reader on the hosts writes them. */
struct packed {
    const uint8_t *planes; /* n_planes times n bytes: all lowest ones first */
    size_t n;
    int n_planes;
    bool is_delta;
    int64_t begin, step;
};

/* Fill `values` (n); what is too large wraps. */
void packed_read(const struct packed *packed, int64_t *values);

/* Names: each has the parts of its stem, and a number between each two of these. */
struct stems {
    const char *letters; /* of all parts, one behind the other */
    size_t n_letters;
    const int32_t *part_ends; /* where each part ends in the letters */
    size_t n_parts;
    const int32_t *stem_ends; /* the part behind the last one of each stem */
    size_t n_stems;
    const int64_t *places; /* the stem of each name */
    const int64_t *numbers; /* n_most for each name */
    size_t n_names, n_most;
};

/* Write the names; false where an index or a number is impossible, they are too long, or there is no memory. */
bool stems_filled(const struct stems *stems, struct texts *texts);

#endif
