/*
 * serving/calls.c: see calls.h.
 *
 * Whoever may call a server may do anything with its database, and nothing else with the machine
 * that it runs on. Methods are for programs, which may: some start relays to programs and other hosts,
 * read and write blobs in any directory, or hold what they open until the process ends. So of those
 * that "bind.methods" lists only these are offered, and operations of DynamoDB.
 *
 *  (1) What a method of the list reads and writes is in the database.
 *  (2) It ends with its call: no session, no thread and no option stays behind.
 *  (3) It sees the tables that there are, also when one was deleted, made anew or restored since the
 *      call before.
 *  (4) It lists at most SERVING_LIST_MAX of anything that can be listed in pages.
 */
#include "serving/calls.h"

#include "base/json.h"
#include "bind/serve.h"

enum { METHODS_MAX = 1000, METHOD_LEVELS = 64 };

static const char *const offered[] = {
    "bind.methods",
    "bind.version",
    "patterns.list",
    "lock.list",
    "lock.inspect",
    "lock.break",
    "counter.list",
    "counter.get",
    "counter.get_many",
    "counter.add",
    "counter.set",
    "counter.reset",
    "counter.delete",
    "kv.get",
    "kv.get_many",
    "kv.list",
    "kv.set",
    "kv.delete",
    "kv.clear",
    "set.get",
    "set.contains",
    "set.add",
    "set.remove",
    "once.get",
    "once.list",
    "once.mark_done",
    "once.clear",
    "limit.peek",
    "limit.take",
    "limit.refund",
    "limit.clear",
    "outbox.emit",
    "outbox.stats",
    "outbox.pending",
    "outbox.failed",
    "outbox.history",
    "outbox.get",
    "outbox.relays",
    "outbox.paused",
    "outbox.pause",
    "outbox.resume",
    "outbox.retry",
    "outbox.retry_all",
    "outbox.discard",
    "outbox.discard_all",
    "outbox.replay",
    "outbox.cleanup",
    "events.append",
    "events.read",
    "events.all",
    "events.get",
    "events.caused_by",
    "events.correlated",
    "events.tree",
    "events.stream",
    "events.streams",
    "events.truncate",
    "events.tombstone",
    "events.archive",
    "events.unarchive",
    "events.limit_stream",
    "events.verify",
    "events.subscription",
    "events.subscriptions",
    "events.rebuild",
    "events.forget",
    "events.parked",
    "events.replay",
    "events.discard",
    "records.put",
    "records.get",
    "records.mark",
    "records.reset",
    "records.delete",
    "records.list",
    "records.count",
    "records.retry_failed",
};

_Static_assert(ARRAY_LEN(offered) == SERVING_METHODS, "as calls.h says");

/* Names of operations have no point. */
static bool is_offered(struct hf_str method)
{
    if (!method.len || !memchr(method.ptr, '.', method.len))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(offered); i++) {
        if (hf_str_equal(method, hf_str_from(offered[i])))
            return true;
    }
    return false;
}

/* ---- the names ------------------------------------------------------------------------------ */

/* Of an object, the string that `member` is; absent when there is none. All of it is skipped. */
static bool read_member(struct json_cursor *json, const char *member, struct hf_str *found)
{
    struct json_string name, text;

    *found = (struct hf_str){0};
    if (hf__json_kind(json) != JSON_OBJECT)
        return false;
    for (bool more = hf__json_enter(json, '}'); more; more = hf__json_more(json, '}')) {
        if (!hf__json_name(json, &name))
            return false;
        if (!hf_str_equal(name.raw, hf_str_from(member)) || hf__json_kind(json) != JSON_STRING) {
            if (!hf__json_skip(json, METHOD_LEVELS))
                return false;
        } else {
            if (!hf__json_string(json, &text))
                return false;
            *found = text.raw;
        }
    }
    return hf__json_sound(json);
}

/* {"methods": [{"name": "lock.list", ...}, ...]} */
static size_t read_names(struct hf_scope *memory, struct hf_str text, const char **names)
{
    struct json_cursor json = {.at = text.ptr, .end = text.ptr + text.len};
    struct json_string name;
    struct hf_str method;
    size_t len = 0;

    if (hf__json_kind(&json) != JSON_OBJECT || !hf__json_enter(&json, '}') ||
        !hf__json_name(&json, &name) || hf__json_kind(&json) != JSON_ARRAY)
        return 0;
    for (bool more = hf__json_enter(&json, ']'); more; more = hf__json_more(&json, ']')) {
        if (!read_member(&json, "name", &method))
            return 0;
        if (method.len > 0 && len < METHODS_MAX && is_offered(method))
            names[len++] = hf_scope_copy(memory, method).ptr;
    }
    return len;
}

static enum hf_status learn_names(struct hf_scope *s, struct serving_calls *calls)
{
    const char **names = hf__scope_array(calls->memory, METHODS_MAX + 1, sizeof(*names));
    struct hf_str text;

    if (!names)
        return hf__fail_nomem(s);
    TRY(hf_bind_call(s, calls->bind, HF_STR("bind.methods"), HF_STR("{}"), &text));
    if (read_names(calls->memory, text, names) == 0 || hf__scope_alloc_failed(calls->memory))
        return hf__fail_nomem(s);
    calls->methods = names;
    return HF_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static enum hf_status call_method(struct hf_scope *s, void *user, struct hf_str method,
                                  struct hf_str json, struct hf_str *result)
{
    struct serving_calls *calls = user;

    if (!is_offered(method)) {
        *result =
            HF_STR("{\"code\":\"HF_DENIED\",\"message\":\"this method is for programs: it reaches "
                   "beyond the database, or outlives its call\",\"retryable\":false,"
                   "\"may_have_happened\":false}");
        return hf__fail(s, HF_DENIED, "method %.*s is for programs", HF_FMT(method));
    }
    return hf_bind_call(s, calls->bind, method, json, result);
}

enum hf_status hf__serving_calls_open(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_env *env, bool read_only,
                                      struct serving_calls *calls)
{
    struct hf_bind_options *options = HF_OPTIONS(hf_bind_options, .read_only = read_only);
    enum hf_status status;

    *calls = (struct serving_calls){.memory = hf_scope_new(env)};
    if (!calls->memory)
        return hf__fail_nomem(s);
    status = hf_bind_open(s, db, options, &calls->bind);
    if (status == HF_OK) {
        hf__bind_serve(calls->bind, SERVING_LIST_MAX);
        status = learn_names(s, calls);
    }
    if (status != HF_OK)
        hf__serving_calls_close(calls);
    return status;
}

void hf__serving_calls_offer(struct serving_calls *calls, struct server_options *options)
{
    options->methods = calls->methods;
    options->call = call_method;
    options->call_user = calls;
}

void hf__serving_calls_close(struct serving_calls *calls)
{
    hf_bind_close(calls->bind);
    hf_scope_free(calls->memory);
    *calls = (struct serving_calls){0};
}
