/* Communication files of several ranks as columns, for Python. */
#ifndef CLUSTER_PROFILER_MODULE_FILES_H
#define CLUSTER_PROFILER_MODULE_FILES_H

#include "module_values.h"

PyObject *module_operators(PyObject *module, PyObject *given);
PyObject *module_links(PyObject *module, PyObject *given);

#endif
