/*
 * bind/bind_events.c: methods of event stores: appending, reading, streams. Subscriptions are in
 * bind_subscription.c, snapshots in bind_snapshot.c.
 */
#include "bind/events.h"

#include <holdfast/blob.h>

enum { TREE_DEPTH_MAX = 1000 }; /* a tree is written by a function that calls itself */

/* ---- opening -------------------------------------------------------------------------------- */

struct bound_events {
    struct hf_env env;
    struct hf_events *store;
    struct hf_blobs *blobs; /* NULL: those that the store finds by itself */
};

struct events_open_args {
    struct hf_str table, blobs;
    struct hf_events_options o;
};

static void close_events(void *object)
{
    struct bound_events *bound = object;
    struct hf_env env = bound->env;

    hf_events_close(bound->store);
    hf_blobs_close(bound->blobs);
    hf__env_free(&env, bound, sizeof(*bound));
}

static enum hf_status open_events(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                  bool create, const void *options, void **object)
{
    struct bound_events *bound = hf__env_zalloc(hf__bind_env(bind), sizeof(*bound));
    const struct events_open_args *args = options;
    struct hf_events_options o = {.size = sizeof(o)};
    enum hf_status status = HF_OK;

    if (!bound)
        return hf__fail_nomem(s);
    bound->env = *hf__bind_env(bind);
    if (args)
        o = args->o;
    o.table = table;
    o.no_create = !create;
    if (args && args->blobs.ptr)
        status = hf_blobs_open(s, args->blobs, NULL, &bound->blobs);
    o.blobs = bound->blobs;
    if (status == HF_OK)
        status = hf_events_open(s, hf__bind_db(bind), &o, &bound->store);
    *object = bound;
    if (status != HF_OK)
        close_events(bound);
    return status;
}

static const struct bind_opener events_kind = {.table = "events",
                                               .open = open_events,
                                               .close = close_events};

enum hf_status hf__bind_events(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                               bool create, struct hf_events **store)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &events_kind, table, create, &object));
    *store = ((struct bound_events *)object)->store;
    return HF_OK;
}

#define T events_open_args
ARGUMENTS(events_open, TEXT("table", table), TEXT("blobs", blobs), U32("shards", o.shards),
          U32("blob_bytes", o.blob_bytes), BOOL("no_chain", o.no_chain),
          U32("read_units", o.read_units), U32("write_units", o.write_units), U32("heads", o.heads),
          BOOL("adopt", o.adopt));
#undef T
NO_RESULT(events_open);

BIND_FUNCTION(events_open)
{
    struct events_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &events_kind, hf__bind_take_text(&args->table),
                              &hf__bind_events_open_args, args, args);
}

struct events_reset_args {
    struct hf_str table;
};

#define T events_reset_args
ARGUMENTS(events_reset, TEXT("table", table));
#undef T
NO_RESULT(events_reset);

BIND_FUNCTION(events_reset)
{
    const struct events_reset_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, true, &store));
    return hf_events_reset(s, store);
}

/* ---- appending ------------------------------------------------------------------------------ */

static const char *const expectations[] = {"any", "none", "exists", "version", NULL};

#define T hf_new_event
PART(new_event, TEXT("id", id), TEXT("type", type, REQUIRED), BYTES("payload", payload),
     TEXT("content_type", content_type), U32("schema", schema), I64("time_us", time_us),
     ITEM("meta", meta), TEXT("causation", causation), TEXT("correlation", correlation),
     TEXT("compensates", compensates));
#undef T

/* One stream, or several at once. */
struct events_append_args {
    struct hf_str table;
    struct hf_append one;
    struct hf_append *appends;
    size_t appends_len;
    uint32_t max_attempts;
    struct hf_str with; /* actions, as TransactWriteItems has them; not of events.append_actions */
};

#define T hf_append
PART(append_part, TEXT("domain", stream.domain, REQUIRED), TEXT("id", stream.id),
     CHOICE("expect", expect, expectations), U64("version", version),
     STRUCTS("events", events, new_event, REQUIRED));
#undef T
#define T events_append_args
MEMBERS(events_append_part, TEXT("table", table), TEXT("domain", one.stream.domain),
        TEXT("id", one.stream.id), CHOICE("expect", one.expect, expectations),
        U64("version", one.version), STRUCTS("events", one.events, new_event),
        STRUCTS("appends", appends, append_part), U32("max_attempts", max_attempts),
        JSON("with", with));
