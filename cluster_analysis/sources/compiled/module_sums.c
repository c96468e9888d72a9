/* Times summed by keys, for Python: see sums.h. */
#include "module_sums.h"

#include "exact.h"
#include "sums.h"

#define MAX_KEYS 16

static PyObject *found_of(struct sums *made, int is_plain) {
    PyObject *found = is_plain ? PyBytes_FromStringAndSize(made->found.at, (Py_ssize_t)made->found.used) : Py_NewRef(Py_None);
    free(made->found.at);
    return found;
}

/* Take the columns that spans are summed by: 1, 0 where NumPy must sum them, -1 with an exception set. */
static int keys_of(PyObject *columns, const int64_t **keys, struct sums *made) {
    Py_ssize_t n = PyTuple_Size(columns), n_known = 0, at;
    if (n < 1 || n > MAX_KEYS)
        return 0;
    for (at = 0; at < n; at++) {
        const char *key;
        Py_ssize_t n_bytes;
        if (!PyArg_Parse(PyTuple_GetItem(columns, at), "y#", &key, &n_bytes))
            return -1;
        if (at && n_bytes != n_known)
            return 0;
        n_known = n_bytes;
        keys[at] = (const int64_t *)(const void *)key;
    }
    memset(made, 0, sizeof *made);
    made->keys = keys;
    made->n_keys = (int)n;
    made->n_known = (size_t)n_known / sizeof(int64_t);
    return 1;
}

/* Spans summed by the keys of their rows; None where NumPy must sum them. */
PyObject *module_sums(PyObject *module, PyObject *given) {
    struct sums made;
    const int64_t *keys[MAX_KEYS];
    const char *rows, *spans;
    Py_ssize_t n_rows, n_spans;
    PyObject *columns;
    int is_plain;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#y#O!", &rows, &n_rows, &spans, &n_spans, &PyTuple_Type, &columns))
        return NULL;
    is_plain = keys_of(columns, keys, &made);
    if (is_plain < 0)
        return NULL;
    if (!is_plain || n_spans != 2 * n_rows)
        return Py_NewRef(Py_None);
    made.rows = (const int64_t *)(const void *)rows;
    made.spans = (const int64_t *)(const void *)spans;
    made.n_spans = (size_t)n_rows / sizeof(int64_t);
    Py_BEGIN_ALLOW_THREADS
    is_plain = sums_make(&made);
    Py_END_ALLOW_THREADS
    return found_of(&made, is_plain);
}

/* Tasks summed by the keys of the rows that have their ids; None where NumPy must sum them. */
PyObject *module_task_sums(PyObject *module, PyObject *given) {
    struct sums made;
    struct tasks tasks;
    const int64_t *keys[MAX_KEYS];
    const char *begins, *ends, *task_ids, *ids;
    Py_ssize_t n_begins, n_ends, n_task_ids, n_ids;
    PyObject *columns;
    int is_plain;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#y#y#y#O!", &begins, &n_begins, &ends, &n_ends, &task_ids, &n_task_ids, &ids, &n_ids,
                          &PyTuple_Type, &columns))
        return NULL;
    is_plain = keys_of(columns, keys, &made);
    if (is_plain < 0)
        return NULL;
    if (!is_plain || n_begins != n_ends || n_begins != n_task_ids || (size_t)n_ids / sizeof(int64_t) != made.n_known)
        return Py_NewRef(Py_None);
    tasks.begins = (const int64_t *)(const void *)begins;
    tasks.ends = (const int64_t *)(const void *)ends;
    tasks.ids = (const int64_t *)(const void *)task_ids;
    tasks.n = (size_t)n_begins / sizeof(int64_t);
    Py_BEGIN_ALLOW_THREADS
    is_plain = sums_join(&made, &tasks, (const int64_t *)(const void *)ids);
    Py_END_ALLOW_THREADS
    return found_of(&made, is_plain);
}

PyObject *module_exact_sums(PyObject *module, PyObject *given) {
    const char *pairs, *order, *begins;
    Py_ssize_t n_pairs, n_order, n_begins;
    PyObject *sums;
    bool is_done;
    (void)module;
    if (!PyArg_ParseTuple(given, "y#y#y#", &pairs, &n_pairs, &order, &n_order, &begins, &n_begins))
        return NULL;
    n_begins /= (Py_ssize_t)sizeof(int64_t);
    sums = PyBytes_FromStringAndSize(NULL, n_begins * 2 * (Py_ssize_t)sizeof(double));
    if (!sums)
        return NULL;
    is_done = exact_sums((const double *)(const void *)pairs, (size_t)n_pairs / (2 * sizeof(double)),
                         (const int64_t *)(const void *)order, (size_t)n_order / sizeof(int64_t),
                         (const int64_t *)(const void *)begins, (size_t)n_begins, (double *)(void *)PyBytes_AsString(sums));
    if (is_done)
        return sums;
    Py_DECREF(sums);
    return Py_NewRef(Py_None);
}
