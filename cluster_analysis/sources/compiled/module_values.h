/* Columns as values of Python. */
#ifndef CLUSTER_PROFILER_MODULE_VALUES_H
#define CLUSTER_PROFILER_MODULE_VALUES_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "columns.h"

PyObject *values_bytes_of(const struct column *column);
/* Offsets and letters, as Arrow lays texts. */
PyObject *values_texts_of(const struct texts *texts);
PyObject *values_names_of(const struct names *names);
/* Bytes, or where they are many: what keeps them, where they lie and how many they are. They leave the column. */
PyObject *values_taken(struct column *column);

#endif
