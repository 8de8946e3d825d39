/* backup/s3_test.c: a backup in a service that is not ours, where HF_KIT_URL names one (s3rver). */
#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "test.h"

enum { ITEMS = 300 };

static _Atomic int64_t
    ahead_us; /* of the database's clock; requests to the service have the true one */

static int64_t moved_clock(void *user)
{
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + ahead_us;
}

static void put(struct hf_scope *s, struct hf_db *db, int number)
{
    struct hf_item item =
        HF_ITEM(s, HF_S("id", hf_scope_format(s, "item %d", number)), HF_N("number", number));

    CHECK_OK(
        hf_put_item(s, db, &(struct hf_put_item){.table = HF_STR("things"), .item = item}, NULL));
}

static uint64_t count(struct hf_scope *s, const char *path)
{
    struct hf_scan scan = {.table = HF_STR("things")};
    struct hf_scan_result result;
    struct hf_db *db;

    CHECK_OK(hf_open(s, hf_scope_format(s, "embedded:%s", path), NULL, &db));
    CHECK_OK(hf_scan(s, db, &scan, &result));
    hf_db_close(db);
    return result.items_len;
}

TEST(backup_s3, whole_life_on_url)
{
    const char *url = getenv("HF_KIT_URL");
    const char *path = test_directory(t);
    struct hf_client_options client = {.size = sizeof(client),
                                       .region = HF_STR("us-east-1"),
                                       .credentials = {.access_key = HF_STR("S3RVER"),
                                                       .secret_key = HF_STR("S3RVER")},
                                       .no_aws_config = true};
    struct hf_create_table table = {.table = HF_STR("things"),
                                    .attributes = &(struct hf_attribute_definition){HF_STR("id"),
                                                                                    HF_SCALAR_S},
                                    .attributes_len = 1,
                                    .key_schema =
                                        &(struct hf_key_element){HF_STR("id"), HF_KEY_HASH},
                                    .key_schema_len = 1};
    struct hf_backup_options o = {.size = sizeof(o),
                                  .window_ms = 100,
                                  .client = &client,
                                  .snapshot_ms = 1000,
                                  .retain_ms = 1800000};
    struct hf_backup_open_options open = {.size = sizeof(open), .client = &client};
    const struct hf_env true_env = {.size = sizeof(true_env)};
    const struct hf_env env = {.size = sizeof(env), .wall_us = moved_clock};
    struct hf_backup_health health;
    struct hf_backup_report report;
    struct hf_backup_info info;
    struct hf_backup *backup;
    const char *restored;
    struct hf_scope *s;
    struct hf_db *db;

    if (!url)
        return;
    client.env = &true_env;
    s = hf_scope_new(NULL);
    o.to = hf_scope_format(s, "s3://backups/shop?create=1&endpoint=%s", url);
    for (int run = 0; run < 3; run++) {
        CHECK_OK(hf_open(s, hf_scope_format(s, "embedded:%s/db", path),
                         HF_OPTIONS(hf_engine_options, .backup = &o, .env = &env), &db));
        CHECK_OK(hf_table_ensure(s, db, &table, NULL));
        for (int i = 0; i < ITEMS / 3; i++)
            put(s, db, run * (ITEMS / 3) + i);
        CHECK_OK(hf_backup_wait(s, db));
        hf_backup_health(db, &health);
        CHECK(health.objects > 0 && health.state == HF_BACKUP_SHIPPING && health.lag_changes == 0);
        for (int i = 0; i < 6000;
             i++) { /* each run but the first takes one: this only ends a hang */
            hf_backup_health(db, &health);
            if (!health.snapshotting && health.snapshot_us > moved_clock(NULL) - 1800000000)
                break;
            CHECK_OK(hf_scope_sleep_ms(s, 10));
        }
        hf_db_close(db);
        ahead_us += 3600000000;
    }
    CHECK_OK(hf_backup_open(s, o.to, &open, &backup));
    hf_backup_info(backup, &info);
    CHECK(info.closed && info.segments >= 1);
    CHECK(info.snapshots == 2 && info.unneeded == 0); /* what is older than half an hour has gone */
    CHECK_OK(hf_backup_verify(s, backup, NULL, &report));
    CHECK(report.damages == 0 && report.changes > 0);
    restored = hf_scope_format(s, "%s/restored", path).ptr;
    CHECK_OK(hf_backup_restore(s, backup, hf_str_from(restored), NULL, &report));
    CHECK_INT(ITEMS, count(s, restored));
    hf_backup_close(backup);
    hf_scope_free(s);
}
