#include "communication.h"

#include <math.h>

#include "operator_reader.h"

/* µs; more do not fit ns of 64 bits. */
#define MAX_START_US UINT64_C(9100000000000000)
#define NS_DIGITS 3
#define MAX_INDEX_DIGITS 9

/* Names of members with their closing quote, in the order in which profilers write them. */
static const struct text TIMES[] = {
    NAME("Start Timestamp(us)"), NAME("Elapse Time(ms)"),          NAME("Transit Time(ms)"), NAME("Wait Time(ms)"),
    NAME("Synchronization Time(ms)"), NAME("Idle Time(ms)"), NAME("Idel Time(ms)"), NAME("Wait Time Ratio"),
    NAME("Synchronization Time Ratio")};
enum { START_NAME, ELAPSE_NAME, IDLE_NAME = 5, IDEL_NAME, N_TIME_NAMES = 9 };
static const struct text PARTS[] = {NAME("Communication Time Info"), NAME("Communication Bandwidth Info")};
enum { TIME_PART, BANDWIDTH_PART, N_PARTS };

/* The running number in the name of an operator, 7 of `hcom_allReduce__586_7_1`: behind the last `__` only numbers joined by
 * `_`, and the second of at most 9 digits; -1 for any other name. */
static int32_t operator_index(struct text name) {
    const char *end = name.at + name.length, *at = end;
    int32_t index = 0;
    int part, n_digits;
    while (at - name.at >= 2 && !(at[-1] == '_' && at[-2] == '_'))
        at--;
    if (at - name.at < 2)
        return -1;
    for (part = 0; part == 0 || at < end; part++) {
        if (part && *at++ != '_')
            return -1;
        for (n_digits = 0; at < end && json_is_digit(*at); at++, n_digits++)
            if (part == 1 && n_digits < MAX_INDEX_DIGITS)
                index = index * 10 + (*at - '0');
        if (!n_digits || (part == 1 && n_digits > MAX_INDEX_DIGITS))
            return -1;
    }
    return part > 1 ? index : -1;
}

/* What stands before the first `__`: the operation is told by it. */
static struct text operator_stem(struct text name) {
    size_t at;
    for (at = 0; at + 1 < name.length; at++) {
        if (name.at[at] == '_' && name.at[at + 1] == '_') {
            name.length = at;
            break;
        }
    }
    return name;
}

static const char *start_ns(const char *at, const char *end, int64_t *value) {
    struct number number;
    uint64_t digits;
    int exponent;
    at = json_number(at, end, &number);
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

struct times {
    const char *end;
    struct call *call;
    double idel;
};

static const char *time_at(void *given, const char *at, int which) {
    struct times *times = given;
    double *figure;
    if (which == START_NAME) {
        times->call->has_start = true;
        return start_ns(at, times->end, &times->call->start_ns);
    }
    if (which == IDEL_NAME)
        return json_double(at, times->end, &times->idel);
    if (which < START_NAME || which > IDLE_NAME)
        return json_skip(at, times->end, 0);
    figure = &times->call->figures[which - ELAPSE_NAME];
    at = json_double(at, times->end, figure);
    *figure *= US_PER_MS;
    return at;
}

static const char *times(struct reader *reader, const char *at, struct call *call) {
    struct times times = {reader->end, call, NAN};
    at = shape_object(&reader->times, at, reader->end, TIMES, N_TIME_NAMES, time_at, &times);
    if (isnan(call->figures[IDLE]))
        call->figures[IDLE] = times.idel * US_PER_MS;
    return at;
}

struct parts {
    struct reader *reader;
    struct call *call;
    int32_t n_packets; /* of all operators before */
    bool has_times;
};

static const char *part_at(void *given, const char *at, int which) {
    struct parts *parts = given;
    parts->has_times = parts->has_times || which == TIME_PART;
    if (which == TIME_PART)
        return times(parts->reader, at, parts->call);
    if (which != BANDWIDTH_PART)
        return json_skip(at, parts->reader->end, 0);
    operators_cut_packets(parts->reader->found, parts->n_packets);
    return operator_transports(parts->reader, at, parts->call);
}

static const char *operator_at(struct reader *reader, const char *at, struct call *call) {
    struct parts parts = {reader, call, reader->found->n_packets, false};
    int figure;
    call->has_start = false;
    for (figure = 0; figure < N_FIGURES; figure++)
        call->figures[figure] = NAN;
    at = shape_object(&reader->parts, at, reader->end, PARTS, N_PARTS, part_at, &parts);
    /* Without times there is no such operator, which Python tells. */
    return parts.has_times ? at : NULL;
}

/* Whether a name has the stem of the one before: that ends with the first `__`. */
static bool has_stem(struct text name, struct text stem) {
    return stem.length && name.length >= stem.length + 2 && name.at[stem.length] == '_' && name.at[stem.length + 1] == '_' &&
           !memcmp(name.at, stem.at, stem.length);
}

static int32_t stem_number(struct reader *reader, struct text name) {
    if (!has_stem(name, reader->stem)) {
        reader->stem = operator_stem(name);
        reader->stem_number = names_number(&reader->found->stem_names, reader->stem, -1);
        /* Without `__` all of a name is its stem. */
        if (reader->stem.length == name.length)
            reader->stem.length = 0;
    }
    return reader->stem_number;
}

/* Cut a key at its last `@`; behind that most have the group of the one before. */
static int32_t group_number(struct reader *reader, struct text key, struct text *name) {
    size_t n_before = key.length - reader->group.length, at;
    *name = key;
    if (reader->group.length && reader->group.length < key.length && key.at[n_before - 1] == '@' &&
        !memcmp(key.at + n_before, reader->group.at, reader->group.length)) {
        name->length = n_before - 1;
        return reader->group_number;
    }
    reader->group.at = key.at + key.length;
    reader->group.length = 0;
    for (at = key.length; at > 0; at--) {
        if (key.at[at - 1] == '@') {
            name->length = at - 1;
            reader->group.at = key.at + at;
            reader->group.length = key.length - at;
            break;
        }
    }
    reader->group_number = names_number(&reader->found->group_names, reader->group, -1);
    return reader->group_number;
}

/* Add what the key of an operator says, `name@group`. */
static bool add_key(struct reader *reader, struct text key) {
    struct operators *found = reader->found;
    struct text name;
    int32_t number = names_number(&found->key_names, key, found->n_levels);
    int32_t group = group_number(reader, key, &name), stem = stem_number(reader, name);
    return number >= 0 && group >= 0 && stem >= 0 && (!found->has_places || column_add_int32(&found->columns[KEYS], number)) &&
           column_add_int32(&found->columns[GROUPS], group) && column_add_int32(&found->columns[STEMS], stem) &&
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
    return call->has_start && add_key(reader, key) && column_add_int64(&found->columns[STARTS_NS], call->start_ns) &&
           (!found->has_places || (column_add_int64(&found->columns[OFFSETS], value.at - reader->begin) &&
                                   column_add_int32(&found->columns[LENGTHS], (int32_t)value.length)));
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

bool operators_read(const char *text, size_t length, struct operators *found) {
    struct reader reader;
    memset(&reader, 0, sizeof reader);
    reader.begin = text;
    reader.end = text + length;
    reader.found = found;
    return steps_read(text, length, &found->steps, level_at, &reader) && operators_own(found);
}
