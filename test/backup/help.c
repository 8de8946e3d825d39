/* backup/help.c: see help.h. */
#include "help.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

void rig_begin(struct test *t, struct rig *rig)
{
    *rig = (struct rig){.t = t, .s = hf_scope_new(test_env(t)), .sync = STORE_SYNC_NONE};
    rig->path = test_quick_directory(t);
    rig->place = test_quick_directory(t);
    rig->url = hf_scope_format(rig->s, "dir:%s", rig->place);
    rig->keep_bytes = 64 * 1024 * 1024;
    rig->moments = calloc(HELP_MOMENTS, sizeof(*rig->moments));
    CHECK(rig->moments && rig->url.ptr);
    rig->now.at_us = 0;
    rig->moments[rig->moments_len++] = rig->now;
}

void rig_open(struct rig *rig)
{
    const struct store_options options = {.sync = rig->sync,
                                          .keep_bytes = rig->keep_bytes,
                                          .memtable_bytes = rig->memtable_bytes};
    struct ship_options ship = {.directory = hf_str_from(rig->path), .no_threads = true};

    rig->o.to = rig->url;
    CHECK_OK(hf__store_open_disk(rig->s, test_env(rig->t), hf_str_from(rig->path), &options,
                                 &rig->store));
    CHECK_OK(hf__ship_fill(rig->s, &rig->o, &ship.user));
    CHECK_OK(hf__ship_open(rig->s, test_env(rig->t), rig->store, &ship, &rig->shipper));
}

void rig_close(struct rig *rig)
{
    hf__ship_close(rig->shipper);
    hf__store_close(rig->store);
    rig->shipper = NULL;
    rig->store = NULL;
}

void rig_end(struct rig *rig)
{
    rig_close(rig);
    free(rig->moments);
    hf_scope_free(rig->s);
}

void rig_put(struct rig *rig, unsigned key, uint32_t value)
{
    struct hf__mark mark = hf__scope_mark(rig->s);
    struct store_batch batch = {.ops = {.scope = rig->s}};
    uint8_t name = (uint8_t)('a' + key), bytes[4];
    uint64_t ticket;

    test_advance_ms(rig->t, 1 + (int64_t)test_random_below(rig->t, 200));
    store_u32be(bytes, value);
    if (value)
        hf__batch_put(&batch, hf_bytes_of(&name, 1), hf_bytes_of(bytes, 4));
    else
        hf__batch_delete(&batch, hf_bytes_of(&name, 1));
    CHECK_OK(hf__store_write(rig->s, rig->store, &batch, &ticket));
    CHECK_OK(hf__store_sync(rig->s, rig->store, ticket));
    hf__ship_mark(rig->shipper);
    rig->now.values[key] = value;
    rig->now.at_us = hf__env_wall_us(test_env(rig->t));
    CHECK(rig->moments_len < HELP_MOMENTS);
    rig->moments[rig->moments_len++] = rig->now;
    hf__scope_rewind(rig->s, mark);
}

const struct moment *rig_moment(const struct rig *rig, int64_t at_us)
{
    size_t i = rig->moments_len;

    while (i > 1 && rig->moments[i - 1].at_us > at_us)
        i--;
    return &rig->moments[i - 1];
}

static enum hf_status open_backup(struct rig *rig, struct hf_backup **backup)
{
    return hf_backup_open(rig->s, rig->url,
                          HF_OPTIONS(hf_backup_open_options, .key_file = rig->o.key_file), backup);
}

enum hf_status rig_verify(struct rig *rig, struct hf_backup_report *report)
{
    struct hf_backup *backup;
    enum hf_status status = open_backup(rig, &backup);

    if (status == HF_OK)
        status = hf_backup_verify(rig->s, backup, NULL, report);
    hf_backup_close(backup);
    return status;
}

enum hf_status rig_restore(struct rig *rig, int64_t at_us, const char **path,
                           struct hf_backup_report *report)
{
    struct hf_backup *backup;
    enum hf_status status = open_backup(rig, &backup);

    *path = hf_scope_format(rig->s, "%s/%u", test_quick_directory(rig->t), rig->restored++).ptr;
    if (status == HF_OK)
        status = hf_backup_restore(rig->s, backup, hf_str_from(*path),
                                   HF_OPTIONS(hf_backup_restore_options, .at_us = at_us), report);
    hf_backup_close(backup);
    return status;
}

void rig_read(struct rig *rig, const char *path, uint32_t values[HELP_KEYS])
{
    const struct store_options options = {.read_only = true};
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(rig->s, test_env(rig->t), hf_str_from(path), &options, &store));
    for (unsigned key = 0; key < HELP_KEYS; key++) {
        uint8_t name = (uint8_t)('a' + key);
        struct hf_bytes value;

        CHECK_OK(hf__store_get(rig->s, store, NULL, hf_bytes_of(&name, 1), &value));
        CHECK(!value.ptr || value.len == 4);
        values[key] = value.ptr ? load_u32be(value.ptr) : 0;
    }
    hf__store_close(store);
}

void rig_check_moment(struct rig *rig, int64_t at_us)
{
    struct hf__mark mark = hf__scope_mark(rig->s);
    const struct moment *expected = rig_moment(rig, at_us);
    struct hf_backup_report report;
    uint32_t values[HELP_KEYS];
    const char *path;

    CHECK_OK(rig_restore(rig, at_us, &path, &report));
    CHECK(report.at_us == at_us);
    rig_read(rig, path, values);
    for (unsigned key = 0; key < HELP_KEYS; key++)
        CHECK_INT(expected->values[key], values[key]);
    hf__scope_rewind(rig->s, mark);
}

size_t rig_objects(struct rig *rig, const char **names, size_t max)
{
    static const char *const folders[] = {"", "/manifest", "/log", "/snapshot"};
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        DIR *listing = opendir(hf_scope_format(rig->s, "%s%s", rig->place, folders[i]).ptr);
        struct dirent *entry;

        while (listing && (entry = readdir(listing)))
            if (entry->d_type == DT_REG && len < max)
                names[len++] = hf_scope_format(rig->s, "%s%s%s", *folders[i] ? folders[i] + 1 : "",
                                               *folders[i] ? "/" : "", entry->d_name)
                                   .ptr;
        if (listing)
            closedir(listing);
    }
    return len;
}
