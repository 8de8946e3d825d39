/*
 * store/parts_test.c: a store whose parts are of different moments, or of different stores, as a
 * careless restore leaves them: db, journal and durable are each taken from any moment in the life
 * of a store, in all combinations.
 *
 * What must hold: parts of one moment open. Of others an open fails, and changes nothing; or the
 * store holds what it held at the newest of those moments. A part knows of what was done before it
 * changed last: what a part is the newest of is the moment when it changed.
 */
#include "child.h"
#include "power.h"
#include "tree.h"

#include <stdio.h>
#include <unistd.h>

enum { MOMENTS = 8, PARTS = 3 };

static const char *const parts[PARTS] = {"db", "journal", "durable"};

struct life {
    struct tree moments[MOMENTS];
    size_t len;
    size_t first[PARTS][MOMENTS]; /* since when a part is as it is at a moment, */
    size_t knows[PARTS][MOMENTS]; /* and what it holds: of the database, its tables */
};

static const struct store_options *options_of(enum store_sync mode)
{
    static struct store_options options = {.quiet_ms = UINT32_MAX,
                                           .memtable_bytes = SMALL,
                                           .reserve_bytes = 1};

    options.sync = mode;
    return &options;
}

static bool is_of(const struct tree_file *file, const char *part, const char *kind)
{
    return strncmp(file->name, part, strlen(part)) == 0 && strstr(file->name, kind);
}

static bool same_part(const struct tree *a, const struct tree *b, const char *part,
                      const char *kind)
{
    size_t count[2] = {0, 0};

    for (size_t i = 0; i < a->len; i++) {
        const struct tree_file *file = &a->files[i];
        const struct tree_file *other;

        if (!is_of(file, part, kind))
            continue;
        count[0]++;
        other = tree_find(b, file->name);
        if (!other || other->len != file->len || memcmp(other->bytes, file->bytes, file->len) != 0)
            return false;
    }
    for (size_t i = 0; i < b->len; i++)
        count[1] += is_of(&b->files[i], part, kind);
    return count[0] == count[1];
}

/* The moment since when a part has been as it is at the newest one. */
static size_t since(const struct life *life, const char *part, const char *kind)
{
    size_t at = life->len;

    while (at > 0 && same_part(&life->moments[at - 1], &life->moments[life->len], part, kind))
        at--;
    return at;
}

static void note_moment(struct hf_scope *s, struct life *life, struct hf__store *store,
                        const char *path)
{
    struct tree *tree = &life->moments[life->len];

    CHECK(life->len < MOMENTS);
    if (store)
        CHECK(store_digest(s, store, &tree->digest));
    else
        tree->digest = life->moments[life->len - 1].digest;
    tree_read(s, path, tree);
    for (size_t part = 0; part < PARTS; part++) {
        life->first[part][life->len] = since(life, parts[part], "");
        life->knows[part][life->len] = since(life, parts[part], part == 0 ? ".sst" : "");
    }
    life->len++;
}

/* Opened, written to, closed or killed, again and again. The database changes when it is opened and
 * when it is closed only, so these are moments of their own. */
static void live(struct test *t, struct hf_scope *s, struct life *life, enum store_sync mode)
{
    const char *path = test_quick_directory(t);
    struct hf__store *store;

    life->len = 0;
    for (uint32_t n = 1; life->len + 3 <= MOMENTS; n += 3) {
        const struct tree *killed;

        CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), options_of(mode), &store));
        note_moment(s, life, store, path);
        CHECK_OK(write_items(s, store, 0, n, n + 2, true));
        note_moment(s, life, store, path);
        killed = &life->moments[life->len - 1];
        hf__store_close(store);
        if (n % 2 == 0)
            tree_write(s, killed, path);
        else
            note_moment(s, life, NULL, path);
    }
}

static void life_free(struct life *life)
{
    for (size_t i = 0; i < life->len; i++)
        tree_free(&life->moments[i]);
}

struct counts {
    unsigned opened, refused;
};

/* Open a mixture. *digest is what it holds; false: it is refused. */
static bool open_mixture(struct test *t, struct hf_scope *s, const struct tree *mixture,
                         const char *path, const char *what, struct counts *counts,
                         uint64_t *digest)
{
    struct hf__store *store;
    enum hf_status status;
    const char *different;

    tree_write(s, mixture, path);
    status =
        hf__store_open_disk(s, test_env(t), hf_str_from(path), options_of(STORE_SYNC_FULL), &store);
    if (status == HF_OK) {
        CHECK(store_digest(s, store, digest));
        hf__store_close(store);
        counts->opened++;
        return true;
    }
    different = tree_difference(s, mixture, path);
    if (status != HF_CORRUPT)
        fail_msg("%s: %s", what, hf_scope_error_text(s));
    if (different)
        fail_msg("%s: a failed open (%s) has changed %s", what, hf_scope_error_text(s), different);
    counts->refused++;
    return false;
}

