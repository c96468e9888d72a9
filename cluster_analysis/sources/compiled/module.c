/* The columns of communication files for Python: bytes that NumPy and Arrow take without a copy. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "json.h"
#include "module_files.h"
#include "module_regroup.h"
#include "module_values.h"
#include "packed.h"

static PyObject *numbers(PyObject *module, PyObject *given) {
    struct packed packed;
    PyObject *values;
    const char *planes;
    Py_ssize_t n_bytes;
    long long begin, step;
    int is_delta;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#ipLL", &planes, &n_bytes, &packed.n_planes, &is_delta, &begin, &step))
        return NULL;
    if (packed.n_planes < 1 || packed.n_planes > MAX_PLANES || n_bytes % packed.n_planes)
        return Py_NewRef(Py_None);
    packed.planes = (const uint8_t *)planes;
    packed.n = (size_t)n_bytes / (size_t)packed.n_planes;
    packed.is_delta = is_delta;
    packed.begin = begin;
    packed.step = step;
    if (packed.n > PY_SSIZE_T_MAX / sizeof(int64_t))
        return PyErr_NoMemory();
    values = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(packed.n * sizeof(int64_t)));
    if (values)
        packed_read(&packed, (int64_t *)(void *)PyBytes_AsString(values));
    return values;
}

static PyObject *filled(PyObject *module, PyObject *given) {
    struct stems stems;
    struct texts texts = {{NULL, 0, 0}, {NULL, 0, 0}};
    PyObject *found;
    const char *part_ends, *stem_ends, *places, *numbers_given;
    Py_ssize_t n_letters, n_part_bytes, n_stem_bytes, n_place_bytes, n_number_bytes;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#y#y#y#y#", &stems.letters, &n_letters, &part_ends, &n_part_bytes, &stem_ends,
                          &n_stem_bytes, &places, &n_place_bytes, &numbers_given, &n_number_bytes))
        return NULL;
    stems.n_letters = (size_t)n_letters;
    stems.part_ends = (const int32_t *)(const void *)part_ends;
    stems.n_parts = (size_t)n_part_bytes / sizeof(int32_t);
    stems.stem_ends = (const int32_t *)(const void *)stem_ends;
    stems.n_stems = (size_t)n_stem_bytes / sizeof(int32_t);
    stems.places = (const int64_t *)(const void *)places;
    stems.numbers = (const int64_t *)(const void *)numbers_given;
    stems.n_names = (size_t)n_place_bytes / sizeof(int64_t);
    stems.n_most = stems.n_names ? (size_t)n_number_bytes / sizeof(int64_t) / stems.n_names : 0;
    found = stems_filled(&stems, &texts) ? values_texts_of(&texts) : Py_NewRef(Py_None);
    texts_free(&texts);
    return found;
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
    {"numbers", numbers, METH_VARARGS, "Return the whole numbers (int64) of planes, None where they are none."},
    {"filled", filled, METH_VARARGS, "Return names with their numbers as Arrow lays texts, None for impossible ones."},
    {"regroup", module_regroup, METH_VARARGS, "Return pieces of files with their labels, None where Python must read them."},
    {"number", number, METH_O, "Return a number of JSON, None where Python must read it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_columns", "Columns of communication files.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__columns(void) { return PyModuleDef_Init(&MODULE); }
