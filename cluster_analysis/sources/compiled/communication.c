/* communication.json of the usual form, as columns. */
#include <math.h>

#include "files.h"

#define US_PER_MS 1e3
#define BYTES_PER_MB 1e6
/* µs; more do not fit ns of 64 bits. */
#define MAX_START_US UINT64_C(9100000000000000)
#define NS_DIGITS 3

/* Transports that have columns; then in the order of COLLECTIVES: five times, bytes and time of each transport. */
enum { HCCS, RDMA, PCIE, SIO, N_TRANSPORTS };
enum { ELAPSE, TRANSIT, WAIT, SYNCHRONIZATION, IDLE, CARRIED, N_FIGURES = CARRIED + 2 * N_TRANSPORTS };

/* Of operators: figures are double, µs or bytes, NaN where the file does not say; all else is int32, but int64 for starts and
 * offsets. Of packet sizes: operator and transport, int32, and two doubles, number and ms. */
enum {
    GROUPS = FIRST_COLUMN, STARTS_NS, KEYS, OFFSETS, LENGTHS, FIGURES,
    PACKET_ROWS = FIGURES + N_FIGURES, PACKET_TRANSPORTS, PACKET_SIZES, PACKET_FIGURES
};
/* `OP_NAMES` has the text of each operator, and not each text once. */
enum { GROUP_NAMES = FIRST_NAMES, SIZE_NAMES, OP_NAMES };

const char *const OPERATOR_COLUMNS[MAX_COLUMNS] = {
    "levels", "groups", "starts_ns", "keys", "offsets", "lengths",
    "elapse_us", "transit_us", "wait_us", "synchronization_us", "idle_us", "hccs_bytes", "hccs_us", "rdma_bytes", "rdma_us",
    "pcie_bytes", "pcie_us", "sio_bytes", "sio_us", "packet_rows", "packet_transports", "packet_sizes", "packet_figures"};
const char *const OPERATOR_NAMES[MAX_NAMES] = {"step_names", "key_names", NULL, "group_names", "size_names", "op_names"};

/* Members in the order in which profilers write them. */
static const struct text TIMES[] = {
    TEXT("Start Timestamp(us)"), TEXT("Elapse Time(ms)"),          TEXT("Transit Time(ms)"), TEXT("Wait Time(ms)"),
    TEXT("Synchronization Time(ms)"), TEXT("Idle Time(ms)"), TEXT("Idel Time(ms)")};
enum { START_NAME, ELAPSE_NAME, IDEL_NAME = 6, N_TIME_NAMES };
static const struct text PARTS[] = {TEXT("Communication Time Info"), TEXT("Communication Bandwidth Info")};
enum { TIME_PART, BANDWIDTH_PART, N_PARTS };
static const struct text TRANSPORTS[] = {TEXT("RDMA"), TEXT("HCCS"), TEXT("PCIE"), TEXT("SDMA"), TEXT("SIO")};
static const int TRANSPORT_OF[] = {RDMA, HCCS, PCIE, -1, SIO};
enum { SDMA_NAME = 3, N_TRANSPORT_NAMES = 5 };
static const struct text ENTRY[] = {TEXT("Transit Size(MB)"), TEXT("Transit Time(ms)"), TEXT("Size Distribution")};
enum { SIZE_NAME, TIME_NAME, SIZES_NAME, N_ENTRY_NAMES };

/* What one operator says, and the entry of a transport that is read. */
struct call {
    struct reader *reader;
    struct files *files;
    const char *end;
    int64_t start_ns; /* -1 for none */
    double figures[N_FIGURES], idel;
    /* MB that it carried by SDMA: usually the sum of others, which have entries of their own. */
    double sdma;
    bool has_times;
    int transport; /* -1 for one without a column */
    double size, time;
    int64_t sizes; /* number of the object */
};

static const char *start_at(const char *at, int64_t *value) {
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
    for (; exponent > -NS_DIGITS && digits <= MAX_START_US * 1000; exponent--)
        digits *= 10;
    *value = (int64_t)digits;
    return digits <= MAX_START_US * 1000 ? at : NULL;
}

static const char *time_at(void *given, const char *at, struct text key, int which) {
    struct call *call = given;
    double *figure;
    (void)key;
    if (which == START_NAME)
        return start_at(at, &call->start_ns);
    if (which < 0)
        return json_skip(at, call->end, 0);
    figure = which == IDEL_NAME ? &call->idel : &call->figures[ELAPSE + which - ELAPSE_NAME];
    at = json_double(at, call->end, figure);
    *figure *= US_PER_MS;
    return at;
}

/* `"8.404992": [12, 7.85]`: number of packets and their time in ms, by size in MB. */
static const char *packets_at(void *given, const char *at, struct text size, int which) {
    struct call *call = given;
    struct column *columns = call->files->columns;
    double pair[2];
    int32_t number = names_number(&call->files->names[SIZE_NAMES], size, call->sizes);
    (void)which;
    at = json_mark(at, '[');
    at = json_mark(at ? json_double(at, call->end, &pair[0]) : NULL, ',');
    at = json_mark(at ? json_double(at, call->end, &pair[1]) : NULL, ']');
    if (!at || isnan(pair[0]) || isnan(pair[1]) || number < 0)
        return NULL;
    return column_add_int32(&columns[PACKET_ROWS], call->files->n_rows) &&
                   column_add_int32(&columns[PACKET_TRANSPORTS], call->transport) &&
                   column_add_int32(&columns[PACKET_SIZES], number) && column_add(&columns[PACKET_FIGURES], pair, sizeof pair)
               ? at
               : NULL;
}

