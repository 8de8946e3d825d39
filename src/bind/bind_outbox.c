/*
 * bind/bind_outbox.c: methods of outboxes: emitting, looking, dead letters, the history. Handlers are
 * sessions: session_relay.c.
 *
 * An outbox of an embedded database is opened with the blob store beside it, as the command does.
 */
#include "bind/outbox.h"

#include <holdfast/pages.h>

#include "bind/texts.h"

/* ---- opening -------------------------------------------------------------------------------- */

struct bound_outbox {
    struct hf_env env;
    struct hf_outbox *outbox;
    struct hf_blobs *blobs; /* NULL: none */
};

struct outbox_open_args {
    struct hf_str table, blobs;
    struct hf_outbox_options o;
};

static void close_outbox(void *object)
{
    struct bound_outbox *bound = object;
    struct hf_env env = bound->env;

    hf_outbox_close(bound->outbox);
    hf_blobs_close(bound->blobs);
    hf__env_free(&env, bound, sizeof(*bound));
}

static enum hf_status open_blobs(struct hf_scope *s, struct hf_bind *bind, struct hf_str url,
                                 struct hf_blobs **blobs)
{
    enum hf_status status;

    if (url.ptr)
        return hf_blobs_open(s, url, NULL, blobs);
    status = hf_blobs_open_beside(s, hf__bind_db(bind), blobs);
    /* HF_DENIED: it may only be read; lists say which payloads are missing. */
    return status == HF_UNSUPPORTED || status == HF_DENIED ? hf_scope_ok(s) : status;
}

static enum hf_status open_outbox(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                  bool create, const void *options, void **object)
{
    struct bound_outbox *bound = hf__env_zalloc(hf__bind_env(bind), sizeof(*bound));
    const struct outbox_open_args *args = options;
    struct hf_outbox_options o = {.size = sizeof(o)};
    enum hf_status status;

    if (!bound)
        return hf__fail_nomem(s);
    bound->env = *hf__bind_env(bind);
    if (args)
        o = args->o;
    o.table = table;
    o.no_create = !create;
    status = open_blobs(s, bind, args ? args->blobs : (struct hf_str){0}, &bound->blobs);
    o.blobs = bound->blobs;
    if (status == HF_OK)
        status = hf_outbox_open(s, hf__bind_db(bind), &o, &bound->outbox);
    *object = bound;
    if (status != HF_OK)
        close_outbox(bound);
    return status;
}

static const struct bind_opener outbox_kind = {.table = "outbox",
                                               .open = open_outbox,
                                               .close = close_outbox};

enum hf_status hf__bind_outbox(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                               bool create, struct hf_outbox **outbox)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &outbox_kind, table, create, &object));
    *outbox = ((struct bound_outbox *)object)->outbox;
    return HF_OK;
}

#define T outbox_open_args
ARGUMENTS(outbox_open, TEXT("table", table), TEXT("blobs", blobs), U32("buckets", o.buckets),
          TEXT("source", o.source), BOOL("stream", o.stream), U32("history_s", o.history_s),
          U32("unique_s", o.unique_s), U32("blob_over", o.blob_over), BOOL("adopt", o.adopt),
          TEXT("hash_attribute", o.hash_attribute), TEXT("sort_attribute", o.sort_attribute),
          TEXT("expires_attribute", o.expires_attribute));
#undef T
NO_RESULT(outbox_open);

BIND_FUNCTION(outbox_open)
{
    struct outbox_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &outbox_kind, hf__bind_take_text(&args->table),
                              &hf__bind_outbox_open_args, args, args);
}

/* ---- events --------------------------------------------------------------------------------- */

static const char *const outbox_states[] = {NULL, "pending", "failed", "published", NULL};

