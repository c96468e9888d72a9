/* communication.json of the usual form, as columns. */
#ifndef CLUSTER_PROFILER_COMMUNICATION_H
#define CLUSTER_PROFILER_COMMUNICATION_H

#include "steps.h"

enum { HCCS, RDMA, PCIE, SIO, N_TRANSPORTS };
/* In the order of COLLECTIVES: five times, then bytes and time of each transport. */
enum { ELAPSE, TRANSIT, WAIT, SYNCHRONIZATION, IDLE, N_TIMES };
#define N_FIGURES (N_TIMES + 2 * N_TRANSPORTS)

struct operators {
    struct steps steps;
    /* An operator each. */
    struct column keys, groups, stems, indices; /* int32 */
    struct column starts_ns, offsets;           /* int64 */
    struct column lengths;                      /* int32 */
    struct column figures[N_FIGURES];           /* double, µs or bytes, NaN where the file does not say */
    struct texts op_names;
    /* A packet size of an operator and transport each. */
    struct column packet_rows, packet_transports, packet_sizes; /* int32 */
    struct column packet_figures;                               /* double: number and ms */
    /* What the numbers stand for. */
    struct names key_names, group_names, stem_names, size_names;
    /* How many figures are missing (NaN) or below 0, each column. */
    int32_t n_missing[N_FIGURES], n_negative[N_FIGURES];
    int32_t n_packets;
};

/* Read a text, whose byte behind the end is 0; false where Python must. */
bool operators_read(const char *text, size_t length, struct operators *found);
void operators_free(struct operators *operators);

#endif
