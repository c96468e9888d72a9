#include "laid.h"

bool runs_find(struct runs *runs, const struct steps *steps) {
    const struct level *levels = (const struct level *)(const void *)steps->levels.at;
    size_t n_steps = steps->names.n_known, at, from, to;
    int32_t *places = calloc(n_steps + 1, sizeof *places);
    runs->n = steps->levels.used / sizeof *levels;
    runs->at = malloc((runs->n + 1) * sizeof *runs->at);
    runs->order = malloc((runs->n + 1) * sizeof *runs->order);
    runs->is_same = true;
    if (!places || !runs->at || !runs->order) {
        free(places);
        return false;
    }
    for (at = 0; at < runs->n; at++)
        places[levels[at].step + 1]++;
    for (at = 0; at < n_steps; at++)
        places[at + 1] += places[at];
    for (at = 0, from = 0; at < runs->n; from += runs->at[at++].n) {
        runs->order[places[levels[at].step]++] = (int32_t)at;
        runs->at[at].from = from;
        runs->at[at].n = (size_t)levels[at].n_rows;
    }
    for (at = 0, to = 0; at < runs->n; at++) {
        struct run *run = &runs->at[runs->order[at]];
        run->to = to;
        to += run->n;
        runs->is_same = runs->is_same && run->to == run->from;
    }
    free(places);
    return true;
}

bool runs_lay(const struct runs *runs, struct column *column, size_t width) {
    char *to, *at;
    size_t run;
    if (runs->is_same || !column->used)
        return true;
    at = to = malloc(column->used);
    if (!to)
        return false;
    for (run = 0; run < runs->n; run++) {
        const struct run *own = &runs->at[runs->order[run]];
        memcpy(at, column->at + own->from * width, own->n * width);
        at += own->n * width;
    }
    free(column->at);
    column->at = to;
    column->size = column->used;
    return true;
}

bool runs_lay_texts(const struct runs *runs, struct texts *texts) {
    const int32_t *offsets = (const int32_t *)(const void *)texts->offsets.at;
    int32_t *new_offsets, *end;
    char *letters, *at;
    size_t run, row;
    if (runs->is_same || !texts->offsets.used)
        return true;
    new_offsets = malloc(texts->offsets.used);
    letters = malloc(texts->letters.used + 1);
    if (!new_offsets || !letters) {
        free(new_offsets);
        free(letters);
        return false;
    }
    *new_offsets = 0;
    for (run = 0, end = new_offsets + 1, at = letters; run < runs->n; run++) {
        const struct run *own = &runs->at[runs->order[run]];
        const int32_t *from = offsets + own->from;
        int32_t moved = (int32_t)(at - letters) - *from;
        size_t n_letters = (size_t)(from[own->n] - *from);
        for (row = 1; row <= own->n; row++)
            *end++ = from[row] + moved;
        if (n_letters)
            memcpy(at, texts->letters.at + *from, n_letters);
        at += n_letters;
    }
    free(texts->offsets.at);
    free(texts->letters.at);
    texts->offsets.at = (char *)new_offsets;
    texts->offsets.size = texts->offsets.used;
    texts->letters.at = letters;
    texts->letters.size = texts->letters.used + 1;
    return true;
}

void runs_free(struct runs *runs) {
    free(runs->at);
    free(runs->order);
}
