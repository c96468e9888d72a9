/* What the operators of a group add up to, and who uses which group how: known as soon as they are read. */
#ifndef CLUSTER_PROFILER_OPERATOR_SUMS_H
#define CLUSTER_PROFILER_OPERATOR_SUMS_H

#include "tally.h"

enum { HCCS, RDMA, PCIE, SIO, N_TRANSPORTS };
/* In the order of COLLECTIVES: five times, then bytes and time of each transport. */
enum { ELAPSE, TRANSIT, WAIT, SYNCHRONIZATION, IDLE, N_TIMES };
#define N_FIGURES (N_TIMES + 2 * N_TRANSPORTS)

/* The sums of a file, step and group, one operator after the other; those of which nothing is known are not in `known`. */
struct operator_total {
    double sums[N_FIGURES];
    int32_t file, step, group;
    uint32_t known; /* a bit for each figure */
};

/* How often a file names operators of one stem in one group, filed so. */
struct operator_use {
    int32_t file, group, stem, is_p2p, n;
};

struct operator_sums {
    struct column totals, uses;
    struct tally of_totals, of_uses;
    /* What the last operator belongs to. */
    struct operator_use last;
    int32_t last_step, total, use;
    bool is_begun;
};

/* Add an operator of a step: `use` says all but how often. */
bool operator_sums_add(struct operator_sums *sums, const struct operator_use *use, int32_t step, const double *figures);
void operator_sums_free(struct operator_sums *sums);

#endif
