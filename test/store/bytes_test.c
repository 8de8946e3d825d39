/*
 * store/bytes_test.c: every byte of every file of a small store, damaged one at a time: bits are
 * flipped, files are cut at every length, emptied of their bytes from every place on, or gone.
 *
 * What must hold, (P6): an open fails with an error that names the store, and has changed nothing;
 * or a read fails with HF_CORRUPT; or all keys and values are those that were there before, by a
 * digest. Only the end of a journal that nobody synced may be lost.
 *
 * Files that are compared before RocksDB looks at them are quick, and each of their bits is tried.
 * Of the others a part is, by the seed; HF_DAMAGE=all tries everything. Damaged tables are few:
 * when a compaction meets one, RocksDB sleeps for a second.
 */
#include "child.h"
#include "power.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/journal_form.h"

enum { SYNCED_ITEMS = 6, MORE_ITEMS = 12, LAST_ITEMS = 18, PREFIXES = 32 };

struct field {
    struct test *t;
    struct hf_scope *s;
    const char *path; /* where damaged copies are opened */
    struct tree base;
    uint64_t prefixes[PREFIXES]; /* digests of what a torn end may leave */
    size_t prefixes_len;
    size_t torn_from; /* in the newest file of the journal: the last record begins here */
    const char *newest;
    bool all, closed;
    unsigned refused, unread, harmless, torn;
};

/* ---- stores --------------------------------------------------------------------------------- */

static struct hf__store *open_mode(struct test *t, struct hf_scope *s, const char *path,
                                   enum store_sync mode)
{
    const struct store_options options = {.sync = mode,
                                          .quiet_ms = UINT32_MAX,
                                          .memtable_bytes = SMALL,
                                          .reserve_bytes = 1};
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    return store;
}

/* Two tables, and as much in the journal as `mode` has it; killed, unless it is closed. */
static void make_base(struct field *f, enum store_sync mode, bool closed)
{
    const char *path = test_directory(f->t), *image = path;
    struct hf__store *store;

    for (uint32_t n = 1; n < LAST_ITEMS; n += SYNCED_ITEMS) {
        store = open_mode(f->t, f->s, path, mode);
        for (uint32_t i = n; i < n + SYNCED_ITEMS; i++) {
            CHECK_OK(write_items(f->s, store, 0, i, i, true));
            CHECK(store_digest(f->s, store, &f->base.digest));
            f->prefixes[f->prefixes_len++] = f->base.digest;
        }
        if (n + SYNCED_ITEMS <= LAST_ITEMS - 1)
            hf__store_close(store);
    }
    if (!closed)
        image = crash_image(f->t, f->s, path);
    if (!closed)
        tree_read(f->s, image, &f->base);
    hf__store_close(store);
    if (closed)
        tree_read(f->s, path, &f->base);
}

static void field_open(struct test *t, struct field *f, enum store_sync mode, bool closed)
{
    const char *wanted = getenv("HF_DAMAGE");

    *f = (struct field){.t = t, .s = hf_scope_new(test_env(t)), .path = test_directory(t)};
    f->closed = closed;
    f->all = wanted && strcmp(wanted, "all") == 0;
    power_skip_syncs(true);
    make_base(f, mode, closed);
    tree_write(f->s, &f->base, f->path);
}

static void field_close(struct field *f)
{
    power_skip_syncs(false);
    tree_free(&f->base);
    hf_scope_free(f->s);
}

/* ---- one kind of damage --------------------------------------------------------------------- */

/* The open failed, with an error for who reads it, and nothing is different. */
static void check_refused(struct field *f, enum hf_status status, const char *what)
{
    const char *text = hf_scope_error_text(f->s);
    const char *different = tree_difference(f->s, &f->base, f->path);

    f->refused++;
    if ((status != HF_CORRUPT && status != HF_FORMAT && status != HF_INVALID) ||
        !strstr(text, f->path))
        fail_msg("%s: %s: %s", what, hf_status_name(status), text);
    if (different)
        fail_msg("%s: a failed open (%s) has changed %s", what, text, different);
}

