/* The rows of one table of a SQLite file, page by page.
 *
 * The form is that of https://www.sqlite.org/fileformat2.html. Only what is usual is read: a table by row number, text in
 * UTF-8, whole rows.
 */
#ifndef CLUSTER_PROFILER_PAGES_H
#define CLUSTER_PROFILER_PAGES_H

#include "columns.h"

/* So many bytes may be read behind a row. */
#define PADDING 8

/* Who takes the rows. */
struct taker {
    /* So many rows will come next, and about so many with those behind them; false ends the reading. */
    bool (*expect)(struct taker *taker, size_t n_rows, size_t n_about);
    /* One row with its number, from its head to `end`. */
    bool (*row)(struct taker *taker, const uint8_t *row, const uint8_t *end, int64_t number);
};

/* Read the table that begins on page `root`; false where SQLite must read it. */
bool pages_read(int file, uint32_t root, struct taker *taker);

static inline uint32_t big4(const uint8_t *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }
/* The 8 bytes from here on. */
static inline uint64_t big8(const uint8_t *at) { return (uint64_t)big4(at) << 32 | big4(at + 4); }

/* Whole numbers of up to nine bytes, seven bits in each but the last; NULL where they do not end before `end`. */
static inline const uint8_t *varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
    int n;
    /* Most are short. */
    if (end - at >= 3) {
        if (!(at[0] & 0x80)) {
            *value = at[0];
            return at + 1;
        }
        if (!(at[1] & 0x80)) {
            *value = (uint64_t)(at[0] & 0x7f) << 7 | at[1];
            return at + 2;
        }
        if (!(at[2] & 0x80)) {
            *value = (uint64_t)(at[0] & 0x7f) << 14 | (uint64_t)(at[1] & 0x7f) << 7 | at[2];
            return at + 3;
        }
    }
    *value = 0;
    for (n = 0; n < 8; n++) {
        if (at >= end)
            return NULL;
        *value = *value << 7 | (*at & 0x7f);
        if (!(*at++ & 0x80))
            return at;
    }
    if (at >= end)
        return NULL;
    *value = *value << 8 | *at;
    return at + 1;
}

#endif
