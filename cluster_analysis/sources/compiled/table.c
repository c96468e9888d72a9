#include "table.h"

#include "pages.h"

#define MAX_HEAD 64

enum how { HOW_NULL, HOW_WHOLE, HOW_FLOAT, HOW_CONSTANT, HOW_ROW, HOW_TEXT };

/* How a cell of each serial type below 10 is read. */
static const uint8_t HOW[] = {HOW_NULL,  HOW_WHOLE, HOW_WHOLE, HOW_WHOLE,    HOW_WHOLE,
                              HOW_WHOLE, HOW_WHOLE, HOW_FLOAT, HOW_CONSTANT, HOW_CONSTANT};

/* One cell of a row that is wanted. */
struct place {
    struct cells *cells;
    uint64_t at;     /* from the begin of the row */
    uint64_t length; /* of a text; the number itself where it is not stored */
    uint8_t how, shift;
};

/* The head of a row, and what follows from it. */
struct shape {
    uint8_t head[MAX_HEAD];
    size_t n_head;   /* 0 where there is none, or it is too long to be kept */
    uint64_t length; /* of the whole row */
    int n_cells;
    struct place *places; /* one for each column, of which `n_cells` are used */
};

/* Takes the rows of a table. */
struct cutter {
    struct taker taker;
    struct table *table;
    struct shape shape;
};

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

/* Add a cell; there is place for its value. */
static inline bool add(struct cells *cells, uint8_t kind, uint64_t bits) {
    if (cells->seen != 1u << kind) {
        if (!cells->seen) {
            cells->kind = kind;
            cells->seen = 1u << kind;
        } else if (!add_other_kind(cells, kind, cells->values.used / sizeof bits)) {
            return false;
        }
    }
    memcpy(cells->values.at + cells->values.used, &bits, sizeof bits);
    cells->values.used += sizeof bits;
    return true;
}

static inline bool add_whole(struct cells *cells, int64_t value) {
    double number = (double)value;
    uint64_t bits = (uint64_t)value;
    if (!cells->is_real)
        return add(cells, KIND_INTEGER, bits);
    memcpy(&bits, &number, sizeof bits);
    return add(cells, KIND_FLOAT, bits);
}

static inline bool add_float(struct cells *cells, uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    /* SQLite has no NaN. */
    return number != number ? add(cells, KIND_NULL, cells->letters.used) : add(cells, KIND_FLOAT, bits);
}

/* Where the cells of a row lie, as its head says. */
static bool read_shape(struct shape *shape, const struct table *table, const uint8_t *head, const uint8_t *end) {
    uint64_t n_head, type, n_bytes, length = (uint64_t)(end - head), body;
    const uint8_t *types = varint(head, end, &n_head), *types_end;
    int column;
    shape->n_head = 0;
    shape->n_cells = 0;
    if (!types || n_head > length || n_head < (uint64_t)(types - head))
        return false;
    types_end = head + n_head;
    body = n_head;
    for (column = 0; types < types_end; column++) {
        struct place *place = &shape->places[shape->n_cells];
        if (column >= table->n_columns || !(types = varint(types, types_end, &type)) || type == 10 || type == 11)
            return false;
        n_bytes = type < 10 ? FIXED[type] : (type - 12) / 2;
        if (n_bytes > length - body || (column == table->row_number && type))
            return false;
        if (table->wishes[column] != WISH_NONE) {
            /* Bytes that are no text. */
            if (type >= 12 && !(type & 1))
                return false;
            place->cells = &table->found[column];
            place->how = column == table->row_number ? HOW_ROW : type >= 12 ? HOW_TEXT : HOW[type];
            place->shift = (uint8_t)(type >= 1 && type <= 7 ? 64 - 8 * FIXED[type] : 0);
            place->at = body;
            place->length = type >= 12 ? n_bytes : type == 9;
            shape->n_cells++;
        }
        body += n_bytes;
    }
    /* What was declared after the row was written has its default value, which only SQLite knows. */
    for (; column < table->n_columns; column++)
        if (column == table->row_number || table->wishes[column] != WISH_NONE)
            return false;
    shape->length = body;
    if (types != types_end || body != length)
        return false;
    if (n_head <= sizeof shape->head) {
        memcpy(shape->head, head, (size_t)n_head);
        shape->n_head = (size_t)n_head;
    }
    return true;
}