static bool is_digest_of_some(const struct life *life, uint64_t digest)
{
    for (size_t i = 0; i < life->len; i++)
        if (life->moments[i].digest == digest)
            return true;
    return false;
}

/* Parts that are what they were at one moment are not a mixture. */
static bool is_one_moment(const struct life *life, const size_t at[PARTS], size_t *moment)
{
    for (*moment = 0; *moment < life->len; ++*moment)
        if (life->first[0][*moment] == life->first[0][at[0]] &&
            life->first[1][*moment] == life->first[1][at[1]] &&
            life->first[2][*moment] == life->first[2][at[2]])
            return true;
    return false;
}

static size_t newest_of(const struct life *life, const size_t at[PARTS])
{
    size_t newest = 0;

    for (size_t part = 0; part < PARTS; part++)
        if (newest < life->knows[part][at[part]])
            newest = life->knows[part][at[part]];
    return newest;
}

static void check_mixtures(struct test *t, const struct life *life, bool synced)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct counts counts = {0, 0};

    for (size_t n = 0; n < life->len * life->len * life->len; n++) {
        const size_t at[PARTS] = {n % life->len, n / life->len % life->len,
                                  n / life->len / life->len};
        struct hf__mark mark = hf__scope_mark(s);
        struct tree mixture = life->moments[at[2]];
        const char *what;
        uint64_t digest;
        size_t one;
        bool is_one = is_one_moment(life, at, &one), opened;

        if (!is_one && !test_one_in(t, 1))
            continue;
        tree_take(&mixture, &life->moments[at[0]], "db");
        tree_take(&mixture, &life->moments[at[1]], "journal");
        what = hf_scope_format(s, "db %zu, journal %zu, durable %zu", at[0], at[1], at[2]).ptr;
        opened = open_mixture(t, s, &mixture, path, what, &counts, &digest);
        if (is_one) {
            if (!opened || digest != life->moments[one].digest)
                fail_msg("%s: %s", what, opened ? "other items" : hf_scope_error_text(s));
        } else if (opened && synced && digest != life->moments[newest_of(life, at)].digest) {
            fail_msg("%s: opened without what moment %zu had", what, newest_of(life, at));
        } else if (opened && !is_digest_of_some(life, digest)) {
            fail_msg("%s: opened with what never was", what);
        }
        hf__scope_rewind(s, mark);
    }
    print_message("opened %u, refused %u\n", counts.opened, counts.refused);
    CHECK(counts.opened >= life->len && counts.refused > 0);
    CHECK(test_times(4) < 4 || counts.refused > counts.opened); /* a part has others */
    hf_scope_free(s);
}

TEST(store_parts, parts_of_different_moments)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct life life;

    power_skip_syncs(true);
    live(t, s, &life, STORE_SYNC_FULL);
    check_mixtures(t, &life, true);
    power_skip_syncs(false);
    life_free(&life);
    hf_scope_free(s);
}

/* Without syncs an older copy of the newest file of the journal is like a torn end of it. */
TEST(store_parts, parts_of_different_moments_without_syncs)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct life life;

    power_skip_syncs(true);
    live(t, s, &life, STORE_SYNC_NONE);
    check_mixtures(t, &life, false);
    power_skip_syncs(false);
    life_free(&life);
    hf_scope_free(s);
}

TEST(store_parts, parts_of_another_store)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct counts counts = {0, 0};
    struct life mine, other;

    power_skip_syncs(true);
    live(t, s, &mine, STORE_SYNC_FULL);
    live(t, s, &other, STORE_SYNC_FULL);
    for (size_t n = 0; n < mine.len * mine.len * PARTS; n++) {
        const struct tree *one = &mine.moments[n % mine.len];
        const struct tree *two = &other.moments[n / mine.len % mine.len];
        struct hf__mark mark = hf__scope_mark(s);
        const char *part = parts[n / mine.len / mine.len];
        struct tree mixture = *one;
        const char *what;
        uint64_t digest;

        tree_take(&mixture, two, part);
        what = hf_scope_format(s, "moment %zu, %s of another's %zu", n % mine.len, part,
                               n / mine.len % mine.len)
                   .ptr;
        if (open_mixture(t, s, &mixture, path, what, &counts, &digest) && digest != one->digest)
            fail_msg("%s: other items", what);
        hf__scope_rewind(s, mark);
    }
    print_message("opened %u, refused %u\n", counts.opened, counts.refused);
    CHECK(counts.refused > 10 * counts.opened);
    power_skip_syncs(false);
    life_free(&mine);
    life_free(&other);
    hf_scope_free(s);
}