#define T hf_event
SHARED_PART(hf__bind_event, TEXT("id", id), TEXT("type", type, REQUIRED), TEXT("key", key),
            U64("sequence", sequence), I64("time_us", time_us), I64("due_us", due_us),
            BYTES("payload", payload), TEXT("content_type", content_type), TEXT("schema", schema),
            ITEM("headers", headers), TEXT("source", source), TEXT("correlation", correlation),
            TEXT("causation", causation), TEXT("aggregate", aggregate),
            TEXT("aggregate_type", aggregate_type), TEXT("tenant", tenant),
            TEXT("destination", destination), TEXT("trace_parent", trace_parent),
            TEXT("trace_state", trace_state), BOOL("urgent", urgent));
#undef T
#define T hf_outbox_event
SHARED_PART(hf__bind_outbox_event, FLAT(event, hf__bind_event),
            CHOICE("state", state, outbox_states), TEXT("ref", ref), U32("bucket", bucket),
            U32("attempts", attempts), CHOICE("error", error, status_texts),
            TEXT("error_text", error_text), TEXT("cause", cause), I64("tried_us", tried_us),
            I64("next_us", next_us), I64("ended_us", ended_us), TEXT("owner", owner),
            I64("lease_us", lease_us), TEXT("blob", blob), U64("blob_size", blob_size),
            CHOICE("blob_error", blob_error, status_texts), U32("crashes", crashes));
RESULT_AS(outbox_get, hf__bind_outbox_event);
#undef T

struct outbox_emit_args {
    struct hf_str table;
    struct hf_event *events;
    size_t events_len;
    struct hf_emit_options o;
};
struct outbox_emit_result {
    struct hf_str *ids;
    size_t ids_len;
    struct bind_actions actions;
};

#define T outbox_emit_args
ARGUMENTS(outbox_emit, TEXT("table", table), STRUCTS("events", events, hf__bind_event, REQUIRED),
          BOOL("each_alone", o.each_alone));
ARGUMENTS(outbox_emit_actions, TEXT("table", table),
          STRUCTS("events", events, hf__bind_event, REQUIRED));
#undef T
#define T outbox_emit_result
RESULT(outbox_emit, TEXTS("ids", ids));
RESULT(outbox_emit_actions, TEXTS("ids", ids), FLAT(actions, hf__bind_actions_part));
#undef T

static enum hf_status prepare_ids(struct hf_scope *s, struct outbox_emit_args *args,
                                  struct outbox_emit_result *result)
{
    args->o.size = sizeof(args->o);
    result->ids = hf__scope_array(s, args->events_len + 1, sizeof(*result->ids));
    result->ids_len = args->events_len;
    args->o.ids = result->ids;
    return result->ids ? HF_OK : hf__fail_nomem(s);
}

BIND_FUNCTION(outbox_emit)
{
    struct outbox_emit_result *result = result_out;
    struct outbox_emit_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(prepare_ids(s, args, result));
    TRY(hf__bind_outbox(s, bind, args->table, true, &outbox));
    return hf_outbox_emit(s, outbox, args->events, args->events_len, &args->o);
}

BIND_FUNCTION(outbox_emit_actions)
{
    struct outbox_emit_result *result = result_out;
    struct outbox_emit_args *args = args_in;
    struct hf_outbox *outbox;
    struct hf_tx *tx;

    TRY(prepare_ids(s, args, result));
    TRY(hf__bind_outbox(s, bind, args->table, true, &outbox));
    TRY(hf_tx_new(s, hf__bind_db(bind), &tx));
    TRY(hf_outbox_emit_into(s, outbox, tx, args->events, args->events_len, &args->o));
    return hf__bind_tx_actions(s, tx, &result->actions);
}

/* ---- looking -------------------------------------------------------------------------------- */

struct outbox_list_args {
    struct hf_str table, id;
    struct hf_event_list_options o;
    struct hf_str *ids;
    size_t ids_len;
    int64_t before_us;
    uint64_t stats_limit;
};

#define T outbox_list_args
#define OUTBOX_LIST                                                                                \
    TEXT("table", table), U32("limit", o.limit, LISTED), TEXT("after", o.after),                   \
        TEXT("type", o.type), TEXT("key", o.key), TEXT("tenant", o.tenant),                        \
        BOOL("no_payload", o.no_payload)