static const char *entry_at(void *given, const char *at, struct text key, int which) {
    struct call *call = given;
    (void)key;
    if (which == SIZE_NAME)
        return json_double(at, call->end, &call->size);
    if (which == TIME_NAME)
        return json_double(at, call->end, &call->time);
    if (which < 0 || call->transport < 0)
        return json_skip(at, call->end, 0);
    call->sizes = call->files->n_objects++;
    return json_object(at, call->end, NULL, 0, packets_at, call);
}

static const char *transport_at(void *given, const char *at, struct text key, int which) {
    struct call *call = given;
    struct text *nothing = &call->reader->nothing;
    const size_t n_packets = call->files->columns[PACKET_ROWS].used;
    const char *begin = at;
    (void)key;
    call->transport = which < 0 ? -1 : TRANSPORT_OF[which];
    call->size = call->time = NAN;
    if (nothing->length && json_goes_on(at, call->end, *nothing)) {
        call->size = call->time = 0;
        at += nothing->length;
    } else {
        at = json_object(at, call->end, ENTRY, N_ENTRY_NAMES, entry_at, call);
    }
    if (which == SDMA_NAME)
        call->sdma = call->size;
    /* A newer link: what it carried belongs somewhere. */
    if (!at || (which < 0 && !(call->size == 0 && call->time == 0)))
        return NULL;
    if (call->transport < 0)
        return at;
    call->figures[CARRIED + 2 * call->transport] = call->size * BYTES_PER_MB;
    call->figures[CARRIED + 2 * call->transport + 1] = call->time * US_PER_MS;
    if (call->size == 0 && call->time == 0 && call->files->columns[PACKET_ROWS].used == n_packets) {
        nothing->at = begin;
        nothing->length = (size_t)(at - begin);
    }
    return at;
}

static const char *part_at(void *given, const char *at, struct text key, int which) {
    struct call *call = given;
    (void)key;
    if (which == BANDWIDTH_PART)
        return json_object(at, call->end, TRANSPORTS, N_TRANSPORT_NAMES, transport_at, call);
    if (which != TIME_PART)
        return json_skip(at, call->end, 0);
    call->has_times = true;
    return json_object(at, call->end, TIMES, N_TIME_NAMES, time_at, call);
}

/* Whether all that links of a host carried stands under SDMA: they have no entry of their own, which is not plain. */
static bool is_nameless(const struct call *call) {
    const double *figures = call->figures + CARRIED;
    return call->sdma > 0 && figures[2 * HCCS] == 0 && figures[2 * PCIE] == 0 && figures[2 * SIO] == 0;
}

/* Add what the key of an operator says, `name@group`. */
static bool add_key(struct files *found, struct text name) {
    struct text group = {name.at + name.length, 0};
    size_t at = name.length;
    int32_t number;
    while (at > 0 && name.at[at - 1] != '@')
        at--;
    if (at > 0) {
        group.at = name.at + at;
        group.length = name.length - at;
        name.length = at - 1;
    }
    number = names_number(&found->names[GROUP_NAMES], group, -1);
    return number >= 0 && column_add_int32(&found->columns[GROUPS], number) && texts_add(&found->names[OP_NAMES].texts, name);
}

static const char *add_operator(struct reader *reader, const char *at, struct text key, int32_t number) {
    struct files *found = reader->files;
    struct column *columns = found->columns;
    struct call call = {.reader = reader, .files = found, .end = reader->end, .start_ns = -1, .idel = NAN};
    const char *begin = at;
    int figure;
    bool is_added = true;
    for (figure = 0; figure < N_FIGURES; figure++)
        call.figures[figure] = NAN;
    at = json_object(at, reader->end, PARTS, N_PARTS, part_at, &call);
    /* Without times there is no such operator, which Python tells. */
    if (!at || !call.has_times || call.start_ns < 0 || is_nameless(&call))
        return NULL;
    if (isnan(call.figures[IDLE]))
        call.figures[IDLE] = call.idel;
    for (figure = 0; figure < N_FIGURES; figure++)
        is_added = is_added && column_add_double(&columns[FIGURES + figure], call.figures[figure]);
    if (found->has_places)
        is_added = is_added && column_add_int32(&columns[KEYS], number) && column_add_int64(&columns[OFFSETS], begin - reader->begin) &&
                   column_add_int32(&columns[LENGTHS], (int32_t)(at - begin));
    found->n_rows++;
    return is_added && add_key(found, key) && column_add_int64(&columns[STARTS_NS], call.start_ns) ? at : NULL;
}

bool operators_read(const char *text, size_t length, struct files *found) {
    struct reader reader = {.files = found, .operator = add_operator};
    bool is_read = steps_read(&reader, text, length);
    /* Without places a key only tells whether it is there twice. */
    if (!found->has_places)
        names_clear(&found->names[KEY_NAMES]);
    return is_read;
}
