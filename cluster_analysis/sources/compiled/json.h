/* The tokens of JSON, as plain as profilers write them.
 *
 * Every function takes a place in a text and returns the place behind what it read, or NULL for anything
 * that is not plain: damage, escapes, letters outside ASCII, numbers that are not exact here. A file with
 * such a place is read in Python, which knows all of JSON and says what is wrong with it.
 *
 * The byte behind the text (`end`) must be readable and 0: it ends every loop over single characters.
 */
#ifndef CLUSTER_PROFILER_JSON_H
#define CLUSTER_PROFILER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What nobody asked for may be nested as deep as this. */
#define JSON_MAX_DEPTH 32
#define JSON_ONES UINT64_C(0x0101010101010101)

struct text {
    const char *at;
    size_t length;
};

/* A number as it is written: (-1 if is_negative) * digits * 10^exponent. */
struct number {
    uint64_t digits;
    int exponent;
    bool is_negative;
    bool has_exponent;
};

static inline const char *json_blank(const char *at) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
        at++;
    return at;
}

/* Read one character with the blanks around it. */
static inline const char *json_mark(const char *at, char mark) {
    if (!at)
        return NULL;
    at = json_blank(at);
    return *at == mark ? json_blank(at + 1) : NULL;
}

/* From behind the opening quote to the closing one. */
static inline const char *json_string_end(const char *at, const char *end) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8) {
        uint64_t word, quote, escape, special;
        memcpy(&word, at, 8);
        quote = word ^ (JSON_ONES * '"');
        escape = word ^ (JSON_ONES * '\\');
        /* The top bit of each byte that is a quote, a backslash, a control character or not ASCII. Carries
         * make more of them, but only above the first, and the first is what counts. */
        special = ((quote - JSON_ONES) & ~quote) | ((escape - JSON_ONES) & ~escape) |
                  ((word - JSON_ONES * 0x20) & ~word) | word;
        special &= JSON_ONES * 0x80;
        if (special) {
            at += __builtin_ctzll(special) / 8;
            return *at == '"' ? at : NULL;
        }
        at += 8;
    }
#endif
    for (; at < end; at++) {
        unsigned char letter = (unsigned char)*at;
        if (letter == '"')
            return at;
        if (letter == '\\' || letter < 0x20 || letter >= 0x80)
            return NULL;
    }
    return NULL;
}

static inline const char *json_string(const char *at, const char *end, struct text *found) {
    const char *closing;
    if (!at || *at != '"')
        return NULL;
    closing = json_string_end(at + 1, end);
    if (!closing)
        return NULL;
    found->at = at + 1;
    found->length = (size_t)(closing - at - 1);
    return closing + 1;
}

/* Read `"name":` with blanks behind it. */
static inline const char *json_key(const char *at, const char *end, struct text *found) {
    return json_mark(json_string(at, end, found), ':');
}

static inline bool json_is_digit(char letter) { return (unsigned char)(letter - '0') < 10; }

const char *json_number(const char *at, const char *end, struct number *found);
bool json_as_double(const struct number *number, double *value);
const char *json_skip(const char *at, const char *end, int depth);

/* Read a number or null, which becomes NaN. */
const char *json_double(const char *at, const char *end, double *value);

/* Whether the text goes on with these bytes. */
static inline bool json_goes_on(const char *at, const char *end, const char *bytes, size_t length) {
    return (size_t)(end - at) >= length && !memcmp(at, bytes, length);
}

/* Begin an object: behind `{`. */
static inline const char *json_object(const char *at) { return at && *at == '{' ? json_blank(at + 1) : NULL; }

/* Behind a member of an object: its next member, or behind the object, which sets `is_done`. */
static inline const char *json_next(const char *at, char closing, bool *is_done) {
    if (!at)
        return NULL;
    at = json_blank(at);
    *is_done = *at == closing;
    if (*is_done)
        return at + 1;
    return *at == ',' ? json_blank(at + 1) : NULL;
}

#endif
