#include "sums.h"

#define FIRST_SLOTS 256
/* Keys made to collide would be looked for one by one. */
#define MAX_PROBES 64

static uint64_t hash_of(const struct sums *sums, int64_t row) {
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    int key;
    for (key = 0; key < sums->n_keys; key++) {
        hash = (hash ^ (uint64_t)sums->keys[key][row]) * UINT64_C(0xFF51AFD7ED558CCD);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool are_equal(const struct sums *sums, int64_t one, int64_t other) {
    int key;
    for (key = 0; key < sums->n_keys; key++)
        if (sums->keys[key][one] != sums->keys[key][other])
            return false;
    return true;
}

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
        place = hash_of(sums, sums->rows[found[at].first]) & (n_slots - 1);
        while (slots[place] >= 0)
            place = (place + 1) & (n_slots - 1);
        slots[place] = (int32_t)at;
    }
    return slots;
}

/* Return the sum of a row's keys, a new one where they are new; NULL where that cannot be. */
static struct sum *sum_of(struct sums *sums, int32_t *slots, size_t n_slots, size_t span) {
    int64_t row = sums->rows[span];
    size_t place = hash_of(sums, row) & (n_slots - 1);
    struct sum new = {(int64_t)span, 0, 0, INT64_MAX, INT64_MIN};
    int n_probes;
    for (n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        int32_t number = slots[place];
        struct sum *known;
        if (number < 0) {
            slots[place] = (int32_t)(sums->found.used / sizeof new);
            if (!column_add(&sums->found, &new, sizeof new))
                return NULL;
            return (struct sum *)sums->found.at + slots[place];
        }
        known = (struct sum *)sums->found.at + number;
        if (are_equal(sums, sums->rows[known->first], row))
            return known;
        place = (place + 1) & (n_slots - 1);
    }
    return NULL;
}

bool sums_make(struct sums *sums) {
    size_t n_slots = FIRST_SLOTS, span;
    int32_t *slots = make_slots(sums, n_slots);
    bool is_done = slots != NULL;
    for (span = 0; is_done && span < sums->n_spans; span++) {
        int64_t lasted = sums->spans[2 * span + 1] - sums->spans[2 * span];
        struct sum *sum;
        if (sums->found.used / sizeof *sum * 2 >= n_slots) {
            free(slots);
            slots = make_slots(sums, n_slots *= 4);
        }
        is_done = slots && sums->rows[span] >= 0 && (uint64_t)sums->rows[span] < sums->n_known &&
                  (sum = sum_of(sums, slots, n_slots, span));
        if (is_done) {
            sum->n++;
            sum->total += lasted;
            if (lasted < sum->least)
                sum->least = lasted;
            if (lasted > sum->most)
                sum->most = lasted;
        }
    }
    free(slots);
    return is_done;
}
