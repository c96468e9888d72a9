#include "matrix.h"

#include <math.h>

#include "shape.h"

#define US_PER_MS 1e3
#define BYTES_PER_MB 1e6
/* No job has ranks of more digits. */
#define MAX_RANK_DIGITS 6
/* A sum: it must have the form of a link, and is none. */
#define NO_KEY -1

struct reader {
    const char *end;
    struct links *found;
    struct shape link; /* how the last one was written */
};

static const struct text LINK[] = {NAME("Transport Type"), NAME("Transit Size(MB)"), NAME("Transit Time(ms)"),
                                   NAME("Bandwidth(GB/s)"), NAME("Op Name"), NAME("op_name")};
enum { TRANSPORT, SIZE, TIME, BANDWIDTH, PYTORCH_NAME, MINDSPORE_NAME, N_LINK_NAMES };

static const char *string_or_null(const char *at, const char *end, struct text *found) {
    if (at && *at == 'n') {
        found->at = NULL;
        found->length = 0;
        return json_goes_on(at, end, "null", 4) ? at + 4 : NULL;
    }
    return json_string(at, end, found);
}

/* The number of a text, -1 where there is none; false where it cannot be kept. */
static bool number_of(struct names *names, struct text text, int32_t *number) {
    *number = text.at ? names_number(names, text, -1) : -1;
    return !text.at || *number >= 0;
}

static const char *rank_in(const char *at, int32_t *rank) {
    const char *begin = at;
    for (*rank = 0; json_is_digit(*at) && at - begin < MAX_RANK_DIGITS; at++)
        *rank = *rank * 10 + (*at - '0');
    return at > begin ? at : NULL;
}

static bool ends_of(struct text text, int32_t *source, int32_t *destination) {
    const char *at = rank_in(text.at, source);
    at = at && *at == '-' ? rank_in(at + 1, destination) : NULL;
    return at && at == text.at + text.length;
}

/* What one link says. */
struct link {
    const char *end;
    struct text transport, pytorch, mindspore;
    double size, time;
};

static const char *value_of_link(void *given, const char *at, int which) {
    struct link *link = given;
    switch (which) {
    case TRANSPORT:
        return string_or_null(at, link->end, &link->transport);
    case SIZE:
        return json_double(at, link->end, &link->size);
    case TIME:
        return json_double(at, link->end, &link->time);
    case PYTORCH_NAME:
        return string_or_null(at, link->end, &link->pytorch);
    case MINDSPORE_NAME:
        return string_or_null(at, link->end, &link->mindspore);
    default:
        return json_skip(at, link->end, 0);
    }
}

static const char *link_at(struct reader *reader, const char *at, int32_t key, struct text ends) {
    struct links *found = reader->found;
    struct link link = {reader->end, {NULL, 0}, {NULL, 0}, {NULL, 0}, NAN, NAN};
    int32_t source, destination, transport_number, name_number;
    at = shape_object(&reader->link, at, reader->end, LINK, N_LINK_NAMES, value_of_link, &link);
    if (key == NO_KEY)
        return at;
    /* An empty name names nothing. */
    if (!link.pytorch.length)
        link.pytorch = link.mindspore;
    if (!link.pytorch.length)
        link.pytorch.at = NULL;
    /* What lacks its size or time, or has one below 0, is to be told. */
    if (!at || !(link.size >= 0 && link.time >= 0) || !ends_of(ends, &source, &destination) ||
        !number_of(&found->transport_names, link.transport, &transport_number) ||
        !number_of(&found->operator_names, link.pytorch, &name_number))
        return NULL;
    found->steps.n_rows++;
    if (column_add_int32(&found->columns[KEYS_OF_LINKS], key) && column_add_int32(&found->columns[SOURCES], source) &&
        column_add_int32(&found->columns[DESTINATIONS], destination) &&
        column_add_int32(&found->columns[TRANSPORTS_OF_LINKS], transport_number) &&
        column_add_int32(&found->columns[OPERATORS_OF_LINKS], name_number) &&
        column_add_double(&found->columns[SIZES_BYTES], link.size * BYTES_PER_MB) &&
        column_add_double(&found->columns[TIMES_US], link.time * US_PER_MS))
        return at;
    return NULL;
}

static const char *links_at(struct reader *reader, const char *at, int32_t key) {
    int64_t seen = reader->found->n_keys++;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    for (is_done = false; at && !is_done;) {
        struct text ends;
        at = json_key(at, reader->end, &ends);
        if (!at || names_number(&reader->found->end_names, ends, seen) < 0)
            return NULL;
        at = json_next(link_at(reader, at, key, ends), '}', &is_done);
    }
    return at;
}

static const char *level_at(void *given, const char *at) {
    struct reader *reader = given;
    bool is_done;
    at = json_object(at);
    if (at && *at == '}')
        return at + 1;
    reader->found->n_levels++;
    for (is_done = false; at && !is_done;) {
        struct text key;
        int32_t number = NO_KEY;
        at = json_key(at, reader->end, &key);
        if (at && !member_is_total(key)) {
            number = names_number(&reader->found->key_names, key, reader->found->n_levels);
            at = number >= 0 ? at : NULL;
        }
        at = at ? links_at(reader, at, number) : NULL;
        at = json_next(at, '}', &is_done);
    }
    return at;
}

enum { N_NAMES = 4 };

static void names_of(struct links *found, struct names **names) {
    names[0] = &found->key_names;
    names[1] = &found->transport_names;
    names[2] = &found->operator_names;
    names[3] = &found->end_names;
}

bool links_read(const char *text, size_t length, struct links *found) {
    struct reader reader;
    struct names *names[N_NAMES];
    bool is_read;
    int at;
    memset(&reader, 0, sizeof reader);
    reader.end = text + length;
    reader.found = found;
    names_of(found, names);
    is_read = steps_read(text, length, &found->steps, level_at, &reader) && names_own(&found->steps.names);
    for (at = 0; at < N_NAMES; at++)
        is_read = is_read && names_own(names[at]);
    return is_read;
}

void links_free(struct links *links) {
    struct names *names[N_NAMES];
    int at;
    names_of(links, names);
    for (at = 0; at < N_LINK_COLUMNS; at++)
        free(links->columns[at].at);
    for (at = 0; at < N_NAMES; at++)
        names_free(names[at]);
    steps_free(&links->steps);
}
