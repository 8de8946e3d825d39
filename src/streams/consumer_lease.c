/*
 * streams/consumer_lease.c: positions and leases of shards, and what a name began with.
 *
 * All items of one name and one table of changes have one hash key, so that one query shows them:
 *
 *     pk        the name and the table, joined
 *     sk        "head", or the stream's ARN and the shard, joined
 *
 * A shard's item:
 *
 *     owner     the id of the consumer that has it; absent while nobody has
 *     host      who that is, for people
 *     opener    through which opening of a directory it was taken (opener.c); may be absent
 *     fence     grows by one whenever the shard gets another owner
 *     beat      grows by one with every write of an owner; 0 when the shard was handed to who asked
 *               for it, who still has to take it: his lease would run from we do not know when
 *     lease_ms  how long the owner may be silent
 *     place     "after" the record `sequence`, "at" it, at the "horizon", or from the "time"
 *               from_us
 *     wanted    the id of a consumer that has fewer shards and asks for this one
 *     done      it was read to its end, or is gone; `expires` (time to live) removes it in the end
 *
 * The head: `stream` is the ARN that is being consumed, `start` and its kin from where.
 *
 * What always holds:
 *
 *  (1) The owner writes on condition of owner and fence, others of fence and beat as they saw them.
 *      So an owner that was replaced is refused, and a position never goes back.
 *  (2) Each write fails its own condition once it was done; the item shows whose doing it was.
 *  (3) Our lease ends for us before it ends for others: coord/lease.c.
 *  (4) A shard that is done stays done: a consumer that looked at it before does not begin it
 *      again.
 */
#include "streams/consumer_item.h"

#include <holdfast/pages.h>

#include "base/assert_held.h"
#include "coord/placeholders.h"

/* ---- the table ------------------------------------------------------------------------------ */

enum hf_status hf__shard_lease_table(struct hf_scope *s, struct hf_consumer *c)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_S}};
    const struct hf_key_element keys[] = {{HF_STR("pk"), HF_KEY_HASH},
                                          {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = c->o.table,
                                         .attributes = attributes,
                                         .attributes_len = ARRAY_LEN(attributes),
                                         .key_schema = keys,
                                         .key_schema_len = ARRAY_LEN(keys)};
    struct pattern_open how = {KIND_POSITIONS, .adopt = c->o.adopt};

    TRY(hf__pattern_table_begin(s, c->db, &spec, HF_STR("expires"), &how));
    TRY(hf__kind_open(s, &(struct kind_table){.db = c->db,
                                              .spec = &spec,
                                              .kind = KIND_POSITIONS,
                                              .adopt = c->o.adopt}));
    return hf__pattern_table_end(s, c->db, &spec, HF_STR("expires"), &how);
}

struct hf_query hf__shard_lease_query(struct hf_scope *s, const struct hf_consumer *c)
{
    return (struct hf_query){.table = c->o.table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(s, HF_S(":pk", c->pk)),
                             .consistent = HF_YES};
}

/* ---- the head ------------------------------------------------------------------------------- */

static enum hf_status read_head(struct hf_scope *s, struct hf_consumer *c, struct head *head)
{
    struct shard_lease_view view;
    struct hf_item item;

    *head = (struct head){.since_us = 0};
    TRY(hf__pattern_read(s, c->db, c->o.table, hf__shard_item_key(s, c, HF_STR("head")), &item));
    if (!item.ptr)
        return HF_OK;
    TRY(hf__shard_lease_view(s, item, &view));
    *head = view.head;
    return HF_OK;
}

