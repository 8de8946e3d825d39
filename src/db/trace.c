/*
 * db/trace.c: a database around a database that tells of every call.
 *
 *  (1) Nothing that is reported comes from inside an item, a key, an expression or an error's
 *      message: what is not in struct hf_trace_call cannot be reported.
 *  (2) `after` is called once for every `before`, on the same thread, with the same number.
 *  (3) The call's error is the scope's when it returns, whatever was reported.
 *
 * The line in the log:
 *
 *     call=7 operation=PutItem table=orders status=HF_OK us=180 sent=1 returned=0 read=0 write=1
 *
 * and behind it, after a failure that may have been done, "maybe=done".
 */
#include <holdfast/trace.h>

#include <stdatomic.h>

#include "db/call_info.h"

struct trace {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    struct hf_trace_options options;
    _Atomic uint64_t calls;
};

static void log_line(const struct trace *trace, const struct hf_trace_call *c)
{
    hf__env_log(&trace->env, trace->options.log,
                "call=%llu operation=%.*s table=%.*s status=%s us=%lld sent=%zu returned=%zu "
                "read=%g write=%g%s",
                (unsigned long long)c->number, HF_FMT(c->operation), HF_FMT(c->table),
                hf_status_name(c->status), (long long)c->duration_us, c->items_sent,
                c->items_returned, c->read_units, c->write_units,
                c->may_have_happened ? " maybe=done" : "");
}

/* What the answer adds. */
static void trace_fill(struct hf_trace_call *c, const struct hf_scope *s, enum hf_status status,
                       const void *request, const void *response)
{
    struct call_units units;

    c->status = status;
    if (status != HF_OK) {
        c->may_retry = hf_scope_error(s)->may_retry;
        c->may_have_happened = hf_scope_error(s)->may_have_happened;
        return;
    }
    units = hf__db_call_units(c->op, request, response);
    c->items_returned = hf__db_call_returned(c->op, response);
    c->read_units = units.read;
    c->write_units = units.write;
}

static enum hf_status trace_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct trace *trace = (struct trace *)(void *)db;
    const struct hf_trace_options *o = &trace->options;
    struct hf_trace_call c = {.number = atomic_fetch_add_explicit(&trace->calls, 1,
                                                                  memory_order_relaxed) +
                                        1,
                              .op = op,
                              .operation = hf__op(op)->name,
                              .table = hf__db_call_table(op, request),
                              .items_sent = hf__db_call_sent(op, request)};
    enum hf_status status;
    int64_t start_us;

    if (o->before)
        o->before(&c, o->user);
    start_us = hf__env_elapsed_us(&trace->env);
    status = trace->inner->calls->call(s, trace->inner, op, request, response);
    c.duration_us = hf__env_elapsed_us(&trace->env) - start_us;
    trace_fill(&c, s, status, request, response);
    if (o->log)
        log_line(trace, &c);
    if (o->after)
        o->after(&c, o->user);
    return status;
}

static enum hf_status trace_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct trace *trace = (struct trace *)(void *)db;

    return hf__db_sync(s, trace->inner, ticket);
}

static void trace_close(struct hf_db *db)
{
    struct trace *trace = (struct trace *)(void *)db;
    struct hf_env env = trace->env;

    hf_db_close(trace->inner);
    hf__env_free(&env, trace, sizeof(*trace));
}

static enum hf_status trace_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                     bool *supported)
{
    struct trace *trace = (struct trace *)(void *)db;

    return hf_db_supports(s, trace->inner, feature, supported);
}

static enum hf_status trace_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct trace *)(void *)db)->inner, blobs);
}

static enum hf_status trace_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                      struct hf_str *full)
{
    return hf__db_full_name(s, ((struct trace *)(void *)db)->inner, table, full);
}

static struct hf_str trace_opener(struct hf_db *db)
{
    return hf_db_opener(((struct trace *)(void *)db)->inner);
}

static const struct db_calls trace_calls = {.call = trace_call,
                                            .sync = trace_sync,
                                            .close = trace_close,
                                            .supports = trace_supports,
                                            .blobs = trace_blobs,
                                            .full_name = trace_full_name,
                                            .opener = trace_opener};

static bool is_level(enum hf_log_level level)
{
    return level == HF_LOG_ERROR || level == HF_LOG_WARNING || level == HF_LOG_INFO ||
           level == HF_LOG_DEBUG;
}

enum hf_status hf_trace_open(struct hf_scope *s, struct hf_db *inner,
                             const struct hf_trace_options *options, struct hf_db **db)
{
    struct hf_trace_options o = {0};
    struct hf_env env;
    struct trace *trace;

    *db = NULL;
    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_trace_open() was called without a database (NULL)");
    if (o.log && !is_level(o.log))
        return hf__fail(s, HF_INVALID, "unknown log level %d", (int)o.log);
    env = o.env ? hf__env_fill(o.env) : *hf__scope_env(s);
    trace = hf__env_alloc(&env, sizeof(*trace));
    if (!trace)
        return hf__fail_nomem(s);
    memset(trace, 0, sizeof(*trace));
    trace->db.calls = &trace_calls;
    trace->env = env;
    trace->inner = inner;
    trace->options = o;
    trace->options.env = NULL;
    *db = &trace->db;
    return HF_OK;
}
