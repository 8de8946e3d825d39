/*
 * store/damage_test.c: files of a store that are gone, cut short or changed. What was durable and
 * is missing is noticed, and nothing wrong is ever given out; a torn end of the journal is
 * forgiven.
 */
#include "child.h"
#include "image.h"
#include "power.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/journal_form.h"

/*
 * A store with batches in a table, durable ones in the journal, and others there too; it stays
 * open. One table only: four would be compacted, and when that fails RocksDB sleeps for a second.
 */
enum { IN_TABLE = 400, DURABLE = 430, WRITTEN = 440 };

static struct hf__store *busy_store(struct test *t, struct hf_scope *s, const char *path)
{
    struct hf__store *store;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, IN_TABLE, false));
    hf__store_close(store);
    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, IN_TABLE + 1, DURABLE, true));
    CHECK_OK(write_items(s, store, 0, DURABLE + 1, WRITTEN, false));
    return store;
}

TEST(store_damage, a_lost_log_is_noticed)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store = busy_store(t, s, path);
    const char *image = crash_image(t, s, path);
    struct hf__store *broken;

    CHECK(unlink(newest_segment(s, image).file) == 0);
    for (int i = 0; i < 2; i++) { /* and it stays noticed */
        CHECK_STATUS(HF_CORRUPT, open_at(t, s, image, &broken));
        CHECK(strstr(hf_scope_error_text(s), "is missing"));
        CHECK(strstr(hf_scope_error_text(s), image));
    }
    hf__store_close(store);
    hf_scope_free(s);
}

/*
 * Cut the journal at many places, or lose a block of it: what was synced is there, or the store
 * does not open. The record is from before the last sync, as if the power had gone during it.
 */
TEST(store_damage, a_torn_end_is_forgiven_a_torn_middle_is_not)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store = busy_store(t, s, path);
    struct acked acked = {.by_thread = {DURABLE}};
    struct hf__store *torn;
    size_t end, record_len;
    uint8_t *record = read_file(in(s, path, "durable"), &record_len);
    int opened[2] = {0}, refused[2] = {0};

    power_skip_syncs(true); /* processes die here, no machine does */
    CHECK_OK(hf__store_sync(s, store, hf__store_written(store)));
    end = newest_segment(s, path).end;
    for (size_t cut = 1; cut < end; cut += 97 + test_random_below(t, 500)) {
        for (int lose = 0; lose < 2; lose++) {
            const char *image = crash_image(t, s, path);
            const char *segment = newest_segment(s, image).file;
            enum hf_status status;
            size_t len;
            uint8_t *bytes = read_file(segment, &len);

            memset(bytes + end - cut, 0, lose && cut > 64 ? 64 : cut);
            write_file(segment, bytes, len);
            write_file(in(s, image, "durable"), record, record_len);
            free(bytes);
            status = open_at(t, s, image, &torn);
            if (status == HF_OK) {
                CHECK(acked_is_there(s, torn, &acked));
                /* And what comes next is not mixed up with what was torn. */
                CHECK_OK(write_items(s, torn, 1, 1, 20, true));
                hf__store_close(torn);
                opened[lose]++;
            } else {
                CHECK_STATUS(HF_CORRUPT, status);
                refused[lose]++;
            }
        }
    }
    CHECK(opened[0] > 0 && refused[0] > 0 && opened[1] > 0 && refused[1] > 0);
    free(record);
    hf__store_close(store);
    power_skip_syncs(false);
    hf_scope_free(s);
}

/* A change behind one that was lost must not come back when another has taken the lost one's place.
 */
TEST(store_damage, what_was_torn_stays_gone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store, *torn;
    struct hf_bytes value;
    uint8_t *record, *bytes;
    size_t record_len, len, at = JOURNAL_START;
    struct newest segment;
    const char *image, *next;

    CHECK_OK(open_at(t, s, path, &store));
    record = read_file(in(s, path, "durable"), &record_len);
    for (int i = 0; i < 3; i++) {
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;
        char key = (char)('a' + i);

        hf__batch_put(&batch, hf_bytes_of(&key, 1), hf_bytes_of("1", 1));
        CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    }
    CHECK_OK(hf__store_sync(s, store, hf__store_written(store)));
    image = crash_image(t, s, path);
    hf__store_close(store);

    /* Of a, b and c the second is lost. */
    write_file(in(s, image, "durable"), record, record_len);
    segment = newest_segment(s, image);
    bytes = read_file(segment.file, &len);
    at += journal_record_size(journal_len(bytes + at));
    bytes[at + JOURNAL_RECORD_HEAD] ^= 1;
    write_file(segment.file, bytes, len);
    free(bytes);
    free(record);
    for (int i = 0; i < 3; i++) {
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;

        CHECK_OK(open_at(t, s, image, &torn));
        CHECK_OK(hf__store_get(s, torn, NULL, hf_bytes_of("a", 1), &value));
        CHECK(value.len == 1);
        CHECK_OK(hf__store_get(s, torn, NULL, hf_bytes_of("c", 1), &value));
        CHECK(!value.ptr);
        hf__batch_put(&batch, hf_bytes_of("d", 1), hf_bytes_of("1", 1)); /* as long as b was */
        CHECK_OK(hf__store_write(s, torn, &batch, &ticket));
        CHECK_OK(hf__store_sync(s, torn, ticket));
        next = test_quick_directory(t);
        copy_store(s, image, next);
        hf__store_close(torn);
        image = next;
    }
    hf_scope_free(s);
}

