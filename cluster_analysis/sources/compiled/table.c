#include "table.h"

#include "pages.h"

/* Heads of up to so many bytes are kept, in words of 8. */
#define MAX_HEAD 64
#define WORD_BYTES 8
/* A power of two: the rows of a table have few different heads, which take turns. */
#define N_SHAPES 16

enum how { HOW_NULL, HOW_WHOLE, HOW_FLOAT, HOW_CONSTANT, HOW_ROW, HOW_TEXT };

/* How a cell of each serial type below 10 is read. */
static const uint8_t HOW[] = {HOW_NULL,  HOW_WHOLE, HOW_WHOLE, HOW_WHOLE,    HOW_WHOLE,
                              HOW_WHOLE, HOW_WHOLE, HOW_FLOAT, HOW_CONSTANT, HOW_CONSTANT};

/* One cell of a row that is wanted. */
struct place {
    struct cells *cells;
    uint64_t at;     /* from the begin of the row */
    uint64_t length; /* of a text */
    uint64_t mask;   /* no bits where the number is not stored */
    int64_t more;    /* the number itself then */
    uint8_t how, shift;
};

/* The head of a row, and what follows from it. */
struct shape {
    uint64_t head[MAX_HEAD / WORD_BYTES];
    uint64_t length; /* of the whole row; 0 where there is none */
    int n_cells;
    struct place *places; /* one for each wanted column, of which `n_cells` are used */
};

/* Takes the rows of a table. */
struct cutter {
    struct taker taker;
    struct table *table;
    /* By what their heads hash to, and one for those that are too long to be kept. */
    struct shape shapes[N_SHAPES + 1];
};

