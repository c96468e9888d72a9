/* Pieces of files put behind one another, for Python: see regroup.h. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "module_regroup.h"
#include "regroup.h"

#define N_OF(bytes, type) ((size_t)(bytes) / sizeof(type))

PyObject *module_regroup(PyObject *module, PyObject *given) {
    struct regroup asked;
    const char *keys, *files, *offsets, *lengths, *key_offsets, *ranks, *descriptors;
    Py_ssize_t n_keys, n_files, n_offsets, n_lengths, n_key_offsets, n_letters, n_ranks, n_descriptors;
    PyObject *text;
    size_t size;
    char *to;
    bool is_done;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#y#y#y#(y#y#)y#y#", &keys, &n_keys, &files, &n_files, &offsets, &n_offsets, &lengths,
                          &n_lengths, &key_offsets, &n_key_offsets, &asked.letters, &n_letters, &ranks, &n_ranks,
                          &descriptors, &n_descriptors))
        return NULL;
    asked.keys = (const int32_t *)(const void *)keys;
    asked.files = (const int32_t *)(const void *)files;
    asked.offsets = (const int64_t *)(const void *)offsets;
    asked.lengths = (const int32_t *)(const void *)lengths;
    asked.key_offsets = (const int32_t *)(const void *)key_offsets;
    asked.ranks = (const int32_t *)(const void *)ranks;
    asked.descriptors = (const int32_t *)(const void *)descriptors;
    asked.n_rows = N_OF(n_keys, int32_t);
    asked.n_keys = n_key_offsets ? N_OF(n_key_offsets, int32_t) - 1 : 0;
    asked.n_letters = (size_t)n_letters;
    asked.n_files = N_OF(n_ranks, int32_t);
    if (n_files != n_keys || n_lengths != n_keys || N_OF(n_offsets, int64_t) != asked.n_rows || n_descriptors != n_ranks)
        return Py_NewRef(Py_None);
    size = regroup_size(&asked);
    if (!size)
        return Py_NewRef(Py_None);
    text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!text)
        return NULL;
    to = PyBytes_AsString(text);
    Py_BEGIN_ALLOW_THREADS
    is_done = regroup_write(&asked, to);
    Py_END_ALLOW_THREADS
    if (!is_done) {
        Py_DECREF(text);
        return Py_NewRef(Py_None);
    }
    return text;
}
