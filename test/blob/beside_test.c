/* blob/beside_test.c: the store of a database, through all that may be wrapped around one. */
#include "help.h"

#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/metrics.h>
#include <holdfast/prefix.h>
#include <holdfast/retry.h>
#include <holdfast/trace.h>

#include <sys/stat.h>

TEST(blob_beside, a_database_in_memory_has_one_store_for_all)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *one, *two;
    struct hf_str digest;
    struct hf_bytes found;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = test_env(t)), &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &one));
    CHECK_OK(hf_blobs_open_beside(s, db, &two));
    CHECK_OK(hf_blob_put(s, one, hf_bytes_of("abc", 3), &digest));
    CHECK_OK(hf_blob_get(s, two, digest, &found));
    hf_blobs_close(one);
    hf_blobs_close(two);
    CHECK_OK(hf_blobs_open_beside(s, db, &two)); /* the database kept it */
    CHECK_OK(hf_blob_get(s, two, digest, &found));
    hf_blobs_close(two);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(blob_beside, a_database_on_disk_has_a_folder)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_str url = hf_scope_format(s, "embedded:%s", path);
    struct hf_blobs *blobs;
    struct hf_str digest;
    struct hf_bytes found;
    struct hf_db *db;

    for (int round = 0; round < 2; round++) {
        CHECK_OK(hf_open(s, url, HF_OPTIONS(hf_engine_options, .env = test_env(t)), &db));
        CHECK_OK(hf_blobs_open_beside(s, db, &blobs));
        if (round == 0)
            CHECK_OK(hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest));
        CHECK_OK(hf_blob_get(s, blobs, digest, &found));
        hf_blobs_close(blobs);
        hf_db_close(db);
    }
    CHECK_INT(1, help_files(hf_scope_format(s, "%s/blobs", path).ptr));
    hf_scope_free(s);
}

TEST(blob_beside, wrappers_pass_it_through)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *inner, *outer;
    struct hf_str digest;
    struct hf_bytes found;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = test_env(t)), &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &inner));
    CHECK_OK(hf_blob_put(s, inner, hf_bytes_of("abc", 3), &digest));
    CHECK_OK(hf_retry_open(s, db, NULL, &db));
    CHECK_OK(hf_faulty_open(s, db, &db));
    CHECK_OK(hf_trace_open(s, db, NULL, &db));
    CHECK_OK(hf_metrics_open(s, db, NULL, &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &outer));
    CHECK_OK(hf_blob_get(s, outer, digest, &found));
    hf_blobs_close(inner);
    hf_blobs_close(outer);
    hf_db_close(db);
    hf_scope_free(s);
}

/* Put by one way, found by the other? */
static void check_same_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_db *db,
                            const char *table, const char *name, bool same)
{
    struct hf_blobs *of_table, *by_name;
    struct hf_str digest;

    CHECK_OK(hf_blobs_part_of(s, blobs, db, hf_str_from(table), &of_table));
    CHECK_OK(hf_blobs_part(s, blobs, hf_str_from(name), &by_name));
    CHECK_OK(hf_blob_put(s, of_table, hf_bytes_of("abc", 3), &digest));
    CHECK_STATUS(same ? HF_OK : HF_NOT_FOUND, hf_blob_has(s, by_name, digest, NULL));
    CHECK_OK(hf_blob_delete(s, of_table, digest));
    hf_blobs_close(of_table);
    hf_blobs_close(by_name);
}

/* The store is one for all, and a part of it belongs to a table, however it is seen. */
TEST(blob_beside, parts_have_the_full_names_of_tables)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *whole, *seen, *part;
    struct hf_str digest;
    struct hf_db *inner, *db;

    CHECK_OK(
        hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = test_env(t)), &inner));
    CHECK_OK(hf_blobs_open_beside(s, inner, &whole));
    CHECK_OK(hf_blob_put(s, whole, hf_bytes_of("whole", 5), &digest));
    CHECK_OK(hf_prefix_open(s, inner, HF_STR("p-"), &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &seen));
    CHECK_OK(hf_blob_has(s, seen, digest, NULL));
    check_same_part(s, whole, inner, "t", "t", true);
    check_same_part(s, seen, db, "t", "p-t", true);
    check_same_part(s, seen, db, "t", "t", false);
    CHECK_OK(hf_retry_open(s, db, NULL, &db));
    CHECK_OK(hf_faulty_open(s, db, &db));
    CHECK_OK(hf_trace_open(s, db, NULL, &db));
    CHECK_OK(hf_metrics_open(s, db, NULL, &db));
    CHECK_OK(hf_prefix_open(s, db, HF_STR("q-"), &db));
    CHECK_OK(hf_prefix_open(s, db, HF_STR(""), &db));
    check_same_part(s, whole, db, "t", "p-q-t", true);
    CHECK_STATUS(HF_INVALID, hf_blobs_part_of(s, whole, NULL, HF_STR("t"), &part));
    CHECK_STATUS(HF_INVALID, hf_blobs_part_of(s, whole, db, HF_STR(""), &part));
    CHECK_STATUS(HF_INVALID, hf_blobs_part_of(s, NULL, db, HF_STR("t"), &part));
    CHECK(part == NULL);
    hf_blobs_close(seen);
    hf_blobs_close(whole);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(blob_beside, a_service_has_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *blobs;
    struct hf_db *db;

    CHECK_OK(hf_connect(s, HF_STR("http://127.0.0.1:9"),
                        HF_OPTIONS(hf_client_options, .env = test_env(t), .no_aws_config = true),
                        &db));
    CHECK_STATUS(HF_UNSUPPORTED, hf_blobs_open_beside(s, db, &blobs));
    CHECK(blobs == NULL);
    CHECK_STATUS(HF_INVALID, hf_blobs_open_beside(s, NULL, &blobs));
    hf_db_close(db);
    hf_scope_free(s);
}
