/* The columns of communication files for Python: bytes that NumPy and Arrow take without a copy. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "json.h"
#include "module_files.h"

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
