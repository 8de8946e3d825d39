/* backup/ship_test.c: what a shipper does when things go wrong, or on for long. */
#include "help.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 512 };

static void ship_all(struct rig *rig)
{
    CHECK_OK(hf__ship_step(rig->s, rig->shipper, true));
}

static struct hf_backup_info info_of(struct rig *rig)
{
    struct hf_backup_info info;
    struct hf_backup *backup;

    CHECK_OK(hf_backup_open(rig->s, rig->url,
                            HF_OPTIONS(hf_backup_open_options, .key_file = rig->o.key_file),
                            &backup));
    hf_backup_info(backup, &info);
    hf_backup_close(backup);
    return info;
}

static struct hf_backup_health health_of(struct rig *rig)
{
    struct hf_backup_health health;

    hf__ship_health(rig->shipper, &health);
    return health;
}

static const char *make_key(struct rig *rig, const char *name, char digit, mode_t mode)
{
    const char *path = hf_scope_format(rig->s, "%s.%s", rig->path, name).ptr;
    FILE *file = fopen(path, "w");

    CHECK(file);
    for (int i = 0; i < 64; i++)
        fputc(digit, file);
    fputc('\n', file);
    fclose(file);
    CHECK(chmod(path, mode) == 0);
    return path;
}

/* ---- the chain ------------------------------------------------------------------------------ */

/* An orderly end needs no new snapshot: the chain goes on. */
TEST(backup_ship, a_restart_goes_on_with_the_chain)
{
    struct rig rig;

    rig_begin(t, &rig);
    for (uint32_t i = 1; i < 5; i++) {
        rig_open(&rig);
        rig_put(&rig, 0, i);
        ship_all(&rig);
        rig_put(&rig, 1, i); /* the close ships it */
        rig_close(&rig);
        rig_open(&rig); /* and nothing happens */
        rig_close(&rig);
        CHECK_INT(1, info_of(&rig).snapshots);
        CHECK_INT(2 * i, info_of(&rig).segments + 1); /* the first change was in the snapshot */
        CHECK(info_of(&rig).closed);
    }
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, info_of(&rig).newest_us);
    rig_end(&rig);
}

/* What happened without the shipper is not known: a new snapshot, and no restore in between. */
TEST(backup_ship, changes_that_were_made_without_it_break_the_chain)
{
    struct hf_backup_report report;
    int64_t before_us, unknown_us;
    const char *path;
    struct rig rig;

    rig_begin(t, &rig);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    rig_put(&rig, 0, 2);
    rig_close(&rig);
    before_us = rig.now.at_us;
    rig.o.to = (struct hf_str){0};
    CHECK_OK(hf__store_open_disk(rig.s, test_env(t), hf_str_from(rig.path),
                                 &(struct store_options){.sync = STORE_SYNC_FULL}, &rig.store));
    {
        struct store_batch batch = {.ops = {.scope = rig.s}};
        uint64_t ticket;

        hf__batch_put(&batch, hf_bytes_of("a", 1), hf_bytes_of("\0\0\0\3", 4));
        CHECK_OK(hf__store_write(rig.s, rig.store, &batch, &ticket));
    }
    hf__store_close(rig.store);
    test_advance_ms(t, 5000);
    unknown_us = hf__env_wall_us(test_env(t));
    rig.now.values[0] = 3;
    test_advance_ms(t, 5000);
    rig_open(&rig);
    rig_put(&rig, 1, 4);
    ship_all(&rig);
    CHECK_INT(2, info_of(&rig).snapshots);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, before_us);
    rig_check_moment(&rig, rig.now.at_us + 1);
    CHECK_STATUS(HF_NOT_FOUND, rig_restore(&rig, unknown_us, &path, &report));
    CHECK(strstr(hf_scope_error_text(rig.s), "nothing was shipped between"));
    rig_end(&rig);
}

/* An epoch that breaks the chain ends before its snapshot. The next one goes on with it, and has to
 * take that snapshot: until then nothing behind the break can be restored. */
