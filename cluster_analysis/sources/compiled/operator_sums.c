#include "operator_sums.h"

static uint64_t both(int32_t high, int32_t low) { return (uint64_t)(uint32_t)high << 32 | (uint32_t)low; }

static bool add_total(struct operator_sums *sums, const struct operator_use *use, int32_t step) {
    struct operator_total total;
    int32_t n = sums->of_totals.n;
    sums->total = tally_number(&sums->of_totals, both(use->file, step), (uint64_t)use->group);
    if (sums->total != n)
        return sums->total >= 0;
    memset(&total, 0, sizeof total);
    total.file = use->file;
    total.step = step;
    total.group = use->group;
    return column_add(&sums->totals, &total, sizeof total);
}

static bool add_use(struct operator_sums *sums, const struct operator_use *use) {
    int32_t n = sums->of_uses.n;
    sums->use = tally_number(&sums->of_uses, both(use->file, use->is_p2p), both(use->group, use->stem));
    return sums->use == n ? column_add(&sums->uses, use, sizeof *use) : sums->use >= 0;
}

bool operator_sums_add(struct operator_sums *sums, const struct operator_use *use, int32_t step, const double *figures) {
    const struct operator_use *last = &sums->last;
    struct operator_total *total;
    int at;
    if (!sums->is_begun || last->file != use->file || last->group != use->group || last->stem != use->stem ||
        last->is_p2p != use->is_p2p || sums->last_step != step) {
        sums->is_begun = false;
        if (!add_total(sums, use, step) || !add_use(sums, use))
            return false;
        sums->last = *use;
        sums->last_step = step;
        sums->is_begun = true;
    }
    ((struct operator_use *)(void *)sums->uses.at)[sums->use].n++;
    total = (struct operator_total *)(void *)sums->totals.at + sums->total;
    for (at = 0; at < N_FIGURES; at++) {
        bool is_known = figures[at] == figures[at];
        total->sums[at] += is_known ? figures[at] : 0.0;
        total->known |= (uint32_t)is_known << at;
    }
    return true;
}

void operator_sums_free(struct operator_sums *sums) {
    free(sums->totals.at);
    free(sums->uses.at);
    tally_free(&sums->of_totals);
    tally_free(&sums->of_uses);
}
