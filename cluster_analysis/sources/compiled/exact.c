#include "exact.h"

#include <math.h>

/* Parts of a sum that do not overlap: two numbers of 64 bits are at most 2098 bits apart, and each part has 53. */
#define MAX_PARTS 48

struct exact {
    double parts[MAX_PARTS];
    int n;
};

/* Add a number: what a sum of two cannot hold stays as a part of its own (Shewchuk 1997, as in CPython's mathmodule.c). */
static bool add(struct exact *sum, double x) {
    int at, n_kept = 0;
    for (at = 0; at < sum->n; at++) {
        double y = sum->parts[at], high, low, larger;
        if (fabs(x) < fabs(y)) {
            larger = y;
            y = x;
            x = larger;
        }
        high = x + y;
        low = high - x;
        low = y - low;
        if (low != 0.0)
            sum->parts[n_kept++] = low;
        x = high;
    }
    if (!isfinite(x) || n_kept >= MAX_PARTS)
        return false;
    sum->n = n_kept;
    if (x != 0.0)
        sum->parts[sum->n++] = x;
    return true;
}

/* Return the sum of the parts, rounded once, ties to even. */
static double rounded(const struct exact *sum) {
    double high = 0.0, low = 0.0, y, x, rest;
    int n = sum->n;
    if (n) {
        high = sum->parts[--n];
        while (n) {
            x = high;
            y = sum->parts[--n];
            high = x + y;
            rest = high - x;
            low = y - rest;
            if (low != 0.0)
                break;
        }
        /* Half-way between two numbers the parts below decide. */
        if (n && ((low < 0.0 && sum->parts[n - 1] < 0.0) || (low > 0.0 && sum->parts[n - 1] > 0.0))) {
            y = low * 2.0;
            x = high + y;
            rest = x - high;
            if (y == rest)
                high = x;
        }
    }
    return high;
}

bool exact_sums(const double *pairs, size_t n_pairs, const int64_t *order, size_t n, const int64_t *begins, size_t n_begins,
                double *sums) {
    size_t sum, at;
    for (sum = 0; sum < n_begins; sum++) {
        size_t begin = (size_t)begins[sum], end = sum + 1 < n_begins ? (size_t)begins[sum + 1] : n;
        struct exact first = {{0.0}, 0}, second = {{0.0}, 0};
        if (begins[sum] < 0 || begin > end || end > n)
            return false;
        for (at = begin; at < end; at++) {
            if (order[at] < 0 || (uint64_t)order[at] >= n_pairs || !add(&first, pairs[2 * order[at]]) ||
                !add(&second, pairs[2 * order[at] + 1]))
                return false;
        }
        sums[2 * sum] = rounded(&first);
        sums[2 * sum + 1] = rounded(&second);
    }
    return true;
}