TEST(backup_ship, the_snapshot_behind_a_break_is_taken_by_a_later_epoch)
{
    struct rig rig;

    rig_begin(t, &rig);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    rig_close(&rig);
    CHECK(unlink(hf_scope_format(rig.s, "%s/backup", rig.path).ptr) == 0);
    for (uint32_t i = 2; i < 4; i++) { /* the first breaks the chain; a close takes no snapshot */
        rig_open(&rig);
        rig_put(&rig, 0, i);
        rig_close(&rig);
        CHECK_INT(1, info_of(&rig).snapshots);
        CHECK(info_of(&rig).newest_us < rig.now.at_us);
    }
    rig_open(&rig);
    rig_put(&rig, 0, 4);
    ship_all(&rig);
    CHECK_OK(hf__ship_wait(rig.s, rig.shipper)); /* it says that the change is safe */
    CHECK_INT(2, info_of(&rig).snapshots);
    CHECK_OK(rig_verify(&rig, NULL));
    CHECK(info_of(&rig).newest_us >= rig.now.at_us);
    rig_check_moment(&rig, info_of(&rig).newest_us);
    rig_end(&rig);
}

/* A place that is away for long: the journal is kept up to its limit, then there is a new snapshot. */
TEST(backup_ship, a_journal_that_is_not_kept_any_longer)
{
    struct store_stats stats;
    struct rig rig;
    uint8_t large[8192] = {0};

    rig_begin(t, &rig);
    rig.keep_bytes = 1024 * 1024;
    rig.memtable_bytes = 256 * 1024;
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    for (uint32_t i = 0; i < 1200; i++) {
        struct hf__mark mark = hf__scope_mark(rig.s);
        struct store_batch batch = {.ops = {.scope = rig.s}};
        uint8_t key[5] = {'z'};
        uint64_t ticket;

        store_u32be(key + 1, i);
        hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(large, sizeof(large)));
        CHECK_OK(hf__store_write(rig.s, rig.store, &batch, &ticket));
        CHECK_OK(hf__store_sync(rig.s, rig.store, ticket));
        hf__scope_rewind(rig.s, mark);
    }
    for (int i = 0; i < 12000; i++) { /* its thread removes the files: this only ends a hang */
        hf__store_stats(rig.store, &stats);
        if (stats.kept_bytes < 3 * rig.keep_bytes)
            break;
        usleep(5000);
    }
    CHECK(stats.kept_bytes < 3 * rig.keep_bytes);
    rig_put(&rig, 1, 2);
    ship_all(&rig);
    CHECK_INT(2, info_of(&rig).snapshots);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, info_of(&rig).newest_us);
    rig_end(&rig);
}

/* Files of the journal stay until they were shipped, and go then. */
TEST(backup_ship, the_journal_is_kept_until_it_was_shipped)
{
    struct store_changes changes = {.after = 0};
    struct store_stats stats;
    struct rig rig;
    uint8_t large[8192] = {0};

    rig_begin(t, &rig);
    rig.memtable_bytes = 256 * 1024;
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    for (uint32_t i = 0; i < 800; i++) {
        struct hf__mark mark = hf__scope_mark(rig.s);
        struct store_batch batch = {.ops = {.scope = rig.s}};
        uint8_t key[5] = {'z'};
        uint64_t ticket;

        store_u32be(key + 1, i);
        hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(large, sizeof(large)));
        CHECK_OK(hf__store_write(rig.s, rig.store, &batch, &ticket));
        CHECK_OK(hf__store_sync(rig.s, rig.store, ticket));
        hf__scope_rewind(rig.s, mark);
    }
    rig_put(&rig, 1, 2);
    hf__store_stats(rig.store, &stats);
    CHECK(stats.kept_bytes > 6 * 1024 * 1024);
    ship_all(&rig);
    CHECK_INT(1, info_of(&rig).snapshots);
    CHECK_INT(0, health_of(&rig).lag_changes);
    for (int i = 0; i < 12000 && stats.kept_bytes > 4 * 1024 * 1024; i++) {
        usleep(5000);
        hf__store_stats(rig.store, &stats);
    }
    CHECK(stats.kept_bytes <= 4 * 1024 * 1024);
    (void)changes;
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, info_of(&rig).newest_us);
    rig_end(&rig);
}