TEST(store_damage, a_flipped_byte_in_the_log_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store = busy_store(t, s, path);
    struct hf__store *broken;

    for (int i = 0; i < 10; i++) {
        const char *image = crash_image(t, s, path);
        struct newest segment = newest_segment(s, image);
        size_t len, records = segment.end - JOURNAL_START;
        uint8_t *bytes = read_file(segment.file, &len);

        bytes[JOURNAL_START + records / 2 + test_random_below(t, records / 8)] ^= 0x10;
        write_file(segment.file, bytes, len);
        free(bytes);
        CHECK_STATUS(HF_CORRUPT, open_at(t, s, image, &broken));
    }
    hf__store_close(store);
    hf_scope_free(s);
}

/*
 * Without syncs what the system was handed is there after kill -9, so a gap is damage. After a loss
 * of power it is what was lost, unless a whole file is missing: its name was synced.
 */
TEST(store_damage, a_gap_is_damage_until_the_machine_is_started_again)
{
    const struct store_options options = {.sync = STORE_SYNC_NONE,
                                          .quiet_ms = UINT32_MAX,
                                          .memtable_bytes = SMALL};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t), *image;
    struct acked acked = {.by_thread = {5}};
    struct hf__store *store, *broken;
    size_t len, record;
    uint8_t *bytes;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    CHECK_OK(write_items(s, store, 0, 1, 10, true));
    image = crash_image(t, s, path);
    bytes = read_file(newest_segment(s, image).file, &len);
    record = journal_record_size(journal_len(bytes + JOURNAL_START));
    bytes[JOURNAL_START + 5 * record + record / 2] ^= 1; /* of the sixth */
    write_file(newest_segment(s, image).file, bytes, len);
    CHECK_STATUS(HF_CORRUPT, open_at(t, s, image, &broken));
    CHECK(strstr(hf_scope_error_text(s), "change 6 is missing"));
    start_again(s, image);
    CHECK_OK(open_at(t, s, image, &broken));
    CHECK(acked_is_there(s, broken, &acked));
    hf__store_close(broken);
    free(bytes);

    image = crash_image(t, s, path);
    CHECK(unlink(newest_segment(s, image).file) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(HF_CORRUPT, open_at(t, s, image, &broken));
        CHECK(strstr(hf_scope_error_text(s), "journal/0000000000000001 is missing"));
        start_again(s, image);
    }
    hf__store_close(store);
    hf_scope_free(s);
}

struct survey {
    struct test *t;
    const char *path;   /* the store */
    const char *folder; /* "." or "db" */
    uint32_t items;
    int harmless;
    int refused;
};

/* A child opens the image and looks: all is there, or it says that it is not. */
static void look(struct survey *survey, const char *image, const char *what)
{
    struct acked acked = {{0}};
    int out;
    pid_t pid = child_start("check", image, 1, survey->items, NULL, &out);
    int status = child_wait(pid, out, &acked);

    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK)
        survey->harmless++;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_ERROR)
        survey->refused++;
    else
        fail_msg("%s: status %#x", what, (unsigned)status);
}

static void look_without(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct survey *survey = user;
    const char *image = crash_image(survey->t, s, survey->path);

    (void)dir;
    CHECK(unlink(in(s, in(s, image, survey->folder), name)) == 0);
    look(survey, image, name);
}

