#include "packet_totals.h"

#include "exact.h"

/* A number for each packet, how many have each number, and what the numbers stand for. */
struct sorted {
    struct tally tally;
    int32_t *numbers;
    int64_t *order, *begins;
    double *sums;
};

static bool number_all(const struct operators *operators, struct sorted *sorted, struct column *totals) {
    const struct level *levels = (const struct level *)(const void *)operators->steps.levels.at;
    const int32_t *rows = (const int32_t *)(const void *)operators->packets[PACKET_ROWS].at;
    const int32_t *transports = (const int32_t *)(const void *)operators->packets[PACKET_TRANSPORTS].at;
    const int32_t *sizes = (const int32_t *)(const void *)operators->packets[PACKET_SIZES].at;
    const int32_t *groups = (const int32_t *)(const void *)operators->columns[GROUPS].at;
    struct packet_total total;
    int64_t end = 0;
    int32_t at;
    memset(&total, 0, sizeof total);
    for (at = 0; at < operators->n_packets; at++) {
        int32_t n = sorted->tally.n;
        /* Both count up. */
        for (; end <= rows[at]; levels++) {
            end += levels->n_rows;
            total.file = levels->file;
            total.step = levels->step;
        }
        total.group = groups[rows[at]];
        total.transport = transports[at];
        total.size = sizes[at];
        sorted->numbers[at] =
            tally_number(&sorted->tally, (uint64_t)total.file << 33 | (uint64_t)total.step << 2 | (uint64_t)total.transport,
                         (uint64_t)total.group << 32 | (uint64_t)total.size);
        if (sorted->numbers[at] < 0 || (sorted->numbers[at] == n && !column_add(totals, &total, sizeof total)))
            return false;
    }
    return true;
}

/* Packets of one number side by side, in their order. */
static void sort(const struct operators *operators, struct sorted *sorted) {
    int32_t at;
    int64_t begin = 0;
    for (at = 0; at < operators->n_packets; at++)
        sorted->begins[sorted->numbers[at]]++;
    for (at = 0; at < sorted->tally.n; at++) {
        int64_t n = sorted->begins[at];
        sorted->begins[at] = begin;
        begin += n;
    }
    for (at = 0; at < operators->n_packets; at++)
        sorted->order[sorted->begins[sorted->numbers[at]]++] = at;
    /* Each begin is that of the next one now. */
    for (at = sorted->tally.n - 1; at > 0; at--)
        sorted->begins[at] = sorted->begins[at - 1];
    if (sorted->tally.n)
        sorted->begins[0] = 0;
}

static bool sum_all(const struct operators *operators, struct sorted *sorted, struct column *totals) {
    struct packet_total *total = (struct packet_total *)(void *)totals->at;
    size_t n = (size_t)operators->n_packets, n_totals = (size_t)sorted->tally.n, at;
    sorted->order = malloc((n + 1) * sizeof *sorted->order);
    sorted->begins = calloc(n_totals + 1, sizeof *sorted->begins);
    sorted->sums = malloc((n_totals + 1) * 2 * sizeof *sorted->sums);
    if (!sorted->order || !sorted->begins || !sorted->sums)
        return false;
    sort(operators, sorted);
    if (!exact_sums((const double *)(const void *)operators->packets[PACKET_FIGURES].at, n, sorted->order, n, sorted->begins,
                    n_totals, sorted->sums))
        return false;
    for (at = 0; at < n_totals; at++) {
        total[at].n = sorted->sums[2 * at];
        total[at].ms = sorted->sums[2 * at + 1];
    }
    return true;
}

bool packet_totals(const struct operators *operators, struct column *totals) {
    struct sorted sorted;
    bool is_done;
    memset(&sorted, 0, sizeof sorted);
    sorted.numbers = malloc(((size_t)operators->n_packets + 1) * sizeof *sorted.numbers);
    is_done = sorted.numbers && number_all(operators, &sorted, totals) && sum_all(operators, &sorted, totals);
    tally_free(&sorted.tally);
    free(sorted.numbers);
    free(sorted.order);
    free(sorted.begins);
    free(sorted.sums);
    return is_done;
}
