#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "pages.h"

#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 100
#define BLOCK_BYTES (1 << 17)
#define MAX_DEPTH 20
#define LEAF 0x0d
#define INNER 0x05
#define UTF_8 1

/* A part of the file, with PADDING behind it. */
struct block {
    uint8_t *at;
    uint64_t begin;
    size_t length;
};

/* The pages of one file, and how far reading has come. */
struct pages {
    int file;
    uint32_t size, usable, n;
    uint32_t n_left; /* each page is read once at most: then the tree has no loops */
    /* What was read last of the tree, and of payloads that lie on pages of their own: rows are read where they lie. */
    struct block tree, overflow;
    uint8_t *levels[MAX_DEPTH]; /* inner pages, which stay while those below them are read */
    struct column payload;
    struct taker *taker;
    bool is_begun;
    int64_t row; /* number of the last row */
};

static uint32_t big2(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

/* Return a page, which stays until another one is asked of the same block; NULL where it cannot be read. */
static const uint8_t *page_in(struct pages *pages, struct block *block, uint32_t number) {
    uint64_t at = (uint64_t)(number - 1) * pages->size;
    if (number < 1 || number > pages->n || !pages->n_left || (!block->at && !(block->at = malloc(BLOCK_BYTES + PADDING))))
        return NULL;
    pages->n_left--;
    if (at < block->begin || at + pages->size > block->begin + block->length) {
        ssize_t length = pread(pages->file, block->at, BLOCK_BYTES, (off_t)at);
        block->begin = at;
        block->length = length > 0 ? (size_t)length : 0;
        if (block->length < pages->size)
            return NULL;
    }
    return block->at + (at - block->begin);
}

/* Put a payload together whose end lies on pages of its own. */
static bool gather(struct pages *pages, const uint8_t *local, size_t n_local, uint64_t length, uint32_t next) {
    uint64_t left = length - n_local;
    pages->payload.used = 0;
    if (!column_grow(&pages->payload, (size_t)length + PADDING) || !column_add(&pages->payload, local, n_local))
        return false;
    while (left) {
        size_t more = left < pages->usable - 4 ? (size_t)left : pages->usable - 4;
        const uint8_t *page = page_in(pages, &pages->overflow, next);
        if (!page || !column_add(&pages->payload, page + 4, more))
            return false;
        next = big4(page);
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
        return length <= (uint64_t)(end - at) && pages->taker->row(pages->taker, at, at + length, row);
    least = (pages->usable - 12) * 32 / 255 - 23;
    n_local = least + (length - least) % (pages->usable - 4);
    if (n_local > most)
        n_local = least;
    if (n_local + 4 > (uint64_t)(end - at) || !gather(pages, at, (size_t)n_local, length, big4(at + n_local)))
        return false;
    at = (const uint8_t *)pages->payload.at;
    return pages->taker->row(pages->taker, at, at + length, row);
}

/* Read a page and all below it; `n_beside` pages come behind it. */
static bool read_tree(struct pages *pages, uint32_t number, int depth, uint32_t n_beside) {
    const uint8_t *page, *head;
    uint32_t n_cells, n, places, offset;
    bool is_leaf;
    if (depth >= MAX_DEPTH || !(page = page_in(pages, &pages->tree, number)))
        return false;
    head = page + (number == 1 ? HEAD_BYTES : 0);
    is_leaf = *head == LEAF;
    if (!is_leaf) {
        if (*head != INNER || (!pages->levels[depth] && !(pages->levels[depth] = malloc(pages->size))))
            return false;
        memcpy(pages->levels[depth], page, pages->size);
        head = pages->levels[depth] + (head - page);
        page = pages->levels[depth];
    }
    n_cells = big2(head + 3);
    places = (uint32_t)(head - page) + (is_leaf ? 8 : 12);
    /* Only the root of an empty table has no cells. */
    if (places + 2 * n_cells > pages->usable || (!n_cells && (depth || !is_leaf)))
        return false;
    if (n_beside > pages->n_left)
        n_beside = pages->n_left;
    if (is_leaf && !pages->taker->expect(pages->taker, n_cells, (size_t)n_cells * (n_beside + 1)))
        return false;
    for (n = 0; n < n_cells; n++) {
        offset = big2(page + places + 2 * n);
        if (offset < places + 2 * n_cells || offset + 4 > pages->usable)
            return false;
        if (is_leaf ? !read_cell(pages, page, offset) : !read_tree(pages, big4(page + offset), depth + 1, n_cells - n))
            return false;
    }
    return is_leaf || read_tree(pages, big4(head + 8), depth + 1, 0);
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

bool pages_read(int file, uint32_t root, struct taker *taker) {
    struct pages pages;
    bool is_plain;
    int depth;
    memset(&pages, 0, sizeof pages);
    pages.file = file;
    pages.taker = taker;
    is_plain = open_pages(&pages) && read_tree(&pages, root, 0, 0);
    for (depth = 0; depth < MAX_DEPTH; depth++)
        free(pages.levels[depth]);
    free(pages.tree.at);
    free(pages.overflow.at);
    free(pages.payload.at);
    return is_plain;
}
