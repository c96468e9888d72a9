#include "json.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

/* All are exact: 10^22 < 2^53 * 2^22. */
static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define MAX_TEN 22
/* 5^27 < 2^63. */
#define MAX_FIVE 27
#define MANTISSA_BITS 53
/* Any number of so many digits fits 64 bits. */
#define MAX_DIGITS 19
#define MAX_EXPONENT 999
/* What nobody asked for may be nested as deep as this. */
#define MAX_DEPTH 32
#define ONES UINT64_C(0x0101010101010101)

const char *json_string(const char *at, const char *end, struct text *found) {
    if (!at || *at != '"')
        return NULL;
    found->at = ++at;
    /* Pass over eight letters at once: the top bit of each byte that is a quote, a backslash, a control character or not ASCII,
     * and perhaps of some behind the first of these. */
    for (; end - at >= 8; at += 8) {
        uint64_t word, quote, escape;
        memcpy(&word, at, 8);
        quote = word ^ ONES * '"';
        escape = word ^ ONES * '\\';
        if ((((quote - ONES) & ~quote) | ((escape - ONES) & ~escape) | ((word - ONES * 0x20) & ~word) | word) & ONES * 0x80)
            break;
    }
    for (; at < end; at++) {
        unsigned char letter = (unsigned char)*at;
        if (letter == '"') {
            found->length = (size_t)(at - found->at);
            return at + 1;
        }
        if (letter == '\\' || letter < 0x20 || letter >= 0x80)
            return NULL;
    }
    return NULL;
}

/* Read a word as it is written. */
static const char *word(const char *at, const char *end, struct text letters) {
    return json_goes_on(at, end, letters) ? at + letters.length : NULL;
}

static const struct text NOTHING = TEXT("null"), TRUE = TEXT("true"), FALSE = TEXT("false");

const char *json_string_or_null(const char *at, const char *end, struct text *found) {
    found->at = NULL;
    found->length = 0;
    return *at == 'n' ? word(at, end, NOTHING) : json_string(at, end, found);
}

static const char *digits_at(const char *at, uint64_t *digits) {
    for (; json_is_digit(*at); at++)
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    return at;
}

const char *json_number(const char *at, struct number *found) {
    const char *begin, *dot;
    uint64_t digits = 0;
    int exponent = 0;
    found->is_negative = *at == '-';
    begin = at += found->is_negative;
    dot = at = digits_at(at, &digits);
    if (at == begin || (*begin == '0' && at > begin + 1))
        return NULL;
    if (*at == '.') {
        at = digits_at(at + 1, &digits);
        if (at == dot + 1 || at - dot > MAX_EXPONENT)
            return NULL;
        exponent = (int)(dot + 1 - at);
    }
    /* Zeros before the first other digit, and the dot, do not count. */
    while (at - begin > MAX_DIGITS && (*begin == '0' || begin == dot))
        begin++;
    if (at - begin - (dot >= begin && dot < at) > MAX_DIGITS)
        return NULL;
    found->has_exponent = *at == 'e' || *at == 'E';
    if (found->has_exponent) {
        int stated = 0;
        bool is_below = *++at == '-';
        at += *at == '-' || *at == '+';
        if (!json_is_digit(*at))
            return NULL;
        while (json_is_digit(*at)) {
            stated = stated * 10 + (*at++ - '0');
            if (stated > MAX_EXPONENT)
                return NULL;
        }
        exponent += is_below ? -stated : stated;
    }
    found->digits = digits;
    found->exponent = exponent;
    return at;
}

/* Return numerator * 2^power, rounded to nearest, ties to even; `rest`: there is a bit more than that. */
static double rounded(wide numerator, bool rest, int power) {
    uint64_t high = (uint64_t)(numerator >> 64), low = (uint64_t)numerator, mantissa;
    int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
    int shift = bits - MANTISSA_BITS;
    if (shift <= 0)
        return ldexp((double)low, power);
    mantissa = (uint64_t)(numerator >> shift);
    wide below = numerator & (((wide)1 << shift) - 1), half = (wide)1 << (shift - 1);
    if (below > half || (below == half && (rest || (mantissa & 1))))
        mantissa++;
    return ldexp((double)mantissa, power + shift);
}

