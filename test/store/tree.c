/* store/tree.c: files of a store in memory. */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

static bool is_ignored(const char *name)
{
    return strcmp(name, "ballast") == 0 || strcmp(name, "db/LOCK") == 0 ||
           strncmp(name, "db/LOG", 6) == 0;
}

struct reading {
    struct tree *tree;
    const char *folder; /* with a slash, or "" */
};

static void read_one(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct reading *reading = user;
    struct tree_file file = {.bytes = NULL};

    snprintf(file.name, sizeof(file.name), "%s%s", reading->folder, name);
    if (is_ignored(file.name))
        return;
    CHECK(reading->tree->len < TREE_FILES);
    file.bytes = read_file(in(s, dir, name), &file.len);
    if (strncmp(file.name, "journal/", 8) == 0) {
        size_t whole = file.len;

        while (file.len > 0 && !file.bytes[file.len - 1])
            file.len--;
        file.len = (file.len + 7) & ~(size_t)7; /* records are padded with zeros */
        file.len = file.len < whole ? file.len : whole;
    }
    reading->tree->files[reading->tree->len++] = file;
}

void tree_read(struct hf_scope *s, const char *path, struct tree *tree)
{
    static const char *const folders[] = {"", "db/", "journal/"};

    tree->len = 0;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        struct reading reading = {tree, folders[i]};

        if (access(in(s, path, folders[i]), F_OK) == 0)
            each_file(s, in(s, path, folders[i]), read_one, &reading);
    }
}

void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->len; i++)
        free(tree->files[i].bytes);
    tree->len = 0;
}

void tree_write_file(struct hf_scope *s, const struct tree_file *file, const char *path)
{
    write_file(in(s, path, file->name), file->bytes, file->len);
}

void tree_write(struct hf_scope *s, const struct tree *tree, const char *path)
{
    empty_directory(path);
    CHECK(mkdir(in(s, path, "db"), 0700) == 0);
    CHECK(mkdir(in(s, path, "journal"), 0700) == 0);
    for (size_t i = 0; i < tree->len; i++)
        tree_write_file(s, &tree->files[i], path);
    if (!tree_find(tree, "db/"))
        CHECK(rmdir(in(s, path, "db")) == 0);
    /* It takes long, and an open makes one if there is none: then it is not the same. */
    write_file(in(s, path, "ballast"), "", 0);
}

struct comparing {
    const struct tree *tree;
    const char *folder;
    size_t seen;
    const char *different;
};

static void compare_one(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct comparing *comparing = user;
    const char *whole = hf_scope_format(s, "%s%s", comparing->folder, name).ptr;
    const struct tree_file *file;
    uint8_t *bytes;
    size_t len;

    if (is_ignored(whole))
        return;
    file = tree_find(comparing->tree, whole);
    if (!file || strcmp(file->name, whole) != 0) {
        comparing->different = whole;
        return;
    }
    comparing->seen++;
    bytes = read_file(in(s, dir, name), &len);
    if (len != file->len || memcmp(bytes, file->bytes, len) != 0)
        comparing->different = whole;
    free(bytes);
}

const char *tree_difference(struct hf_scope *s, const struct tree *tree, const char *path)
{
    static const char *const folders[] = {"", "db/", "journal/"};
    struct comparing comparing = {.tree = tree};

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        comparing.folder = folders[i];
        if (access(in(s, path, folders[i]), F_OK) == 0)
            each_file(s, in(s, path, folders[i]), compare_one, &comparing);
    }
    if (!comparing.different && comparing.seen != tree->len)
        return "a file that is gone";
    return comparing.different;
}

const struct tree_file *tree_find(const struct tree *tree, const char *name)
{
    for (size_t i = 0; i < tree->len; i++)
        if (strncmp(tree->files[i].name, name, strlen(name)) == 0)
            return &tree->files[i];
    return NULL;
}

static bool is_of(const struct tree_file *file, const char *part)
{
    size_t len = strlen(part);

    return strncmp(file->name, part, len) == 0 &&
           (file->name[len] == '/' || file->name[len] == '\0');
}

void tree_take(struct tree *tree, const struct tree *other, const char *part)
{
    for (size_t i = 0; i < tree->len; i++)
        if (is_of(&tree->files[i], part))
            tree->files[i--] = tree->files[--tree->len];
    for (size_t i = 0; i < other->len; i++)
        if (is_of(&other->files[i], part)) {
            CHECK(tree->len < TREE_FILES);
            tree->files[tree->len++] = other->files[i];
        }
}

bool store_digest(struct hf_scope *s, struct hf__store *store, uint64_t *digest)
{
    struct store_range all = {.fill_cache = false};
    struct hf__store_iter *iter;
    bool found = true, good;

    *digest = 0;
    good = hf__store_iter_open(s, store, NULL, &all, &iter) == HF_OK;
    while (good && found) {
        struct hf_bytes key, value;

        good = hf__store_iter_next(s, iter, &found, &key, &value) == HF_OK;
        if (good && found) {
            *digest = XXH3_64bits_withSeed(key.ptr, key.len, *digest + 1);
            *digest = XXH3_64bits_withSeed(value.ptr, value.len, *digest + 2);
        }
    }
    hf__store_iter_close(iter);
    return good;
}
