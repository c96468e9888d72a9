/* Members of objects that are known by name, and the outer form that both communication files share. */
#ifndef CLUSTER_PROFILER_MEMBERS_H
#define CLUSTER_PROFILER_MEMBERS_H

#include "json.h"

/* The name of a member with its closing quote. */
#define NAME(letters) {letters "\"", sizeof(letters)}

/* Which of n names a member has, -1 for another one; `guess` is tried first and becomes the name after it. */
static inline const char *member(const char *at, const char *end, const struct text *names, int n, int *guess, int *which) {
    struct text other;
    int tried, number = *guess;
    if (!at || *at != '"')
        return NULL;
    for (tried = 0; tried < n; tried++, number = number + 1 < n ? number + 1 : 0) {
        if (number < n && json_goes_on(at + 1, end, names[number].at, names[number].length)) {
            *which = number;
            *guess = number + 1 < n ? number + 1 : 0;
            return json_mark(at + 1 + names[number].length, ':');
        }
    }
    *which = -1;
    return json_key(at, end, &other);
}

/* Note that a member was seen; false if it was before: then the later one counts, which is not plain. */
static inline bool first_time(unsigned *seen, int which) {
    unsigned bit = which < 0 ? 0 : 1u << which;
    if (*seen & bit)
        return false;
    *seen |= bit;
    return true;
}

/* The keys of sums begin so; they are no operators. */
static inline bool member_is_total(struct text key) { return key.length >= 5 && !memcmp(key.at, "Total", 5); }

#endif