ARGUMENTS(outbox_pending, OUTBOX_LIST, BOOL("not_due_too", o.not_due_too),
          BOOL("retrying_too", o.retrying_too));
ARGUMENTS(outbox_failed, OUTBOX_LIST, BOOL("oldest_first", o.oldest_first), TEXT("cause", o.cause));
ARGUMENTS(outbox_history, OUTBOX_LIST, BOOL("oldest_first", o.oldest_first),
          I64("from_us", o.from_us), I64("to_us", o.to_us));
ARGUMENTS(outbox_stats, TEXT("table", table), U32("limit", o.limit), TEXT("type", o.type),
          TEXT("key", o.key), TEXT("tenant", o.tenant));
ARGUMENTS(outbox_get, TEXT("table", table), TEXT("id", id, REQUIRED));
ARGUMENTS(outbox_retry, TEXT("table", table), TEXTS("ids", ids, REQUIRED));
ARGUMENTS(outbox_discard, TEXT("table", table), TEXTS("ids", ids, REQUIRED));
ARGUMENTS(outbox_retry_all, TEXT("table", table), TEXT("type", o.type), TEXT("cause", o.cause),
          U32("limit", o.limit));
ARGUMENTS(outbox_discard_all, TEXT("table", table), TEXT("type", o.type), TEXT("cause", o.cause),
          U32("limit", o.limit));
ARGUMENTS(outbox_replay, TEXT("table", table), TEXT("type", o.type), TEXT("key", o.key),
          TEXT("tenant", o.tenant), I64("from_us", o.from_us), I64("to_us", o.to_us),
          U32("limit", o.limit), TEXT("after", o.after));
ARGUMENTS(outbox_cleanup, TEXT("table", table), I64("before_us", before_us, REQUIRED));
ARGUMENTS(outbox_wake, TEXT("table", table));
#undef T
NO_RESULT(outbox_wake);
#define T hf_event_list
MEMBERS(event_list, STRUCTS("events", events, hf__bind_outbox_event), TEXT("next", next));
RESULT_AS(outbox_pending, event_list);
RESULT_AS(outbox_failed, event_list);
RESULT_AS(outbox_history, event_list);
#undef T
#define T hf_outbox_cause
PART(outbox_cause, TEXT("cause", cause), TEXT("example", example), U64("count", count));
#undef T
#define T hf_outbox_stats
RESULT(outbox_stats, U64("pending", pending), U64("due", due), U64("scheduled", scheduled),
       U64("retrying", retrying), U64("failed", failed), U64("published", published),
       I64("oldest_due_ms", oldest_due_ms), I64("oldest_failed_ms", oldest_failed_ms),
       U64("fullest", fullest), STRUCTS("causes", causes, outbox_cause), BOOL("whole", whole),
       U64("unreadable", unreadable), U64("urgent", urgent));
#undef T

struct outbox_done_result {
    uint64_t done;
};

#define T outbox_done_result
MEMBERS(outbox_done, U64("done", done));
RESULT_AS(outbox_retry, outbox_done);
RESULT_AS(outbox_discard, outbox_done);
RESULT_AS(outbox_retry_all, outbox_done);
RESULT_AS(outbox_discard_all, outbox_done);
RESULT_AS(outbox_replay, outbox_done);
RESULT_AS(outbox_cleanup, outbox_done);
#undef T

/* What these begin with: the outbox, which has to be there. */
static enum hf_status list_begin(struct hf_scope *s, struct hf_bind *bind,
                                 struct outbox_list_args *args, struct hf_outbox **outbox)
{
    args->o.size = sizeof(args->o);
    return hf__bind_outbox(s, bind, args->table, false, outbox);
}

BIND_FUNCTION(outbox_pending)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_pending(s, outbox, &args->o, result_out);
}

BIND_FUNCTION(outbox_failed)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_failed(s, outbox, &args->o, result_out);
}

