#include "module_values.h"

/* From this size on memory is handed over instead of copied. */
#define MANY_BYTES (1 << 15)

PyObject *values_bytes_of(const struct column *column) {
    return PyBytes_FromStringAndSize(column->at, (Py_ssize_t)column->used);
}

PyObject *values_texts_of(const struct texts *texts) {
    return Py_BuildValue("(NN)", values_bytes_of(&texts->offsets), values_bytes_of(&texts->letters));
}

PyObject *values_names_of(const struct names *names) {
    struct texts texts = {{NULL, 0, 0}, {NULL, 0, 0}};
    PyObject *found = names_texts(names, &texts) ? values_texts_of(&texts) : PyErr_NoMemory();
    texts_free(&texts);
    return found;
}

static void free_memory(PyObject *memory) { free(PyCapsule_GetPointer(memory, NULL)); }

PyObject *values_taken(struct column *column) {
    PyObject *memory, *found;
    if (column->used < MANY_BYTES)
        return values_bytes_of(column);
    memory = PyCapsule_New(column->at, NULL, free_memory);
    if (!memory)
        return NULL;
    found = Py_BuildValue("(NKn)", memory, (unsigned long long)(uintptr_t)column->at, (Py_ssize_t)column->used);
    memset(column, 0, sizeof *column);
    return found;
}
