/* Columns of the operators of several files, one behind the other. */
#ifndef CLUSTER_PROFILER_OPERATORS_H
#define CLUSTER_PROFILER_OPERATORS_H

#include "steps.h"

enum { HCCS, RDMA, PCIE, SIO, N_TRANSPORTS };
/* In the order of COLLECTIVES: five times, then bytes and time of each transport. */
enum { ELAPSE, TRANSIT, WAIT, SYNCHRONIZATION, IDLE, N_TIMES };
#define N_FIGURES (N_TIMES + 2 * N_TRANSPORTS)

/* Columns of operators; what has a place in the text comes last, as it is not always wanted. */
enum operator_column { GROUPS, STEMS, INDICES, STARTS_NS, KEYS, OFFSETS, LENGTHS, N_OPERATOR_COLUMNS };
/* Columns of packet sizes, each of an operator and transport. */
enum packet_column { PACKET_ROWS, PACKET_TRANSPORTS, PACKET_SIZES, PACKET_FIGURES, N_PACKET_COLUMNS };

struct operators {
    /* Whether places in the text are wanted: `KEYS`, `OFFSETS`, `LENGTHS`. */
    bool has_places;
    /* A bit for each figure: files in which one of these is missing, or below 0, are left to Python. */
    uint32_t needed, measured;
    struct steps steps;
    /* int32, but int64 for `STARTS_NS` and `OFFSETS`. */
    struct column columns[N_OPERATOR_COLUMNS];
    struct column figures[N_FIGURES]; /* double, µs or bytes, NaN where the file does not say */
    struct texts op_names;
    struct column packets[N_PACKET_COLUMNS]; /* int32; doubles for `PACKET_FIGURES`: number and ms */
    /* What the numbers stand for. */
    struct names key_names, group_names, stem_names, size_names;
    /* How many figures are missing (NaN) or below 0, each column. */
    int32_t n_missing[N_FIGURES], n_negative[N_FIGURES];
    int32_t n_packets;
    int64_t n_levels, n_distributions;
};

/* Let go of the text that was read last: names move out of it. False where there is no memory, or Python has to tell of
 * a figure. */
bool operators_own(struct operators *found);
/* Make place for so many times what was read, so that columns need not move again and again; without effect where there is
 * no memory. */
void operators_reserve(struct operators *found, size_t n_times);
void operators_free(struct operators *operators);

/* Forget the packets behind the first. */
void operators_cut_packets(struct operators *found, int32_t n_kept);

#endif
