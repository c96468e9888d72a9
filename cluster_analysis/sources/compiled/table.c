#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "table.h"

#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 100
#define BLOCK_BYTES (1 << 17)
#define MAX_DEPTH 20
#define LEAF 0x0d
#define INNER 0x05
#define UTF_8 1

/* The pages of one file, and how far reading has come. */
struct pages {
    int file;
    uint32_t size, usable, n;
    uint32_t n_left; /* each page is read once at most: then the tree has no loops */
    uint8_t *block;  /* what was read last of the file */
    uint64_t block_at;
    size_t block_length;
    uint8_t *levels[MAX_DEPTH];
    uint8_t *overflow; /* one page */
    struct column payload;
    struct table *table;
    bool is_begun;
    int64_t row; /* number of the last row */
};

static uint32_t big2(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static uint32_t big4(const uint8_t *at) { return big2(at) << 16 | big2(at + 2); }

/* Whole numbers of up to nine bytes, seven bits in each but the last. */
static const uint8_t *varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
    int n;
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

/* Copy a page of the file. */
static bool page_read(struct pages *pages, uint32_t number, uint8_t *into) {
    uint64_t at = (uint64_t)(number - 1) * pages->size;
    if (number < 1 || number > pages->n || !pages->n_left)
        return false;
    pages->n_left--;
    if (at < pages->block_at || at + pages->size > pages->block_at + pages->block_length) {
        ssize_t length = pread(pages->file, pages->block, BLOCK_BYTES, (off_t)at);
        pages->block_at = at;
        pages->block_length = length > 0 ? (size_t)length : 0;
        if (pages->block_length < pages->size)
            return false;
    }
    memcpy(into, pages->block + (at - pages->block_at), pages->size);
    return true;
}

/* The bytes of a cell of a serial type; types 8 and 9 are the numbers 0 and 1 themselves. */
static const uint8_t FIXED[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

static bool add_other_kind(struct cells *cells, uint8_t kind, size_t n) {
    if (cells->seen == 1u << cells->kind) {
        if (!column_grow(&cells->kinds, n + 1))
            return false;
        memset(cells->kinds.at, cells->kind, n);
        cells->kinds.used = n;
    }
    cells->seen |= 1u << kind;
    return column_add(&cells->kinds, &kind, 1);
}

static inline bool add(struct cells *cells, uint8_t kind, uint64_t bits) {
    if (!cells->seen) {
        cells->kind = kind;
        cells->seen = 1u << kind;
    } else if (cells->seen != 1u << kind && !add_other_kind(cells, kind, cells->values.used / sizeof bits)) {
        return false;
    }
    return column_add(&cells->values, &bits, sizeof bits);
}

static inline bool add_whole(struct cells *cells, int64_t value) {
    double number = (double)value;
    uint64_t bits = (uint64_t)value;
    if (!cells->is_real)
        return add(cells, KIND_INTEGER, bits);
    memcpy(&bits, &number, sizeof bits);
    return add(cells, KIND_FLOAT, bits);
}

static inline bool add_number(struct cells *cells, uint64_t type, const uint8_t *at) {
    uint64_t bits = 0;
    int64_t value;
    double number;
    unsigned n_bits = 8 * FIXED[type];
    switch (type) {
    case 1:
        bits = at[0];
        break;
    case 2:
        bits = big2(at);
        break;
    case 3:
        bits = (uint64_t)at[0] << 16 | big2(at + 1);
        break;
    case 4:
        bits = big4(at);
        break;
    case 5:
        bits = (uint64_t)big2(at) << 32 | big4(at + 2);
        break;
    case 6:
    case 7:
        bits = (uint64_t)big4(at) << 32 | big4(at + 4);
        break;
    default:
        bits = type - 8;
        n_bits = 64;
    }
    if (type == 7) {
        memcpy(&number, &bits, sizeof number);
        /* SQLite has no NaN. */
        return number != number ? add(cells, KIND_NULL, cells->letters.used) : add(cells, KIND_FLOAT, bits);
    }
    bits <<= 64 - n_bits;
    memcpy(&value, &bits, sizeof value);
    value >>= 64 - n_bits;
    return add_whole(cells, value);
}

static bool add_other(struct cells *cells, uint64_t type, const uint8_t *at, uint64_t length) {
    return column_add(&cells->letters, at, length) && add(cells, type ? KIND_TEXT : KIND_NULL, cells->letters.used);
}

static bool add_row(struct table *table, const uint8_t *payload, uint64_t length, int64_t row) {
    const uint8_t *end = payload + length, *types, *types_end, *body;
    uint64_t head, type, n_bytes;
    int column;
    types = varint(payload, end, &head);
    if (!types || head > length || head < (uint64_t)(types - payload))
        return false;
    types_end = body = payload + head;
    for (column = 0; types < types_end; column++) {
        struct cells *cells;
        if (column >= table->n_columns)
            return false;
        if (*types < 0x80)
            type = *types++;
        else if (!(types = varint(types, types_end, &type)))
            return false;
        if (type == 10 || type == 11)
            return false;
        n_bytes = type < 10 ? FIXED[type] : (type - 12) / 2;
        if (n_bytes > (uint64_t)(end - body))
            return false;
        cells = &table->found[column];
        if (column == table->row_number) {
            if (type || (table->wishes[column] != WISH_NONE && !add_whole(cells, row)))
                return false;
        } else if (table->wishes[column] != WISH_NONE) {
            if (type && type < 10 ? !add_number(cells, type, body)
                                  : ((type && !(type & 1)) || !add_other(cells, type, body, n_bytes)))
                return false;
        }
        body += n_bytes;
    }
    /* What was declared after the row was written has its default value, which only SQLite knows. */
    for (; column < table->n_columns; column++)
        if (column == table->row_number || table->wishes[column] != WISH_NONE)
            return false;
    return types == types_end && body == end;
}

/* Put a payload together whose end lies on pages of its own. */
static bool gather(struct pages *pages, const uint8_t *local, size_t n_local, uint64_t length, uint32_t next) {
    uint64_t left = length - n_local;
    pages->payload.used = 0;
    if (!column_add(&pages->payload, local, n_local))
        return false;
    while (left) {
        size_t more = left < pages->usable - 4 ? (size_t)left : pages->usable - 4;
        if (!page_read(pages, next, pages->overflow) || !column_add(&pages->payload, pages->overflow + 4, more))
            return false;
        next = big4(pages->overflow);
        left -= more;
    }
    return next == 0;
}

static bool read_cell(struct pages *pages, const uint8_t *page, uint32_t offset) {
    const uint8_t *end = page + pages->usable, *at;
    uint64_t length, number, most = pages->usable - 35, least, n_local;
    int64_t row;
    at = varint(page + offset, end, &length);
    if (!at || !(at = varint(at, end, &number)))
        return false;
    memcpy(&row, &number, sizeof row);
    if (length > (uint64_t)pages->n * pages->size || (pages->is_begun && row <= pages->row))
        return false;
    pages->is_begun = true;
    pages->row = row;
    if (length <= most)
        return length <= (uint64_t)(end - at) && add_row(pages->table, at, length, row);
    least = (pages->usable - 12) * 32 / 255 - 23;
    n_local = least + (length - least) % (pages->usable - 4);
    if (n_local > most)
        n_local = least;
    return n_local + 4 <= (uint64_t)(end - at) && gather(pages, at, (size_t)n_local, length, big4(at + n_local)) &&
           add_row(pages->table, (const uint8_t *)pages->payload.at, length, row);
}

static bool read_tree(struct pages *pages, uint32_t number, int depth) {
    const uint8_t *page, *head;
    uint32_t n_cells, n, places, offset;
    bool is_leaf;
    if (depth >= MAX_DEPTH || (!pages->levels[depth] && !(pages->levels[depth] = malloc(pages->size))) ||
        !page_read(pages, number, pages->levels[depth]))
        return false;
    page = pages->levels[depth];
    head = page + (number == 1 ? HEAD_BYTES : 0);
    is_leaf = *head == LEAF;
    if (!is_leaf && *head != INNER)
        return false;
    n_cells = big2(head + 3);
    places = (uint32_t)(head - page) + (is_leaf ? 8 : 12);
    /* Only the root of an empty table has no cells. */
    if (places + 2 * n_cells > pages->usable || (!n_cells && (depth || !is_leaf)))
        return false;
    for (n = 0; n < n_cells; n++) {
        offset = big2(page + places + 2 * n);
        if (offset < places + 2 * n_cells || offset + 4 > pages->usable)
            return false;
        if (is_leaf ? !read_cell(pages, page, offset) : !read_tree(pages, big4(page + offset), depth + 1))
            return false;
    }
    return is_leaf || read_tree(pages, big4(head + 8), depth + 1);
}

/* Read the head of the file. */
static bool open_pages(struct pages *pages) {
    uint8_t head[HEAD_BYTES];
    struct stat about;
    uint32_t said;
    if (fstat(pages->file, &about) || pread(pages->file, head, sizeof head, 0) != HEAD_BYTES ||
        memcmp(head, "SQLite format 3", 16) || big4(head + 56) != UTF_8)
        return false;
    pages->size = big2(head + 16) == 1 ? 65536 : big2(head + 16);
    if (pages->size < 512 || pages->size & (pages->size - 1) || head[20] > 32)
        return false;
    pages->usable = pages->size - head[20];
    if (pages->usable < 480 || (uint64_t)about.st_size / pages->size > UINT32_MAX)
        return false;
    pages->n = (uint32_t)((uint64_t)about.st_size / pages->size);
    /* The number of pages in the head counts where the writer that changed the file last wrote it. */
    said = big4(head + 28);
    if (said && big4(head + 24) == big4(head + 92) && said != pages->n)
        return false;
    pages->n_left = pages->n;
    return true;
}

bool table_read(struct table *table) {
    struct pages pages;
    bool is_plain;
    int depth, column;
    memset(&pages, 0, sizeof pages);
    pages.file = table->file;
    pages.table = table;
    for (column = 0; column < table->n_columns; column++)
        table->found[column].is_real = table->wishes[column] == WISH_REAL;
    is_plain = open_pages(&pages) && (pages.block = malloc(BLOCK_BYTES)) && (pages.overflow = malloc(pages.size)) &&
               read_tree(&pages, table->root, 0);
    for (depth = 0; depth < MAX_DEPTH; depth++)
        free(pages.levels[depth]);
    free(pages.block);
    free(pages.overflow);
    free(pages.payload.at);
    return is_plain;
}

void table_free(struct table *table) {
    int column;
    for (column = 0; column < table->n_columns; column++) {
        free(table->found[column].kinds.at);
        free(table->found[column].values.at);
        free(table->found[column].letters.at);
    }
}
