/*
 * bind/session_run.c: processors of records and consumers of streams as sessions. They run on the
 * thread of their caller, so each gets a thread of its own, which ends with a notice.
 */
#include <holdfast/streams.h>

#include "bind/records.h"
#include "bind/session.h"

/* ---- a run on its own thread ---------------------------------------------------------------- */

struct bound_run {
    struct hf_env env;
    struct bind_session *session;
    struct hf_scope *scope; /* of the run; canceled to end it */
    pthread_t thread;
    bool started;
    struct hf_processor *processor; /* one of these two */
    struct hf_consumer *consumer;
};

static enum hf_status run_processor(struct bound_run *run);
static enum hf_status run_consumer(struct bound_run *run);

static void *run_thread(void *user)
{
    struct bound_run *run = user;
    enum hf_status status = run->processor ? run_processor(run) : run_consumer(run);

    hf__session_notice_error(run->session, "ended",
                             status == HF_OK ? NULL : hf_scope_error(run->scope));
    return NULL;
}

static void close_run(void *object)
{
    struct bound_run *run = object;
    struct hf_env env = run->env;

    if (run->started) {
        hf_scope_cancel(run->scope);
        pthread_join(run->thread, NULL);
    }
    hf_processor_close(run->processor);
    hf_consumer_close(run->consumer);
    hf_scope_free(run->scope);
    hf__env_free(&env, run, sizeof(*run));
}

/* A run has no end but to be canceled, so what was handed over ends before that. */
static enum hf_status stop_run(struct hf_scope *s, void *object)
{
    enum hf_status status = hf__session_drain(s, ((struct bound_run *)object)->session);

    if (status == HF_TIMEOUT)
        return hf_scope_fail(s, HF_TIMEOUT, "deliveries had to be canceled");
    return status;
}

static const struct session_kind records_session = {.name = "processor",
                                                    .close = close_run,
                                                    .stop = stop_run};
static const struct session_kind stream_session = {.name = "consumer",
                                                   .close = close_run,
                                                   .stop = stop_run};

static enum hf_status run_new(struct hf_scope *s, struct hf_bind *bind,
                              const struct session_kind *kind, struct bind_session **session,
                              struct bound_run **run)
{
    TRY(hf__session_new(s, bind, kind, session));
    *run = hf__env_zalloc(hf__bind_env(bind), sizeof(**run));
    if (*run) {
        (*run)->env = *hf__bind_env(bind);
        (*run)->session = *session;
        (*run)->scope = hf_scope_new(hf__bind_env(bind));
    }
    if (*run && (*run)->scope)
        return HF_OK;
    if (*run)
        hf__env_free(hf__bind_env(bind), *run, sizeof(**run));
    hf__session_drop(*session);
    return hf__fail_nomem(s);
}

/* Start it if it could be opened, or throw it away. */
static enum hf_status run_begin(struct hf_scope *s, enum hf_status status, struct bound_run *run,
                                struct session_result *result)
{
    struct bind_session *session = run->session;

    if (status == HF_OK) {
        run->started = pthread_create(&run->thread, NULL, run_thread, run) == 0;
        if (!run->started)
            status = hf_scope_fail(s, HF_LIMIT, "the system has no more threads");
    }
    if (status != HF_OK) {
        close_run(run);
        hf__session_drop(session);
        return status;
    }
    hf__session_begin(session, run, &result->session);
    return HF_OK;
}

/* What the handler gets, and what it is about; absent text: out of memory. */
static enum hf_status hand_over(struct hf_scope *s, struct bind_session *session,
                                const struct hf__buf *json, const void *about)
{
    struct hf_str text = hf_str_of((const char *)json->ptr, json->len);

    return hf__session_handle(s, session, json->failed ? (struct hf_str){0} : text, about);
}

#define T session_result
RESULT(records_process, U64("session", session));
RESULT(streams_consume, U64("session", session));
#undef T

/* ---- records -------------------------------------------------------------------------------- */

static enum hf_status handle_record(struct hf_scope *s, const struct hf_record_info *record,
                                    void *user)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("\"kind\":\"record\",\"record\":"));
    hf__bind_write(&buf, &hf__bind_record, record);
    return hand_over(s, user, &buf, record);
}

static enum hf_status run_processor(struct bound_run *run)
{
    return hf_processor_run(run->scope, run->processor, handle_record, run->session, NULL);
}

struct process_args {
    struct hf_str table;
    struct hf_processor_options o;
};

#define T process_args
ARGUMENTS(records_process, TEXT("table", table), U32("workers", o.workers),
          U32("max_retries", o.max_retries), U32("backoff_ms", o.backoff_ms),
          U32("backoff_max_ms", o.backoff_max_ms), BOOL("no_retries", o.no_retries),
          U32("max_attempts", o.max_attempts), U32("lease_ms", o.lease_ms),
          U32("heartbeat_ms", o.heartbeat_ms), U32("stuck_ms", o.stuck_ms),
          U32("timeout_ms", o.timeout_ms), U32("poll_ms", o.poll_ms), U64("limit", o.limit),
          U64("max_failures", o.max_failures), TEXT("owner", o.owner),
          BOOL("account_order", o.account_order), BOOL("failed_blocks", o.failed_blocks),
          BOOL("leave_claimed", o.leave_claimed), BOOL("forever", o.forever),
          U32("adopt_ms", o.adopt_ms));
#undef T

