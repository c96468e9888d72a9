/* Small CSV files of one header, as columns of text: one behind the other. */
#ifndef CLUSTER_PROFILER_ALIKE_H
#define CLUSTER_PROFILER_ALIKE_H

#include "columns.h"

#define MAX_CSV_COLUMNS 64

struct alike {
    /* The first line of all files, and the cells below it. */
    struct column header;
    struct texts columns[MAX_CSV_COLUMNS];
    int n_columns; /* 0: no file was read yet */
    int32_t n_rows;
};

/* Read a text behind those before it. False, and all that was read is to go, where it has another header, no rows, quotes, rows
 * of another length, or letters outside ASCII: Python reads it. */
bool alike_read(const char *text, size_t length, struct alike *found);
void alike_free(struct alike *found);

#endif
