/*
 * relay/relay_watch.c: news of the outbox by the stream of its table, for a relay in another
 * process than those who emit.
 *
 * Every wake_ms each open shard of the stream is read, and buckets with new events are woken. There
 * are no leases: each relay reads the end of all shards. It takes no events from there, as records do
 * not have the order in which keys have to be delivered; relay_read.c reads the buckets, and its polls
 * find events that are missed here.
 *
 *  (1) Between rounds there is a list of iterators, in the scope of the round that made it; rounds
 *      alternate between two scopes.
 *  (2) We are never behind by more than a page: then all buckets are woken, and reading goes on at
 *      the end of the stream.
 *  (3) Whenever we may have missed something (a new list, a shard that ended, a page that was
 *      full) all buckets are woken after we have the iterator that does not miss what comes next.
 *  (4) After a failure it is retried with delays that grow up to WATCH_WAIT_MAX_MS. When the database
 *      throttles us, the list is kept; after any other failure a new list is made.
 *
 * All of this is done by one thread at a time, the watcher or hf_relay_step().
 */
#include "relay/relay.h"

#include <holdfast/pages.h>

enum {
    WATCH_PAGE = 100,          /* records of one answer */
    WATCH_SHARDS_MAX = 1000,   /* that are read; with more, none is */
    WATCH_WAIT_MAX_MS = 10000, /* between tries */
    WATCH_LOOK_MS = 60000,     /* how often we look whether there is a stream by now */
    WATCH_TIMEOUT_MS = 2000
};

struct relay_shard {
    struct hf_str id;
    struct hf_str iterator;
};

static enum hf_status shard_latest(struct hf_relay *relay, struct hf_scope *s, struct hf_str arn,
                                   struct relay_shard *shard)
{
    struct hf_get_shard_iterator request = {.arn = arn,
                                            .shard = shard->id,
                                            .type = HF_ITERATOR_LATEST};
    struct hf_get_shard_iterator_result result;

    TRY(hf_get_shard_iterator(s, relay->outbox->db, &request, &result));
    shard->iterator = result.iterator;
    return HF_OK;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* The open shards. Some databases report an end for every shard, behind its newest record; if all
 * have one, the last shard is the open one. */
static enum hf_status list_open(struct hf_relay *relay, struct hf_scope *s, struct hf_str arn,
                                struct relay_shard *shards, size_t *len)
{
    struct hf_pages *pages;
    struct hf_str last = {0};
    struct hf_shard found;
    enum hf_status status;

    *len = 0;
    TRY(hf_pages_describe_stream(s, relay->outbox->db, &(struct hf_describe_stream){.arn = arn},
                                 NULL, &pages));
    while ((status = hf_pages_next_shard(s, pages, &found)) == HF_OK && found.id.ptr) {
        if (found.range && found.range->last.len) {
            last = hf_scope_copy(s, found.id);
            continue;
        }
        if (*len == WATCH_SHARDS_MAX) {
            status = hf_scope_fail(s, HF_LIMIT, "the stream of %.*s has more than %d shards",
                                   HF_FMT(relay->outbox->table), WATCH_SHARDS_MAX);
            break;
        }
        shards[(*len)++] = (struct relay_shard){.id = hf_scope_copy(s, found.id)};
    }
    hf_pages_free(pages);
    if (!*len && last.len)
        shards[(*len)++] = (struct relay_shard){.id = last};
    return status == HF_OK ? hf_scope_built(s) : status;
}

/* (3) An empty list: there is no stream. */
static enum hf_status list_make(struct hf_relay *relay, struct hf_scope *s, struct shard_list *to)
{
    struct hf_describe_table_result table;

