#include "module_files.h"

#include "communication.h"
#include "content.h"
#include "matrix.h"

/* All of them together have no more, so that no count of anything in them overflows. */
#define MAX_BYTES INT32_MAX

/* Reads a text behind those before it; false where Python must. */
typedef bool (*read_text)(void *found, const char *text, size_t length);
/* Makes place for so many texts like the one that was read. */
typedef void (*reserve)(void *found, size_t n_texts);

static bool read_operators(void *found, const char *text, size_t length) { return operators_read(text, length, found); }
static void reserve_operators(void *found, size_t n_texts) { operators_reserve(found, n_texts); }
static bool read_links(void *found, const char *text, size_t length) { return links_read(text, length, found); }

/* Read the file at a path: 1, 0 where Python must read it, -1 with an exception set. */
static int read_one(PyObject *given, read_text read, void *found, struct content *content) {
    PyObject *path = PyUnicode_EncodeFSDefault(given);
    char *name;
    bool is_plain;
    if (!path || PyBytes_AsStringAndSize(path, &name, NULL)) {
        Py_XDECREF(path);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    is_plain = content_read(content, name) && read(found, content->at, content->length);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return is_plain;
}

/* Read all of the files, only one of which is in memory at a time: 1, 0 where Python must read one of them, -1 with an exception
 * set. */
static int read_all(PyObject *paths, read_text read, reserve reserve, void *found) {
    PyObject *each = PyObject_GetIter(paths), *given;
    struct content content = {NULL, 0, 0, MAX_BYTES};
    Py_ssize_t n_files = each ? PyObject_Size(paths) : -1;
    int is_plain = n_files < 0 ? -1 : n_files > 0;
    bool is_first = true;
    while (is_plain > 0 && (given = PyIter_Next(each))) {
        is_plain = read_one(given, read, found, &content);
        if (is_plain > 0 && is_first && n_files > 1 && reserve)
            reserve(found, (size_t)n_files - 1);
        is_first = false;
        Py_DECREF(given);
    }
    content_free(&content);
    Py_XDECREF(each);
    return PyErr_Occurred() ? -1 : is_plain;
}

/* Add a value to a dictionary and let go of it; false with an exception set. */
static bool set(PyObject *columns, const char *name, PyObject *value) {
    int failed = !value || PyDict_SetItemString(columns, name, value);
    Py_XDECREF(value);
    return !failed;
}

static PyObject *counts_of(const int32_t *counts, int n) {
    PyObject *found = PyTuple_New(n);
    int at;
    for (at = 0; found && at < n; at++) {
        PyObject *count = PyLong_FromLong(counts[at]);
        if (!count || PyTuple_SetItem(found, at, count)) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

static PyObject *figures_of(struct column *columns) {
    PyObject *found = PyTuple_New(N_FIGURES);
    int at;
    for (at = 0; found && at < N_FIGURES; at++) {
        PyObject *column = values_taken(&columns[at]);
        if (!column || PyTuple_SetItem(found, at, column)) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

static bool set_steps(PyObject *columns, struct steps *found) {
    return set(columns, "levels", values_bytes_of(&found->levels)) && set(columns, "step_names", values_names_of(&found->names));
}

static bool set_places(PyObject *columns, struct operators *found) {
    return set(columns, "keys", values_taken(&found->columns[KEYS])) &&
           set(columns, "key_names", values_names_of(&found->key_names)) &&
           set(columns, "offsets", values_taken(&found->columns[OFFSETS])) &&
           set(columns, "lengths", values_taken(&found->columns[LENGTHS]));
}

static bool set_operators(PyObject *columns, struct operators *found) {
    PyObject *op_names;
    if (!set(columns, "groups", values_taken(&found->columns[GROUPS])) ||
        !set(columns, "group_names", values_names_of(&found->group_names)) ||
        !set(columns, "stems", values_taken(&found->columns[STEMS])) ||
        !set(columns, "stem_names", values_names_of(&found->stem_names)) ||
        !set(columns, "indices", values_taken(&found->columns[INDICES])) ||
        !set(columns, "starts_ns", values_taken(&found->columns[STARTS_NS])) ||
        !set(columns, "figures", figures_of(found->figures)) ||
        !set(columns, "n_missing", counts_of(found->n_missing, N_FIGURES)) ||
        !set(columns, "packet_rows", values_taken(&found->packets[PACKET_ROWS])) ||
        !set(columns, "packet_transports", values_taken(&found->packets[PACKET_TRANSPORTS])) ||
        !set(columns, "packet_sizes", values_taken(&found->packets[PACKET_SIZES])) ||
        !set(columns, "packet_figures", values_taken(&found->packets[PACKET_FIGURES])) ||
        !set(columns, "size_names", values_names_of(&found->size_names)))
        return false;
    op_names = Py_BuildValue("(NN)", values_taken(&found->op_names.offsets), values_taken(&found->op_names.letters));
    return set(columns, "op_names", op_names) && (!found->has_places || set_places(columns, found));
}

static bool set_links(PyObject *columns, struct links *found) {
    struct column *links = found->columns;
    return set(columns, "keys", values_taken(&links[KEYS_OF_LINKS])) &&
           set(columns, "key_names", values_names_of(&found->key_names)) &&
           set(columns, "sources", values_taken(&links[SOURCES])) &&
           set(columns, "destinations", values_taken(&links[DESTINATIONS])) &&
           set(columns, "transports", values_taken(&links[TRANSPORTS_OF_LINKS])) &&
           set(columns, "transport_names", values_names_of(&found->transport_names)) &&
           set(columns, "operators", values_taken(&links[OPERATORS_OF_LINKS])) &&
           set(columns, "operator_names", values_names_of(&found->operator_names)) &&
           set(columns, "sizes_bytes", values_taken(&links[SIZES_BYTES])) &&
           set(columns, "times_us", values_taken(&links[TIMES_US]));
}

PyObject *module_operators(PyObject *module, PyObject *given) {
    struct operators found;
    PyObject *columns = NULL, *paths;
    int has_places, is_plain;
    (void)module;
    memset(&found, 0, sizeof found);
    if (!PyArg_ParseTuple(given, "OpII", &paths, &has_places, &found.needed, &found.measured))
        return NULL;
    found.has_places = has_places;
    is_plain = read_all(paths, read_operators, reserve_operators, &found);
    if (is_plain > 0) {
        columns = PyDict_New();
        if (columns && !(set_steps(columns, &found.steps) && set_operators(columns, &found)))
            Py_CLEAR(columns);
    }
    operators_free(&found);
    return is_plain ? columns : Py_NewRef(Py_None);
}

PyObject *module_links(PyObject *module, PyObject *paths) {
    struct links found;
    PyObject *columns = NULL;
    int is_plain;
    (void)module;
    memset(&found, 0, sizeof found);
    is_plain = read_all(paths, read_links, NULL, &found);
    if (is_plain > 0) {
        columns = PyDict_New();
        if (columns && !(set_steps(columns, &found.steps) && set_links(columns, &found)))
            Py_CLEAR(columns);
    }
    links_free(&found);
    return is_plain ? columns : Py_NewRef(Py_None);
}
