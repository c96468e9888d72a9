/* Packet sizes, summed exactly over the operators of a file, step and group. */
#ifndef CLUSTER_PROFILER_PACKET_TOTALS_H
#define CLUSTER_PROFILER_PACKET_TOTALS_H

#include "communication.h"

struct packet_total {
    double n, ms;
    int32_t file, step, group, transport, size, unused;
};

/* Add a `packet_total` for each, in the order in which they came first. Before the rows are laid; false where Python must. */
bool packet_totals(const struct operators *operators, struct column *totals);

#endif
