/* Columns that grow, and texts that are kept once. */
#ifndef CLUSTER_PROFILER_COLUMNS_H
#define CLUSTER_PROFILER_COLUMNS_H

#include <stdlib.h>

#include "json.h"

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
void column_free(struct column *column);

/* Texts as Arrow lays them: n + 1 offsets, and all letters. */
struct texts {
    struct column offsets, letters;
};

bool texts_add(struct texts *texts, struct text text);

/* Texts by number, in the order in which they came first. */
struct names {
    struct texts texts;
    struct column known; /* struct name, each text's */
    int32_t *slots;      /* number of a text, -1 for none */
    size_t n_slots;
};

/* Return the number of a text; -1 where it cannot be kept, or for one that was `seen` there already: where texts were seen the
 * caller counts, and what is twice in one object is not plain. */
int32_t names_number(struct names *names, struct text text, int64_t seen);
/* Forget all. */
void names_clear(struct names *names);
void names_free(struct names *names);

#endif
