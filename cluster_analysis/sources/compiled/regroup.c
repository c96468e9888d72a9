#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "regroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_ROW SIZE_MAX
/* What lies between a file's pieces is read with them where it is not much more than they are. */
#define MAX_READ_FOR_EACH_USED 2.5
#define MAX_READ (1 << 24)

static size_t digits_of(int32_t number) {
    size_t n = 1;
    while (number > 9) {
        number /= 10;
        n++;
    }
    return n;
}

static char *put(char *to, const char *text, size_t length) {
    memcpy(to, text, length);
    return to + length;
}

static char *put_number(char *to, int32_t number) {
    size_t n = digits_of(number), at;
    for (at = n; at > 0; at--) {
        to[at - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return to + n;
}

static bool is_key(const struct regroup *given, int32_t key) {
    return key >= 0 && (size_t)key < given->n_keys && given->key_offsets[key] >= 0 &&
           given->key_offsets[key + 1] >= given->key_offsets[key] &&
           (size_t)given->key_offsets[key + 1] <= given->n_letters;
}

/* Whether a row begins the pieces of a key. */
static bool begins(const struct regroup *given, size_t row) {
    return row == 0 || given->keys[row] != given->keys[row - 1];
}

size_t regroup_size(const struct regroup *given) {
    size_t size = 1, row;
    for (row = 0; row < given->n_rows; row++) {
        int32_t key = given->keys[row], file = given->files[row], length = given->lengths[row];
        size_t more;
        if (!is_key(given, key) || file < 0 || (size_t)file >= given->n_files || given->ranks[file] < 0 || length < 0 ||
            given->offsets[row] < 0 || given->offsets[row] > INT64_MAX - length)
            return 0;
        /* `"rank": ` and what stands before it: `, `, or `"key": {`, or `}, "key": {`. */
        more = digits_of(given->ranks[file]) + 4 + (size_t)length;
        if (begins(given, row))
            more += (size_t)(given->key_offsets[key + 1] - given->key_offsets[key]) + 5 + (row ? 3 : 0);
        else
            more += 2;
        if (size > PTRDIFF_MAX - more)
            return 0;
        size += more;
    }
    return row ? size : 0;
}

/* Write the labels, and note where each piece belongs. */
static void lay(const struct regroup *given, char *to, char **places) {
    size_t row;
    for (row = 0; row < given->n_rows; row++) {
        int32_t key = given->keys[row];
        if (begins(given, row)) {
            to = row ? put(to, "}, \"", 4) : put(to, "\"", 1);
            to = put(to, given->letters + given->key_offsets[key],
                     (size_t)(given->key_offsets[key + 1] - given->key_offsets[key]));
            to = put(to, "\": {\"", 5);
        } else {
            to = put(to, ", \"", 3);
        }
        to = put_number(to, given->ranks[given->files[row]]);
        to = put(to, "\": ", 3);
        places[row] = to;
        to += given->lengths[row];
    }
    *to = '}';
}

static bool read_at(int descriptor, char *to, size_t length, int64_t offset) {
    while (length > 0) {
        ssize_t got = pread(descriptor, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        offset += got;
        length -= (size_t)got;
    }
    return true;
}

struct scratch {
    char *at;
    size_t size;
};

/* Bring all pieces of one file, whose rows are linked from `row` on. */
static bool fill(const struct regroup *given, size_t row, const size_t *next, char **places, struct scratch *scratch) {
    int descriptor = given->descriptors[given->files[row]];
    int64_t low = INT64_MAX, high = 0;
    size_t used = 0, range, at;
    for (at = row; at != NO_ROW; at = next[at]) {
        int64_t end = given->offsets[at] + given->lengths[at];
        low = given->offsets[at] < low ? given->offsets[at] : low;
        high = end > high ? end : high;
        used += (size_t)given->lengths[at];
    }
    range = (size_t)(high - low);
    if (range > MAX_READ || (double)range > MAX_READ_FOR_EACH_USED * (double)used || next[row] == NO_ROW) {
        for (at = row; at != NO_ROW; at = next[at])
            if (!read_at(descriptor, places[at], (size_t)given->lengths[at], given->offsets[at]))
                return false;
        return true;
    }
    if (range > scratch->size) {
        free(scratch->at);
        scratch->size = 2 * range;
        scratch->at = malloc(scratch->size);
    }
    if (!scratch->at || !read_at(descriptor, scratch->at, range, low))
        return false;
    for (at = row; at != NO_ROW; at = next[at])
        memcpy(places[at], scratch->at + (given->offsets[at] - low), (size_t)given->lengths[at]);
    return true;
}

bool regroup_write(const struct regroup *given, char *to) {
    char **places = calloc(given->n_rows, sizeof *places);
    size_t *next = calloc(given->n_rows, sizeof *next), *first = calloc(given->n_files, sizeof *first), row, file;
    struct scratch scratch = {NULL, 0};
    bool is_done = places && next && first;
    if (is_done) {
        lay(given, to, places);
        for (file = 0; file < given->n_files; file++)
            first[file] = NO_ROW;
        for (row = given->n_rows; row > 0; row--) {
            next[row - 1] = first[given->files[row - 1]];
            first[given->files[row - 1]] = row - 1;
        }
    }
    for (file = 0; is_done && file < given->n_files; file++)
        is_done = first[file] == NO_ROW || fill(given, first[file], next, places, &scratch);
    free(scratch.at);
    free(first);
    free(next);
    free(places);
    return is_done;
}
