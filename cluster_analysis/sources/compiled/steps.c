#include "steps.h"

#include "members.h"

static const struct text LEVELS[] = {NAME("p2p"), NAME("collective")};
enum { P2P, COLLECTIVE, N_LEVELS };

struct file {
    const char *end;
    int32_t number;
    struct steps *found;
    read_level level;
    void *reader;
};

static const char *step_at(struct file *file, const char *at, int32_t step) {
    int guess = 0, which, last = -1;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false; at && !is_done;) {
        struct level level = {step, 0, 0, file->number};
        int32_t before = file->found->n_rows;
        at = member(at, file->end, LEVELS, N_LEVELS, &guess, &which);
        /* Rows come in the order of the file, so p2p must come first. */
        if (!at || which <= last)
            return NULL;
        last = which;
        level.is_p2p = which == P2P;
        at = file->level(file->reader, at);
        level.n_rows = file->found->n_rows - before;
        if (!at || !column_add(&file->found->levels, &level, sizeof level))
            return NULL;
        at = json_next(at, '}', &is_done);
    }
    return at;
}

bool steps_read(const char *text, size_t length, struct steps *found, read_level level, void *reader) {
    struct file file = {text + length, found->n_files++, found, level, reader};
    int32_t n_before = found->n_rows;
    const char *at;
    bool is_done;
    if (length > INT32_MAX - found->n_bytes)
        return false;
    found->n_bytes += length;
    at = json_object(json_blank(text));
    for (is_done = false; at && !is_done;) {
        struct text step;
        int32_t number;
        at = json_key(at, file.end, &step);
        number = at ? names_number(&found->names, step, file.number) : -1;
        at = number >= 0 ? step_at(&file, at, number) : NULL;
        at = json_next(at, '}', &is_done);
    }
    /* A file without rows is not worth a second way. */
    return at && json_blank(at) == file.end && found->n_rows > n_before;
}

void steps_free(struct steps *steps) {
    free(steps->levels.at);
    names_free(&steps->names);
}