/* The bytes of a cell of a serial type; types 8 and 9 are the numbers 0 and 1 themselves. */
static const uint8_t FIXED[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

static bool add_other_kind(struct cells *cells, uint8_t kind, size_t n) {
    if (!cells->seen)
        cells->kind = kind;
    else if (cells->seen == 1u << cells->kind) {
        if (!column_grow(&cells->kinds, n + 1))
            return false;
        memset(cells->kinds.at, cells->kind, n);
        cells->kinds.used = n;
    }
    cells->seen |= 1u << kind;
    return cells->seen == 1u << cells->kind || column_add(&cells->kinds, &kind, 1);
}

/* Add the cell of row `n`; there is place for its value. */
static inline bool add(struct cells *cells, size_t n, uint8_t kind, uint64_t bits) {
    if (cells->seen != 1u << kind && !add_other_kind(cells, kind, n))
        return false;
    memcpy(cells->values.at + n * sizeof bits, &bits, sizeof bits);
    return true;
}

static inline bool add_whole(struct cells *cells, size_t n, int64_t value) {
    double number = (double)value;
    uint64_t bits = (uint64_t)value;
    if (!cells->is_real)
        return add(cells, n, KIND_INTEGER, bits);
    memcpy(&bits, &number, sizeof bits);
    return add(cells, n, KIND_FLOAT, bits);
}

/* A cell without a value; of texts it ends where the one before does, and has no number. */
static bool add_null(struct cells *cells, size_t n) {
    return (!cells->is_coded || column_add_int32(&cells->codes, -1)) && add(cells, n, KIND_NULL, cells->letters.used);
}

static inline bool add_float(struct cells *cells, size_t n, uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    /* SQLite has no NaN. */
    return number != number ? add_null(cells, n) : add(cells, n, KIND_FLOAT, bits);
}

/* Keep a new text where those before it are kept; then all of them may lie elsewhere. */
static bool keep_text(struct cells *cells, struct text text) {
    struct name *known = (struct name *)cells->names.known.at;
    const char *before = cells->letters.at, *at;
    size_t number = cells->names.n_known - 1;
    if ((!before && !column_grow(&cells->letters, 1)) || !column_add(&cells->letters, text.at, text.length))
        return false;
    known[number].text.at = cells->letters.at + cells->letters.used - text.length;
    if (cells->letters.at == before)
        return true;
    for (at = cells->letters.at, number = 0; number < cells->names.n_known; number++) {
        known[number].text.at = at;
        at += known[number].text.length;
    }
    return true;
}

/* Add a text of a column whose texts get numbers; SQLite must read what has texts and numbers. */
static bool add_coded(struct cells *cells, size_t n, struct text text) {
    const struct name *last = (const struct name *)cells->names.known.at + cells->last_code;
    size_t n_known = cells->names.n_known;
    int32_t code = cells->last_code;
    /* Many texts are those of the row before. */
    if (!n_known || last->text.length != text.length || memcmp(last->text.at, text.at, text.length)) {
        code = names_number(&cells->names, text, -1);
        if (code < 0 || (cells->names.n_known > n_known && !keep_text(cells, text)))
            return false;
        cells->last_code = code;
    }
    if (cells->seen != 1u << KIND_TEXT && !add_other_kind(cells, KIND_TEXT, n))
        return false;
    return column_add_int32(&cells->codes, code);
}

static inline bool add_text(struct cells *cells, size_t n, const uint8_t *at, uint64_t length) {
    struct text text = {(const char *)at, (size_t)length};
    if (cells->is_coded)
        return add_coded(cells, n, text);
    return column_add(&cells->letters, text.at, text.length) && add(cells, n, KIND_TEXT, cells->letters.used);
}

static void set_place(struct place *place, struct cells *cells, uint64_t type, uint64_t at, bool is_row) {
    bool is_text = type >= 12, is_stored = type >= 1 && type <= 6;
    place->cells = cells;
    place->at = at;
    place->length = is_text ? (type - 12) / 2 : 0;
    place->how = is_row ? HOW_ROW : is_text ? HOW_TEXT : HOW[type];
    if (place->how == HOW_CONSTANT)
        place->how = HOW_WHOLE;
    place->mask = is_stored ? UINT64_MAX : 0;
    place->shift = (uint8_t)(is_stored ? 64 - 8 * FIXED[type] : 0);
    place->more = type == 9;
}

/* Where the cells of a row lie, as its head says. */
static bool read_shape(struct shape *shape, const struct table *table, const uint8_t *head, const uint8_t *end) {
    uint64_t n_head, type, n_bytes, length = (uint64_t)(end - head), body;
    const uint8_t *types = varint(head, end, &n_head), *types_end;
    int column;
    shape->length = 0;
    shape->n_cells = 0;
    if (!types || n_head > length || n_head < (uint64_t)(types - head))
        return false;
    types_end = head + n_head;
    body = n_head;
    for (column = 0; types < types_end; column++) {
        if (column >= table->n_columns || !(types = varint(types, types_end, &type)) || type == 10 || type == 11)
            return false;
        n_bytes = type < 10 ? FIXED[type] : (type - 12) / 2;
        if (n_bytes > length - body || (column == table->row_number && type))
            return false;
        if (table->wishes[column] != WISH_NONE) {
            /* Bytes that are no text. */
            if (type >= 12 && !(type & 1))
                return false;
            set_place(&shape->places[shape->n_cells++], &table->found[column], type, body, column == table->row_number);
        }
        body += n_bytes;
    }
    /* What was declared after the row was written has its default value, which only SQLite knows. */
    for (; column < table->n_columns; column++)
        if (column == table->row_number || table->wishes[column] != WISH_NONE)
            return false;
    if (types != types_end || body != length)
        return false;
    shape->length = body;
    return true;
}

/* Return the shape of a row, read anew where its head is new; NULL where SQLite must read it. */
static struct shape *shape_of(struct cutter *cutter, const uint8_t *row, const uint8_t *end) {
    struct shape *shape = &cutter->shapes[N_SHAPES];
    uint64_t words[MAX_HEAD / WORD_BYTES], hash = 0;
    size_t n_head = *row, n, at;
    if (n_head > MAX_HEAD || n_head > (size_t)(end - row))
        return read_shape(shape, cutter->table, row, end) ? shape : NULL;
    for (n = 0, at = 0; at < n_head; n++, at += WORD_BYTES) {
        /* More bytes are read than belong to the head. */
        words[n] = big8(row + at);
        if (n_head - at < WORD_BYTES)
            words[n] >>= 8 * (WORD_BYTES - (n_head - at));
        hash = (hash ^ words[n]) * UINT64_C(0x9E3779B97F4A7C15);
    }
    shape = &cutter->shapes[hash >> 60 & (N_SHAPES - 1)];
    if (shape->length == (uint64_t)(end - row)) {
        for (at = 0; at < n && shape->head[at] == words[at]; at++)
            ;
        if (at == n)
            return shape;
    }
    memcpy(shape->head, words, n * sizeof *words);
    return read_shape(shape, cutter->table, row, end) ? shape : NULL;
}

/* Add the cells of a row. More bytes are read of a number than belong to it. */
static bool add_row(struct taker *taker, const uint8_t *payload, const uint8_t *end, int64_t row) {
    struct cutter *cutter = (struct cutter *)taker;
    const struct shape *shape = end > payload ? shape_of(cutter, payload, end) : NULL;
    size_t n_row = cutter->table->n_rows++;
    int n;
    if (!shape)
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
            bits = big8(at) & place->mask;
            memcpy(&value, &bits, sizeof value);
            is_added = add_whole(cells, n_row, (value >> place->shift) + place->more);
            break;
        case HOW_FLOAT:
            is_added = add_float(cells, n_row, big8(at));
            break;
        case HOW_ROW:
            is_added = add_whole(cells, n_row, row);
            break;
        case HOW_TEXT:
            is_added = add_text(cells, n_row, at, place->length);
            break;
        default:
            is_added = add_null(cells, n_row);
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
        if (table->wishes[column] == WISH_NONE)
            continue;
        values->used = table->n_rows * sizeof(uint64_t);
        if (values->size - values->used < n_rows * sizeof(uint64_t) && !column_grow(values, n_about * sizeof(uint64_t)))
            return false;
    }
    return true;
}

