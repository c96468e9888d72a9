#include "files.h"

static const struct text LEVEL_NAMES[] = {TEXT("p2p"), TEXT("collective")};
enum { P2P, COLLECTIVE, N_LEVELS };
/* The keys of sums begin so; they are no operators. */
static const struct text TOTAL = TEXT("Total");

static const char *operator_at(void *given, const char *at, struct text key, int which) {
    struct reader *reader = given;
    bool is_total = key.length >= TOTAL.length && !memcmp(key.at, TOTAL.at, TOTAL.length);
    int32_t number = names_number(&reader->files->names[is_total ? TOTAL_NAMES : KEY_NAMES], key, reader->level);
    (void)which;
    if (number < 0 || *at != '{')
        return NULL;
    return is_total ? json_skip(at, reader->end, 0) : reader->operator(reader, at, key, number);
}

static const char *level_at(void *given, const char *at, struct text key, int which) {
    struct reader *reader = given;
    struct files *files = reader->files;
    int32_t n_before = files->n_rows;
    (void)key;
    /* Rows come in the order of the file, so p2p must come first. */
    if (which <= reader->last_level)
        return NULL;
    reader->last_level = which;
    reader->level = files->n_objects++;
    at = json_object(at, reader->end, NULL, 0, operator_at, reader);
    /* Rows of a file that are filed under one step as point to point, or not. */
    int32_t level[] = {reader->step, which == P2P, files->n_rows - n_before, files->n_files};
    return column_add(&files->columns[LEVELS], level, sizeof level) ? at : NULL;
}

static const char *step_at(void *given, const char *at, struct text key, int which) {
    struct reader *reader = given;
    (void)which;
    reader->step = names_number(&reader->files->names[STEP_NAMES], key, reader->file);
    reader->last_level = -1;
    return reader->step < 0 ? NULL : json_object(at, reader->end, LEVEL_NAMES, N_LEVELS, level_at, reader);
}

bool steps_read(struct reader *reader, const char *text, size_t length) {
    struct files *files = reader->files;
    int32_t n_before = files->n_rows;
    const char *at;
    if (length > INT32_MAX - files->n_bytes)
        return false;
    files->n_bytes += length;
    reader->begin = text;
    reader->end = text + length;
    reader->file = files->n_objects++;
    at = json_object(json_blank(text), reader->end, NULL, 0, step_at, reader);
    files->n_files++;
    /* A file without rows is not worth a second way. */
    return at && json_blank(at) == reader->end && files->n_rows > n_before;
}

void files_free(struct files *files) {
    int at;
    for (at = 0; at < MAX_COLUMNS; at++)
        column_free(&files->columns[at]);
    for (at = 0; at < MAX_NAMES; at++)
        names_free(&files->names[at]);
}
