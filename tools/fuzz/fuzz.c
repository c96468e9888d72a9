/* Hostile texts for the compiled reader, under sanitizers: see tools/fuzz/fuzz.sh.
 *
 * With libFuzzer (clang) the fuzzer makes the texts. Without it, `main` spoils the given files:
 *     fuzz SECONDS FILE…
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "communication.h"
#include "exact.h"
#include "matrix.h"
#include "packed.h"
#include "packet_totals.h"
#include "regroup.h"

/* Take a text's own bytes for the stems of names, and for numbers in planes. Small ones, or most would be refused at once. */
static void fill_names(const uint8_t *given, size_t length) {
    enum { N_NAMES = 16, N_MOST = 2 };
    size_t n = length < 64 ? length : 64, at;
    int32_t *ends = calloc(2 * n + 1, sizeof *ends);
    int64_t *numbers = calloc(N_NAMES * (1 + N_MOST), sizeof *numbers), values[64];
    struct texts texts = {{NULL, 0, 0}, {NULL, 0, 0}};
    struct stems stems;
    struct packed packed = {given, n / 3, 3, n % 2, INT64_MIN + (int64_t)n, INT64_MAX - (int64_t)n};
    if (n && ends && numbers) {
        for (at = 0; at < n; at++) {
            ends[at] = (int32_t)at + given[at] % 4 - 1;
            ends[n + at] = (int32_t)at + 1 + given[at] % 3;
        }
        for (at = 0; at < N_NAMES * (1 + N_MOST); at++)
            numbers[at] = at < N_NAMES ? given[at % n] % 5 - (given[at % n] > 250) : (int64_t)given[at % n] << (at % 56);
        memset(&stems, 0, sizeof stems);
        stems.letters = (const char *)given;
        stems.n_letters = length;
        stems.part_ends = ends;
        stems.n_parts = n;
        stems.stem_ends = ends + n;
        stems.n_stems = given[0] % 5 < n ? given[0] % 5 : n;
        stems.places = numbers;
        stems.numbers = numbers + N_NAMES;
        stems.n_names = N_NAMES;
        stems.n_most = N_MOST;
        (void)stems_filled(&stems, &texts);
        packed_read(&packed, values);
    }
    texts_free(&texts);
    free(ends);
    free(numbers);
}

/* Take a text for a file, and its bytes for pieces of it: most lie in it, some behind its end, some are impossible. */
static void regroup_pieces(const uint8_t *given, size_t length) {
    enum { N_ROWS = 24, N_FILES = 4, N_KEYS = 6, MOST = 1 << 20 };
    static const int32_t RANKS[N_FILES] = {0, 9, 10, INT32_MAX};
    static int file = -1;
    int32_t keys[N_ROWS], files[N_ROWS], lengths[N_ROWS], ends[N_KEYS + 1], ranks[N_FILES], descriptors[N_FILES];
    int64_t offsets[N_ROWS];
    struct regroup pieces = {keys, files, lengths, offsets, 0, ends, (const char *)given, N_KEYS, length, ranks, descriptors, N_FILES};
    size_t at, size;
    char *to;
    if (length < 4 * N_ROWS)
        return;
    if (file < 0)
        file = memfd_create("pieces", 0);
    if (file < 0 || ftruncate(file, 0) || pwrite(file, given, length, 0) != (ssize_t)length)
        return;
    for (at = 0; at <= N_KEYS; at++)
        ends[at] = (int32_t)(at * (given[at] % 8)) - (given[at] == 255);
    for (at = 0; at < N_FILES; at++) {
        ranks[at] = RANKS[at] - (given[at] == 254 ? 1 : 0);
        descriptors[at] = given[at] == 253 ? -1 : file;
    }
    pieces.n_rows = given[0] % (N_ROWS + 1);
    for (at = 0; at < N_ROWS; at++) {
        const uint8_t *own = given + 4 * at;
        keys[at] = own[0] % N_KEYS - (own[0] == 251);
        files[at] = own[1] % N_FILES + (own[1] == 252 ? N_FILES : 0);
        lengths[at] = own[2] == 250 ? INT32_MAX - own[3] : own[2] * (own[3] % 5) - (own[2] == 249);
        offsets[at] = own[3] == 248 ? INT64_MAX - own[2] : (int64_t)((own[2] * 257u + own[3]) % (length + 2)) - (own[3] == 247);
    }
    size = regroup_size(&pieces);
    to = size && size <= MOST ? malloc(size) : NULL;
    if (to)
        (void)regroup_write(&pieces, to);
    free(to);
}

