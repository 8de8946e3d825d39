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

/* Two databases by prefix in one have nothing in common, blobs no more than tables. */
TEST(blob_beside, prefixes_have_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *whole, *part, *again;
    struct hf_str digest;
    struct hf_bytes found;
    uint64_t removed;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = test_env(t)), &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &whole));
    CHECK_OK(hf_blob_put(s, whole, hf_bytes_of("abc", 3), &digest));
    CHECK_OK(hf_prefix_open(s, db, HF_STR("p-"), &db));
    CHECK_OK(hf_blobs_open_beside(s, db, &part));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, part, digest, &found));
    CHECK_OK(hf_blob_put(s, part, hf_bytes_of("abc", 3), &digest));
    test_advance_ms(t, 100 * 1000);
    CHECK_OK(hf_blobs_sweep(s, part, 60, help_none_used, NULL, &removed));
    CHECK_INT(1, removed);
    CHECK_OK(hf_blob_get(s, whole, digest, &found));
    CHECK_OK(hf_blob_put(s, part, hf_bytes_of("abc", 3), &digest));
    CHECK_OK(hf_blobs_open_beside(s, db, &again));
    CHECK_OK(hf_blob_get(s, again, digest, &found));
    hf_blobs_close(part);
    hf_blobs_close(again);
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
