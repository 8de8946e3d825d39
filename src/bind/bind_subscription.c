/*
 * bind/bind_subscription.c: methods of what is stored about subscriptions of an event store.
 * Running one is a session: session_events.c.
 */
#include <holdfast/pages.h>
#include <holdfast/subscribe.h>

#include "bind/events.h"
#include "bind/texts.h"

#define T hf_subscription_info
PART(subscription_info, TEXT("name", name), TEXT("checkpoint", checkpoint), TEXT("owner", owner),
     U64("fence", fence), U64("handled", handled), I64("moved_us", moved_us),
     BOOL("rebuild", rebuild), U64("parked", parked), TEXT("failure", failure));
RESULT_AS(events_subscription, subscription_info);
#undef T

struct subscription_args {
    struct hf_str table, name, after;
    struct hf_str *positions;
    size_t positions_len;
    uint32_t limit;
};

#define T subscription_args
#define SUBSCRIPTION TEXT("table", table), TEXT("name", name, REQUIRED)
ARGUMENTS(events_subscriptions, TEXT("table", table));
ARGUMENTS(events_subscription, SUBSCRIPTION);
ARGUMENTS(events_rebuild, SUBSCRIPTION, TEXT("after", after));
ARGUMENTS(events_forget, SUBSCRIPTION);
ARGUMENTS(events_parked, SUBSCRIPTION, TEXT("after", after), U32("limit", limit, LISTED));
ARGUMENTS(events_replay, SUBSCRIPTION, TEXTS("positions", positions));
ARGUMENTS(events_discard, SUBSCRIPTION, TEXTS("positions", positions));
#undef T
NO_RESULT(events_rebuild);
NO_RESULT(events_forget);

#define T hf_parked
PART(parked_part, TEXT("position", position), TEXT("domain", stream.domain),
     TEXT("stream", stream.id), U64("version", version), TEXT("type", type),
     CHOICE("error", error, status_texts), TEXT("error_text", error_text),
     U32("attempts", attempts), I64("parked_us", parked_us), BOOL("replay", replay));
#undef T
#define T hf_parked_list
RESULT(events_parked, STRUCTS("events", events, parked_part), TEXT("next", next));
#undef T

struct subscription_done {
    uint64_t done;
};

#define T subscription_done
RESULT(events_replay, U64("done", done));
RESULT(events_discard, U64("done", done));
#undef T

BIND_FUNCTION(events_subscription)
{
    struct subscription_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_info(s, store, args->name, result_out);
}

BIND_FUNCTION(events_rebuild)
{
    struct subscription_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_rebuild(s, store, args->name, args->after);
}

BIND_FUNCTION(events_forget)
{
    struct subscription_args *args = args_in;
    struct hf_events *store;

    (void)result_out;
    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_forget(s, store, args->name);
}

BIND_FUNCTION(events_parked)
{
    struct subscription_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_parked(s, store, args->name, args->after, args->limit, result_out);
}

BIND_FUNCTION(events_replay)
{
    struct subscription_done *result = result_out;
    struct subscription_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_replay(s, store, args->name, args->positions, args->positions_len,
                                  &result->done);
}

BIND_FUNCTION(events_discard)
{
    struct subscription_done *result = result_out;
    struct subscription_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_subscription_discard(s, store, args->name, args->positions, args->positions_len,
                                   &result->done);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* There is no list of subscriptions: their items, pk "q.NAME" and sk "q", are found by a Scan, as
 * the names of a key's parts are written (docs/events.md). */
struct subscriptions_result {
    struct hf_subscription_info *subscriptions;
    size_t subscriptions_len, cap;
};

#define T subscriptions_result
RESULT(events_subscriptions, STRUCTS("subscriptions", subscriptions, subscription_info));
#undef T

/* A name as it stands in a key: "%2E" is a point and "%25" is '%'. */
static struct hf_str name_of_key(struct hf_scope *s, struct hf_str key)
{
    char *text = hf_scope_alloc(s, key.len + 1);
    size_t len = 0;

    for (size_t i = 0; text && i < key.len; i++) {
        if (key.ptr[i] == '%' && i + 2 < key.len && hex_digit(key.ptr[i + 1]) >= 0 &&
            hex_digit(key.ptr[i + 2]) >= 0) {
            text[len++] = (char)(hex_digit(key.ptr[i + 1]) * 16 + hex_digit(key.ptr[i + 2]));
            i += 2;
        } else {
            text[len++] = key.ptr[i];
        }
    }
    return hf_str_of(text, len);
}

static enum hf_status add_subscription(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str name, struct subscriptions_result *result)
{
    enum hf_status status;

    TRY(hf__bind_grow(s, (void **)&result->subscriptions, result->subscriptions_len, &result->cap,
                      sizeof(*result->subscriptions)));
    status =
        hf_subscription_info(s, store, name, &result->subscriptions[result->subscriptions_len]);
    if (status == HF_NOT_FOUND) /* forgotten meanwhile */
        return hf_scope_ok(s);
    TRY(status);
    result->subscriptions_len++;
    return HF_OK;
}

static enum hf_status list_subscriptions(struct hf_scope *s, struct hf_events *store,
                                         struct hf_pages *pages,
                                         struct subscriptions_result *result)
{
    struct hf_str key, name;
    struct hf_item item;

    for (;;) {
        TRY(hf_pages_next_item(s, pages, &item));
        if (!item.ptr)
            return HF_OK;
        key = hf_value_str(hf_item_get(item, HF_STR("pk")));
        if (!str_after(key, HF_STR("q."), &name))
            continue;
        name = name_of_key(s, name);
        TRY(hf_scope_built(s));
        TRY(add_subscription(s, store, name, result));
    }
}

BIND_FUNCTION(events_subscriptions)
{
    struct subscription_args *args = args_in;
    struct hf_scan scan = {.table = args->table.ptr ? args->table : HF_STR("events"),
                           .filter = HF_STR("begins_with(pk, :q) AND sk = :s"),
                           .projection = HF_STR("pk"),
                           .values = HF_ITEM(s, HF_S(":q", HF_STR("q.")), HF_S(":s", HF_STR("q"))),
                           .consistent = HF_YES};
    struct hf_events *store;
    struct hf_pages *pages;
    enum hf_status status;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    TRY(hf_pages_scan(s, hf__bind_db(bind), &scan, NULL, &pages));
    status = list_subscriptions(s, store, pages, result_out);
    hf_pages_free(pages);
    return status;
}