static uint64_t power_of_five(int exponent) {
    uint64_t found = 1;
    while (exponent-- > 0)
        found *= 5;
    return found;
}

static bool as_double(const struct number *number, double *value) {
    uint64_t digits = number->digits;
    int exponent = number->exponent;
    double found;
    if (!digits) {
        /* A zero below zero is kept, or not, as other readers do. */
        *value = 0.0;
        return !number->is_negative;
    }
    if (digits <= UINT64_C(1) << MANTISSA_BITS && exponent >= -MAX_TEN && exponent <= MAX_TEN) {
        /* Both are exact, so one operation rounds once. */
        found = exponent < 0 ? (double)digits / TENS[-exponent] : (double)digits * TENS[exponent];
    } else if (exponent >= 0 && exponent <= MAX_FIVE) {
        found = rounded((wide)digits * power_of_five(exponent), false, exponent);
    } else if (exponent < 0 && exponent >= -MAX_FIVE) {
        int zeros = __builtin_clzll(digits);
        wide numerator = (wide)(digits << zeros) << 64;
        uint64_t five = power_of_five(-exponent);
        wide quotient = numerator / five;
        found = rounded(quotient, quotient * five != numerator, exponent - zeros - 64);
    } else {
        return false;
    }
    *value = number->is_negative ? -found : found;
    return true;
}

const char *json_double(const char *at, const char *end, double *value) {
    struct number number;
    if (*at == 'n') {
        *value = NAN;
        return word(at, end, NOTHING);
    }
    at = json_number(at, &number);
    return at && as_double(&number, value) ? at : NULL;
}

/* Behind a value: the next one of an object or array, or behind that, which sets `is_done`. */
static const char *next(const char *at, char closing, bool *is_done) {
    if (!at)
        return NULL;
    at = json_blank(at);
    *is_done = *at == closing;
    return *is_done ? at + 1 : *at == ',' ? json_blank(at + 1) : NULL;
}

const char *json_object(const char *at, const char *end, const struct text *names, int n, json_member read, void *given) {
    unsigned seen = 0;
    int guess = 0;
    bool is_done = false;
    if (!at || *at != '{')
        return NULL;
    at = json_blank(at + 1);
    if (*at == '}')
        return at + 1;
    while (at && !is_done) {
        struct text key;
        int which = -1, tried;
        at = json_mark(json_string(at, end, &key), ':');
        if (!at)
            return NULL;
        for (tried = 0; tried < n && which < 0; tried++, guess = guess + 1 < n ? guess + 1 : 0)
            if (key.length == names[guess].length && !memcmp(key.at, names[guess].at, key.length))
                which = guess;
        /* Of a member that is there twice the later one counts, which is not plain. */
        if (which >= 0 && seen >> which & 1)
            return NULL;
        seen |= which < 0 ? 0 : 1u << which;
        at = next(read(given, at, key, which), '}', &is_done);
    }
    return at;
}

struct nested {
    const char *end;
    int depth;
};

static const char *skip_member(void *given, const char *at, struct text key, int which) {
    struct nested *nested = given;
    (void)key;
    (void)which;
    return json_skip(at, nested->end, nested->depth);
}

const char *json_skip(const char *at, const char *end, int depth) {
    struct nested nested = {end, depth + 1};
    struct number number;
    struct text text;
    bool is_done = false;
    if (!at || depth > MAX_DEPTH)
        return NULL;
    switch (*at) {
    case '"':
        return json_string(at, end, &text);
    case '{':
        return json_object(at, end, NULL, 0, skip_member, &nested);
    case '[':
        at = json_blank(at + 1);
        if (*at == ']')
            return at + 1;
        while (at && !is_done)
            at = next(json_skip(at, end, depth + 1), ']', &is_done);
        return at;
    case 't':
        return word(at, end, TRUE);
    case 'f':
        return word(at, end, FALSE);
    case 'n':
        return word(at, end, NOTHING);
    default:
        return json_number(at, &number);
    }
}
