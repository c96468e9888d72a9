/* The columns of communication files for Python: bytes that NumPy and Arrow take without a copy. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "files.h"

/* Reads a text behind those before it; false where Python must. */
typedef bool (*read_text)(const char *text, size_t length, struct files *found);

/* Read all of the texts, only one of which is in memory at a time: 1, 0 where Python must read one of them, -1 with an exception
 * set. */
static int read_all(PyObject *contents, read_text read, struct files *found) {
    PyObject *each = PyObject_GetIter(contents), *content;
    bool is_plain = true;
    while (each && is_plain && (content = PyIter_Next(each))) {
        char *text;
        Py_ssize_t length;
        is_plain = !PyBytes_AsStringAndSize(content, &text, &length);
        if (is_plain) {
            Py_BEGIN_ALLOW_THREADS
            is_plain = read(text, (size_t)length, found);
            Py_END_ALLOW_THREADS
        }
        Py_DECREF(content);
    }
    Py_XDECREF(each);
    return PyErr_Occurred() ? -1 : is_plain && found->n_files > 0;
}

/* Return a column, which goes. */
static PyObject *taken(struct column *column) {
    PyObject *value = PyBytes_FromStringAndSize(column->at, (Py_ssize_t)column->used);
    column_free(column);
    return value;
}

/* Add a value to a dictionary and let go of it; false with an exception set. */
static bool set(PyObject *columns, const char *name, PyObject *value) {
    int failed = !value || PyDict_SetItemString(columns, name, value);
    Py_XDECREF(value);
    return !failed;
}

/* Return the columns of all texts by name, and offsets and letters of the names; None where Python must read one. */
static PyObject *columns_of(PyObject *contents, bool has_places, read_text read, const char *const *columns, const char *const *names) {
    struct files found = {.has_places = has_places};
    int at, is_plain = read_all(contents, read, &found);
    PyObject *given = is_plain > 0 ? PyDict_New() : is_plain ? NULL : Py_NewRef(Py_None);
    for (at = 0; at < MAX_COLUMNS && given && is_plain; at++)
        if (columns[at] && !set(given, columns[at], taken(&found.columns[at])))
            Py_CLEAR(given);
    for (at = 0; at < MAX_NAMES && given && is_plain; at++) {
        struct texts *texts = &found.names[at].texts;
        if (names[at] && !set(given, names[at], Py_BuildValue("(NN)", taken(&texts->offsets), taken(&texts->letters))))
            Py_CLEAR(given);
    }
    files_free(&found);
    return given;
}

static PyObject *operators(PyObject *module, PyObject *given) {
    PyObject *contents;
    int has_places;
    (void)module;
    if (!PyArg_ParseTuple(given, "Op", &contents, &has_places))
        return NULL;
    return columns_of(contents, has_places, operators_read, OPERATOR_COLUMNS, OPERATOR_NAMES);
}

static PyObject *links(PyObject *module, PyObject *contents) {
    (void)module;
    return columns_of(contents, false, links_read, LINK_COLUMNS, LINK_NAMES);
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
    {"operators", operators, METH_VARARGS, "Return the columns of communication.json of several ranks, None where Python must read one."},
    {"links", links, METH_O, "Return the columns of communication_matrix.json of several ranks, None where Python must read one."},
    {"number", number, METH_O, "Return a number of JSON, None where Python must read it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_files", "Columns of communication files.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__files(void) { return PyModuleDef_Init(&MODULE); }