    *to = (struct shard_list){0};
    TRY(hf_describe_table(s, relay->outbox->db,
                          &(struct hf_describe_table){.table = relay->outbox->table}, &table));
    if (!table.table || !table.table->stream_arn.len || !table.table->stream ||
        table.table->stream->enabled != HF_YES) /* one that was disabled still has its ARN */
        return HF_OK;
    to->arn = table.table->stream_arn;
    to->shards = hf_scope_alloc(s, WATCH_SHARDS_MAX * sizeof(*to->shards));
    TRY(hf_scope_built(s));
    TRY(list_open(relay, s, to->arn, to->shards, &to->len));
    for (size_t i = 0; i < to->len; i++)
        TRY(shard_latest(relay, s, to->arn, &to->shards[i]));
    if (to->len)
        hf__relay_wake(relay, UINT32_MAX, true);
    return HF_OK;
}

/* ---- news ----------------------------------------------------------------------------------- */

/* The bucket of the event that the record is about; UINT32_MAX: not an event of ours. */
static uint32_t record_bucket(const struct hf_relay *relay, const struct hf_record *record,
                              bool *urgent)
{
    struct outbox_place place;
    struct hf_str pk;

    if (record->event != HF_CHANGE_INSERT || !record->change)
        return UINT32_MAX;
    pk = pk_of(relay->outbox, record->change->keys);
    if (pk.len < 2 || memcmp(pk.ptr, "p.", 2) != 0 ||
        !hf__outbox_place_read(relay->outbox, sk_of(relay->outbox, record->change->keys), &place))
        return UINT32_MAX;
    *urgent = is_urgent_seq(place.seq);
    return place.bucket;
}

/* Read one shard; *to is where to read on. *lives false: the shard has ended. */
static enum hf_status shard_ask(struct hf_relay *relay, struct hf_scope *s, struct hf_str arn,
                                const struct relay_shard *shard, struct relay_shard *to,
                                bool *lives)
{
    struct hf_get_records request = {.iterator = shard->iterator, .limit = WATCH_PAGE};
    struct hf_get_records_result result;

    TRY(hf_get_records(s, relay->outbox->db, &request, &result));
    *lives = result.next.len > 0;
    *to = (struct relay_shard){.id = hf_scope_copy(s, shard->id), .iterator = result.next};
    TRY(hf_scope_built(s));
    if (*lives && result.records_len >= WATCH_PAGE) { /* (2) */
        TRY(shard_latest(relay, s, arn, to));
        hf__relay_wake(relay, UINT32_MAX, true);
        return HF_OK;
    }
    for (size_t i = 0; i < result.records_len; i++) {
        bool urgent;
        uint32_t bucket = record_bucket(relay, &result.records[i], &urgent);

        if (bucket != UINT32_MAX)
            hf__relay_wake(relay, bucket, urgent);
    }
    return HF_OK;
}

/* The next list from that one. */
static enum hf_status shards_ask(struct hf_relay *relay, struct hf_scope *s,
                                 const struct shard_list *from, struct shard_list *to)
{
    bool all_live = true;

    *to = (struct shard_list){.arn = hf_scope_copy(s, from->arn),
                              .shards = hf_scope_alloc(s, from->len * sizeof(*to->shards))};
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < from->len; i++) {
        bool lives;

        TRY(shard_ask(relay, s, to->arn, &from->shards[i], &to->shards[i], &lives));
        all_live = all_live && lives;
        to->len++;
    }
    return all_live ? HF_OK : list_make(relay, s, to);
}

/* ---- rounds --------------------------------------------------------------------------------- */

void hf__relay_watch_check(const struct hf_relay *relay)
{
    const struct shard_list *list = &relay->watch.list;

    assert(list->len <= WATCH_SHARDS_MAX);
    for (size_t i = 0; i < list->len; i++)
        assert(list->shards[i].id.len && list->shards[i].iterator.len);
}

static int64_t round_failed(struct hf_relay *relay, struct hf_scope *s, enum hf_status status)
{
    int64_t wait_ms = relay->o.wake_ms;

    if (status != HF_THROTTLED)
        relay->watch.list.len = 0; /* (4) */
    if (!relay->watch.failures++ && status != HF_THROTTLED)
        hf__relay_report_error(relay, s);
    for (uint32_t i = 0; i < relay->watch.failures && wait_ms < WATCH_WAIT_MAX_MS; i++)
        wait_ms *= 2;
    return (wait_ms < WATCH_WAIT_MAX_MS ? wait_ms : WATCH_WAIT_MAX_MS) * 1000;
}

int64_t hf__relay_watch_step(struct hf_relay *relay)
{
    bool had_list = relay->watch.list.len > 0;
    struct hf_scope *s = relay->watch.scopes[!relay->watch.second]; /* (1) */
    struct shard_list next;
    enum hf_status status;

    hf__relay_begin(relay, s, WATCH_TIMEOUT_MS);
    status =
        had_list ? shards_ask(relay, s, &relay->watch.list, &next) : list_make(relay, s, &next);
    hf__relay_consumed(relay, s);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.stream_reads += had_list;
    relay->metrics.watching = status == HF_OK && next.len;
    pthread_mutex_unlock(&relay->mutex);
    if (status != HF_OK)
        return round_failed(relay, s, status);
    relay->watch.list = next;
    relay->watch.second = !relay->watch.second;
    relay->watch.failures = 0;
    if (DEV_CHECKS)
        hf__relay_watch_check(relay);
    return next.len ? (int64_t)relay->o.wake_ms * 1000 : WATCH_LOOK_MS * INT64_C(1000);
}
