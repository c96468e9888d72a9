#include "operators.h"

/* No more than this is set aside for a column. */
#define MAX_RESERVED (1 << 23)

enum { N_COLUMNS = N_OPERATOR_COLUMNS + N_FIGURES + 2, N_NAMES = 4 };

/* All that has a row for each operator, and the texts of their names. */
static void columns_of(struct operators *found, struct column **columns) {
    int at;
    for (at = 0; at < N_OPERATOR_COLUMNS; at++)
        *columns++ = &found->columns[at];
    for (at = 0; at < N_FIGURES; at++)
        *columns++ = &found->figures[at];
    *columns++ = &found->op_names.offsets;
    *columns = &found->op_names.letters;
}

static void names_of(struct operators *found, struct names **names) {
    names[0] = &found->group_names;
    names[1] = &found->stem_names;
    names[2] = &found->size_names;
    names[3] = &found->key_names;
}

/* Whether nobody has to be told of any figure. */
static bool is_untold(const struct operators *found) {
    int at;
    for (at = 0; at < N_FIGURES; at++)
        if ((found->needed >> at & 1 && found->n_missing[at]) || (found->measured >> at & 1 && found->n_negative[at]))
            return false;
    return true;
}

bool operators_own(struct operators *found) {
    struct names *names[N_NAMES];
    bool is_owned = is_untold(found) && names_own(&found->steps.names);
    int at;
    names_of(found, names);
    /* Without places a key only tells whether it is there twice. */
    if (!found->has_places)
        names_clear(&found->key_names);
    for (at = 0; at < N_NAMES; at++)
        is_owned = is_owned && names_own(names[at]);
    return is_owned;
}

void operators_reserve(struct operators *found, size_t n_times) {
    struct column *columns[N_COLUMNS];
    int at;
    columns_of(found, columns);
    for (at = 0; at < N_COLUMNS; at++) {
        size_t more = columns[at]->used <= MAX_RESERVED / n_times ? columns[at]->used * n_times : 0;
        if (more > columns[at]->size - columns[at]->used)
            (void)column_grow(columns[at], more);
    }
}

void operators_free(struct operators *operators) {
    struct column *columns[N_COLUMNS];
    struct names *names[N_NAMES];
    int at;
    columns_of(operators, columns);
    names_of(operators, names);
    for (at = 0; at < N_COLUMNS; at++)
        free(columns[at]->at);
    for (at = 0; at < N_PACKET_COLUMNS; at++)
        free(operators->packets[at].at);
    for (at = 0; at < N_NAMES; at++)
        names_free(names[at]);
    steps_free(&operators->steps);
}

void operators_cut_packets(struct operators *found, int32_t n_kept) {
    int column;
    for (column = 0; column < N_PACKET_COLUMNS; column++)
        found->packets[column].used = (size_t)n_kept * (column == PACKET_FIGURES ? 2 * sizeof(double) : sizeof(int32_t));
    found->n_packets = n_kept;
}
