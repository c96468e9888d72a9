/* What is read of the communication files of several ranks, one behind the other: columns, and the names that their numbers
 * stand for. Both files are of one outer form: steps, in each the levels p2p and collective, in each the operators.
 */
#ifndef CLUSTER_PROFILER_FILES_H
#define CLUSTER_PROFILER_FILES_H

#include "columns.h"

enum { MAX_COLUMNS = 24, MAX_NAMES = 8 };
/* What both files have; the columns and names of each follow. */
enum { LEVELS, FIRST_COLUMN };
enum { STEP_NAMES, KEY_NAMES, TOTAL_NAMES, FIRST_NAMES };

struct files {
    struct column columns[MAX_COLUMNS];
    struct names names[MAX_NAMES];
    int32_t n_rows, n_files;
    /* Of all texts; so no count of anything in them overflows. */
    size_t n_bytes;
    /* Objects of which no member may be there twice. */
    int64_t n_objects;
    /* Whether it is wanted where operators lie in the text. */
    bool has_places;
};

struct reader {
    const char *begin, *end;
    struct files *files;
    /* Reads an operator: `number` is its key's. */
    const char *(*operator)(struct reader *reader, const char *at, struct text key, int32_t number);
    int64_t file, level; /* numbers of objects */
    int last_level;
    /* How this text writes that a transport carried nothing, as most do, once it is known. */
    struct text nothing;
    int32_t step;
};

/* Read a text, whose byte behind the end is 0, behind those before it; false where Python must. The text may go then. */
bool operators_read(const char *text, size_t length, struct files *found);
bool links_read(const char *text, size_t length, struct files *found);

/* Of a reader the rest is set here. */
bool steps_read(struct reader *reader, const char *text, size_t length);
void files_free(struct files *files);

/* Names under which Python gets them, NULL for what it does not. */
extern const char *const OPERATOR_COLUMNS[MAX_COLUMNS], *const OPERATOR_NAMES[MAX_NAMES];
extern const char *const LINK_COLUMNS[MAX_COLUMNS], *const LINK_NAMES[MAX_NAMES];

#endif