/* ---- the place ------------------------------------------------------------------------------ */

/* While the place is away nothing is lost, and it is caught up with afterwards. */
TEST(backup_ship, a_place_that_is_away)
{
    struct hf_backup_health health;
    const char *away;
    struct rig rig;

    rig_begin(t, &rig);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    away = hf_scope_format(rig.s, "%s.away", rig.place).ptr;
    CHECK(rename(rig.place, away) == 0);
    for (uint32_t i = 0; i < 20; i++) {
        rig_put(&rig, 1 + i % 5, i + 1);
        test_advance_ms(t, 1000);
        (void)hf__ship_step(rig.s, rig.shipper, false);
    }
    health = health_of(&rig);
    CHECK_INT(HF_BACKUP_BEHIND, health.state);
    CHECK(health.lag_ms > 15000 && health.lag_changes == 20 && health.failures > 0);
    CHECK(health.error[0]);
    CHECK(rename(away, rig.place) == 0);
    ship_all(&rig);
    health = health_of(&rig);
    CHECK_INT(HF_BACKUP_SHIPPING, health.state);
    CHECK(health.lag_ms == 0 && health.lag_changes == 0 && !health.error[0]);
    CHECK_INT(1, info_of(&rig).snapshots);
    CHECK_OK(rig_verify(&rig, NULL));
    for (int i = 0; i < 5; i++) /* each of its moments is there */
        rig_check_moment(&rig, rig.moments[rig.moments_len - 1 - (size_t)(i * 3)].at_us);
    rig_end(&rig);
}

TEST(backup_ship, the_place_of_another_database)
{
    struct rig rig, other;

    rig_begin(t, &rig);
    rig_begin(t, &other);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    other.url = rig.url;
    rig_open(&other);
    rig_put(&other, 0, 2);
    CHECK_STATUS(HF_INVALID, hf__ship_step(other.s, other.shipper, true));
    CHECK(strstr(hf_scope_error_text(other.s), "another database"));
    CHECK_INT(HF_BACKUP_REFUSED, health_of(&other).state);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_end(&other);
    rig_end(&rig);
}

/* The same directory twice, as a file system can be copied: the one that began last has the place. */
TEST(backup_ship, the_former_one_is_fenced)
{
    struct rig rig;
    struct hf__shipper *first;
    struct ship_options ship = {.no_threads = true};

    rig_begin(t, &rig);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    ship_all(&rig);
    first = rig.shipper;
    ship.directory = hf_str_from(rig.path);
    CHECK_OK(hf__ship_fill(rig.s, &rig.o, &ship.user));
    CHECK_OK(hf__ship_open(rig.s, test_env(t), rig.store, &ship, &rig.shipper));
    rig_put(&rig, 0, 2);
    ship_all(&rig);
    CHECK_STATUS(HF_LOST, hf__ship_step(rig.s, first, true));
    rig_put(&rig, 0, 3);
    ship_all(&rig);
    hf__ship_close(first);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, rig.now.at_us);
    rig_end(&rig);
}

/* ---- retention ------------------------------------------------------------------------------ */

TEST(backup_ship, only_what_no_restore_needs_is_removed)
{
    const char *names[NAMES_MAX];
    struct hf_backup_info info;
    size_t most = 0, len = 0;
    struct rig rig;

    rig_begin(t, &rig);
    rig.o.snapshot_ms = 10000;
    rig.o.retain_ms = 30000;
    rig_open(&rig);
    for (uint32_t i = 0; i < 150; i++) {
        struct hf__mark mark = hf__scope_mark(rig.s);

        rig_put(&rig, i % HELP_KEYS, i + 1);
        test_advance_ms(t, 1000);
        CHECK_OK(hf__ship_step(rig.s, rig.shipper, false));
        len = rig_objects(&rig, names, NAMES_MAX);
        most = len > most ? len : most;
        if (i == 70) {
            rig_close(&rig);
            rig_open(&rig);
        }
        hf__scope_rewind(rig.s, mark);
    }
    ship_all(&rig);
    info = info_of(&rig);
    CHECK(most < 80);
    CHECK(info.snapshots >= 4 && info.snapshots <= 6);
    CHECK(info.oldest_us <= hf__env_wall_us(test_env(t)) - 30000000); /* a second after the put */
    CHECK(info.oldest_us >= rig.now.at_us - 60000000);
    CHECK_OK(rig_verify(&rig, NULL));
    for (int i = 0; i < 10; i++)
        rig_check_moment(&rig, rig.now.at_us - i * 3000000);
    rig_check_moment(&rig, info.oldest_us);
    rig_end(&rig);
}

