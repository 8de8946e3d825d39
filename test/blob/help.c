/* blob/help.c: see help.h */
#include "help.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

struct hf_blobs *help_open_dir(struct hf_scope *s, const char *path)
{
    struct hf_blobs *blobs;

    CHECK_OK(hf_blobs_open(s, hf_scope_format(s, "dir:%s", path), NULL, &blobs));
    return blobs;
}

/* Rounds: nothing yet, memory, a folder, one that is made by the first put, the end. */
struct hf_blobs *help_next(struct test *t, struct hf_scope *s, struct hf_blobs **blobs,
                           struct hf_blobs *round)
{
    uintptr_t number = (uintptr_t)round;

    hf_blobs_close(*blobs);
    *blobs = NULL;
    if (number == 1)
        CHECK_OK(hf_blobs_open(s, HF_STR("memory:"), NULL, blobs));
    if (number == 2)
        *blobs = help_open_dir(s, test_quick_directory(t));
    if (number == 3)
        CHECK_OK(hf_blobs_open(s, hf_scope_format(s, "dir:%s/new", test_quick_directory(t)),
                               HF_OPTIONS(hf_blobs_options, .lazy = true), blobs));
    return (struct hf_blobs *)(number == 4 ? 0 : number + 1);
}

const char *help_place(struct hf_scope *s, const char *path, struct hf_str digest)
{
    return hf_scope_format(s, "%s/%.2s/%.2s/%.*s", path, digest.ptr, digest.ptr + 2, HF_FMT(digest))
        .ptr;
}

static size_t files; /* nftw() has no pointer for its caller */

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    files += kind != FTW_D && strcmp(path + at->base, "FORMAT") != 0;
    return 0;
}

size_t help_files(const char *path)
{
    files = 0;
    CHECK_INT(0, nftw(path, count_file, 8, FTW_PHYS));
    return files;
}

static enum hf_status count_blob(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)s;
    CHECK_INT(HF_BLOB_DIGEST_LEN, blob->digest.len);
    ++*(size_t *)user;
    return HF_OK;
}

size_t help_count(struct hf_scope *s, struct hf_blobs *blobs)
{
    size_t count = 0;

    CHECK_OK(hf_blobs_list(s, blobs, count_blob, &count));
    return count;
}

enum hf_status help_none_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    (void)s;
    (void)digest;
    (void)user;
    *used = false;
    return HF_OK;
}

enum hf_status help_all_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    (void)s;
    (void)digest;
    (void)user;
    *used = true;
    return HF_OK;
}
