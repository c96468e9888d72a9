/* communication_matrix.json of the usual form, as columns. */
#include <math.h>

#include "files.h"

#define US_PER_MS 1e3
#define BYTES_PER_MB 1e6
/* No job has ranks of more digits. */
#define MAX_RANK_DIGITS 6

/* A link each: int32, -1 for a transport or an operator that is not named; doubles for sizes and times. */
enum { KEYS = FIRST_COLUMN, SOURCES, DESTINATIONS, TRANSPORTS, OPERATORS, SIZES_BYTES, TIMES_US };
enum { TRANSPORT_NAMES = FIRST_NAMES, OPERATOR_TEXTS, END_NAMES };

const char *const LINK_COLUMNS[MAX_COLUMNS] = {"levels",     "keys",      "sources",     "destinations",
                                               "transports", "operators", "sizes_bytes", "times_us"};
const char *const LINK_NAMES[MAX_NAMES] = {"step_names", "key_names", NULL, "transport_names", "operator_names"};

static const struct text LINK[] = {TEXT("Transport Type"), TEXT("Transit Size(MB)"), TEXT("Transit Time(ms)"), TEXT("Op Name"),
                                   TEXT("op_name")};
enum { TRANSPORT, SIZE, TIME, PYTORCH_NAME, MINDSPORE_NAME, N_LINK_NAMES };

/* What one link says. */
struct link {
    struct files *files;
    const char *end;
    int32_t key;
    int64_t ends; /* number of the object */
    struct text transport, pytorch, mindspore;
    double size, time;
};

static const char *value_at(void *given, const char *at, struct text key, int which) {
    struct link *link = given;
    (void)key;
    switch (which) {
    case TRANSPORT:
        return json_string_or_null(at, link->end, &link->transport);
    case SIZE:
        return json_double(at, link->end, &link->size);
    case TIME:
        return json_double(at, link->end, &link->time);
    case PYTORCH_NAME:
        return json_string_or_null(at, link->end, &link->pytorch);
    case MINDSPORE_NAME:
        return json_string_or_null(at, link->end, &link->mindspore);
    default:
        return json_skip(at, link->end, 0);
    }
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

/* Add the number of a text, -1 where there is none. */
static bool add_text(struct files *files, int column, int names, struct text text) {
    int32_t number = text.at ? names_number(&files->names[names], text, -1) : -1;
    return (!text.at || number >= 0) && column_add_int32(&files->columns[column], number);
}

static const char *link_at(void *given, const char *at, struct text ends, int which) {
    struct link *before = given, link = {.files = before->files, .end = before->end, .size = NAN, .time = NAN};
    struct files *found = link.files;
    struct column *columns = found->columns;
    int32_t source, destination;
    (void)which;
    at = json_object(at, link.end, LINK, N_LINK_NAMES, value_at, &link);
    /* An empty name names nothing. */
    if (!link.pytorch.length)
        link.pytorch = link.mindspore;
    if (!link.pytorch.length)
        link.pytorch.at = NULL;
    if (!at || !ends_of(ends, &source, &destination) ||
        names_number(&found->names[END_NAMES], ends, before->ends) < 0)
        return NULL;
    found->n_rows++;
    return column_add_int32(&columns[KEYS], before->key) && column_add_int32(&columns[SOURCES], source) &&
                   column_add_int32(&columns[DESTINATIONS], destination) &&
                   add_text(found, TRANSPORTS, TRANSPORT_NAMES, link.transport) &&
                   add_text(found, OPERATORS, OPERATOR_TEXTS, link.pytorch) &&
                   column_add_double(&columns[SIZES_BYTES], link.size * BYTES_PER_MB) &&
                   column_add_double(&columns[TIMES_US], link.time * US_PER_MS)
               ? at
               : NULL;
}

static const char *add_links(struct reader *reader, const char *at, struct text key, int32_t number) {
    struct link link = {.files = reader->files, .end = reader->end, .key = number, .ends = reader->files->n_objects++};
    (void)key;
    return json_object(at, reader->end, NULL, 0, link_at, &link);
}

bool links_read(const char *text, size_t length, struct files *found) {
    struct reader reader = {.files = found, .operator = add_links};
    return steps_read(&reader, text, length);
}
