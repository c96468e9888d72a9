/* Whole files, one at a time: all of them are read into the same memory. */
#ifndef CLUSTER_PROFILER_CONTENT_H
#define CLUSTER_PROFILER_CONTENT_H

#include <stdbool.h>
#include <stddef.h>

struct content {
    char *at; /* the byte behind the end is 0 */
    size_t length, size;
    size_t most; /* longer files are not read */
};

/* Read a file in place of the one before; false where it cannot be read, or is too long. */
bool content_read(struct content *content, const char *path);
void content_free(struct content *content);

#endif
