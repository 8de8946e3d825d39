/*
 * store/image.h: stores of tests on disk, their files, and what a crash would leave of them.
 */
#ifndef HF_TEST_STORE_IMAGE_H
#define HF_TEST_STORE_IMAGE_H

#include "kinds.h"

enum { SMALL = 256 * 1024 };

/* A store of SMALL maps, whose tables stay as they are, also when a test takes its time. */
enum hf_status open_at(struct test *t, struct hf_scope *s, const char *path,
                       struct hf__store **store);

const char *in(struct hf_scope *s, const char *path, const char *name);
void write_file(const char *path, const void *bytes, size_t len);
uint8_t *read_file(const char *path, size_t *len);
/* Remove what is in it. */
void empty_directory(const char *path);

typedef void file_fn(struct hf_scope *s, const char *dir, const char *name, void *user);
void each_file(struct hf_scope *s, const char *dir, file_fn *fn, void *user);

/*
 * What a crash now would leave of the store at `from`, in an empty directory. The store is open,
 * and moves changes from its journal to tables and notes that in its record, which would be ahead
 * of tables that were copied before: then all is copied again. So it is when files came or went.
 */
void copy_store(struct hf_scope *s, const char *from, const char *to);
/* The same where it was before: there is one image at a time. */
const char *crash_image(struct test *t, struct hf_scope *s, const char *path);

/* As if the machine had been started again since: what was not synced may be lost in part. */
void start_again(struct hf_scope *s, const char *path);

/* The newest segment of the journal that was begun: its file, and where its records end. */
struct newest {
    const char *file;
    uint64_t number;
    size_t end;
};
struct newest newest_segment(struct hf_scope *s, const char *path);

#endif