/* C7 of the plan: each file missing in turn. */
TEST(store_damage, no_missing_file_loses_data_silently)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store = busy_store(t, s, path);
    struct survey survey = {.t = t, .path = path, .folder = ".", .items = DURABLE};
    struct hf__store *broken;
    const char *image;

    each_file(s, path, look_without, &survey);
    survey.folder = "db";
    each_file(s, in(s, path, "db"), look_without, &survey);
    survey.folder = "journal";
    each_file(s, in(s, path, "journal"), look_without, &survey);
    /* At least: HOLDFAST, durable, CURRENT, MANIFEST, log, a table. And LOCK, LOG, ballast. */
    CHECK(survey.refused >= 6);
    CHECK(survey.harmless >= 3);

    image = crash_image(t, s, path);
    CHECK(rename(in(s, image, "db"), in(s, image, "gone")) == 0);
    CHECK_STATUS(HF_CORRUPT, open_at(t, s, image, &broken));
    hf__store_close(store);
    hf_scope_free(s);
}

struct pick {
    uint64_t bytes; /* seen so far */
    const char *name;
    struct test *t;
};

/* A file at random, by its share of the bytes. */
static void pick_file(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct pick *pick = user;
    struct stat info;

    CHECK(stat(in(s, dir, name), &info) == 0);
    if (info.st_size == 0)
        return;
    pick->bytes += (uint64_t)info.st_size;
    if (test_random_below(pick->t, pick->bytes) < (uint64_t)info.st_size)
        pick->name = hf_scope_copy(s, hf_str_from(name)).ptr;
}

/* C6 of the plan: one flipped bit anywhere is harmless or an error, never wrong data. */
TEST(store_damage, no_flipped_bit_gives_wrong_data)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf__store *store = busy_store(t, s, path);
    struct survey survey = {.t = t, .path = path, .items = DURABLE};

    power_skip_syncs(true); /* processes die here, no machine does */
    for (uint32_t i = 0; i < test_times(120); i++) {
        const char *image = crash_image(t, s, path);
        struct pick pick = {.t = t};
        const char *file, *folder = i % 3 ? "db" : "journal";
        uint8_t *bytes;
        size_t len, at;

        each_file(s, in(s, image, folder), pick_file, &pick);
        file = in(s, in(s, image, folder), pick.name);
        bytes = read_file(file, &len);
        at = test_random_below(t, i % 3 ? len : newest_segment(s, image).end);
        bytes[at] ^= (uint8_t)(1 << test_random_below(t, 8));
        write_file(file, bytes, len);
        free(bytes);
        look(&survey, image, hf_scope_format(s, "%s, byte %zu", file, at).ptr);
    }
    CHECK(survey.refused > 0);
    hf__store_close(store);
    power_skip_syncs(false);
    hf_scope_free(s);
}

/* Keys that a walk over everything gives before it ends or fails. */
static size_t count_keys(struct hf_scope *s, struct hf__store *store, bool reverse,
                         enum hf_status *status)
{
    struct store_range all = {.reverse = reverse};
    struct hf__store_iter *iter;
    size_t count = 0;
    bool found = true;

    CHECK_OK(hf__store_iter_open(s, store, NULL, &all, &iter));
    while (found) {
        struct hf_bytes key, value;

        *status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (*status != HF_OK)
            break;
        count += found;
    }
    hf__store_iter_close(iter);
    return count;
}

/* The first block of a table that follows another: RocksDB forgets that error when it looks for
 * deleted ranges on its way. */
static void damage_start(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    struct survey *survey = user;
    struct test *t = survey->t;
    const char *image = crash_image(t, s, survey->path);
    const char *file = in(s, in(s, image, "db"), name);
    size_t len = strlen(name);

    (void)dir;
    if (len < 4 || strcmp(name + len - 4, ".sst") != 0)
        return;
    for (int reverse = 0; reverse < 2; reverse++) {
        struct hf__store *store;
        enum hf_status status;
        size_t size, count;
        uint8_t *bytes = read_file(file, &size);

        bytes[reverse ? size / 2 : 5] ^= 0x10;
        write_file(file, bytes, size);
        free(bytes);
        if (open_at(t, s, image, &store) != HF_OK) {
            survey->refused++;
            continue;
        }
        count = count_keys(s, store, reverse, &status);
        if (status == HF_OK && count != survey->items)
            fail_msg("%s is damaged, and a walk gives %zu of %u keys", file, count, survey->items);
        survey->refused += status == HF_CORRUPT;
        survey->harmless += status == HF_OK;
        if (status == HF_CORRUPT)
            CHECK_STATUS(HF_CORRUPT, hf__store_verify(s, store, NULL));
        hf__store_close(store);
    }
}

TEST(store_damage, a_damaged_table_ends_no_walk_silently)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct survey survey = {.t = t, .path = path, .items = 6000 + 1};
    struct hf__store *store;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, 6000, false));
    hf__store_close(store);
    each_file(s, in(s, path, "db"), damage_start, &survey);
    CHECK(survey.refused >= 4);
    hf_scope_free(s);
}
