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

#include "files.h"

/* Exactly as long as a file, so that one byte too far is seen; it goes as soon as it is read. What was refused is read no more. */
static void read_text(const uint8_t *given, size_t length, struct files *operators, struct files *links, bool *are_read) {
    char *text = malloc(length + 1);
    if (!text)
        return;
    memcpy(text, given, length);
    text[length] = 0;
    are_read[0] = are_read[0] && operators_read(text, length, operators);
    are_read[1] = are_read[1] && links_read(text, length, links);
    free(text);
}

/* Read a text twice, one behind the other; or the text and its first half, which is refused mostly. */
int LLVMFuzzerTestOneInput(const uint8_t *given, size_t length) {
    struct files operators, links;
    bool are_read[2] = {true, true};
    memset(&operators, 0, sizeof operators);
    memset(&links, 0, sizeof links);
    operators.has_places = length % 2;
    read_text(given, length, &operators, &links, are_read);
    read_text(given, length % 7 ? length : length / 2, &operators, &links, are_read);
    files_free(&operators);
    files_free(&links);
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