static void check_opened(struct field *f, struct hf__store *store, bool may_tear, const char *what)
{
    bool prefix = false;
    uint64_t digest;

    if (!store_digest(f->s, store, &digest)) {
        CHECK_INT(HF_CORRUPT, hf_scope_error(f->s)->status);
        f->unread++;
        return;
    }
    for (size_t i = 0; may_tear && i < f->prefixes_len; i++)
        prefix |= f->prefixes[i] == digest;
    if (digest != f->base.digest && !prefix)
        fail_msg("%s: it opens with other items than there were", what);
    f->harmless += digest == f->base.digest;
    f->torn += digest != f->base.digest;
}

/* Open what is there. `may_tear`: this is what the end of a journal may look like. */
static void try_it(struct field *f, bool may_tear, const char *what)
{
    const struct store_options options = {.quiet_ms = UINT32_MAX,
                                          .memtable_bytes = SMALL,
                                          .reserve_bytes = 1};
    struct hf__store *store;
    enum hf_status status =
        hf__store_open_disk(f->s, test_env(f->t), hf_str_from(f->path), &options, &store);

    if (status != HF_OK) {
        check_refused(f, status, what);
        return;
    }
    check_opened(f, store, may_tear, what);
    hf__store_close(store);
    tree_write(f->s, &f->base, f->path);
}

/* Instead of the file, these bytes; NULL: none. */
static void try_bytes(struct field *f, size_t at, uint8_t *bytes, size_t len, bool may_tear,
                      const char *what)
{
    struct hf__mark mark = hf__scope_mark(f->s);
    struct tree_file was = f->base.files[at];

    if (bytes) {
        f->base.files[at].bytes = bytes;
        f->base.files[at].len = len;
        tree_write_file(f->s, &f->base.files[at], f->path);
    } else {
        f->base.files[at] = f->base.files[--f->base.len];
        CHECK(unlink(in(f->s, f->path, was.name)) == 0);
    }
    try_it(f, may_tear, hf_scope_format(f->s, "%s: %s", was.name, what).ptr);
    if (!bytes)
        f->base.files[f->base.len++] = f->base.files[at];
    f->base.files[at] = was;
    tree_write_file(f->s, &was, f->path);
    hf__scope_rewind(f->s, mark);
}

/* ---- all kinds ------------------------------------------------------------------------------ */

/* Is this one tried? Of `times` one is, or all. */
static bool is_tried(struct field *f, unsigned times)
{
    return f->all || test_one_in(f->t, times);
}

static bool in_last_record(const struct field *f, const struct tree_file *file, size_t at)
{
    return f->newest && strcmp(file->name, f->newest) == 0 && at >= f->torn_from;
}

static void flip_bits(struct field *f, size_t i, unsigned times)
{
    const struct tree_file *file = &f->base.files[i];
    const struct tree_file was = *file;
    uint8_t *bytes = malloc(was.len);
    char what[64];

    for (size_t at = 0; at < was.len; at++)
        for (int bit = 0; bit < 8; bit++) {
            if (!is_tried(f, times))
                continue;
            memcpy(bytes, was.bytes, was.len);
            bytes[at] ^= (uint8_t)(1 << bit);
            snprintf(what, sizeof(what), "bit %d of byte %zu", bit, at);
            try_bytes(f, i, bytes, was.len, in_last_record(f, &was, at), what);
        }
    free(bytes);
}

/* Cut it here, or write zeros from here on. */
static void cut(struct field *f, size_t i, unsigned times, bool zeros)
{
    const struct tree_file was = f->base.files[i];
    bool newest = f->newest && strcmp(was.name, f->newest) == 0;
    uint8_t *bytes = malloc(was.len + 1);
    char what[64];

    for (size_t at = 0; at < was.len; at++) {
        if (!is_tried(f, at ? times : 1))
            continue;
        memcpy(bytes, was.bytes, was.len);
        memset(bytes + at, 0, was.len - at);
        if (memcmp(bytes, was.bytes, was.len) == 0 && zeros)
            continue;
        snprintf(what, sizeof(what), zeros ? "zeros from %zu on" : "cut at %zu", at);
        try_bytes(f, i, bytes, zeros ? was.len : at, newest && at >= JOURNAL_HEAD, what);
    }
    free(bytes);
}

