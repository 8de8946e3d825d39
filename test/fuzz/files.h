/*
 * test/fuzz/files.h: what fuzz targets for files share.
 *
 * An input is read piece by piece; at its end every piece is zeros, so that a short input means
 * something, too.
 */
#ifndef HF_TEST_FUZZ_FILES_H
#define HF_TEST_FUZZ_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef MUST
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#endif

struct input {
    const uint8_t *at;
    size_t left;
};

static inline unsigned input_byte(struct input *input)
{
    if (!input->left)
        return 0;
    input->left--;
    return *input->at++;
}

static inline unsigned input_pair(struct input *input)
{
    unsigned low = input_byte(input);

    return low | input_byte(input) << 8;
}

/* Up to that many bytes; *len is how many there are. */
static inline const uint8_t *input_bytes(struct input *input, size_t most, size_t *len)
{
    const uint8_t *at = input->at;

    *len = most < input->left ? most : input->left;
    if (!*len)
        return (const uint8_t *)"";
    input->at += *len;
    input->left -= *len;
    return at;
}

/* An empty directory for the whole run, in memory where the system has that; removed at exit. */
const char *files_directory(void);

/* Make `name` in that directory, with these bytes at `offset`; and remove it. */
void files_write(const char *name, size_t offset, const void *bytes, size_t len);
void files_remove(const char *name);

#endif
