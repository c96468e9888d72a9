#include "communication.h"

#include <math.h>

#include "members.h"
#include "operator_names.h"

#define US_PER_MS 1e3
#define BYTES_PER_MB 1e6
/* µs; more do not fit ns of 64 bits. */
#define MAX_START_US UINT64_C(9100000000000000)
#define NS_DIGITS 3

/* What one operator says, before it is known whether it is a total. */
struct call {
    int64_t start_ns;
    bool has_start;
    double figures[N_FIGURES];
};

struct reader {
    const char *begin, *end;
    struct operators *found;
    /* How this file writes that a transport carried nothing, once it is known. */
    struct text nothing;
};

/* Names of members with their closing quote, in the order in which profilers write them. */
static const struct text TIMES[] = {
    NAME("Start Timestamp(us)"), NAME("Elapse Time(ms)"),          NAME("Transit Time(ms)"), NAME("Wait Time(ms)"),
    NAME("Synchronization Time(ms)"), NAME("Idle Time(ms)"), NAME("Idel Time(ms)"), NAME("Wait Time Ratio"),
    NAME("Synchronization Time Ratio")};
enum { START_NAME, ELAPSE_NAME, IDLE_NAME = 5, IDEL_NAME, N_TIME_NAMES = 9 };
static const struct text TRANSPORTS[] = {NAME("RDMA"), NAME("HCCS"), NAME("PCIE"), NAME("SDMA"), NAME("SIO")};
static const int TRANSPORT_OF[] = {RDMA, HCCS, PCIE, -1, SIO};
enum { N_TRANSPORT_NAMES = 5 };
static const struct text CARRIED[] = {NAME("Transit Size(MB)"), NAME("Transit Time(ms)"), NAME("Bandwidth(GB/s)"),
                                      NAME("Large Packet Ratio"), NAME("Size Distribution")};
enum { SIZE_NAME, TIME_NAME, SIZES_NAME = 4, N_CARRIED_NAMES };
static const struct text PARTS[] = {NAME("Communication Time Info"), NAME("Communication Bandwidth Info")};
enum { TIME_PART, BANDWIDTH_PART, N_PARTS };

static const char *start_ns(const char *at, int64_t *value) {
    struct number number;
    uint64_t digits;
    int exponent;
    at = json_number(at, &number);
    if (!at || number.is_negative || number.has_exponent)
        return NULL;
    digits = number.digits;
    /* Digits below the nanosecond are cut: no profiler writes them, and they carry nothing. */
    for (exponent = number.exponent; exponent < -NS_DIGITS; exponent++)
        digits /= 10;
    for (; exponent > -NS_DIGITS; exponent--) {
        if (digits > MAX_START_US * 1000)
            return NULL;
        digits *= 10;
    }
    if (digits > MAX_START_US * 1000)
        return NULL;
    *value = (int64_t)digits;
    return at;
}

static const char *times(struct reader *reader, const char *at, struct call *call) {
    double idel = NAN;
    unsigned seen = 0;
    int guess = 0, which;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false; at && !is_done;) {
        at = member(at, reader->end, TIMES, N_TIME_NAMES, &guess, &which);
        if (!at || !first_time(&seen, which))
            return NULL;
        if (which == START_NAME) {
            at = start_ns(at, &call->start_ns);
            call->has_start = true;
        } else if (which > START_NAME && which <= IDLE_NAME) {
            double *figure = &call->figures[which - ELAPSE_NAME];
            at = json_double(at, reader->end, figure);
            *figure *= US_PER_MS;
        } else if (which == IDEL_NAME) {
            at = json_double(at, reader->end, &idel);
        } else {
            at = json_skip(at, reader->end, 0);
        }
        at = json_next(at, '}', &is_done);
    }
    if (isnan(call->figures[IDLE]))
        call->figures[IDLE] = idel * US_PER_MS;
    return at;
}

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

static const char *carried(struct reader *reader, const char *at, int transport, double *bytes, double *us) {
    const char *begin = at;
    double size = NAN, time = NAN;
    unsigned seen = 0;
    int guess = 0, which;
    bool is_done, is_empty = true;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false; at && !is_done;) {
        at = member(at, reader->end, CARRIED, N_CARRIED_NAMES, &guess, &which);
        if (!at || !first_time(&seen, which))
            return NULL;
        if (which == SIZE_NAME)
            at = json_double(at, reader->end, &size);
        else if (which == TIME_NAME)
            at = json_double(at, reader->end, &time);
        else if (which == SIZES_NAME)
            at = distribution(reader, at, transport, &is_empty);
        else
            at = json_skip(at, reader->end, 0);
        at = json_next(at, '}', &is_done);
    }
    *bytes = size * BYTES_PER_MB;
    *us = time * US_PER_MS;
    if (at && size == 0 && time == 0 && is_empty) {
        reader->nothing.at = begin;
        reader->nothing.length = (size_t)(at - begin);
    }
    return at;
}

