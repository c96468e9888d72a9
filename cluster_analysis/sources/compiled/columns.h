/* Columns that grow, and texts that are kept once. */
#ifndef CLUSTER_PROFILER_COLUMNS_H
#define CLUSTER_PROFILER_COLUMNS_H

#include <stdlib.h>

#include "json.h"

__extension__ typedef unsigned __int128 wide;

/* Both halves of a product depend on all bits of both factors. */
static inline uint64_t hash_of_pair(uint64_t first, uint64_t second) {
    wide product = (wide)(first ^ UINT64_C(0x9E3779B97F4A7C15)) * (second ^ UINT64_C(0xC4CEB9FE1A85EC53));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

struct column {
    char *at;
    size_t used, size;
};

/* Make place for `more` bytes; false where there is no memory. */
bool column_grow(struct column *column, size_t more);

static inline bool column_add(struct column *column, const void *value, size_t length) {
    if (!length)
        return true;
    if (column->size - column->used < length && !column_grow(column, length))
        return false;
    memcpy(column->at + column->used, value, length);
    column->used += length;
    return true;
}

static inline bool column_add_int32(struct column *column, int32_t value) { return column_add(column, &value, sizeof value); }
static inline bool column_add_int64(struct column *column, int64_t value) { return column_add(column, &value, sizeof value); }
static inline bool column_add_double(struct column *column, double value) { return column_add(column, &value, sizeof value); }

/* Texts as Arrow lays them: n + 1 offsets, and all letters. */
struct texts {
    struct column offsets, letters;
};

bool texts_add(struct texts *texts, struct text text);
void texts_free(struct texts *texts);

/* Texts by number, in the order in which they came first. They stay where they are until `names_own`. */
struct names {
    struct column known;   /* struct name */
    struct column letters; /* of those that are owned */
    int32_t *slots;        /* number of a text, -1 for none */
    size_t n_slots, n_known, n_owned;
};

struct name {
    struct text text;
    uint64_t hash;
    /* Where the text was seen last, as the caller counts: what is twice in one object is not plain. */
    int64_t seen;
};

/* Return the number of a text; -1 where it cannot be kept, or for one that was `seen` there already. */
int32_t names_number(struct names *names, struct text text, int64_t seen);
bool names_texts(const struct names *names, struct texts *texts);
/* Copy the texts that are new, so that where they lay may go; false where there is no memory. */
bool names_own(struct names *names);
/* Forget all. */
void names_clear(struct names *names);
void names_free(struct names *names);

#endif