enum hf_status hf__head_begin(struct hf_scope *s, struct hf_consumer *c, struct head *head,
                              bool *fresh)
{
    struct pattern_id by = hf__pattern_id_make(&c->env);
    struct head mine = *head;
    struct hf_attr attrs[8] = {HF_S("pk", c->pk),        HF_S("sk", HF_STR("head")),
                               HF_S("stream", mine.arn), HF_N("start", mine.start),
                               HF_S("by", id_str(&by)),  HF_N("since_us", mine.since_us)};
    size_t len = 6;
    struct hf_put_item put = {.table = c->o.table,
                              .condition = HF_STR("attribute_not_exists(#pk)"),
                              .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")))};
    struct hf_item there;
    enum hf_status status;

    *fresh = false;
    TRY(read_head(s, c, head));
    if (head->arn.len)
        return HF_OK;
    if (mine.shard.len) {
        attrs[len++] = (struct hf_attr)HF_S("shard", mine.shard);
        attrs[len++] = (struct hf_attr)HF_S("number", mine.number);
    }
    put.item = hf_item_make(s, attrs, len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &(struct hf_transact_write){.put = &put},
                               hf__shard_item_key(s, c, HF_STR("head")), &there);
    if (status == HF_CONDITION) {
        *fresh = hf_str_equal(hf_value_str(hf_item_get(there, HF_STR("by"))), id_str(&by));
        return read_head(s, c, head);
    }
    *fresh = status == HF_OK;
    *head = mine;
    return status;
}

enum hf_status hf__head_move(struct hf_scope *s, struct hf_consumer *c, struct hf_str to)
{
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    enum hf_status status;

    VALUE(&h, HF_S(":from", text_str(&c->arn)));
    VALUE(&h, HF_S(":to", to));
    VALUE(&h, HF_N(":horizon", HF_START_FIRST));
    update =
        hf__shard_item_update(&h, c, HF_STR("head"),
                              HF_STR("SET #stream = :to, #start = :horizon REMOVE #shard, #number"),
                              "#stream = :from");
    status = hf__shard_item_send(s, c, &update, &view);
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

/* ---- beginning with a shard ----------------------------------------------------------------- */

enum hf_status hf__shard_lease_plan(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool done)
{
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    struct hf_str text;
    enum hf_status status;

    VALUE(&h, HF_N(":zero", 0));
    text = hf_scope_format(s, "SET #fence = :zero, #beat = :zero, %s%s",
                           hf__shard_item_place(&h, shard),
                           done ? ", #done = :done, #expires = :expires" : "");
    if (done) {
        VALUE(&h, HF_BOOL(":done", true));
        VALUE(&h, HF_N(":expires", hf__shard_item_expires_s(c)));
    }
    update = hf__shard_item_update(&h, c, hf__shard_item_sk(s, c, text_str(&shard->id)), text,
                                   "attribute_not_exists(#pk)");
    status = hf__shard_item_send(s, c, &update, &view);
    /* Whoever wrote it, it is there. */
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

void hf__shard_lease_see(struct hf_consumer *c, struct shard *shard,
                         const struct shard_lease_view *view)
{
    size_t len = view->holder.len < PATTERN_ID_LEN ? view->holder.len : PATTERN_ID_LEN;

    ASSERT_HELD(&c->mutex);
    assert(!shard->owned && "our own lease is not seen from outside");
    if (!shard->there || shard->seen_fence != view->fence || shard->seen_beat != view->beat)
        shard->seen_us = hf__env_elapsed_us(&c->env);
    shard->there = true;
    shard->seen_fence = view->fence;
    shard->seen_beat = view->beat;
    shard->seen_lease_ms = hf__pattern_is_orphan(c->db, view->opener) ? 0 : view->lease_ms;
    shard->asked = view->wanted.len > 0;
    memset(shard->holder, 0, sizeof(shard->holder));
    if (len)
        memcpy(shard->holder, view->holder.ptr, len);
    if (view->done)
        shard->done = true; /* (4) */
}

/* Go on from where the item says; with the mutex. */
static bool load_place(struct hf_consumer *c, struct shard *shard,
                       const struct shard_lease_view *view)
{
    /* An iterator from when nobody had begun is as good as ever as long as nobody has. */
    bool same = view->place == PLACE_TIME && shard->place == PLACE_TIME && !shard->begun;

    ASSERT_HELD(&c->mutex);
    assert(!shard->busy && "its position is the reader's");
    if (!hf__text_set(&c->env, &shard->sequence, view->sequence))
        return false;
    if (!same)
        shard->iterator.len = 0;
    shard->place = view->place;
    shard->from_us = view->from_us;
    shard->begun = view->place == PLACE_AFTER;
    return true;
}

/* (3) */
static struct lease_terms terms_of(const struct hf_consumer *c)
{
    return (struct lease_terms){.lease_ms = c->o.lease_ms,
                                .heartbeat_ms = hf__lease_heartbeat_ms(c->o.lease_ms)};
}

static bool shard_own(struct hf_consumer *c, struct shard *shard,
                      const struct shard_lease_view *view, int64_t sent_us)
{
    bool good;

    pthread_mutex_lock(&c->mutex);
    assert(!shard->owned && !shard->done);
    good = load_place(c, shard, view);
    if (good) {
        shard->there = true;
        shard->owned = true;
        shard->dirty = false;
        shard->wanted[0] = '\0';
        shard->fence = view->fence;
        shard->beat = view->beat;
        hf__lease_take(&shard->lease, terms_of(c), sent_us);
        shard->saved_us = sent_us;
        shard->due_us = sent_us;
        shard->failures = shard->db_failures = shard->empty = 0;
        shard->at_end = false;
        c->metrics.shards++;
        hf__consumer_check(c);
    }
    pthread_mutex_unlock(&c->mutex);
    return good;
}

static struct hf_update_item take_request(struct holders *h, const struct hf_consumer *c,
                                          const struct shard *shard, uint64_t fence)
{
    struct hf_str sk = hf__shard_item_sk(h->s, c, text_str(&shard->id)),
                  opener = hf_db_opener(c->db);
    const char *start = opener.len ? "SET #owner = :me, #host = :host, #lease_ms = :lease, "
                                     "#beat = :one, #fence = :next, #opener = :opener"
                                   : "SET #owner = :me, #host = :host, #lease_ms = :lease, "
                                     "#beat = :one, #fence = :next";

    VALUE(h, HF_S(":me", id_str(&c->id)));
    VALUE(h, HF_S(":host", c->o.owner));
    VALUE(h, HF_N(":lease", c->o.lease_ms));
    VALUE(h, HF_N(":one", 1));
    VALUE(h, HF_N(":next", fence));
    if (opener.len)
        VALUE(h, HF_S(":opener", opener));
    if (!shard->there)
        return hf__shard_item_update(h, c, sk,
                                     hf_scope_format(h->s, "%s, %s", start,
                                                     hf__shard_item_place(h, shard)),
                                     "attribute_not_exists(#pk)");
    VALUE(h, HF_N(":fence", shard->seen_fence));
    VALUE(h, HF_N(":beat", shard->seen_beat));
    return hf__shard_item_update(
        h, c, sk,
        hf_scope_format(h->s, "%s REMOVE #wanted%s", start, opener.len ? "" : ", #opener"),
        "#fence = :fence AND #beat = :beat AND attribute_not_exists(#done)");
}

enum hf_status hf__shard_lease_take(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool *taken)
{
    uint64_t fence = shard->there ? shard->seen_fence + 1 : 1;
    int64_t sent_us = hf__env_elapsed_us(&c->env);
    struct holders h = {.s = s};
    struct hf_update_item update = take_request(&h, c, shard, fence);
    struct shard_lease_view view;
    enum hf_status status;

    *taken = false;
    status = hf__shard_item_send(s, c, &update, &view);
    if (status == HF_CONDITION) {
        hf_scope_ok(s);
        if (view.fence == fence && view.beat == 1 && hf_str_equal(view.holder, id_str(&c->id)) &&
            !view.done) {
            status = HF_OK; /* (2) its answer got lost */
        } else {
            pthread_mutex_lock(&c->mutex);
            if (view.sk.len)
                hf__shard_lease_see(c, shard, &view);
            pthread_mutex_unlock(&c->mutex);
            return HF_OK;
        }
    }
    TRY(status);
    if (!shard_own(c, shard, &view, sent_us))
        return hf_scope_fail(s, HF_NOMEM, "no memory for the position of a shard");
    *taken = true;
    return HF_OK;
}

void hf__shard_lease_lost(struct hf_consumer *c, struct shard *shard)
{
    ASSERT_HELD(&c->mutex);
    if (!shard->owned)
        return;
    shard->owned = false; /* its iterator is the reader's; who takes it again drops it */
    shard->dirty = false;
    shard->seen_fence = shard->fence;
    shard->seen_beat = shard->beat;
    shard->seen_us = hf__env_elapsed_us(&c->env);
    shard->seen_lease_ms = c->o.lease_ms;
    memset(shard->holder, 0, sizeof(shard->holder));
    memcpy(shard->holder, "?", 1); /* the next look shows who */
    c->metrics.shards--;
    hf__consumer_check(c);
    c->look_now = true;
    hf__waiters_notify(&c->looker);
    for (size_t i = 0; i < c->workers_len; i++)
        if (c->workers[i].shard == shard)
            hf_scope_cancel(c->workers[i].work);
}

/* ---- writing where we are ------------------------------------------------------------------- */

#define OURS "#owner = :me AND #fence = :fence"

static void our_values(struct holders *h, const struct hf_consumer *c, uint64_t fence)
{
    VALUE(h, HF_S(":me", id_str(&c->id)));
    VALUE(h, HF_N(":fence", fence));
}

static enum hf_status fail_lost(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                uint64_t fence)
{
    pthread_mutex_lock(&c->mutex);
    if (shard->fence == fence)
        hf__shard_lease_lost(c, shard);
    pthread_mutex_unlock(&c->mutex);
    return hf_scope_fail(s, HF_LOST, "shard %.*s is lost: another consumer has it",
                         HF_FMT(text_str(&shard->id)));
}

enum hf_status hf__shard_lease_renew(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    int64_t sent_us = hf__env_elapsed_us(&c->env);
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    enum hf_status status;
    uint64_t fence, beat;
    bool dirty;

    pthread_mutex_lock(&c->mutex);
    fence = shard->fence;
    beat = ++shard->beat;
    dirty = shard->dirty;
    shard->dirty = false;
    hf__lease_sent(&shard->lease, terms_of(c), sent_us);
    our_values(&h, c, fence);
    VALUE(&h, HF_N(":beat", beat));
    update = hf__shard_item_update(&h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
                                   hf_scope_format(s, "SET #beat = :beat, %s",
                                                   hf__shard_item_place(&h, shard)),
                                   OURS " AND #beat < :beat");
    pthread_mutex_unlock(&c->mutex);
    status = hf__shard_item_send(s, c, &update, &view);
    if (status == HF_CONDITION) {
        if (view.fence != fence || !hf_str_equal(view.holder, id_str(&c->id)))
            return fail_lost(s, c, shard, fence);
        status = hf_scope_ok(s); /* this beat or a later one is there */
    }
    pthread_mutex_lock(&c->mutex);
    if (shard->owned && shard->fence == fence) {
        if (status == HF_OK) {
            hf__lease_renew(&shard->lease, terms_of(c), sent_us);
            shard->saved_us = sent_us;
        } else {
            shard->dirty = shard->dirty || dirty;
            hf__lease_retry(&shard->lease, terms_of(c), hf__env_elapsed_us(&c->env));
        }
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* It is not ours any more, by our own doing; with the mutex. */
static void let_go(struct hf_consumer *c, struct shard *shard, uint64_t fence)
{
    ASSERT_HELD(&c->mutex);
    if (!shard->owned || shard->fence != fence)
        return;
    shard->owned = false;
    shard->dirty = false;
    shard->iterator.len = 0;
    shard->wanted[0] = '\0';
    shard->seen_us = hf__env_elapsed_us(&c->env);
    c->metrics.shards--;
    hf__consumer_check(c);
}

enum hf_status hf__shard_lease_release(struct hf_scope *s, struct hf_consumer *c,
                                       struct shard *shard)
{
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    enum hf_status status;
    uint64_t fence;

    pthread_mutex_lock(&c->mutex);
    fence = shard->fence;
    our_values(&h, c, fence);
    if (shard->wanted[0]) {
        VALUE(&h, HF_S(":wanted", hf_scope_copy(s, hf_str_from(shard->wanted))));
        VALUE(&h, HF_N(":next", fence + 1));
        VALUE(&h, HF_N(":zero", 0));
        update = hf__shard_item_update(
            &h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
            hf_scope_format(s,
                            "SET #owner = :wanted, #fence = :next, #beat = :zero, "
                            "%s REMOVE #wanted, #host, #opener",
                            hf__shard_item_place(&h, shard)),
            OURS);
    } else {
        update =
            hf__shard_item_update(&h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
                                  hf_scope_format(s,
                                                  "SET %s REMOVE #owner, #host, #wanted, #opener",
                                                  hf__shard_item_place(&h, shard)),
                                  OURS);
    }
    pthread_mutex_unlock(&c->mutex);
    status = hf__shard_item_send(s, c, &update, &view);
    if (status == HF_CONDITION)
        status = hf_scope_ok(s); /* (2), or it was lost: it is not ours */
    TRY(status);
    pthread_mutex_lock(&c->mutex);
    let_go(c, shard, fence);
    if (view.sk.len)
        hf__shard_lease_see(c, shard, &view);
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

enum hf_status hf__shard_lease_finish(struct hf_scope *s, struct hf_consumer *c,
                                      struct shard *shard)
{
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    enum hf_status status;
    uint64_t fence;

    pthread_mutex_lock(&c->mutex);
    fence = shard->fence;
    our_values(&h, c, fence);
    VALUE(&h, HF_BOOL(":done", true));
    VALUE(&h, HF_N(":expires", hf__shard_item_expires_s(c)));
    update = hf__shard_item_update(
        &h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
        hf_scope_format(s,
                        "SET #done = :done, #expires = :expires, %s REMOVE #owner, "
                        "#host, #wanted, #opener",
                        hf__shard_item_place(&h, shard)),
        OURS);
    pthread_mutex_unlock(&c->mutex);
    status = hf__shard_item_send(s, c, &update, &view);
    if (status == HF_CONDITION) {
        if (!view.done || view.fence != fence)
            return fail_lost(s, c, shard, fence);
        status = hf_scope_ok(s); /* (2) */
    }
    TRY(status);
    pthread_mutex_lock(&c->mutex);
    let_go(c, shard, fence);
    shard->done = true;
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

enum hf_status hf__shard_lease_bury(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool *ours)
{
    struct pattern_id by = hf__pattern_id_make(&c->env);
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct hf_item item;
    enum hf_status status;

    VALUE(&h, HF_N(":fence", shard->seen_fence));
    VALUE(&h, HF_N(":beat", shard->seen_beat));
    VALUE(&h, HF_N(":next", shard->seen_fence + 1));
    VALUE(&h, HF_BOOL(":done", true));
    VALUE(&h, HF_N(":expires", hf__shard_item_expires_s(c)));
    VALUE(&h, HF_S(":by", id_str(&by)));
    update = hf__shard_item_update(
        &h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
        HF_STR("SET #done = :done, #expires = :expires, #fence = :next, #by = :by "
               "REMOVE #owner, #host, #wanted, #opener"),
        "#fence = :fence AND #beat = :beat AND attribute_not_exists(#done)");
    *ours = false;
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &(struct hf_transact_write){.update = &update}, update.key,
                               &item);
    if (status == HF_CONDITION) {
        *ours = hf_str_equal(hf_value_str(hf_item_get(item, HF_STR("by"))), id_str(&by));
        return hf_scope_ok(s);
    }
    *ours = status == HF_OK;
    return status;
}

enum hf_status hf__shard_lease_ask(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    struct holders h = {.s = s};
    struct hf_update_item update;
    struct shard_lease_view view;
    enum hf_status status;

    VALUE(&h, HF_S(":me", id_str(&c->id)));
    VALUE(&h, HF_N(":fence", shard->seen_fence));
    update = hf__shard_item_update(&h, c, hf__shard_item_sk(s, c, text_str(&shard->id)),
                                   HF_STR("SET #wanted = :me"),
                                   "#fence = :fence AND attribute_exists(#owner) AND "
                                   "attribute_not_exists(#wanted) AND attribute_not_exists(#done)");
    status = hf__shard_item_send(s, c, &update, &view);
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* One that is due; the mutex is held. */
static struct shard *find_due(struct hf_consumer *c, int64_t now_us, int64_t *next_us)
{
    ASSERT_HELD(&c->mutex);
    for (struct shard *shard = c->shards; shard && has_name(c); shard = shard->next) {
        if (!shard->owned || shard->done || (shard->stuck && c->o.stuck == HF_STUCK_RELEASE))
            continue;
        if (shard->lease.due_us <= now_us)
            return shard;
        if (shard->lease.due_us - now_us < *next_us)
            *next_us = shard->lease.due_us - now_us;
    }
    return NULL;
}

/* A shard whose handler does not return; the mutex is held. */
static struct shard *find_stuck(struct hf_consumer *c, int64_t now_us, int64_t *next_us)
{
    int64_t limit_us = (int64_t)c->o.stuck_ms * 1000;

    ASSERT_HELD(&c->mutex);
    *next_us = limit_us < *next_us ? limit_us : *next_us;
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        if (!shard->call_us || shard->stuck)
            continue;
        if (now_us - shard->call_us >= limit_us)
            return shard;
        if (shard->call_us + limit_us - now_us < *next_us)
            *next_us = shard->call_us + limit_us - now_us;
    }
    return NULL;
}

/* Report a handler that is stuck, and release its shard if that was asked for: by (1) nothing that
 * the handler does later counts. */
static void stuck_report(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                         uint64_t for_ms)
{
    struct hf_str id = text_str(&shard->id), line;

    hf_scope_reset(s);
    hf_scope_timeout_ms(s, hf__lease_heartbeat_ms(c->o.lease_ms));
    if (c->o.on_stuck)
        c->o.on_stuck(id, for_ms, c->o.user);
    line = hf_scope_format(s,
                           "the handler of the stream of %.*s has not returned for %llu ms: "
                           "shard %.*s",
                           HF_FMT(c->table), (unsigned long long)for_ms, HF_FMT(id));
    if (c->env.log && line.len)
        c->env.log(HF_LOG_WARNING, line, c->env.user);
    if (c->o.stuck == HF_STUCK_RELEASE)
        (void)!hf__shard_lease_release(s, c, shard); /* if it cannot be done now, the lease ends */
}

int64_t hf__consumer_beats(void *user)
{
    struct hf_consumer *c = user;
    struct hf_scope *s = c->beat_scope;
    int64_t next_us = has_name(c) ? (int64_t)c->o.lease_ms * 1000 / 16 : INT64_MAX;
    struct shard *shard;

    pthread_mutex_lock(&c->mutex);
    while ((shard = find_stuck(c, hf__env_elapsed_us(&c->env), &next_us)) != NULL) {
        uint64_t for_ms = (uint64_t)(hf__env_elapsed_us(&c->env) - shard->call_us) / 1000;

        shard->stuck = shard->beating = true;
        c->metrics.stuck_total++;
        pthread_mutex_unlock(&c->mutex);
        stuck_report(s, c, shard, for_ms);
        pthread_mutex_lock(&c->mutex);
        shard->beating = false;
    }
    while ((shard = find_due(c, hf__env_elapsed_us(&c->env), &next_us)) != NULL) {
        shard->beating = true;
        pthread_mutex_unlock(&c->mutex);
        hf_scope_reset(s);
        hf_scope_timeout_ms(s, hf__lease_heartbeat_ms(c->o.lease_ms));
        (void)!hf__shard_lease_renew(s, c, shard); /* what came of it is in the shard */
        pthread_mutex_lock(&c->mutex);
        shard->beating = false;
    }
    pthread_mutex_unlock(&c->mutex);
    return next_us;
}
