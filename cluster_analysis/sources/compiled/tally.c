#include "tally.h"

#define FIRST_SLOTS 256
/* Pairs made to collide would be looked for one by one. */
#define MAX_PROBES 64

static void fill_slots(struct tally *tally) {
    const uint64_t *known = (const uint64_t *)(const void *)tally->known.at;
    size_t place;
    int32_t number;
    for (place = 0; place < tally->n_slots; place++)
        tally->slots[place] = -1;
    for (number = 0; number < tally->n; number++) {
        place = hash_of_pair(known[2 * number], known[2 * number + 1]) & (tally->n_slots - 1);
        while (tally->slots[place] >= 0)
            place = (place + 1) & (tally->n_slots - 1);
        tally->slots[place] = number;
    }
}

static bool make_slots(struct tally *tally, size_t n_slots) {
    int32_t *slots = malloc(n_slots * sizeof *slots);
    if (!slots)
        return false;
    free(tally->slots);
    tally->slots = slots;
    tally->n_slots = n_slots;
    fill_slots(tally);
    return true;
}

int32_t tally_number(struct tally *tally, uint64_t first, uint64_t second) {
    uint64_t pair[] = {first, second};
    size_t place;
    int n_probes;
    if ((size_t)tally->n * 2 >= tally->n_slots && !make_slots(tally, tally->n_slots ? tally->n_slots * 4 : FIRST_SLOTS))
        return -1;
    place = hash_of_pair(first, second) & (tally->n_slots - 1);
    for (n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        int32_t number = tally->slots[place];
        const uint64_t *known;
        if (number < 0) {
            if (!column_add(&tally->known, pair, sizeof pair))
                return -1;
            tally->slots[place] = tally->n;
            return tally->n++;
        }
        known = (const uint64_t *)(const void *)tally->known.at + 2 * (size_t)number;
        if (known[0] == first && known[1] == second)
            return number;
        place = (place + 1) & (tally->n_slots - 1);
    }
    return -1;
}

void tally_free(struct tally *tally) {
    free(tally->known.at);
    free(tally->slots);
}
