/* What an operator carried: an entry for each transport, most of which carried nothing. */
#include <math.h>

#include "operator_reader.h"

#define BYTES_PER_MB 1e6

/* Names of members with their closing quote, in the order in which profilers write them. */
static const struct text TRANSPORTS[] = {NAME("RDMA"), NAME("HCCS"), NAME("PCIE"), NAME("SDMA"), NAME("SIO")};
static const int TRANSPORT_OF[] = {RDMA, HCCS, PCIE, -1, SIO};
static const struct text CARRIED[] = {NAME("Transit Size(MB)"), NAME("Transit Time(ms)"), NAME("Bandwidth(GB/s)"),
                                      NAME("Large Packet Ratio"), NAME("Size Distribution")};
enum { SIZE_NAME, TIME_NAME, SIZES_NAME = 4, N_CARRIED_NAMES };

/* `{"8.404992": [12, 7.85], …}`: number of packets and their time in ms, by size in MB. */
static const char *distribution(struct reader *reader, const char *at, int transport, bool *is_empty) {
    struct operators *found = reader->found;
    int64_t seen = found->n_distributions++;
    bool is_done;
    at = json_object(at);
    *is_empty = at && *at == '}';
    if (*is_empty)
        return at + 1;
    for (is_done = false; at && !is_done;) {
        struct text size;
        double pair[2];
        int32_t number;
        at = json_mark(json_key(at, reader->end, &size), '[');
        at = at ? json_mark(json_double(at, reader->end, &pair[0]), ',') : NULL;
        at = at ? json_mark(json_double(at, reader->end, &pair[1]), ']') : NULL;
        if (!at || isnan(pair[0]) || isnan(pair[1]))
            return NULL;
        number = names_number(&found->size_names, size, seen);
        if (number < 0 || !column_add_int32(&found->packets[PACKET_ROWS], found->steps.n_rows) ||
            !column_add_int32(&found->packets[PACKET_TRANSPORTS], transport) ||
            !column_add_int32(&found->packets[PACKET_SIZES], number) ||
            !column_add(&found->packets[PACKET_FIGURES], pair, sizeof pair))
            return NULL;
        found->n_packets++;
        at = json_next(at, '}', &is_done);
    }
    return at;
}

struct carried {
    struct reader *reader;
    int32_t n_packets;
    int transport;
    double size, time;
    bool is_empty;
};

static const char *carried_at(void *given, const char *at, int which) {
    struct carried *carried = given;
    const char *end = carried->reader->end;
    if (carried->transport < 0 && which != SIZE_NAME)
        return json_skip(at, end, 0);
    if (which == SIZE_NAME)
        return json_double(at, end, &carried->size);
    if (which == TIME_NAME)
        return json_double(at, end, &carried->time);
    if (which != SIZES_NAME)
        return json_skip(at, end, 0);
    operators_cut_packets(carried->reader->found, carried->n_packets);
    return distribution(carried->reader, at, carried->transport, &carried->is_empty);
}

static const char *carried(struct reader *reader, const char *at, int transport, double *figures) {
    struct carried carried = {reader, reader->found->n_packets, transport, NAN, NAN, true};
    const char *begin = at;
    at = shape_object(&reader->carried, at, reader->end, CARRIED, N_CARRIED_NAMES, carried_at, &carried);
    if (transport < 0) {
        reader->sdma = carried.size;
        return at;
    }
    figures[0] = carried.size * BYTES_PER_MB;
    figures[1] = carried.time * US_PER_MS;
    if (at && carried.size == 0 && carried.time == 0 && carried.is_empty) {
        reader->nothing.at = begin;
        reader->nothing.length = (size_t)(at - begin);
    }
    return at;
}

/* All that is known of a transport that carried nothing. */
static void carried_nothing(struct call *call, unsigned transports) {
    int transport;
    for (transport = 0; transport < N_TRANSPORTS; transport++)
        if (transports >> transport & 1)
            call->figures[N_TIMES + 2 * transport] = call->figures[N_TIMES + 2 * transport + 1] = 0.0;
}

/* Where links have no entry of their own all that they carried stands under SDMA: that is not plain. */
static const char *if_named(const struct reader *reader, const struct call *call, const char *at) {
    static const int NAMED[] = {HCCS, PCIE, SIO};
    size_t which;
    if (!(reader->sdma > 0))
        return at;
    for (which = 0; which < sizeof NAMED / sizeof *NAMED; which++)
        if (!(call->figures[N_TIMES + 2 * NAMED[which]] == 0))
            return at;
    return NULL;
}

const char *operator_transports(struct reader *reader, const char *at, struct call *call) {
    const char *begin = at;
    unsigned seen = 0, nothing = 0;
    int guess = 0, which = -1;
    struct tail *tail = NULL, found = {{NULL, 0}, 0, 0};
    bool is_done, is_begun = at && reader->head.text.length && shape_goes_on(at, reader->end, reader->head.text);
    reader->sdma = 0;
    if (is_begun) {
        at += reader->head.text.length;
        seen = reader->head.seen;
        nothing = reader->head.nothing;
        which = reader->head_of;
        guess = which + 1;
    } else {
        at = json_object(at);
        if (at && *at == '}')
            return at + 1;
    }
    for (is_done = false; at && !is_done; is_begun = false) {
        int transport;
        if (!is_begun) {
            at = member(at, reader->end, TRANSPORTS, N_TRANSPORT_NAMES, &guess, &which);
            if (!at || !first_time(&seen, which))
                return NULL;
        }
        transport = which < 0 ? -1 : TRANSPORT_OF[which];
        if (reader->nothing.length && json_goes_on(at, reader->end, reader->nothing.at, reader->nothing.length)) {
            /* An operator has an entry for each transport and uses one or none. */
            at += reader->nothing.length;
            nothing |= transport < 0 ? 0 : 1u << transport;
            found.nothing |= transport < 0 ? 0 : 1u << transport;
        } else if (which < 0) {
            /* A newer link: what it carried belongs somewhere. */
            return NULL;
        } else {
            if (begin && !is_begun) {
                struct tail head = {{begin, (size_t)(at - begin)}, seen, nothing};
                reader->head = head;
                reader->head_of = which;
            }
            begin = NULL;
            at = carried(reader, at, transport, &call->figures[N_TIMES + 2 * (transport < 0 ? 0 : transport)]);
            tail = &reader->tails[which];
            if (at && tail->seen == seen && json_goes_on(at, reader->end, tail->text.at, tail->text.length)) {
                carried_nothing(call, nothing | tail->nothing);
                return if_named(reader, call, at + tail->text.length);
            }
            found.text.at = at;
            found.seen = seen;
            found.nothing = 0;
        }
        at = json_next(at, '}', &is_done);
    }
    carried_nothing(call, nothing);
    if (at && tail) {
        *tail = found;
        tail->text.length = (size_t)(at - found.text.at);
    }
    return at ? if_named(reader, call, at) : NULL;
}