BIND_FUNCTION(outbox_history)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_history(s, outbox, &args->o, result_out);
}

BIND_FUNCTION(outbox_get)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_get(s, outbox, args->id, result_out);
}

BIND_FUNCTION(outbox_stats)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    if (args->o.type.ptr || args->o.key.ptr || args->o.tenant.ptr)
        return hf_outbox_stats_of(s, outbox, &args->o, result_out);
    return hf_outbox_stats(s, outbox, args->o.limit, result_out);
}

/* ---- dead letters and the history ----------------------------------------------------------- */

BIND_FUNCTION(outbox_retry)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_retry(s, outbox, args->ids, args->ids_len, &result->done);
}

BIND_FUNCTION(outbox_discard)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_discard(s, outbox, args->ids, args->ids_len, &result->done);
}

BIND_FUNCTION(outbox_retry_all)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_retry_all(s, outbox, &args->o, &result->done);
}

BIND_FUNCTION(outbox_discard_all)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_discard_all(s, outbox, &args->o, &result->done);
}

BIND_FUNCTION(outbox_replay)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_replay(s, outbox, &args->o, &result->done);
}

BIND_FUNCTION(outbox_cleanup)
{
    struct outbox_done_result *result = result_out;
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(list_begin(s, bind, args, &outbox));
    return hf_outbox_cleanup(s, outbox, args->before_us, &result->done);
}

BIND_FUNCTION(outbox_wake)
{
    struct outbox_list_args *args = args_in;
    struct hf_outbox *outbox;

    (void)result_out;
    TRY(list_begin(s, bind, args, &outbox));
    hf_outbox_wake(outbox);
    return HF_OK;
}

/* ---- pausing -------------------------------------------------------------------------------- */

struct outbox_pause_args {
    struct hf_str table, why;
};

#define T outbox_pause_args
ARGUMENTS(outbox_pause, TEXT("table", table), TEXT("why", why));
ARGUMENTS(outbox_resume, TEXT("table", table));
ARGUMENTS(outbox_paused, TEXT("table", table));
ARGUMENTS(outbox_relays, TEXT("table", table));
#undef T
NO_RESULT(outbox_pause);
NO_RESULT(outbox_resume);
#define T hf_outbox_pause
RESULT(outbox_paused, BOOL("paused", paused), I64("since_us", since_us), TEXT("why", why));
#undef T

BIND_FUNCTION(outbox_pause)
{
    struct outbox_pause_args *args = args_in;
    struct hf_outbox *outbox;

    (void)result_out;
    TRY(hf__bind_outbox(s, bind, args->table, false, &outbox));
    return hf_outbox_pause(s, outbox, args->why);
}

BIND_FUNCTION(outbox_resume)
{
    struct outbox_pause_args *args = args_in;
    struct hf_outbox *outbox;

    (void)result_out;
    TRY(hf__bind_outbox(s, bind, args->table, false, &outbox));
    return hf_outbox_resume(s, outbox);
}

BIND_FUNCTION(outbox_paused)
{
    struct outbox_pause_args *args = args_in;
    struct hf_outbox *outbox;

    TRY(hf__bind_outbox(s, bind, args->table, false, &outbox));
    return hf_outbox_paused(s, outbox, result_out);
}

/* ---- relays --------------------------------------------------------------------------------- */

/*
 * Who delivers, and whose each bucket is: the items "m.RELAY" and "b.NNN" in partition "c" of the
 * table (src/relay/relay_member_item.c). A relay that is silent for its lease may be gone: look at
 * its beat twice. Only of outboxes whose key attributes have their default names.
 */
struct relay_row {
    struct hf_str id, owner, only;
    uint64_t beat, lease_ms;
    bool stopped;
};
struct bucket_row {
    uint64_t bucket;
    struct hf_str relay;
    uint64_t fence;
};
struct outbox_relays_result {
    struct relay_row *relays;
    size_t relays_len, relays_cap;
    struct bucket_row *buckets;
    size_t buckets_len, buckets_cap;
};