BIND_FUNCTION(records_process)
{
    struct process_args *args = args_in;
    struct bind_session *session;
    struct hf_records *records;
    struct bound_run *run;

    TRY(hf__bind_records(s, bind, args->table, true, &records));
    TRY(run_new(s, bind, &records_session, &session, &run));
    args->o.size = sizeof(args->o);
    if (!args->o.owner.ptr)
        args->o.owner = hf__bind_owner(bind);
    return run_begin(s, hf_processor_open(s, records, &args->o, &run->processor), run, result_out);
}

#define T session_args
ARGUMENTS(records_progress, U64("session", session, REQUIRED));
#undef T
#define T hf_processor_progress
RESULT(records_progress, U64("begun", metrics.begun), U64("completed", metrics.completed),
       U64("retried", metrics.retried), U64("failed", metrics.failed), U64("lost", metrics.lost),
       U64("released", metrics.released), U64("unsure", metrics.unsure),
       U64("running", metrics.running), U64("exhausted", metrics.exhausted),
       U64("taken_over", metrics.taken_over), U64("refused", metrics.refused),
       U64("trouble", metrics.trouble), U64("adopted", metrics.adopted), U64("total", total),
       DOUBLE("rate", rate), I64("eta_ms", eta_ms), I64("elapsed_ms", elapsed_ms));
#undef T

BIND_FUNCTION(records_progress)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    TRY(hf__session_find(s, bind, args->session, &records_session, &session, &object));
    hf_processor_progress(((struct bound_run *)object)->processor, result_out);
    hf__session_give(session);
    return HF_OK;
}

struct complete_args {
    uint64_t token;
};

#define T complete_args
ARGUMENTS(records_complete_actions, U64("token", token, REQUIRED));
#undef T
#define T bind_actions
RESULT_AS(records_complete_actions, hf__bind_actions_part);
#undef T

static enum hf_status complete_record(struct hf_scope *s, const void *about, void *user)
{
    return hf_record_complete_tx(s, about, user);
}

BIND_FUNCTION(records_complete_actions)
{
    const struct complete_args *args = args_in;
    struct hf_transact_write action = {0};

    TRY(hf__session_about(s, bind, args->token, &records_session, complete_record, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

/* ---- streams -------------------------------------------------------------------------------- */

static const char *const change_kinds[] = {NULL, "insert", "modify", "remove", NULL};

#define T hf_change
PART(change_part, CHOICE("change", kind, change_kinds), ITEM("key", key),
     ITEM("old_image", old_image), ITEM("new_image", new_image), TEXT("sequence", sequence),
     TEXT("shard", shard), TEXT("id", id), I64("time_us", time_us), BOOL("expired", expired));
#undef T

static enum hf_status handle_changes(struct hf_scope *s, const struct hf_change *changes,
                                     size_t len, void *user)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("\"kind\":\"changes\",\"changes\":["));
    for (size_t i = 0; i < len; i++) {
        if (i)
            hf__buf_put_byte(&buf, ',');
        hf__bind_write(&buf, &change_part, &changes[i]);
    }
    hf__buf_put_byte(&buf, ']');
    return hand_over(s, user, &buf, NULL);
}

static enum hf_status run_consumer(struct bound_run *run)
{
    return hf_consumer_run(run->scope, run->consumer, handle_changes, run->session);
}

static void notice_gap(struct hf_str shard, struct hf_str sequence, void *user)
{
    (void)shard;
    (void)sequence;
    hf__session_notice(user, "gap", (struct hf_str){0});
}

static const char *const starts[] = {NULL, "first", "end", "after", "time", NULL};

struct streams_args {
    struct hf_str table;
    struct hf_consumer_options o;
};

#define T streams_args
ARGUMENTS(streams_consume, TEXT("table", table, REQUIRED), TEXT("name", o.name),
          TEXT("positions", o.table), TEXT("owner", o.owner), CHOICE("start", o.start, starts),
          TEXT("shard", o.shard), TEXT("sequence", o.sequence), I64("from_us", o.from_us),
          U32("batch", o.batch), U32("poll_ms", o.poll_ms), U32("workers", o.workers),
          U32("lease_ms", o.lease_ms), U32("checkpoint_ms", o.checkpoint_ms),
          U32("max_attempts", o.max_attempts), U32("backoff_ms", o.backoff_ms),
          TEXT("partition", o.partition), BOOL("until_end", o.until_end),
          U32("stuck_ms", o.stuck_ms));
#undef T

BIND_FUNCTION(streams_consume)
{
    struct streams_args *args = args_in;
    struct bind_session *session;
    struct bound_run *run;

    TRY(run_new(s, bind, &stream_session, &session, &run));
    args->o.size = sizeof(args->o);
    args->o.on_gap = notice_gap;
    args->o.user = session;
    if (!args->o.owner.ptr)
        args->o.owner = hf__bind_owner(bind);
    return run_begin(s,
                     hf_consumer_open(s, hf__bind_db(bind), args->table, &args->o, &run->consumer),
                     run, result_out);
}

#define T session_args
ARGUMENTS(streams_metrics, U64("session", session, REQUIRED));
#undef T
#define T hf_consumer_metrics
RESULT(streams_metrics, U64("changes", changes), U64("batches", batches), U64("failures", failures),
       U64("gaps", gaps), U64("calls", calls), U32("shards", shards), I64("lag_ms", lag_ms),
       U64("stuck_total", stuck_total));
#undef T

BIND_FUNCTION(streams_metrics)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    TRY(hf__session_find(s, bind, args->session, &stream_session, &session, &object));
    hf_consumer_metrics(((struct bound_run *)object)->consumer, result_out);
    hf__session_give(session);
    return HF_OK;
}