/* Take a text's own bytes for pairs of numbers, many of which are none, and for their order. */
static void sum_exactly(const uint8_t *given, size_t length) {
    enum { N_SUMS = 3 };
    size_t n = length / (2 * sizeof(double)), at;
    double *pairs = calloc(2 * n + 1, sizeof *pairs), sums[2 * N_SUMS];
    int64_t *order = calloc(n + 1, sizeof *order), begins[N_SUMS];
    for (at = 0; pairs && at < 2 * n; at++) {
        memcpy(&pairs[at], given + at * sizeof *pairs, sizeof *pairs);
        if (given[at] % 8)
            pairs[at] = (given[at] - 127) * (at % 3 ? 1e-3 : 1e17);
    }
    for (at = 0; order && at < n; at++)
        order[at] = given[at] % 64 ? (int64_t)(given[at] % n) : (int64_t)n - given[at];
    for (at = 0; at < N_SUMS; at++)
        begins[at] = n ? (int64_t)(at * n / N_SUMS) + (given[at] == 255) - (given[at] == 254) : 0;
    if (pairs && order)
        (void)exact_sums(pairs, n, order, n, begins, N_SUMS, sums);
    free(pairs);
    free(order);
}

/* Exactly as long as a file, so that one byte too far is seen; it goes as soon as it is read. What was refused is read no more. */
static void read_text(const uint8_t *given, size_t length, struct operators *operators, struct links *links, bool *are_read) {
    char *text = malloc(length + 1);
    if (!text)
        return;
    memcpy(text, given, length);
    text[length] = 0;
    are_read[0] = are_read[0] && operators_read(text, length, operators);
    are_read[1] = are_read[1] && links_read(text, length, links);
    free(text);
}

/* Read a text twice, one behind the other, and lay both; or the text and its first half, which is refused mostly. */
static void read_texts(const uint8_t *given, size_t length) {
    struct operators operators;
    struct links links;
    struct column totals = {NULL, 0, 0};
    bool are_read[2] = {true, true};
    memset(&operators, 0, sizeof operators);
    memset(&links, 0, sizeof links);
    operators.has_places = length % 2;
    operators.needed = length % 3 ? 0 : 1;
    operators.measured = length % 5 ? 0 : 7;
    read_text(given, length, &operators, &links, are_read);
    read_text(given, length % 7 ? length : length / 2, &operators, &links, are_read);
    if (are_read[0]) {
        (void)packet_totals(&operators, &totals);
        (void)operators_lay(&operators);
    }
    if (are_read[1])
        (void)links_lay(&links);
    operators_free(&operators);
    links_free(&links);
    free(totals.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *given, size_t length) {
    read_texts(given, length);
    sum_exactly(given, length);
    fill_names(given, length);
    regroup_pieces(given, length);
    return 0;
}

#ifndef WITH_LIBFUZZER
#define MAX_BYTES (1 << 20)
#define MAX_INSERTED 300

static uint64_t state = UINT64_C(88172645463325252);

static size_t below(size_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? (size_t)(state % limit) : 0;
}

static const char *const SPOILERS[] = {"1e400", "-0", "null", "{}", "[]", "\"", "\\", "}", "{", "[", "]", ",", ":", "@", "__",
                                       "99999999999999999999", "0.00000000000000000000001", "\"\"", "Total", "-1", "e5", ".", "\xff"};

/* Change a text in one to four places; it may grow up to `size`. */
static size_t spoil(uint8_t *text, size_t length, size_t size) {
    uint8_t part[MAX_INSERTED];
    size_t n;
    for (n = below(4) + 1; n > 0; n--) {
        size_t at = below(length + 1), more, from;
        const char *spoiler = SPOILERS[below(sizeof SPOILERS / sizeof *SPOILERS)];
        switch (below(5)) {
        case 0: /* another letter */
            if (at < length)
                text[at] = (uint8_t)below(256);
            break;
        case 1: /* cut off */
            length = below(8) ? length : at;
            break;
        case 2: /* something is gone */
            more = below(length - at + 1) % 40;
            memmove(text + at, text + at + more, length - at - more);
            length -= more;
            break;
        case 3: /* something is there that should not be */
            more = strlen(spoiler);
            if (length + more > size)
                break;
            memmove(text + at + more, text + at, length - at);
            memcpy(text + at, spoiler, more);
            length += more;
            break;
        default: /* a part of the text once more */
            from = below(length + 1);
            more = below(MAX_INSERTED);
            if (from + more > length || length + more > size)
                break;
            memcpy(part, text + from, more);
            memmove(text + at + more, text + at, length - at);
            memcpy(text + at, part, more);
            length += more;
        }
    }
    return length;
}

int main(int argc, char **argv) {
    static uint8_t original[MAX_BYTES], text[2 * MAX_BYTES];
    time_t end;
    long n_texts = 0;
    int file;
    if (argc < 3) {
        fprintf(stderr, "usage: fuzz SECONDS FILE…\n");
        return 2;
    }
    end = time(NULL) + atoi(argv[1]);
    while (time(NULL) < end) {
        for (file = 2; file < argc && time(NULL) < end; file++) {
            FILE *stream = fopen(argv[file], "rb");
            size_t length;
            int round;
            if (!stream) {
                perror(argv[file]);
                return 2;
            }
            length = fread(original, 1, sizeof original, stream);
            fclose(stream);
            (void)LLVMFuzzerTestOneInput(original, length);
            for (round = 0; round < 200; round++, n_texts++) {
                memcpy(text, original, length);
                (void)LLVMFuzzerTestOneInput(text, spoil(text, length, sizeof text));
            }
        }
    }
    printf("%ld spoiled texts\n", n_texts);
    return 0;
}
#endif
