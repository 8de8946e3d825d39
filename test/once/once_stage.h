/*
 * once/once_stage.h: what once_test.c and once_tx_test.c share: a table, beginning attempts, results.
 */
#ifndef HF_TEST_ONCE_ONCE_STAGE_H
#define HF_TEST_ONCE_ONCE_STAGE_H

#include <holdfast/engine.h>
#include <holdfast/once.h>

#include <pthread.h>
#include <stdio.h>

#include "kit.h"
#include "once/once.h"
#include "steps.h"

#define USER HF_STR("ann")
#define KEY HF_STR("welcome")

static inline struct hf_once_table *table_of(struct kit *k, const char *owner)
{
    struct hf_once_table *onces;

    CHECK_OK(hf_once_table_open(k->scope, k->db,
                                HF_OPTIONS(hf_once_table_options, .table = k->table,
                                           .owner = hf_str_from(owner), .no_threads = true),
                                &onces));
    return onces;
}

static inline struct hf_once_options *timeout(uint32_t ms)
{
    static struct hf_once_options options;

    options = (struct hf_once_options){.size = sizeof(options), .timeout_ms = ms};
    return &options;
}

/* An attempt that has to be ours. */
static inline struct hf_once *begun(struct kit *k, struct hf_once_table *onces,
                                    const struct hf_once_options *options)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_once_try(k->scope, onces, USER, KEY, options, &once, &record));
    CHECK(once);
    CHECK_INT(HF_ONCE_RUNNING, record.state);
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    return once;
}

static inline void refused(struct kit *k, struct hf_once_table *onces,
                           const struct hf_once_options *options)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_STATUS(HF_LOCKED, hf_once_try(k->scope, onces, USER, KEY, options, &once, &record));
    CHECK(!once);
}

static inline struct hf_item says(struct kit *k, const char *text)
{
    return HF_ITEM(k->scope, HF_S("says", hf_str_from(text)));
}

static inline void check_says(const char *expected, struct hf_item result)
{
    CHECK_STR(expected, hf_value_str(hf_item_get(result, HF_STR("says"))));
}

static inline struct hf_once_record got(struct kit *k, struct hf_once_table *onces)
{
    struct hf_once_record record;

    CHECK_OK(hf_once_get(k->scope, onces, USER, KEY, &record));
    CHECK_STR("ann", record.user);
    CHECK_STR("welcome", record.key);
    return record;
}

/* Whoever asks is told this result, and begins nothing. */
static inline void check_done(struct kit *k, struct hf_once_table *onces, const char *expected)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_once_try(k->scope, onces, USER, KEY, NULL, &once, &record));
    CHECK(!once);
    CHECK(!record.did);
    CHECK_INT(HF_ONCE_DONE, record.state);
    check_says(expected, record.result);
    record = got(k, onces);
    CHECK_INT(HF_ONCE_DONE, record.state);
    check_says(expected, record.result);
}

struct deed {
    struct kit *k;
    int count;
    const char *says;
    enum hf_status status;
};

static inline enum hf_status deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                  void *user)
{
    struct deed *d = user;

    CHECK(hf_once_left_ms(once) > 0);
    CHECK(!hf_once_lost(once));
    d->count++;
    if (d->status != HF_OK)
        return hf_scope_fail(s, d->status, "the mail did not go out");
    *result = HF_ITEM(s, HF_S("says", hf_str_from(d->says)));
    return HF_OK;
}

static inline struct hf_once_options *payload(const char *text)
{
    static struct hf_once_options options;

    options = (struct hf_once_options){.size = sizeof(options),
                                       .payload = hf_bytes_of(text, text ? strlen(text) : 0)};
    return &options;
}

#endif