ARGUMENTS_AS(events_append, events_append_part);
/* The last one is not for actions: they are put together by whoever asks for them. */
const struct bind_fields hf__bind_events_append_actions_args = {
    events_append_part_list, ARRAY_LEN(events_append_part_list) - 1, sizeof(struct T)};
#undef T

/* Of hf_appended the ids have no count beside them. */
struct appended {
    uint64_t first, last;
    const struct hf_str *ids;
    size_t ids_len;
    struct hf_str position;
    bool repeated;
};
struct events_append_result {
    struct appended one; /* of the first stream */
    struct appended *streams;
    size_t streams_len;
    struct bind_actions actions;
};

#define T appended
PART(appended_part, U64("first", first), U64("last", last), TEXTS("ids", ids),
     TEXT("position", position), BOOL("repeated", repeated));
#undef T
#define T events_append_result
RESULT(events_append, FLAT(one, appended_part), STRUCTS("streams", streams, appended_part));
RESULT(events_append_actions, FLAT(one, appended_part), STRUCTS("streams", streams, appended_part),
       FLAT(actions, hf__bind_actions_part));
#undef T

static enum hf_status append_begin(struct hf_scope *s, struct events_append_args *args,
                                   struct hf_appended **results)
{
    if (!args->appends) {
        if (!args->one.stream.domain.ptr)
            return hf_scope_fail(s, HF_INVALID, "\"domain\" is missing");
        args->appends = &args->one;
        args->appends_len = 1;
    } else if (args->one.stream.domain.ptr || args->one.events) {
        return hf_scope_fail(s, HF_INVALID,
                             "use either \"appends\", or \"domain\" and \"events\", not both");
    }
    for (size_t i = 0; i < args->appends_len; i++)
        if (args->appends[i].version && args->appends[i].expect != HF_EXPECT_VERSION)
            return hf_scope_fail(s, HF_INVALID, "\"version\" is for \"expect\":\"version\"");
    *results = hf__scope_array(s, args->appends_len + 1, sizeof(**results));
    return *results ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status append_end(struct hf_scope *s, const struct events_append_args *args,
                                 const struct hf_appended *results,
                                 struct events_append_result *result)
{
    result->streams = hf__scope_array(s, args->appends_len + 1, sizeof(*result->streams));
    if (!result->streams)
        return hf__fail_nomem(s);
    result->streams_len = args->appends_len;
    for (size_t i = 0; i < args->appends_len; i++)
        result->streams[i] =
            (struct appended){.first = results[i].first,
                              .last = results[i].last,
                              .ids = results[i].ids,
                              .ids_len = results[i].ids ? args->appends[i].events_len : 0,
                              .position = results[i].position,
                              .repeated = results[i].repeated};
    result->one = result->streams[0];
    return HF_OK;
}

BIND_FUNCTION(events_append)
{
    struct events_append_args *args = args_in;
    struct hf_appended *results;
    struct hf_events *store;

    struct hf_transact_write_items with = {0};

    TRY(append_begin(s, args, &results));
    if (args->with.ptr)
        TRY(hf__bind_read_actions(s, args->with, &with));
    TRY(hf__bind_events(s, bind, args->table, true, &store));
    TRY(hf_events_append(s, store, args->appends, args->appends_len,
                         HF_OPTIONS(hf_append_options, .max_attempts = args->max_attempts,
                                    .with = with.actions, .with_len = with.actions_len),
                         results));
    return append_end(s, args, results, result_out);
}

BIND_FUNCTION(events_append_actions)
{
    struct events_append_result *result = result_out;
    struct events_append_args *args = args_in;
    struct hf_appended *results;
    struct hf_events *store;
    struct hf_tx *tx;

    TRY(append_begin(s, args, &results));
    TRY(hf__bind_events(s, bind, args->table, true, &store));
    TRY(hf_tx_new(s, hf__bind_db(bind), &tx));
    TRY(hf_events_append_into(s, store, tx, args->appends, args->appends_len,
                              HF_OPTIONS(hf_append_options, .max_attempts = args->max_attempts),
                              results));
    TRY(append_end(s, args, results, result));
    return hf__bind_tx_actions(s, tx, &result->actions);
}

/* ---- reading -------------------------------------------------------------------------------- */

#define T hf_stored_event
SHARED_PART(hf__bind_stored_event, TEXT("id", id), TEXT("position", position),
            TEXT("domain", stream.domain), TEXT("stream", stream.id), U64("version", version),
            TEXT("type", type), BYTES("payload", payload), TEXT("content_type", content_type),
            U32("schema", schema), I64("time_us", time_us), ITEM("meta", meta),
            TEXT("causation", causation), TEXT("correlation", correlation),
            TEXT("compensates", compensates), BYTES("hash", hash), TEXT("blob", blob));
RESULT_AS(events_get, hf__bind_stored_event);
#undef T

struct events_read_args {
    struct hf_str table;
    struct hf_event_stream_key stream;
    struct hf_events_read_options o;
    struct hf_events_all_options all;
    struct hf_str id;
    uint32_t depth_max;
};

#define T events_read_args
ARGUMENTS(events_read, TEXT("table", table), TEXT("domain", stream.domain, REQUIRED),
          TEXT("id", stream.id), U64("from", o.from), U64("to", o.to), I64("from_us", o.from_us),
          I64("until_us", o.until_us), BOOL("backward", o.backward), U32("limit", o.limit, LISTED),
          BOOL("no_payload", o.no_payload));
ARGUMENTS(events_all, TEXT("table", table), TEXT("after", all.after), I64("from_us", all.from_us),
          TEXT("until", all.until), TEXT("domain", all.domain), TEXT("type", all.type),
          U32("limit", all.limit, LISTED), BOOL("archived", all.archived),
          BOOL("no_payload", all.no_payload), U32("settle_ms", all.settle_ms));
MEMBERS(events_id, TEXT("table", table), TEXT("id", id, REQUIRED));
ARGUMENTS_AS(events_get, events_id);
ARGUMENTS_AS(events_caused_by, events_id);
ARGUMENTS_AS(events_correlated, events_id);
ARGUMENTS(events_tree, TEXT("table", table), TEXT("id", id, REQUIRED), U32("depth_max", depth_max));
#undef T
#define T hf_events_page
RESULT(events_read, STRUCTS("events", events, hf__bind_stored_event), U64("next", next),
       U64("version", version));
#undef T

BIND_FUNCTION(events_read)
{
    struct events_read_args *args = args_in;
    struct hf_events *store;

    args->o.size = sizeof(args->o);
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_read(s, store, args->stream, &args->o, result_out);
}

BIND_FUNCTION(events_get)
{
    struct events_read_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_get(s, store, args->id, result_out);
}

struct events_list_result {
    const struct hf_stored_event *events;
    size_t events_len;
    struct hf_str next;
};

#define T events_list_result
RESULT(events_caused_by, STRUCTS("events", events, hf__bind_stored_event));
RESULT(events_correlated, STRUCTS("events", events, hf__bind_stored_event));
#undef T

BIND_FUNCTION(events_caused_by)
{
    struct events_list_result *result = result_out;
    struct events_read_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_caused_by(s, store, args->id, &result->events, &result->events_len);
}

BIND_FUNCTION(events_correlated)
{
    struct events_list_result *result = result_out;
    struct events_read_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_correlated(s, store, args->id, &result->events, &result->events_len);
}

/* A tree contains trees: its table refers to itself. */
static const struct bind_fields event_tree;
static const struct bind_field event_tree_list[] = {
    {.name = "event",
     .kind = BIND_STRUCT,
     .sub = &hf__bind_stored_event,
     .at = (uint16_t)offsetof(struct hf_event_tree, event)},
    {.name = "children",
     .kind = BIND_STRUCTS,
     .sub = &event_tree,
     .at = (uint16_t)offsetof(struct hf_event_tree, children),
     .count_at = (uint16_t)offsetof(struct hf_event_tree, children_len)}};
static const struct bind_fields event_tree = {event_tree_list, ARRAY_LEN(event_tree_list),
                                              sizeof(struct hf_event_tree)};
#define T hf_event_tree
RESULT_AS(events_tree, event_tree);
#undef T

BIND_FUNCTION(events_tree)
{
    struct events_read_args *args = args_in;
    struct hf_events *store;

    if (args->depth_max > TREE_DEPTH_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(TREE_DEPTH_MAX, args->depth_max),
                                   "events.tree: \"depth_max\" is at most %d", TREE_DEPTH_MAX);
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_tree(s, store, args->id, args->depth_max, result_out);
}

/* The events of a reader live until its next call: what they point to is copied. */
static struct hf_str copy_text(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

static struct hf_bytes copy_bytes(struct hf_scope *s, struct hf_bytes bytes)
{
    struct hf_str copy;

    if (!bytes.ptr)
        return bytes;
    copy = hf_scope_copy(s, hf_str_of((const char *)bytes.ptr, bytes.len));
    return hf_bytes_of(copy.ptr, copy.len);
}

static struct hf_stored_event copy_event(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_stored_event copy = *event;

    copy.id = copy_text(s, event->id);
    copy.position = copy_text(s, event->position);
    copy.stream.domain = copy_text(s, event->stream.domain);
    copy.stream.id = copy_text(s, event->stream.id);
    copy.type = copy_text(s, event->type);
    copy.payload = copy_bytes(s, event->payload);
    copy.content_type = copy_text(s, event->content_type);
    copy.meta = event->meta.ptr ? hf_item_copy(s, event->meta) : event->meta;
    copy.causation = copy_text(s, event->causation);
    copy.correlation = copy_text(s, event->correlation);
    copy.compensates = copy_text(s, event->compensates);
    copy.hash = copy_bytes(s, event->hash);
    copy.blob = copy_text(s, event->blob);
    return copy;
}

static enum hf_status read_page(struct hf_scope *s, struct hf_events_reader *reader,
                                struct events_list_result *result)
{
    const struct hf_stored_event *events;
    struct hf_stored_event *copies;
    size_t len;

    TRY(hf_events_reader_next(s, reader, &events, &len));
    copies = hf__scope_array(s, len + 1, sizeof(*copies));
    if (!copies)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        copies[i] = copy_event(s, &events[i]);
    result->events = copies;
    result->events_len = len;
    result->next = copy_text(s, hf_events_reader_position(reader));
    return hf_scope_built(s);
}

#define T events_list_result
RESULT(events_all, STRUCTS("events", events, hf__bind_stored_event), TEXT("next", next));
#undef T

BIND_FUNCTION(events_all)
{
    struct events_list_result *result = result_out;
    struct events_read_args *args = args_in;
    struct hf_events_reader *reader;
    struct hf_events *store;
    enum hf_status status;

    args->all.size = sizeof(args->all);
    if (!args->all.limit)
        args->all.limit = 100;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    TRY(hf_events_reader_open(s, store, &args->all, &reader));
    status = read_page(s, reader, result);
    hf_events_reader_close(reader);
    return status;
}

/* ---- streams -------------------------------------------------------------------------------- */

struct stream_row {
    struct hf_event_stream_key stream;
    struct hf_event_stream_info info;
};
struct events_streams_args {
    struct hf_str table, domain;
    uint32_t limit;
};
struct events_streams_result {
    struct stream_row *streams;
    size_t streams_len;
    bool whole;
};

#define T hf_event_stream_info
PART(stream_info, U64("version", version), U64("first", first), TEXT("position", position),
     BYTES("hash", hash), U32("max_age_s", max_age_s), U64("max_count", max_count),
     BOOL("archived", archived), BOOL("deleted", deleted));
RESULT_AS(events_stream, stream_info);
#undef T
#define T stream_row
PART(stream_row_part, TEXT("domain", stream.domain), TEXT("id", stream.id),
     FLAT(info, stream_info));
#undef T
#define T events_streams_args
ARGUMENTS(events_streams, TEXT("table", table), TEXT("domain", domain), U32("limit", limit));
#undef T
#define T events_streams_result
RESULT(events_streams, STRUCTS("streams", streams, stream_row_part), BOOL("whole", whole));
#undef T

/* What is found is kept in a scope of its own: that of the call is given back after each page. */
struct stream_finder {
    struct hf_scope *kept;
    struct stream_row *rows;
    size_t len, cap, limit;
    bool whole;
};

static struct stream_row copy_row(struct hf_scope *s, const struct stream_row *row)
{
    struct stream_row copy = *row;

    copy.stream.domain = copy_text(s, row->stream.domain);
    copy.stream.id = copy_text(s, row->stream.id);
    copy.info.position = copy_text(s, row->info.position);
    copy.info.hash = copy_bytes(s, row->info.hash);
    return copy;
}

static enum hf_status add_stream(struct hf_scope *s, struct hf_event_stream_key stream,
                                 const struct hf_event_stream_info *info, void *user)
{
    struct stream_finder *finder = user;
    struct stream_row row = {stream, *info};

    if (finder->len == finder->limit) {
        finder->whole = false;
        return HF_LIMIT; /* ends it, and is no failure */
    }
    if (hf__bind_grow(finder->kept, (void **)&finder->rows, finder->len, &finder->cap,
                      sizeof(row)) != HF_OK)
        return hf__fail_nomem(s);
    finder->rows[finder->len++] = copy_row(finder->kept, &row);
    return hf_scope_built(finder->kept) == HF_OK ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status find_streams(struct hf_scope *s, struct hf_events *store,
                                   struct stream_finder *finder,
                                   const struct events_streams_args *args,
                                   struct events_streams_result *result)
{
    enum hf_status status = hf_events_streams(s, store, args->domain, add_stream, finder);

    if (status == HF_LIMIT && !finder->whole)
        status = hf_scope_ok(s);
    TRY(status);
    result->whole = finder->whole;
    result->streams = hf__scope_array(s, finder->len + 1, sizeof(*result->streams));
    if (!result->streams)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < finder->len; i++)
        result->streams[result->streams_len++] = copy_row(s, &finder->rows[i]);
    return hf_scope_built(s);
}

BIND_FUNCTION(events_streams)
{
    struct events_streams_args *args = args_in;
    struct stream_finder finder = {.limit = args->limit ? args->limit : 1000, .whole = true};
    struct hf_events *store;
    enum hf_status status;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    finder.kept = hf_scope_new(hf__bind_env(bind));
    if (!finder.kept)
        return hf__fail_nomem(s);
    status = find_streams(s, store, &finder, args, result_out);
    hf_scope_free(finder.kept);
    return status;
}

struct events_stream_args {
    struct hf_str table;
    struct hf_event_stream_key stream;
    uint64_t before, max_count, version;
    uint32_t max_age_s;
    enum hf_expect expect;
};

#define T events_stream_args
#define STREAM_KEY                                                                                 \
    TEXT("table", table), TEXT("domain", stream.domain, REQUIRED), TEXT("id", stream.id)
ARGUMENTS(events_stream, STREAM_KEY);
ARGUMENTS(events_truncate, STREAM_KEY, U64("before", before, REQUIRED));
ARGUMENTS(events_limit_stream, STREAM_KEY, U32("max_age_s", max_age_s),
          U64("max_count", max_count));
ARGUMENTS(events_tombstone, STREAM_KEY, CHOICE("expect", expect, expectations),
          U64("version", version));
ARGUMENTS(events_archive, STREAM_KEY);
ARGUMENTS(events_unarchive, STREAM_KEY);
#undef T
NO_RESULT(events_truncate);
NO_RESULT(events_limit_stream);
NO_RESULT(events_tombstone);
NO_RESULT(events_archive);
NO_RESULT(events_unarchive);

BIND_FUNCTION(events_stream)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_stream_info(s, store, args->stream, result_out);
}

BIND_FUNCTION(events_truncate)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_truncate(s, store, args->stream, args->before);
}

BIND_FUNCTION(events_limit_stream)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_limit_stream(s, store, args->stream, args->max_age_s, args->max_count);
}

BIND_FUNCTION(events_tombstone)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_tombstone(s, store, args->stream, args->expect, args->version);
}

BIND_FUNCTION(events_archive)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_archive(s, store, args->stream);
}

BIND_FUNCTION(events_unarchive)
{
    struct events_stream_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_unarchive(s, store, args->stream);
}

/* ---- the chain ------------------------------------------------------------------------------ */

#define T events_streams_args
ARGUMENTS(events_verify, TEXT("table", table));
#undef T
#define T hf_events_verified
RESULT(events_verify, U64("streams", streams), U64("events", events),
       TEXT("bad_domain", bad.domain), TEXT("bad_id", bad.id), U64("bad_version", bad_version));
#undef T

BIND_FUNCTION(events_verify)
{
    struct events_streams_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_events_verify(s, store, NULL, NULL, result_out);
}
