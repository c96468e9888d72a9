#include "json.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

/* All are exact: 10^22 < 2^53 * 2^22, and 5^27 < 2^63. */
static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define MAX_TEN 22
static const uint64_t POWERS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
static const uint64_t FIVES[] = {
    UINT64_C(1), UINT64_C(5), UINT64_C(25), UINT64_C(125), UINT64_C(625), UINT64_C(3125), UINT64_C(15625),
    UINT64_C(78125), UINT64_C(390625), UINT64_C(1953125), UINT64_C(9765625), UINT64_C(48828125),
    UINT64_C(244140625), UINT64_C(1220703125), UINT64_C(6103515625), UINT64_C(30517578125),
    UINT64_C(152587890625), UINT64_C(762939453125), UINT64_C(3814697265625), UINT64_C(19073486328125),
    UINT64_C(95367431640625), UINT64_C(476837158203125), UINT64_C(2384185791015625),
    UINT64_C(11920928955078125), UINT64_C(59604644775390625), UINT64_C(298023223876953125),
    UINT64_C(1490116119384765625), UINT64_C(7450580596923828125)};
#define MAX_FIVE 27
#define MANTISSA_BITS 53
/* Any number of so many digits fits 64 bits. */
#define MAX_DIGITS 19
#define MAX_EXPONENT 999

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Eight digits, of which those in front may be zeros: pairs, fours and all eight are put together. */
static inline uint64_t eight_digits(uint64_t word) {
    word = word * 10 + (word >> 8);
    return ((word & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
            ((word >> 16) & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >>
           32;
}

/* The top bit of each byte that is no digit; of the bytes '0' is subtracted already. */
static inline uint64_t no_digits(uint64_t word) {
    return (((word & ~(JSON_ONES * 0x80)) + JSON_ONES * (0x80 - 10)) | word) & (JSON_ONES * 0x80);
}

/* Most numbers have up to seven letters, whose lengths nobody can foresee: read them without a loop. NULL for another one;
 * without `found` its value is not asked for. */
static inline const char *short_number(const char *at, const char *end, struct number *found) {
    uint64_t word, others, whole, parts;
    int dot, behind;
    if (end - at < 8)
        return NULL;
    memcpy(&word, at, 8);
    word ^= JSON_ONES * '0';
    others = no_digits(word);
    /* Behind a zero comes no digit. */
    if (!others || others & 0x80 || (!(word & 0xFF) && !(others & 0x8000)))
        return NULL;
    dot = behind = __builtin_ctzll(others) / 8;
    whole = parts = word & ((UINT64_C(1) << 8 * dot) - 1);
    if (at[dot] == '.') {
        others &= others - 1;
        if (!others)
            return NULL;
        behind = __builtin_ctzll(others) / 8;
        if (behind == dot + 1)
            return NULL;
        /* The digits in front of the dot take its place. */
        parts = (whole << 8) | (word & ~(((UINT64_C(1) << 8 * dot) << 8) - 1));
    }
    if ((at[behind] | 0x20) == 'e')
        return NULL;
    if (!found)
        return at + behind;
    found->digits = eight_digits(parts << (64 - 8 * behind));
    found->exponent = dot == behind ? 0 : dot + 1 - behind;
    found->is_negative = found->has_exponent = false;
    return at + behind;
}
#else
static inline const char *short_number(const char *at, const char *end, struct number *found) {
    (void)at;
    (void)end;
    (void)found;
    return NULL;
}
#endif

/* Read digits behind those that were read; eight at once where the text goes on for so long. */
static inline const char *digits_at(const char *at, const char *end, uint64_t *digits) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8) {
        uint64_t word, others;
        int n;
        memcpy(&word, at, 8);
        word ^= JSON_ONES * '0';
        others = no_digits(word);
        n = others ? __builtin_ctzll(others) / 8 : 8;
        if (!n)
            return at;
        *digits = *digits * POWERS[n] + eight_digits(word << (64 - 8 * n));
        at += n;
        if (n < 8)
            return at;
    }
#endif
    for (; json_is_digit(*at); at++)
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    return at;
}

const char *json_number(const char *at, const char *end, struct number *found) {
    const char *begin, *first, *dot = NULL;
    uint64_t digits = 0;
    int exponent = 0;
    begin = short_number(at, end, found);
    if (begin)
        return begin;
    found->is_negative = *at == '-';
    at += found->is_negative;
    begin = at;
    if (*at == '0') {
        at++;
    } else {
        at = digits_at(at, end, &digits);
        if (at == begin)
            return NULL;
    }
    if (*at == '.') {
        dot = at;
        at = digits_at(at + 1, end, &digits);
        exponent = (int)(dot + 1 - at);
        if (!exponent || at - dot > MAX_EXPONENT)
            return NULL;
    }
    if (at - begin > MAX_DIGITS) {
        /* Zeros before the first other digit, and the dot, do not count. */
        for (first = begin; *first == '0' || first == dot; first++)
            ;
        if (at - first - (dot && dot >= first) > MAX_DIGITS)
            return NULL;
    }
    found->has_exponent = *at == 'e' || *at == 'E';
    if (found->has_exponent) {
        int stated = 0;
        bool is_below;
        at++;
        is_below = *at == '-';
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

bool json_as_double(const struct number *number, double *value) {
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
        found = rounded((wide)digits * FIVES[exponent], false, exponent);
    } else if (exponent < 0 && exponent >= -MAX_FIVE) {
        int zeros = __builtin_clzll(digits);
        wide numerator = (wide)(digits << zeros) << 64;
        uint64_t five = FIVES[-exponent];
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
        return json_goes_on(at, end, "null", 4) ? at + 4 : NULL;
    }
    at = json_number(at, end, &number);
    return at && json_as_double(&number, value) ? at : NULL;
}

static const char *skip_members(const char *at, const char *end, char closing, int depth) {
    bool is_done = false;
    at = json_blank(at + 1);
    if (*at == closing)
        return at + 1;
    while (at && !is_done) {
        struct text key;
        if (closing == '}')
            at = json_key(at, end, &key);
        at = json_next(json_skip(at, end, depth + 1), closing, &is_done);
    }
    return at;
}

const char *json_skip(const char *at, const char *end, int depth) {
    struct number number;
    struct text text;
    const char *behind;
    if (!at || depth > JSON_MAX_DEPTH)
        return NULL;
    switch (*at) {
    case '"':
        return json_string(at, end, &text);
    case '{':
        return skip_members(at, end, '}', depth);
    case '[':
        return skip_members(at, end, ']', depth);
    case 't':
        return json_goes_on(at, end, "true", 4) ? at + 4 : NULL;
    case 'f':
        return json_goes_on(at, end, "false", 5) ? at + 5 : NULL;
    case 'n':
        return json_goes_on(at, end, "null", 4) ? at + 4 : NULL;
    default:
        behind = short_number(at, end, NULL);
        return behind ? behind : json_number(at, end, &number);
    }
}
