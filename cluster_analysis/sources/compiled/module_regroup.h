/* What module_regroup.c gives to the module. */
#ifndef CLUSTER_PROFILER_MODULE_REGROUP_H
#define CLUSTER_PROFILER_MODULE_REGROUP_H

PyObject *module_regroup(PyObject *module, PyObject *given);

#endif
