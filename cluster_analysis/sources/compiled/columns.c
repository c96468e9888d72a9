#include "columns.h"

#define FIRST_SIZE 4096
#define FIRST_SLOTS 256
/* Texts made to collide would be looked for one by one. */
#define MAX_PROBES 64

__extension__ typedef unsigned __int128 wide;

struct name {
    uint64_t hash;
    int64_t seen; /* where last */
};

bool column_grow(struct column *column, size_t more) {
    size_t size = column->size ? column->size : FIRST_SIZE;
    char *at;
    while (size - column->used < more) {
        if (size > SIZE_MAX / 2)
            return false;
        size *= 2;
    }
    at = realloc(column->at, size);
    if (!at)
        return false;
    column->at = at;
    column->size = size;
    return true;
}

void column_free(struct column *column) {
    free(column->at);
    memset(column, 0, sizeof *column);
}

bool texts_add(struct texts *texts, struct text text) {
    if (!texts->offsets.used && !column_add_int32(&texts->offsets, 0))
        return false;
    return text.length <= INT32_MAX - texts->letters.used && column_add(&texts->letters, text.at, text.length) &&
           column_add_int32(&texts->offsets, (int32_t)texts->letters.used);
}

/* Both halves of a product depend on all bits of both factors. */
static uint64_t hash_of_pair(uint64_t first, uint64_t second) {
    wide product = (wide)(first ^ UINT64_C(0x9E3779B97F4A7C15)) * (second ^ UINT64_C(0xC4CEB9FE1A85EC53));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(struct text text) {
    uint64_t hash = text.length;
    size_t at;
    for (at = 0; at < text.length; at += 8) {
        uint64_t word = 0;
        memcpy(&word, text.at + at, text.length - at < 8 ? text.length - at : 8);
        hash = hash_of_pair(hash, word);
    }
    return hash;
}

static int32_t n_known(const struct names *names) { return (int32_t)(names->known.used / sizeof(struct name)); }

/* Put the number of each known text into the first free slot from its hash on. */
static void fill_slots(struct names *names) {
    const struct name *known = (const struct name *)names->known.at;
    size_t place;
    int32_t number;
    for (place = 0; place < names->n_slots; place++)
        names->slots[place] = -1;
    for (number = 0; number < n_known(names); number++) {
        for (place = known[number].hash; names->slots[place & (names->n_slots - 1)] >= 0; place++)
            ;
        names->slots[place & (names->n_slots - 1)] = number;
    }
}

static bool make_slots(struct names *names) {
    size_t n_slots = names->n_slots ? names->n_slots * 4 : FIRST_SLOTS;
    int32_t *slots = realloc(names->slots, n_slots * sizeof *slots);
    if (!slots)
        return false;
    names->slots = slots;
    names->n_slots = n_slots;
    fill_slots(names);
    return true;
}

static bool is_text(const struct names *names, int32_t number, struct text text) {
    const int32_t *offsets = (const int32_t *)names->texts.offsets.at + number;
    return (size_t)(offsets[1] - offsets[0]) == text.length &&
           (!text.length || !memcmp(names->texts.letters.at + offsets[0], text.at, text.length));
}

int32_t names_number(struct names *names, struct text text, int64_t seen) {
    struct name own = {hash_of(text), seen};
    int32_t n = n_known(names);
    int n_probes;
    if ((size_t)n * 2 >= names->n_slots && !make_slots(names))
        return -1;
    for (n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        int32_t *slot = names->slots + ((own.hash + (unsigned)n_probes) & (names->n_slots - 1));
        struct name *known;
        if (*slot < 0) {
            if (!texts_add(&names->texts, text) || !column_add(&names->known, &own, sizeof own))
                return -1;
            return *slot = n;
        }
        known = (struct name *)names->known.at + *slot;
        if (known->hash == own.hash && is_text(names, *slot, text)) {
            if (known->seen == seen && seen >= 0)
                return -1;
            known->seen = seen;
            return *slot;
        }
    }
    return -1;
}

void names_clear(struct names *names) {
    names->texts.offsets.used = names->texts.letters.used = names->known.used = 0;
    fill_slots(names);
}

void names_free(struct names *names) {
    column_free(&names->texts.offsets);
    column_free(&names->texts.letters);
    column_free(&names->known);
    free(names->slots);
}