/* Add the cells of a row. More bytes are read of a number than belong to it. */
static bool add_row(struct taker *taker, const uint8_t *payload, const uint8_t *end, int64_t row) {
    struct cutter *cutter = (struct cutter *)taker;
    struct shape *shape = &cutter->shape;
    int n;
    /* Most rows have the head of the row before. */
    if (!shape->n_head || shape->length != (uint64_t)(end - payload) || memcmp(payload, shape->head, shape->n_head))
        if (!read_shape(shape, cutter->table, payload, end))
            return false;
    for (n = 0; n < shape->n_cells; n++) {
        const struct place *place = &shape->places[n];
        struct cells *cells = place->cells;
        const uint8_t *at = payload + place->at;
        int64_t value;
        uint64_t bits;
        bool is_added;
        switch (place->how) {
        case HOW_WHOLE:
            bits = big8(at);
            memcpy(&value, &bits, sizeof value);
            is_added = add_whole(cells, value >> place->shift);
            break;
        case HOW_FLOAT:
            is_added = add_float(cells, big8(at));
            break;
        case HOW_CONSTANT:
            is_added = add_whole(cells, (int64_t)place->length);
            break;
        case HOW_ROW:
            is_added = add_whole(cells, row);
            break;
        case HOW_TEXT:
            is_added = column_add(&cells->letters, at, place->length) && add(cells, KIND_TEXT, cells->letters.used);
            break;
        default:
            is_added = add(cells, KIND_NULL, cells->letters.used);
        }
        if (!is_added)
            return false;
    }
    return true;
}

/* Make place for the values of so many rows. */
static bool grow(struct taker *taker, size_t n_rows, size_t n_about) {
    struct table *table = ((struct cutter *)taker)->table;
    int column;
    for (column = 0; column < table->n_columns; column++) {
        struct column *values = &table->found[column].values;
        if (table->wishes[column] != WISH_NONE && values->size - values->used < n_rows * sizeof(uint64_t) &&
            !column_grow(values, n_about * sizeof(uint64_t)))
            return false;
    }
    return true;
}

/* Give each different text of a column a number; where that cannot be done, the texts stay. */
static void number_texts(struct cells *cells) {
    size_t n = cells->values.used / sizeof(uint64_t), at, begin = 0;
    struct names names;
    struct texts texts;
    struct column codes = {NULL, 0, 0};
    bool is_done = n <= INT32_MAX && cells->letters.used <= INT32_MAX && column_grow(&cells->letters, 1) &&
                   column_grow(&codes, n * sizeof(int32_t));
    memset(&names, 0, sizeof names);
    memset(&texts, 0, sizeof texts);
    for (at = 0; is_done && at < n; at++) {
        struct text text;
        uint64_t end;
        int32_t code = -1;
        memcpy(&end, cells->values.at + at * sizeof end, sizeof end);
        if (!cells->kinds.used || cells->kinds.at[at] == KIND_TEXT) {
            text.at = cells->letters.at + begin;
            text.length = (size_t)end - begin;
            code = names_number(&names, text, -1);
            is_done = code >= 0;
        }
        begin = (size_t)end;
        is_done = is_done && column_add_int32(&codes, code);
    }
    is_done = is_done && names_texts(&names, &texts);
    names_free(&names);
    if (!is_done) {
        free(codes.at);
        texts_free(&texts);
        return;
    }
    free(cells->values.at);
    free(cells->letters.at);
    cells->values = codes;
    cells->letters = texts.letters;
    cells->offsets = texts.offsets;
}

bool table_read(struct table *table) {
    struct cutter cutter;
    bool is_plain;
    int column;
    memset(&cutter, 0, sizeof cutter);
    cutter.taker.expect = grow;
    cutter.taker.row = add_row;
    cutter.table = table;
    for (column = 0; column < table->n_columns; column++)
        table->found[column].is_real = table->wishes[column] == WISH_REAL;
    cutter.shape.places = malloc(((size_t)table->n_columns + 1) * sizeof *cutter.shape.places);
    is_plain = cutter.shape.places && pages_read(table->file, table->root, &cutter.taker);
    free(cutter.shape.places);
    for (column = 0; is_plain && column < table->n_columns; column++)
        if (table->wishes[column] == WISH_CODES && (table->found[column].seen & ~(1u << KIND_NULL)) == 1u << KIND_TEXT)
            number_texts(&table->found[column]);
    return is_plain;
}

void table_free(struct table *table) {
    int column;
    for (column = 0; column < table->n_columns; column++) {
        free(table->found[column].kinds.at);
        free(table->found[column].values.at);
        free(table->found[column].letters.at);
        free(table->found[column].offsets.at);
    }
}
