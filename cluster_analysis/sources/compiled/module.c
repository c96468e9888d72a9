/* The columns of communication files for Python: bytes that NumPy and Arrow take without a copy. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "communication.h"
#include "matrix.h"

#define MORE_BYTES 65536
/* From this size on memory is handed over instead of copied. */
#define MANY_BYTES (1 << 15)
/* All files together have no more, so that no count of anything in them overflows. */
#define MAX_BYTES INT32_MAX

/* A whole file; the one after it is read into the same memory. */
struct content {
    char *at; /* the byte behind the end is 0 */
    size_t length, size;
};

static bool content_reserve(struct content *content, size_t more) {
    char *at;
    size_t size;
    if (content->size - content->length > more)
        return true;
    if (more > SIZE_MAX / 2 - content->length - MORE_BYTES)
        return false;
    size = content->length + more + MORE_BYTES;
    at = realloc(content->at, size);
    if (!at)
        return false;
    content->at = at;
    content->size = size;
    return true;
}

/* Read a file in place of the one before; false where it cannot be read, or is too long. */
static bool content_read(struct content *content, const char *path) {
    struct stat status;
    ssize_t n = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    content->length = 0;
    if (file < 0)
        return false;
    if (!fstat(file, &status) && status.st_size >= 0 && (uintmax_t)status.st_size <= MAX_BYTES &&
        content_reserve(content, (size_t)status.st_size)) {
        /* A file that grows meanwhile is read to its end. */
        do {
            n = read(file, content->at + content->length, content->size - content->length - 1);
            content->length += n > 0 ? (size_t)n : 0;
        } while (n > 0 && content->length <= MAX_BYTES && content_reserve(content, 1));
    }
    close(file);
    if (n != 0)
        return false;
    content->at[content->length] = 0;
    return true;
}

static PyObject *values_bytes_of(const struct column *column) {
    return PyBytes_FromStringAndSize(column->at, (Py_ssize_t)column->used);
}

/* Offsets and letters, as Arrow lays texts. */
static PyObject *values_texts_of(const struct texts *texts) {
    return Py_BuildValue("(NN)", values_bytes_of(&texts->offsets), values_bytes_of(&texts->letters));
}

static PyObject *values_names_of(const struct names *names) {
    struct texts texts = {{NULL, 0, 0}, {NULL, 0, 0}};
    PyObject *found = names_texts(names, &texts) ? values_texts_of(&texts) : PyErr_NoMemory();
    texts_free(&texts);
    return found;
}

static void free_memory(PyObject *memory) { free(PyCapsule_GetPointer(memory, NULL)); }

/* Bytes, or where they are many: what keeps them, where they lie and how many they are. They leave the column. */
static PyObject *values_taken(struct column *column) {
    PyObject *memory, *found;
    if (column->used < MANY_BYTES)
        return values_bytes_of(column);
    memory = PyCapsule_New(column->at, NULL, free_memory);
    if (!memory)
        return NULL;
    found = Py_BuildValue("(NKn)", memory, (unsigned long long)(uintptr_t)column->at, (Py_ssize_t)column->used);
    memset(column, 0, sizeof *column);
    return found;
}

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
    struct content content = {NULL, 0, 0};
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
    free(content.at);
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

static PyObject *module_operators(PyObject *module, PyObject *given) {
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

static PyObject *module_links(PyObject *module, PyObject *paths) {
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

/* For tests: the number at the begin of a text, None where Python must read it. */
static PyObject *number(PyObject *module, PyObject *content) {
    char *text;
    Py_ssize_t length;
    double value;
    const char *behind;
    (void)module;
    if (PyBytes_AsStringAndSize(content, &text, &length))
        return NULL;
    behind = json_double(text, text + length, &value);
    if (!behind || behind != text + length)
        return Py_NewRef(Py_None);
    return PyFloat_FromDouble(value);
}

static PyMethodDef METHODS[] = {
    {"operators", module_operators, METH_VARARGS, "Return the columns of communication.json of several ranks, None where Python must read one."},
    {"links", module_links, METH_O, "Return the columns of communication_matrix.json of several ranks, None where Python must read one."},
    {"number", number, METH_O, "Return a number of JSON, None where Python must read it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_columns", "Columns of communication files.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__columns(void) { return PyModuleDef_Init(&MODULE); }
