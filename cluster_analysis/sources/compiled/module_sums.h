/* What the module offers of times that are summed by keys. */
#ifndef CLUSTER_PROFILER_MODULE_SUMS_H
#define CLUSTER_PROFILER_MODULE_SUMS_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

/* Spans summed by the keys of their rows; None where NumPy must sum them. */
PyObject *module_sums(PyObject *module, PyObject *given);
/* Tasks summed by the keys of the rows that have their ids; None where NumPy must sum them. */
PyObject *module_task_sums(PyObject *module, PyObject *given);
/* Pairs of numbers summed exactly; None where Python must sum them. */
PyObject *module_exact_sums(PyObject *module, PyObject *given);

#endif
