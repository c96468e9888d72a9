#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "content.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MORE_BYTES 65536

static bool reserve(struct content *content, size_t more) {
    char *at;
    size_t size;
    if (content->size - content->length > more)
        return true;
    if (more > SIZE_MAX / 2 - content->length - MORE_BYTES)
        return false;
    size = content->length + more + MORE_BYTES;
    at = realloc(content->at, size);
    if (!at)
        return false;
    content->at = at;
    content->size = size;
    return true;
}

bool content_read(struct content *content, const char *path) {
    struct stat status;
    ssize_t n = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    content->length = 0;
    if (file < 0)
        return false;
    if (!fstat(file, &status) && status.st_size >= 0 && (uintmax_t)status.st_size <= content->most &&
        reserve(content, (size_t)status.st_size)) {
        /* A file that grows meanwhile is read to its end. */
        do {
            n = read(file, content->at + content->length, content->size - content->length - 1);
            content->length += n > 0 ? (size_t)n : 0;
        } while (n > 0 && content->length <= content->most && reserve(content, 1));
    }
    close(file);
    if (n != 0)
        return false;
    content->at[content->length] = 0;
    return true;
}

void content_free(struct content *content) {
    free(content->at);
    content->at = NULL;
    content->length = content->size = 0;
}
