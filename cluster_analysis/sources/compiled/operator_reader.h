/* How far reading the operators of one text has come: shared by those who read the parts of an operator. */
#ifndef CLUSTER_PROFILER_OPERATOR_READER_H
#define CLUSTER_PROFILER_OPERATOR_READER_H

#include "operators.h"
#include "shape.h"

#define US_PER_MS 1e3
/* Transports that the file may name: one more than there are columns for. */
#define N_TRANSPORT_NAMES (N_TRANSPORTS + 1)

/* What one operator says, before it is known whether it is a total. */
struct call {
    int64_t start_ns;
    bool has_start;
    double figures[N_FIGURES];
};

/* Entries that carried nothing, of these transports, and which members were seen at their begin, or behind those in front. */
struct tail {
    struct text text;
    unsigned seen, nothing;
};

struct reader {
    const char *begin, *end;
    struct operators *found;
    /* Group and stem of the operator before, empty for none. */
    struct text group, stem;
    int32_t group_number, stem_number;
    /* How this file writes that a transport carried nothing, once it is known. */
    struct text nothing;
    /* MB that this operator carried by SDMA: usually the sum of others, which have entries of their own. */
    double sdma;
    /* How it wrote an operator last, its times, and what a transport carried. */
    struct shape parts, times, carried;
    /* What stood last before the first transport that carried something: entries of others that carried nothing. */
    struct tail head;
    int head_of;
    /* What stood last behind a transport that carried something: that all others carried nothing. */
    struct tail tails[N_TRANSPORT_NAMES];
};

/* Read what an operator carried, by transport; NULL where that is not plain. */
const char *operator_transports(struct reader *reader, const char *at, struct call *call);

#endif
