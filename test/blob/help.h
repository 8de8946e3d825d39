/* blob/help.h: what the tests of blob stores share. */
#ifndef HF_TEST_BLOB_HELP_H
#define HF_TEST_BLOB_HELP_H

#include <holdfast/blob.h>

#include "test.h"

/* The stores that every test of the interface runs on. */
#define EACH_STORE(t_, s_, blobs_)                                                                 \
    for (struct hf_blobs *blobs_ = NULL, *round_##blobs_ = (void *)1; round_##blobs_;              \
         round_##blobs_ = help_next(t_, s_, &blobs_, round_##blobs_))                              \
        if (blobs_)

struct hf_blobs *help_next(struct test *t, struct hf_scope *s, struct hf_blobs **blobs,
                           struct hf_blobs *round);

struct hf_blobs *help_open_dir(struct hf_scope *s, const char *path);

/* The path of a file of a store: "PATH/ab/cd/abcd...". */
const char *help_place(struct hf_scope *s, const char *path, struct hf_str digest);

/* How many files are below a folder, but FORMAT. */
size_t help_files(const char *path);

/* How many blobs hf_blobs_list() tells. */
size_t help_count(struct hf_scope *s, struct hf_blobs *blobs);

/* For sweeps: nothing is used, all is. */
hf_blob_used_fn help_none_used, help_all_used;

#endif
