/* See packed.h. Nothing that a file says is believed unchecked: it came from another machine. */
#include "packed.h"

#define MAX_DIGITS 20

void packed_read(const struct packed *packed, int64_t *values) {
    uint64_t sum = 0, step = (uint64_t)packed->step, begin = (uint64_t)packed->begin;
    size_t at;
    for (at = 0; at < packed->n; at++) {
        uint64_t folded = 0, value;
        int place;
        for (place = 0; place < packed->n_planes; place++)
            folded |= (uint64_t)packed->planes[(size_t)place * packed->n + at] << (8 * place);
        value = (folded >> 1) ^ (0 - (folded & 1));
        sum = packed->is_delta ? sum + value : value;
        values[at] = (int64_t)(sum * step + begin);
    }
}

/* Parts of stems must lie one behind the other, and each stem must have one. */
static bool stems_are_whole(const struct stems *stems) {
    int32_t end = 0;
    size_t at;
    for (at = 0; at < stems->n_parts; at++) {
        if (stems->part_ends[at] < end || (size_t)stems->part_ends[at] > stems->n_letters)
            return false;
        end = stems->part_ends[at];
    }
    end = 0;
    for (at = 0; at < stems->n_stems; at++) {
        if (stems->stem_ends[at] <= end || (size_t)stems->stem_ends[at] > stems->n_parts ||
            (size_t)(stems->stem_ends[at] - end) > stems->n_most + 1)
            return false;
        end = stems->stem_ends[at];
    }
    return true;
}

static bool number_add(struct column *letters, int64_t number) {
    char digits[MAX_DIGITS];
    int at = MAX_DIGITS;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return column_add(letters, digits + at, (size_t)(MAX_DIGITS - at));
}

static bool name_add(const struct stems *stems, size_t row, struct column *letters) {
    int64_t place = stems->places[row];
    int32_t begin, part;
    if (place < 0 || (uint64_t)place >= stems->n_stems)
        return false;
    begin = place ? stems->stem_ends[place - 1] : 0;
    for (part = begin; part < stems->stem_ends[place]; part++) {
        int32_t from = part ? stems->part_ends[part - 1] : 0;
        if (part > begin) {
            int64_t number = stems->numbers[row * stems->n_most + (size_t)(part - begin - 1)];
            if (number < 0 || !number_add(letters, number))
                return false;
        }
        if (!column_add(letters, stems->letters + from, (size_t)(stems->part_ends[part] - from)))
            return false;
    }
    return letters->used <= INT32_MAX;
}

bool stems_filled(const struct stems *stems, struct texts *texts) {
    size_t row;
    if (!stems_are_whole(stems) || !column_add_int32(&texts->offsets, 0))
        return false;
    for (row = 0; row < stems->n_names; row++)
        if (!name_add(stems, row, &texts->letters) || !column_add_int32(&texts->offsets, (int32_t)texts->letters.used))
            return false;
    return true;
}