static const char *bandwidths(struct reader *reader, const char *at, struct call *call) {
    unsigned seen = 0;
    int guess = 0, which;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false; at && !is_done;) {
        int transport;
        at = member(at, reader->end, TRANSPORTS, N_TRANSPORT_NAMES, &guess, &which);
        if (!at || !first_time(&seen, which))
            return NULL;
        transport = which < 0 ? -1 : TRANSPORT_OF[which];
        if (reader->nothing.length && json_goes_on(at, reader->end, reader->nothing.at, reader->nothing.length)) {
            /* An operator has an entry for each transport and uses one or none. */
            at += reader->nothing.length;
            if (transport >= 0)
                call->figures[N_TIMES + 2 * transport] = call->figures[N_TIMES + 2 * transport + 1] = 0.0;
        } else if (transport >= 0) {
            double *bytes = &call->figures[N_TIMES + 2 * transport];
            at = carried(reader, at, transport, bytes, bytes + 1);
        } else {
            at = json_skip(at, reader->end, 0);
        }
        at = json_next(at, '}', &is_done);
    }
    return at;
}

static const char *operator_at(struct reader *reader, const char *at, struct call *call) {
    unsigned seen = 0;
    int guess = 0, which, figure;
    bool is_done;
    call->has_start = false;
    for (figure = 0; figure < N_FIGURES; figure++)
        call->figures[figure] = NAN;
    at = json_object(at);
    /* Without times there is no such operator, which Python tells. */
    for (is_done = false; at && !is_done;) {
        at = member(at, reader->end, PARTS, N_PARTS, &guess, &which);
        if (!at || !first_time(&seen, which))
            return NULL;
        if (which == TIME_PART)
            at = times(reader, at, call);
        else if (which == BANDWIDTH_PART)
            at = bandwidths(reader, at, call);
        else
            at = json_skip(at, reader->end, 0);
        at = json_next(at, '}', &is_done);
    }
    return seen & (1u << TIME_PART) ? at : NULL;
}

/* Add what the key of an operator says: `name@group`, cut at the last `@`. */
static bool add_key(struct operators *found, struct text key) {
    struct text name = key, group = {key.at + key.length, 0};
    size_t at;
    int32_t number = names_number(&found->key_names, key, found->n_levels), group_number, stem_number;
    for (at = key.length; at > 0; at--) {
        if (key.at[at - 1] == '@') {
            name.length = at - 1;
            group.at = key.at + at;
            group.length = key.length - at;
            break;
        }
    }
    group_number = names_number(&found->group_names, group, -1);
    stem_number = names_number(&found->stem_names, operator_stem(name), -1);
    return number >= 0 && group_number >= 0 && stem_number >= 0 &&
           (!found->has_places || column_add_int32(&found->columns[KEYS], number)) &&
           column_add_int32(&found->columns[GROUPS], group_number) &&
           column_add_int32(&found->columns[STEMS], stem_number) &&
           column_add_int32(&found->columns[INDICES], operator_index(name)) && texts_add(&found->op_names, name);
}

static bool add_operator(struct reader *reader, struct text key, struct text value, const struct call *call) {
    struct operators *found = reader->found;
    int figure;
    for (figure = 0; figure < N_FIGURES; figure++) {
        double number = call->figures[figure];
        found->n_missing[figure] += number != number;
        found->n_negative[figure] += number < 0;
        if (!column_add_double(&found->figures[figure], number))
            return false;
    }
    found->steps.n_rows++;
    return call->has_start && add_key(found, key) && column_add_int64(&found->columns[STARTS_NS], call->start_ns) &&
           (!found->has_places || (column_add_int64(&found->columns[OFFSETS], value.at - reader->begin) &&
                                   column_add_int32(&found->columns[LENGTHS], (int32_t)value.length)));
}

void operators_cut_packets(struct operators *found, int32_t n_kept) {
    int column;
    for (column = 0; column < N_PACKET_COLUMNS; column++)
        found->packets[column].used = (size_t)n_kept * (column == PACKET_FIGURES ? 2 * sizeof(double) : sizeof(int32_t));
    found->n_packets = n_kept;
}

static const char *level_at(void *given, const char *at) {
    struct reader *reader = given;
    struct operators *found = reader->found;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    found->n_levels++;
    for (is_done = false; at && !is_done;) {
        struct call call;
        struct text key, value;
        int32_t n_packets = found->n_packets;
        value.at = at = json_key(at, reader->end, &key);
        at = at ? operator_at(reader, at, &call) : NULL;
        if (!at)
            return NULL;
        value.length = (size_t)(at - value.at);
        if (member_is_total(key))
            operators_cut_packets(found, n_packets);
        else if (!add_operator(reader, key, value, &call))
            return NULL;
        at = json_next(at, '}', &is_done);
    }
    return at;
}

bool operators_add(const char *text, size_t length, struct operators *found) {
    struct reader reader = {text, text + length, found, {NULL, 0}};
    return steps_read(text, length, &found->steps, level_at, &reader);
}
