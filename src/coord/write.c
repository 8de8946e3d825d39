/*
 * coord/write.c: a conditional write of which it is known in the end whether it was done.
 *
 * A write ends in one of three ways: done, refused, or without an answer. The third is sent again,
 * as it is, attempt id and all: if it had not been done it is done now; if it had, its condition
 * refuses it, and the item that comes back with the refusal shows the attempt id to whoever looks.
 *
 *  (1) Nothing is sent again unless it may have been done. What was certainly not done, such as a
 *      call that was throttled, is the business of hf_retry_open() and of the caller.
 *  (2) A refusal always comes with the item as it is. Databases that cannot return it with the
 *      refusal are asked for it; it may be a newer one then.
 *  (3) A failure or refusal after a doubtful attempt is doubtful, whatever it is itself.
 */
#include "coord/pattern.h"

enum { ATTEMPTS = 5, FIRST_DELAY_MS = 20 };

enum hf_status hf__pattern_read(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_item key, struct hf_item *item)
{
    struct hf_get_item get = {.table = table, .key = key, .consistent = HF_YES};
    struct hf_get_item_result got;

    *item = (struct hf_item){0};
    TRY(hf_get_item(s, db, &get, &got));
    *item = got.item;
    return HF_OK;
}

static enum hf_status put_send(struct hf_scope *s, struct hf_db *db, struct hf_put_item request,
                               struct hf_item *item)
{
    struct hf_put_item_result result;

    request.returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    TRY(hf_put_item(s, db, &request, &result));
    *item = result.attributes;
    return HF_OK;
}

static enum hf_status delete_send(struct hf_scope *s, struct hf_db *db,
                                  struct hf_delete_item request, struct hf_item *item)
{
    struct hf_delete_item_result result;

    request.returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    TRY(hf_delete_item(s, db, &request, &result));
    *item = result.attributes;
    return HF_OK;
}

static enum hf_status update_send(struct hf_scope *s, struct hf_db *db,
                                  struct hf_update_item request, struct hf_item *item)
{
    struct hf_update_item_result result;

    request.returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    TRY(hf_update_item(s, db, &request, &result));
    *item = result.attributes;
    return HF_OK;
}

static enum hf_status write_send(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_transact_write *write, struct hf_item *item)
{
    return write->put   ? put_send(s, db, *write->put, item)
           : write->del ? delete_send(s, db, *write->del, item)
                        : update_send(s, db, *write->update, item);
}

/* (2) */
static enum hf_status refusal_read(struct hf_scope *s, struct hf_db *db,
                                   const struct hf_transact_write *write, struct hf_item key,
                                   struct hf_item *item)
{
    struct hf_str table = write->put   ? write->put->table
                          : write->del ? write->del->table
                                       : write->update->table;

    *item = hf_scope_error(s)->item;
    if (item->ptr)
        return HF_CONDITION;
    TRY(hf__pattern_read(s, db, table, key, item));
    return hf_scope_fail(s, HF_CONDITION, "The conditional request failed");
}

enum hf_status hf__pattern_write(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_transact_write *write, struct hf_item key,
                                 struct hf_item *item)
{
    struct backoff backoff = {.first_ms = FIRST_DELAY_MS, .max_ms = UINT32_MAX};
    bool doubtful = false;
    enum hf_status status;

    assert(!write->check && !!write->put + !!write->del + !!write->update == 1);
    assert(key.ptr && "a refusal is answered by a read of the item");
    for (int attempt = 1;; attempt++) {
        *item = (struct hf_item){0};
        status = write_send(s, db, write, item);
        if (status == HF_CONDITION)
            status = refusal_read(s, db, write, key, item);
        if (status == HF_OK)
            return status;
        if (status == HF_CONDITION)
            break;
        doubtful = doubtful || hf_scope_error(s)->may_have_happened;
        if (!doubtful || attempt == ATTEMPTS)
            break;
        status = hf__backoff_sleep(s, &backoff);
        if (status != HF_OK)
            break;
    }
    return doubtful ? hf_scope_doubt(s) : status;
}
