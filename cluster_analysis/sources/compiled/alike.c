#include "alike.h"

/* Read a line of cells into the columns; false for another number of them, or for what is not plain in a cell. */
static bool add_line(struct alike *found, const char *at, const char *end) {
    int column = 0;
    const char *begin = at;
    for (;; at++) {
        unsigned char letter = at < end ? (unsigned char)*at : ',';
        if (letter == ',') {
            struct text cell = {begin, (size_t)(at - begin)};
            if (column == found->n_columns || !texts_add(&found->columns[column], cell))
                return false;
            column++;
            begin = at + 1;
            if (at >= end)
                return column == found->n_columns;
        } else if (letter < ' ' || letter >= 0x7f || letter == '"') {
            return false;
        }
    }
}

static bool has_header(struct alike *found, const char *line, size_t length) {
    const char *at;
    if (found->n_columns)
        return length == found->header.used && !memcmp(line, found->header.at, length);
    for (at = line; at < line + length; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f || *at == '"')
            return false;
    if (!length || !column_add(&found->header, line, length))
        return false;
    for (found->n_columns = 1, at = line; at < line + length; at++)
        found->n_columns += *at == ',' && found->n_columns <= MAX_CSV_COLUMNS;
    return found->n_columns <= MAX_CSV_COLUMNS;
}

bool alike_read(const char *text, size_t length, struct alike *found) {
    int32_t n_before = found->n_rows;
    const char *end = text + length, *line_end = length ? memchr(text, '\n', length) : NULL, *at;
    if (length > INT32_MAX / 2 || !line_end || end[-1] != '\n' || !has_header(found, text, (size_t)(line_end - text)))
        return false;
    for (at = line_end + 1; at < end; at = line_end + 1) {
        line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == at)
            continue;
        if (found->n_rows == INT32_MAX || !add_line(found, at, line_end))
            return false;
        found->n_rows++;
    }
    return found->n_rows > n_before;
}

void alike_free(struct alike *found) {
    int column;
    for (column = 0; column < MAX_CSV_COLUMNS; column++)
        texts_free(&found->columns[column]);
    free(found->header.at);
}