/* Give a column away as it is handed out; false for one of which SQLite must read the texts. */
static bool end_column(struct cells *cells, size_t n_rows) {
    const struct name *known = (const struct name *)cells->names.known.at;
    size_t number, end = 0;
    cells->values.used = n_rows * sizeof(uint64_t);
    if (!(cells->seen & 1u << KIND_TEXT) || !cells->is_coded)
        return true;
    if (cells->seen & ~(1u << KIND_TEXT | 1u << KIND_NULL) || n_rows > INT32_MAX || cells->letters.used > INT32_MAX ||
        !column_add_int32(&cells->offsets, 0))
        return false;
    for (number = 0; number < cells->names.n_known; number++)
        if (!column_add_int32(&cells->offsets, (int32_t)(end += known[number].text.length)))
            return false;
    free(cells->values.at);
    cells->values = cells->codes;
    memset(&cells->codes, 0, sizeof cells->codes);
    return true;
}

bool table_read(struct table *table) {
    struct cutter cutter;
    struct place *places;
    size_t n_wanted = 0;
    bool is_plain;
    int column, shape;
    memset(&cutter, 0, sizeof cutter);
    cutter.taker.expect = grow;
    cutter.taker.row = add_row;
    cutter.table = table;
    for (column = 0; column < table->n_columns; column++) {
        n_wanted += table->wishes[column] != WISH_NONE;
        table->found[column].is_real = table->wishes[column] == WISH_REAL;
        table->found[column].is_coded = table->wishes[column] == WISH_CODES;
    }
    places = malloc((N_SHAPES + 1) * (n_wanted + 1) * sizeof *places);
    for (shape = 0; places && shape <= N_SHAPES; shape++)
        cutter.shapes[shape].places = places + (size_t)shape * (n_wanted + 1);
    is_plain = places && pages_read(table->file, table->root, &cutter.taker);
    free(places);
    for (column = 0; is_plain && column < table->n_columns; column++)
        is_plain = table->wishes[column] == WISH_NONE || end_column(&table->found[column], table->n_rows);
    return is_plain;
}

void table_free(struct table *table) {
    int column;
    for (column = 0; column < table->n_columns; column++) {
        free(table->found[column].kinds.at);
        free(table->found[column].values.at);
        free(table->found[column].letters.at);
        free(table->found[column].offsets.at);
        free(table->found[column].codes.at);
        names_free(&table->found[column].names);
    }
}