/* ---- encryption ----------------------------------------------------------------------------- */

TEST(backup_ship, encrypted)
{
    struct hf_str right, wrong, open_to_all;
    const char *names[NAMES_MAX];
    struct hf_backup *backup;
    struct rig rig;
    size_t len;

    rig_begin(t, &rig);
    right = hf_str_from(make_key(&rig, "right", 'a', 0600));
    wrong = hf_str_from(make_key(&rig, "wrong", 'b', 0600));
    open_to_all = hf_str_from(make_key(&rig, "open", 'a', 0644));
    rig.o.key_file = right;
    rig_open(&rig);
    rig_put(&rig, 0, 0x5ec4e700);
    ship_all(&rig);
    rig_put(&rig, 1, 0x5ec4e701);
    ship_all(&rig);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_check_moment(&rig, rig.now.at_us);
    CHECK(info_of(&rig).encrypted);
    len = rig_objects(&rig, names, NAMES_MAX);
    for (size_t i = 0; i < len; i++) { /* nothing of the values is there to be read */
        static uint8_t bytes[65536];
        int fd = open(hf_scope_format(rig.s, "%s/%s", rig.place, names[i]).ptr, O_RDONLY);
        ssize_t got = read(fd, bytes, sizeof(bytes));

        close(fd);
        CHECK(got > 0 && !memmem(bytes, (size_t)got, "\x5e\xc4\xe7", 3));
    }
    rig.o.key_file = wrong;
    CHECK_STATUS(HF_DENIED, rig_verify(&rig, NULL));
    CHECK(strstr(hf_scope_error_text(rig.s), "another key"));
    rig.o.key_file = (struct hf_str){0};
    CHECK_STATUS(HF_DENIED, rig_verify(&rig, NULL));
    CHECK(strstr(hf_scope_error_text(rig.s), "key file is needed"));
    CHECK_STATUS(HF_INVALID,
                 hf_backup_open(rig.s, rig.url,
                                HF_OPTIONS(hf_backup_open_options, .key_file = open_to_all),
                                &backup));
    CHECK(strstr(hf_scope_error_text(rig.s), "chmod 600"));
    rig_end(&rig);
    unlink(right.ptr);
    unlink(wrong.ptr);
    unlink(open_to_all.ptr);
}

/* ---- threads -------------------------------------------------------------------------------- */

TEST(backup_ship, its_threads_ship_without_being_asked)
{
    struct ship_options ship = {.no_threads = false};
    struct rig rig;

    rig_begin(t, &rig);
    rig_open(&rig);
    hf__ship_close(rig.shipper);
    ship.directory = hf_str_from(rig.path);
    rig.o.window_ms = 50;
    CHECK_OK(hf__ship_fill(rig.s, &rig.o, &ship.user));
    CHECK_OK(hf__ship_open(rig.s, NULL, rig.store, &ship, &rig.shipper)); /* by the true clock */
    for (uint32_t i = 0; i < 30; i++)
        rig_put(&rig, 0, i + 1);
    CHECK_OK(hf__ship_wait(rig.s, rig.shipper));
    CHECK_INT(0, health_of(&rig).lag_changes);
    for (uint32_t i = 0; i < 30; i++)
        rig_put(&rig, 0, i + 100);
    for (int i = 0; i < 60000 && health_of(&rig).lag_changes; i++)
        usleep(1000);
    CHECK_INT(0, health_of(&rig).lag_changes);
    rig_close(&rig);
    CHECK_OK(rig_verify(&rig, NULL));
    rig_end(&rig);
}
