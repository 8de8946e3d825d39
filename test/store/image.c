/*
 * store/image.c: copying a store that is open.
 */
#include "image.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "store/journal_form.h"

/* Tables stay as they are, also when a test takes its time: images are copied from open stores. */
static const struct store_options full_options = {.quiet_ms = UINT32_MAX, .memtable_bytes = SMALL};

enum hf_status open_at(struct test *t, struct hf_scope *s, const char *path,
                       struct hf__store **store)
{
    return hf__store_open_disk(s, test_env(t), hf_str_from(path), &full_options, store);
}

const char *in(struct hf_scope *s, const char *path, const char *name)
{
    /* The compiler does not know that a failed check does not return. */
    return hf_scope_format(s, "%s/%s", path ? path : "", name ? name : "").ptr;
}

void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    CHECK(file);
    CHECK_INT(len, fwrite(bytes, 1, len, file));
    fclose(file);
}

uint8_t *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    uint8_t *bytes;

    CHECK(file && fstat(fileno(file), &info) == 0);
    *len = (size_t)info.st_size;
    bytes = malloc(*len + 1);
    CHECK_INT(*len, fread(bytes, 1, *len, file));
    fclose(file);
    return bytes;
}

void each_file(struct hf_scope *s, const char *dir, file_fn *fn, void *user)
{
    DIR *listing = opendir(dir);
    struct dirent *entry;

    CHECK(listing);
    while ((entry = readdir(listing)))
        if (entry->d_type == DT_REG)
            fn(s, dir, entry->d_name, user);
    closedir(listing);
}

/* What is gone by now was not to stay: copy_store() notices. */
static void copy_file(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    size_t len;
    uint8_t *bytes;

    if (access(in(s, dir, name), F_OK))
        return;
    bytes = read_file(in(s, dir, name), &len);
    /* The ballast has nothing in it, and takes long. */
    write_file(in(s, user, name), bytes, strcmp(name, "ballast") ? len : 0);
    free(bytes);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    return where->level ? remove(path) : 0;
}

void empty_directory(const char *path)
{
    CHECK(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static bool same_file(const char *one, const char *other)
{
    size_t one_len, other_len;
    uint8_t *a = read_file(one, &one_len), *b = read_file(other, &other_len);
    bool same = one_len == other_len && memcmp(a, b, one_len) == 0;

    free(a);
    free(b);
    return same;
}

static void add_name(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    uint64_t *sum = user;

    (void)s;
    (void)dir;
    *sum += XXH3_64bits(name, strlen(name)); /* in any order */
}

/* Which names a store has: its database is made, and changes its files, while it is open. */
static uint64_t names_of(struct hf_scope *s, const char *path)
{
    uint64_t sum = 0;

    each_file(s, in(s, path, "journal"), add_name, &sum);
    if (access(in(s, path, "db"), F_OK) == 0)
        each_file(s, in(s, path, "db"), add_name, &sum);
    return sum;
}

void copy_store(struct hf_scope *s, const char *from, const char *to)
{
    static const char *const folders[] = {"journal", "db"};
    uint64_t names;

    do {
        names = names_of(s, from);
        empty_directory(to);
        each_file(s, from, copy_file, (void *)(uintptr_t)to);
        for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
            const char *folder = in(s, to, folders[i]);

            if (access(in(s, from, folders[i]), F_OK))
                continue; /* there is no table yet */
            CHECK(mkdir(folder, 0700) == 0);
            each_file(s, in(s, from, folders[i]), copy_file, (void *)(uintptr_t)folder);
        }
    } while (names != names_of(s, from) ||
             !same_file(in(s, from, "durable"), in(s, to, "durable")));
}

const char *crash_image(struct test *t, struct hf_scope *s, const char *path)
{
    static const struct test *owner; /* its directory is removed with the test */
    static char image[64];

    if (owner != t)
        snprintf(image, sizeof(image), "%s", test_quick_directory(t));
    owner = t;
    copy_store(s, path, image);
    return image;
}

void start_again(struct hf_scope *s, const char *path)
{
    enum { STRIDE = 512, BOOT = 8 * 7, HASHED = 8 * 11 }; /* marks.c */
    size_t len;
    uint8_t *bytes = read_file(in(s, path, "durable"), &len);

    for (size_t at = 0; at + HASHED + 8 <= len; at += STRIDE) {
        if (load_u64be(bytes + at + HASHED) != XXH3_64bits(bytes + at, HASHED))
            continue;
        memset(bytes + at + BOOT, 0, 8);
        store_u64be(bytes + at + HASHED, XXH3_64bits(bytes + at, HASHED));
    }
    write_file(in(s, path, "durable"), bytes, len);
    free(bytes);
}

static void note_log(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct newest *newest = user;
    uint64_t number = strtoull(name, NULL, 16);
    size_t len;
    uint8_t *bytes = read_file(in(s, dir, name), &len);
    size_t at = JOURNAL_START;

    if (number > newest->number && len > JOURNAL_START &&
        (memcmp(bytes, journal_magic, sizeof(journal_magic)) == 0 ||
         memcmp(bytes, journal_magic_2, sizeof(journal_magic_2)) == 0) &&
        load_u64le(bytes + 8) == number) {
        while (len - at > JOURNAL_RECORD_HEAD && journal_segment(bytes + at) == number &&
               journal_len(bytes + at))
            at += journal_record_size(journal_len(bytes + at));
        *newest = (struct newest){in(s, dir, name), number, at};
    }
    free(bytes);
}

struct newest newest_segment(struct hf_scope *s, const char *path)
{
    struct newest newest = {NULL, 0, 0};

    each_file(s, in(s, path, "journal"), note_log, &newest);
    CHECK(newest.file);
    return newest;
}