/* How many are tried of those bytes: of what RocksDB opens first, fewer. */
static unsigned times_of(const struct field *f, const struct tree_file *file)
{
    static const struct {
        const char *name;
        unsigned times;
    } slow[] = {{"db/OPTIONS", 8000},
                {"db/0", 16000},
                {"db/IDENTITY", 60},
                {"durable", 200},
                {"journal/", 2000}};

    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        if (strncmp(file->name, slow[i].name, strlen(slow[i].name)) == 0)
            return slow[i].times;
    return f->closed ? 1 : 6; /* HOLDFAST, CURRENT, MANIFEST */
}

static void damage_all(struct field *f)
{
    for (size_t i = 0; i < f->base.len; i++) {
        unsigned times = times_of(f, &f->base.files[i]);

        flip_bits(f, i, times);
        cut(f, i, (times + 7) / 8, false);
        cut(f, i, (times + 7) / 8, true);
        try_bytes(f, i, NULL, 0, false, "gone");
    }
    print_message("refused %u, unreadable %u, harmless %u, torn %u\n", f->refused, f->unread,
                  f->harmless, f->torn);
}

TEST(store_damage, every_byte_of_a_closed_store)
{
    struct field f;

    field_open(t, &f, STORE_SYNC_FULL, true);
    damage_all(&f);
    CHECK(f.refused > test_times(2000) && f.harmless > test_times(10) && f.torn == 0);
    field_close(&f);
}

TEST(store_damage, every_byte_of_a_killed_store)
{
    struct field f;

    field_open(t, &f, STORE_SYNC_FULL, false);
    damage_all(&f);
    CHECK(f.refused > test_times(300) && f.harmless > test_times(10) && f.torn == 0);
    field_close(&f);
}

/* The properties of a table end 5 bytes in front of its metaindex, of which the footer, 53 bytes,
 * says where it begins: the checksum's type, then a varint. */
static size_t end_of_properties(const struct tree_file *file)
{
    const uint8_t *at = file->bytes + file->len - 53 + 1;
    size_t offset = 0;

    for (unsigned shift = 0;; shift += 7) {
        offset |= (size_t)(*at & 0x7f) << shift;
        if (!(*at++ & 0x80))
            return offset - 5;
    }
}

/* The last word of a table's properties is read by RocksDB before it verifies their checksum; with
 * its highest bit set it ended the process. */
TEST(store_damage, what_rocksdb_reads_before_it_verifies)
{
    struct field f;
    unsigned tables = 0;

    field_open(t, &f, STORE_SYNC_FULL, true);
    for (size_t i = 0; i < f.base.len; i++) {
        const struct tree_file was = f.base.files[i];
        const char *slash = strrchr(was.name, '/');
        uint8_t *bytes;

        if (!slash || !strstr(slash, ".sst"))
            continue;
        bytes = malloc(was.len);
        memcpy(bytes, was.bytes, was.len);
        bytes[end_of_properties(&was) - 1] ^= 0x80;
        try_bytes(&f, i, bytes, was.len, false, "a hash index");
        CHECK_INT(++tables, f.refused);
        CHECK(strstr(hf_scope_error_text(f.s), slash));
        free(bytes);
    }
    CHECK(tables >= 2);
    field_close(&f);
}

/* Without syncs the end may be torn, and nothing else: what is behind a gap shows it. */
TEST(store_damage, every_byte_of_a_store_that_did_not_sync)
{
    struct newest segment;
    struct field f;
    char name[TREE_NAME];
    size_t at = JOURNAL_START;
    const struct tree_file *file;

    field_open(t, &f, STORE_SYNC_NONE, false);
    segment = newest_segment(f.s, f.path);
    snprintf(name, sizeof(name), "journal/%016llx", (unsigned long long)segment.number);
    f.newest = name;
    file = tree_find(&f.base, name);
    for (; at < segment.end; at += journal_record_size(journal_len(file->bytes + at)))
        f.torn_from = at;
    damage_all(&f);
    CHECK(f.refused > test_times(300) && f.harmless > test_times(10));
    field_close(&f);
}
