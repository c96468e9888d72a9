#include "operator_names.h"

#define MAX_INDEX_DIGITS 9

int32_t operator_index(struct text name) {
    const char *end = name.at + name.length, *at = end;
    int32_t index = 0;
    int part, n_digits;
    while (at - name.at >= 2 && !(at[-1] == '_' && at[-2] == '_'))
        at--;
    if (at - name.at < 2)
        return -1;
    for (part = 0; part == 0 || at < end; part++) {
        if (part && *at++ != '_')
            return -1;
        for (n_digits = 0; at < end && json_is_digit(*at); at++, n_digits++)
            if (part == 1 && n_digits < MAX_INDEX_DIGITS)
                index = index * 10 + (*at - '0');
        if (!n_digits || (part == 1 && n_digits > MAX_INDEX_DIGITS))
            return -1;
    }
    return part > 1 ? index : -1;
}

struct text operator_stem(struct text name) {
    size_t at;
    for (at = 0; at + 1 < name.length; at++) {
        if (name.at[at] == '_' && name.at[at + 1] == '_') {
            name.length = at;
            break;
        }
    }
    return name;
}
