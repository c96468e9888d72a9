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

struct text {
    const char *at;
    size_t length;
};
/* A text whose letters are written here. */
#define TEXT(letters) {letters, sizeof(letters) - 1}

/* A number as it is written: (-1 if is_negative) * digits * 10^exponent. */
struct number {
    uint64_t digits;
    int exponent;
    bool is_negative;
    bool has_exponent;
};

static inline bool json_is_digit(char letter) { return (unsigned char)(letter - '0') < 10; }

/* Whether the text goes on with these letters. */
static inline bool json_goes_on(const char *at, const char *end, struct text letters) {
    return (size_t)(end - at) >= letters.length && !memcmp(at, letters.at, letters.length);
}

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

const char *json_string(const char *at, const char *end, struct text *found);
/* Read null as a text that lies nowhere. */
const char *json_string_or_null(const char *at, const char *end, struct text *found);
const char *json_number(const char *at, struct number *found);
/* Read a number or null, which becomes NaN. */
const char *json_double(const char *at, const char *end, double *value);
/* Read what nobody asked for; `depth` is how deep it is nested. */
const char *json_skip(const char *at, const char *end, int depth);

/* Reads the value of a member; `which` of the names that are known its key is, -1 for another one. */
typedef const char *(*json_member)(void *given, const char *at, struct text key, int which);

/* Read an object, whose members are mostly in the order of the n names; one of these twice is not plain. */
const char *json_object(const char *at, const char *end, const struct text *names, int n, json_member read, void *given);

#endif
