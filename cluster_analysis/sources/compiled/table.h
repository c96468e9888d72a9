/* One table of a SQLite database, read from its file as columns.
 *
 * What is not usual, and whatever is damaged, is left to SQLite, which knows all forms and says what is wrong.
 */
#ifndef CLUSTER_PROFILER_TABLE_H
#define CLUSTER_PROFILER_TABLE_H

#include "columns.h"

/* As many as SQLite allows where nobody raised it. */
#define MAX_TABLE_COLUMNS 2000

/* SQLite's own numbers of the types of cells. */
enum kind { KIND_INTEGER = 1, KIND_FLOAT = 2, KIND_TEXT = 3, KIND_NULL = 5 };

/* What is wanted of a column; a REAL one may hold whole numbers on disk, and gives floats. With codes, texts are given once. */
enum wish { WISH_NONE = 0, WISH_CELLS = 1, WISH_REAL = 2, WISH_CODES = 3 };

struct cells {
    struct column kinds;   /* a byte a cell; empty where all are of one kind */
    struct column values;  /* 8 bytes a cell: whole number, float, or where a text ends among the letters */
    struct column letters; /* all texts, one behind the other */
    /* Empty but where texts have codes: where the different texts begin and end among the letters, int32. The values are
     * codes then, int32, -1 where there is no text. */
    struct column offsets;
    /* While texts get codes: these, which text has which, and the code of the last one. The letters hold each text once. */
    struct column codes;
    struct names names;
    int32_t last_code;
    unsigned seen;         /* a bit for each kind */
    uint8_t kind;          /* that of the first cell */
    bool is_real, is_coded;
};

struct table {
    int file;
    uint32_t root;
    int n_columns;         /* as declared */
    int row_number;        /* which column is the row's number and not stored, -1 for none */
    const uint8_t *wishes; /* an enum wish for each column */
    struct cells *found;   /* one for each column; those that nobody wants stay empty */
    size_t n_rows;
};

/* Read the table; false where SQLite must read it. */
bool table_read(struct table *table);
void table_free(struct table *table);

#endif
