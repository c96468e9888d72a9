#include "columns.h"

#define FIRST_SIZE 4096
#define FIRST_SLOTS 256
/* Texts made to collide would be looked for one by one. */
#define MAX_PROBES 64

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

bool texts_add(struct texts *texts, struct text text) {
    if (!texts->offsets.used && !column_add_int32(&texts->offsets, 0))
        return false;
    return text.length <= INT32_MAX - texts->letters.used && column_add(&texts->letters, text.at, text.length) &&
           column_add_int32(&texts->offsets, (int32_t)texts->letters.used);
}

void texts_free(struct texts *texts) {
    free(texts->offsets.at);
    free(texts->letters.at);
}

static uint64_t hash_of(struct text text) {
    const char *at = text.at;
    uint64_t hash = text.length, first = 0, second = 0;
    size_t left;
    if (text.length < 8) {
        for (left = 0; left < text.length; left++)
            first = first << 8 | (unsigned char)at[left];
        return hash_of_pair(first, hash);
    }
    for (left = text.length; left > 16; left -= 16, at += 16) {
        memcpy(&first, at, 8);
        memcpy(&second, at + 8, 8);
        hash = hash_of_pair(first ^ hash, second);
    }
    /* The last words, which may hold some bytes again. */
    memcpy(&first, text.at + text.length - (left > 8 ? left : 8), 8);
    memcpy(&second, text.at + text.length - 8, 8);
    return hash_of_pair(first ^ hash, second);
}

static void fill_slots(struct names *names) {
    const struct name *known = (const struct name *)names->known.at;
    size_t number, place;
    for (place = 0; place < names->n_slots; place++)
        names->slots[place] = -1;
    for (number = 0; number < names->n_known; number++) {
        place = known[number].hash & (names->n_slots - 1);
        while (names->slots[place] >= 0)
            place = (place + 1) & (names->n_slots - 1);
        names->slots[place] = (int32_t)number;
    }
}

static bool make_slots(struct names *names, size_t n_slots) {
    int32_t *slots = malloc(n_slots * sizeof *slots);
    if (!slots)
        return false;
    free(names->slots);
    names->slots = slots;
    names->n_slots = n_slots;
    fill_slots(names);
    return true;
}

int32_t names_number(struct names *names, struct text text, int64_t seen) {
    uint64_t hash = hash_of(text);
    size_t place;
    int n_probes;
    if (names->n_known * 2 >= names->n_slots && !make_slots(names, names->n_slots ? names->n_slots * 4 : FIRST_SLOTS))
        return -1;
    place = hash & (names->n_slots - 1);
    for (n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        int32_t number = names->slots[place];
        struct name *known;
        if (number < 0) {
            if (names->known.size - names->known.used < sizeof *known && !column_grow(&names->known, sizeof *known))
                return -1;
            known = (struct name *)names->known.at + names->n_known;
            known->text = text;
            known->hash = hash;
            known->seen = seen;
            names->known.used += sizeof *known;
            names->slots[place] = (int32_t)names->n_known;
            return (int32_t)names->n_known++;
        }
        known = (struct name *)names->known.at + number;
        if (known->hash == hash && known->text.length == text.length &&
            !memcmp(known->text.at, text.at, text.length)) {
            if (known->seen == seen && seen >= 0)
                return -1;
            known->seen = seen;
            return number;
        }
        place = (place + 1) & (names->n_slots - 1);
    }
    return -1;
}

bool names_texts(const struct names *names, struct texts *texts) {
    const struct name *known = (const struct name *)names->known.at;
    size_t number;
    for (number = 0; number < names->n_known; number++)
        if (!texts_add(texts, known[number].text))
            return false;
    return true;
}

bool names_own(struct names *names) {
    struct name *known = (struct name *)names->known.at;
    const char *at;
    size_t number, used = names->letters.used;
    bool is_done = true;
    for (number = names->n_owned; is_done && number < names->n_known; number++)
        is_done = column_add(&names->letters, known[number].text.at, known[number].text.length);
    if (is_done)
        names->n_owned = names->n_known;
    else
        names->letters.used = used;
    /* They may have moved; without a single letter there is no place. */
    for (number = 0, at = names->letters.at; number < names->n_owned; number++) {
        known[number].text.at = at ? at : "";
        at = at ? at + known[number].text.length : NULL;
    }
    return is_done;
}

void names_clear(struct names *names) {
    names->n_known = names->n_owned = 0;
    names->known.used = names->letters.used = 0;
    fill_slots(names);
}

void names_free(struct names *names) {
    free(names->known.at);
    free(names->letters.at);
    free(names->slots);
}