#define T relay_row
PART(relay_row_part, TEXT("id", id), TEXT("owner", owner), TEXT("only", only), U64("beat", beat),
     U64("lease_ms", lease_ms), BOOL("stopped", stopped));
#undef T
#define T bucket_row
PART(bucket_row_part, U64("bucket", bucket), TEXT("relay", relay), U64("fence", fence));
#undef T
#define T outbox_relays_result
RESULT(outbox_relays, STRUCTS("relays", relays, relay_row_part),
       STRUCTS("buckets", buckets, bucket_row_part));
#undef T

static struct hf_str text_in(struct hf_item item, struct hf_str name)
{
    return hf_value_str(hf_item_get(item, name));
}

static uint64_t number_in(struct hf_item item, struct hf_str name)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(item, name), &number);
    return number < 0 ? 0 : (uint64_t)number;
}

static enum hf_status add_relay(struct hf_scope *s, struct hf_str id, struct hf_item item,
                                struct outbox_relays_result *result)
{
    struct relay_row *row;

    TRY(hf__bind_grow(s, (void **)&result->relays, result->relays_len, &result->relays_cap,
                      sizeof(*row)));
    row = &result->relays[result->relays_len++];
    *row = (struct relay_row){.id = id,
                              .owner = text_in(item, HF_STR("owner")),
                              .only = text_in(item, HF_STR("only")),
                              .beat = number_in(item, HF_STR("beat")),
                              .lease_ms = number_in(item, HF_STR("lease_ms")),
                              .stopped = hf_item_get(item, HF_STR("stopped")).ptr != NULL};
    return HF_OK;
}

static enum hf_status add_bucket(struct hf_scope *s, struct hf_str number, struct hf_item item,
                                 struct outbox_relays_result *result)
{
    struct bucket_row *row;
    uint64_t bucket = 0;

    for (size_t i = 0; i < number.len && i < 9; i++)
        if (number.ptr[i] >= '0' && number.ptr[i] <= '9')
            bucket = bucket * 10 + (uint64_t)(number.ptr[i] - '0');
    TRY(hf__bind_grow(s, (void **)&result->buckets, result->buckets_len, &result->buckets_cap,
                      sizeof(*row)));
    row = &result->buckets[result->buckets_len++];
    *row = (struct bucket_row){.bucket = bucket,
                               .relay = text_in(item, HF_STR("relay")),
                               .fence = number_in(item, HF_STR("fence"))};
    return HF_OK;
}

static enum hf_status list_relays(struct hf_scope *s, struct hf_pages *pages,
                                  struct outbox_relays_result *result)
{
    struct hf_item item;

    for (;;) {
        struct hf_str name, rest;

        TRY(hf_pages_next_item(s, pages, &item));
        if (!item.ptr)
            return HF_OK;
        item = hf_item_copy(s, item);
        TRY(hf_scope_built(s));
        name = text_in(item, HF_STR("sk"));
        if (str_after(name, HF_STR("m."), &rest))
            TRY(add_relay(s, rest, item, result));
        else if (str_after(name, HF_STR("b."), &rest))
            TRY(add_bucket(s, rest, item, result));
    }
}

BIND_FUNCTION(outbox_relays)
{
    struct outbox_pause_args *args = args_in;
    struct hf_query query = {.table = args->table.ptr ? args->table : HF_STR("outbox"),
                             .key_condition = HF_STR("pk = :c"),
                             .values = HF_ITEM(s, HF_S(":c", HF_STR("c"))),
                             .consistent = HF_YES};
    struct hf_outbox *outbox;
    struct hf_pages *pages;
    enum hf_status status;

    TRY(hf__bind_outbox(s, bind, args->table, false, &outbox));
    TRY(hf_pages_query(s, hf__bind_db(bind), &query, NULL, &pages));
    status = list_relays(s, pages, result_out);
    hf_pages_free(pages);
    return status;
}
