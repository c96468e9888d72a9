/* Objects that are written alike: what stands between their values is compared, and not read again.
 *
 * Profilers write all objects of one kind with the same members in the same order. An object that is written otherwise
 * than the last one is read member by member.
 */
#ifndef CLUSTER_PROFILER_SHAPE_H
#define CLUSTER_PROFILER_SHAPE_H

#include "members.h"

#define MAX_SHAPE 12

/* How an object was written: the text before each value and behind the last one, and which member each is. */
struct shape {
    struct text pieces[MAX_SHAPE + 1];
    int which[MAX_SHAPE];
    int n; /* 0: none is known */
};

/* Read the value of a member, -1 for one that is not known by name; what an earlier try has read of it goes. */
typedef const char *(*value_at)(void *given, const char *at, int which);

/* Whether the text goes on with these bytes, most of which are eight or more. */
static inline bool shape_goes_on(const char *at, const char *end, struct text piece) {
    size_t n = piece.length, done;
    uint64_t own, other;
    if ((size_t)(end - at) < n)
        return false;
    if (n < 8)
        return !memcmp(at, piece.at, n);
    for (done = 0; done + 8 < n; done += 8) {
        memcpy(&own, at + done, 8);
        memcpy(&other, piece.at + done, 8);
        if (own != other)
            return false;
    }
    memcpy(&own, at + n - 8, 8);
    memcpy(&other, piece.at + n - 8, 8);
    return own == other;
}

static inline const char *shape_alike(const struct shape *shape, const char *at, const char *end, value_at value, void *given) {
    int slot;
    for (slot = 0; slot < shape->n; slot++) {
        if (!shape_goes_on(at, end, shape->pieces[slot]))
            return NULL;
        at = value(given, at + shape->pieces[slot].length, shape->which[slot]);
        if (!at)
            return NULL;
    }
    return slot && shape_goes_on(at, end, shape->pieces[slot]) ? at + shape->pieces[slot].length : NULL;
}

/* Read an object; a member twice is not plain. The shape must lie in the same text. */
static inline const char *shape_object(struct shape *shape, const char *at, const char *end, const struct text *names, int n_names,
                                       value_at value, void *given) {
    const char *alike, *begin = at;
    struct shape found;
    unsigned seen = 0;
    int guess = 0, which;
    bool is_done;
    if (!at)
        return NULL;
    alike = shape_alike(shape, at, end, value, given);
    if (alike)
        return alike;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false, found.n = 0; at && !is_done;) {
        at = member(at, end, names, n_names, &guess, &which);
        if (!at || !first_time(&seen, which))
            return NULL;
        if (found.n < MAX_SHAPE) {
            found.pieces[found.n].at = begin;
            found.pieces[found.n].length = (size_t)(at - begin);
            found.which[found.n] = which;
        }
        found.n++;
        begin = at = value(given, at, which);
        at = json_next(at, '}', &is_done);
    }
    if (at && found.n <= MAX_SHAPE) {
        found.pieces[found.n].at = begin;
        found.pieces[found.n].length = (size_t)(at - begin);
        *shape = found;
    }
    return at;
}

#endif
