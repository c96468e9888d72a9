/* The columns of communication files and databases for Python: bytes that NumPy and Arrow take without a copy. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "communication.h"
#include "matrix.h"
#include "table.h"

/* Add a value to a dictionary and let go of it; false with an exception set. */
static bool set(PyObject *columns, const char *name, PyObject *value) {
    int failed = !value || PyDict_SetItemString(columns, name, value);
    Py_XDECREF(value);
    return !failed;
}

static PyObject *bytes_of(const struct column *column) {
    return PyBytes_FromStringAndSize(column->at, (Py_ssize_t)column->used);
}

/* Offsets and letters, as Arrow lays texts. */
static PyObject *texts_of(const struct texts *texts) {
    return Py_BuildValue("(NN)", bytes_of(&texts->offsets), bytes_of(&texts->letters));
}

static PyObject *names_of(const struct names *names) {
    struct texts texts = {{NULL, 0, 0}, {NULL, 0, 0}};
    PyObject *found = names_texts(names, &texts) ? texts_of(&texts) : PyErr_NoMemory();
    texts_free(&texts);
    return found;
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

static PyObject *figures_of(const struct column *columns) {
    PyObject *found = PyTuple_New(N_FIGURES);
    int at;
    for (at = 0; found && at < N_FIGURES; at++) {
        PyObject *column = bytes_of(&columns[at]);
        if (!column || PyTuple_SetItem(found, at, column)) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

static bool set_operators(PyObject *columns, const struct operators *found) {
    return set(columns, "levels", bytes_of(&found->steps.levels)) &&
           set(columns, "step_names", names_of(&found->steps.names)) &&
           set(columns, "keys", bytes_of(&found->keys)) && set(columns, "key_names", names_of(&found->key_names)) &&
           set(columns, "groups", bytes_of(&found->groups)) &&
           set(columns, "group_names", names_of(&found->group_names)) &&
           set(columns, "stems", bytes_of(&found->stems)) && set(columns, "stem_names", names_of(&found->stem_names)) &&
           set(columns, "op_names", texts_of(&found->op_names)) &&
           set(columns, "indices", bytes_of(&found->indices)) && set(columns, "starts_ns", bytes_of(&found->starts_ns)) &&
           set(columns, "offsets", bytes_of(&found->offsets)) && set(columns, "lengths", bytes_of(&found->lengths)) &&
           set(columns, "figures", figures_of(found->figures)) &&
           set(columns, "n_missing", counts_of(found->n_missing, N_FIGURES)) &&
           set(columns, "n_negative", counts_of(found->n_negative, N_FIGURES)) &&
           set(columns, "packet_rows", bytes_of(&found->packet_rows)) &&
           set(columns, "packet_transports", bytes_of(&found->packet_transports)) &&
           set(columns, "packet_sizes", bytes_of(&found->packet_sizes)) &&
           set(columns, "size_names", names_of(&found->size_names)) &&
           set(columns, "packet_figures", bytes_of(&found->packet_figures));
}

static bool set_links(PyObject *columns, const struct links *found) {
    return set(columns, "levels", bytes_of(&found->steps.levels)) &&
           set(columns, "step_names", names_of(&found->steps.names)) &&
           set(columns, "keys", bytes_of(&found->keys)) && set(columns, "key_names", names_of(&found->key_names)) &&
           set(columns, "sources", bytes_of(&found->sources)) &&
           set(columns, "destinations", bytes_of(&found->destinations)) &&
           set(columns, "transports", bytes_of(&found->transports)) &&
           set(columns, "transport_names", names_of(&found->transport_names)) &&
           set(columns, "operators", bytes_of(&found->op_names)) &&
           set(columns, "operator_names", names_of(&found->operator_names)) &&
           set(columns, "sizes_bytes", bytes_of(&found->sizes_bytes)) &&
           set(columns, "times_us", bytes_of(&found->times_us)) &&
           set(columns, "n_missing", PyLong_FromLong(found->n_missing)) &&
           set(columns, "n_negative", PyLong_FromLong(found->n_negative));
}

static PyObject *operators(PyObject *module, PyObject *content) {
    struct operators found;
    PyObject *columns = NULL;
    char *text;
    Py_ssize_t length;
    bool is_plain;
    (void)module;
    if (PyBytes_AsStringAndSize(content, &text, &length))
        return NULL;
    memset(&found, 0, sizeof found);
    Py_BEGIN_ALLOW_THREADS
    is_plain = operators_read(text, (size_t)length, &found);
    Py_END_ALLOW_THREADS
    if (!is_plain) {
        columns = Py_NewRef(Py_None);
    } else {
        columns = PyDict_New();
        if (columns && !set_operators(columns, &found))
            Py_CLEAR(columns);
    }
    operators_free(&found);
    return columns;
}

static PyObject *links(PyObject *module, PyObject *content) {
    struct links found;
    PyObject *columns = NULL;
    char *text;
    Py_ssize_t length;
    bool is_plain;
    (void)module;
    if (PyBytes_AsStringAndSize(content, &text, &length))
        return NULL;
    memset(&found, 0, sizeof found);
    Py_BEGIN_ALLOW_THREADS
    is_plain = links_read(text, (size_t)length, &found);
    Py_END_ALLOW_THREADS
    if (!is_plain) {
        columns = Py_NewRef(Py_None);
    } else {
        columns = PyDict_New();
        if (columns && !set_links(columns, &found))
            Py_CLEAR(columns);
    }
    links_free(&found);
    return columns;
}

/* Kinds seen, kinds, values and letters of each column that is wanted, in the order of the columns. */
static PyObject *cells_of(const struct table *table) {
    PyObject *found = PyList_New(0);
    int at;
    for (at = 0; found && at < table->n_columns; at++) {
        const struct cells *cells = &table->found[at];
        PyObject *column;
        if (table->wishes[at] == WISH_NONE)
            continue;
        column = Py_BuildValue("(INNN)", cells->seen, bytes_of(&cells->kinds), bytes_of(&cells->values), bytes_of(&cells->letters));
        if (!column || PyList_Append(found, column))
            Py_CLEAR(found);
        Py_XDECREF(column);
    }
    return found;
}

static PyObject *table(PyObject *module, PyObject *given) {
    struct table found;
    PyObject *columns = NULL;
    const char *wishes;
    Py_ssize_t n_wishes;
    unsigned long root;
    bool is_plain;
    (void)module;
    memset(&found, 0, sizeof found);
    if (!PyArg_ParseTuple(given, "ikiy#", &found.file, &root, &found.row_number, &wishes, &n_wishes))
        return NULL;
    if (root > UINT32_MAX || n_wishes > MAX_TABLE_COLUMNS)
        return Py_NewRef(Py_None);
    found.root = (uint32_t)root;
    found.n_columns = (int)n_wishes;
    found.wishes = (const uint8_t *)wishes;
    found.found = calloc((size_t)n_wishes + 1, sizeof *found.found);
    if (!found.found)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    is_plain = table_read(&found);
    Py_END_ALLOW_THREADS
    columns = is_plain ? cells_of(&found) : Py_NewRef(Py_None);
    table_free(&found);
    free(found.found);
    return columns;
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
    {"operators", operators, METH_O, "Return the columns of a communication.json, None where Python must read it."},
    {"links", links, METH_O, "Return the columns of a communication_matrix.json, None where Python must read it."},
    {"table", table, METH_VARARGS, "Return the columns of a table of a SQLite file, None where SQLite must read it."},
    {"number", number, METH_O, "Return a number of JSON, None where Python must read it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_columns", "Columns of communication files and databases.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__columns(void) { return PyModuleDef_Init(&MODULE); }
