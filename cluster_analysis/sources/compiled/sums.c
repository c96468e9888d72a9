#include "sums.h"

#define FIRST_SLOTS 256
/* Keys made to collide would be looked for one by one. */
#define MAX_PROBES 64
/* So many places for each id; and how much time all tasks may take. */
#define MOST_PLACES 16
#define MOST_NS (UINT64_C(1) << 62)

static uint64_t hash_of(const struct sums *sums, int64_t row) {
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = 0, factor = odd;
    int key;
    /* No product waits for another. */
    for (key = 0; key < sums->n_keys; key++, factor += 2 * odd)
        hash += (uint64_t)sums->keys[key][row] * factor;
    hash = (hash ^ hash >> 32) * UINT64_C(0xFF51AFD7ED558CCD);
    return hash ^ hash >> 32;
}

static bool are_equal(const struct sums *sums, int64_t one, int64_t other) {
    int key;
    for (key = 0; key < sums->n_keys; key++)
        if (sums->keys[key][one] != sums->keys[key][other])
            return false;
    return true;
}

static int64_t row_of(const struct sums *sums, int64_t span) { return sums->rows ? sums->rows[span] : span; }

/* Put the number of each sum where its hash says. */
static int32_t *make_slots(const struct sums *sums, size_t n_slots) {
    const struct sum *found = (const struct sum *)sums->found.at;
    size_t n = sums->found.used / sizeof *found, at, place;
    int32_t *slots = malloc(n_slots * sizeof *slots);
    if (!slots)
        return NULL;
    for (at = 0; at < n_slots; at++)
        slots[at] = -1;
    for (at = 0; at < n; at++) {
        place = hash_of(sums, row_of(sums, found[at].first)) & (n_slots - 1);
        while (slots[place] >= 0)
            place = (place + 1) & (n_slots - 1);
        slots[place] = (int32_t)at;
    }
    return slots;
}

/* Return the sum of a row's keys, a new one where they are new; NULL where that cannot be. */
static struct sum *sum_of(struct sums *sums, size_t span) {
    int64_t row = row_of(sums, (int64_t)span);
    size_t place = hash_of(sums, row) & (sums->n_slots - 1);
    struct sum new = {(int64_t)span, 0, 0, INT64_MAX, INT64_MIN};
    int n_probes;
    for (n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        int32_t number = sums->slots[place];
        struct sum *known;
        if (number < 0) {
            sums->slots[place] = (int32_t)(sums->found.used / sizeof new);
            if (!column_add(&sums->found, &new, sizeof new))
                return NULL;
            return (struct sum *)sums->found.at + sums->slots[place];
        }
        known = (struct sum *)sums->found.at + number;
        if (are_equal(sums, row_of(sums, known->first), row))
            return known;
        place = (place + 1) & (sums->n_slots - 1);
    }
    return NULL;
}

/* Add what a span lasted to the sum of its row, which is one of the columns. */
static bool add_span(struct sums *sums, size_t span, int64_t lasted) {
    struct sum *sum;
    if (!sums->slots || sums->found.used / sizeof *sum * 2 >= sums->n_slots) {
        free(sums->slots);
        sums->n_slots = sums->n_slots ? sums->n_slots * 4 : FIRST_SLOTS;
        sums->slots = make_slots(sums, sums->n_slots);
    }
    if (!sums->slots || !(sum = sum_of(sums, span)))
        return false;
    sum->n++;
    sum->total += lasted;
    if (lasted < sum->least)
        sum->least = lasted;
    if (lasted > sum->most)
        sum->most = lasted;
    return true;
}

bool sums_make(struct sums *sums) {
    size_t span;
    bool is_done = true;
    for (span = 0; is_done && span < sums->n_spans; span++)
        is_done = sums->rows[span] >= 0 && (uint64_t)sums->rows[span] < sums->n_known &&
                  add_span(sums, span, sums->spans[2 * span + 1] - sums->spans[2 * span]);
    free(sums->slots);
    return is_done;
}

/* Return the row of each id, counted from the least one, -1 for none; NULL where they lie far apart, or one is there twice. */
static int32_t *rows_by_id(const int64_t *ids, size_t n, int64_t *least, uint64_t *n_places) {
    int64_t most = ids[0];
    int32_t *rows;
    uint64_t place;
    size_t at;
    *least = ids[0];
    for (at = 1; at < n; at++) {
        if (ids[at] < *least)
            *least = ids[at];
        if (ids[at] > most)
            most = ids[at];
    }
    *n_places = (uint64_t)most - (uint64_t)*least + 1;
    if (!*n_places || *n_places / MOST_PLACES > n || n > INT32_MAX || !(rows = malloc(*n_places * sizeof *rows)))
        return NULL;
    memset(rows, 0xff, *n_places * sizeof *rows);
    for (at = 0; at < n; at++) {
        place = (uint64_t)ids[at] - (uint64_t)*least;
        if (rows[place] >= 0) {
            free(rows);
            return NULL;
        }
        rows[place] = (int32_t)at;
    }
    return rows;
}

bool sums_join(struct sums *sums, const struct tasks *tasks, const int64_t *ids) {
    int64_t least = 0;
    uint64_t n_places = 0, place, all = 0;
    int32_t *rows = sums->n_known ? rows_by_id(ids, sums->n_known, &least, &n_places) : NULL;
    bool is_done = rows != NULL;
    size_t at;
    for (at = 0; is_done && at < tasks->n; at++) {
        uint64_t lasted = (uint64_t)tasks->ends[at] - (uint64_t)tasks->begins[at];
        place = (uint64_t)tasks->ids[at] - (uint64_t)least;
        if (tasks->ends[at] < tasks->begins[at] || place >= n_places || rows[place] < 0)
            continue;
        /* Then no sum is too large. */
        is_done = lasted <= MOST_NS && (all += lasted) <= MOST_NS && add_span(sums, (size_t)rows[place], (int64_t)lasted);
    }
    free(rows);
    free(sums->slots);
    return is_done;
}
