/*
 * server/admin/checker.c: the thread of a check, its state, and the requests for both.
 */
#include "server/admin/checker.h"

#include <holdfast/engine.h>

#include "base/assert_held.h"
#include "server/admin/admin.h"
#include "server/private.h"
#include "wire/wire.h"

/* ---- the thread ----------------------------------------------------------------------------- */

static enum hf_status on_progress(const struct hf_check_progress *progress, void *user)
{
    struct checker *checker = user;

    pthread_mutex_lock(&checker->lock);
    checker->state.keys = (int64_t)progress->keys;
    checker->state.bytes = (int64_t)progress->bytes;
    checker->state.about_bytes = (int64_t)progress->about_bytes;
    pthread_mutex_unlock(&checker->lock);
    return HF_OK;
}

static enum checks_state outcome_of(enum hf_status status)
{
    if (status == HF_OK)
        return CHECKS_SOUND;
    return status == HF_CORRUPT ? CHECKS_DAMAGED : CHECKS_FAILED;
}

static void note_problem(struct checker *checker, struct hf_str message)
{
    size_t len = message.len;

    ASSERT_HELD(&checker->lock);
    if (len > CHECKER_PROBLEM_MAX) { /* and no half of a character */
        len = CHECKER_PROBLEM_MAX;
        while (len > 0 && ((unsigned char)message.ptr[len] & 0xc0) == 0x80)
            len--;
    }
    assert(len <= sizeof(checker->problem));
    memcpy(checker->problem, message.ptr, len);
    checker->state.problem = hf_str_of(checker->problem, len);
}

static void note_outcome(struct checker *checker, enum hf_status status,
                         const struct hf_check_report *report)
{
    struct wire_check *state = &checker->state;

    pthread_mutex_lock(&checker->lock);
    assert(state->state == CHECKS_RUNNING);
    state->state = outcome_of(status);
    state->tables = (int64_t)report->tables;
    state->items = (int64_t)report->items;
    state->index_entries = (int64_t)report->index_entries;
    state->stream_records = (int64_t)report->stream_records;
    state->expiry_entries = (int64_t)report->expiry_entries;
    state->tokens = (int64_t)report->tokens;
    state->backups = (int64_t)report->backups;
    state->backup_items = (int64_t)report->backup_items;
    state->problems = (int64_t)report->problems;
    if (status != HF_OK)
        note_problem(checker, hf_str_from(hf_scope_error_text(checker->scope)));
    pthread_mutex_unlock(&checker->lock);
}

static void *run_check(void *user)
{
    struct checker *checker = user;
    const struct hf_check_options options = {.size = sizeof(options),
                                             .on_progress = on_progress,
                                             .user = checker};
    struct hf_check_report report = {0};
    enum hf_status status =
        hf_engine_check_with(checker->scope, checker->engine, &options, &report);

    if (status == HF_OK)
        hf__env_log(&checker->env, HF_LOG_INFO, "check: no problems found in %llu items",
                    (unsigned long long)report.items);
    else
        hf__env_log(&checker->env, status == HF_CANCELED ? HF_LOG_INFO : HF_LOG_ERROR, "check: %s",
                    hf_scope_error_text(checker->scope));
    note_outcome(checker, status, &report);
    return NULL;
}

/* Nothing runs; the thread that did is at its end. */
static bool start_check(struct checker *checker)
{
    int64_t number = checker->state.number;

    ASSERT_HELD(&checker->lock);
    assert(checker->state.state != CHECKS_RUNNING && !checker->stops);
    if (checker->started)
        pthread_join(checker->thread, NULL);
    hf_scope_reset(checker->scope);
    checker->started = pthread_create(&checker->thread, NULL, run_check, checker) == 0;
    if (checker->started)
        checker->state = (struct wire_check){.state = CHECKS_RUNNING, .number = number + 1};
    return checker->started;
}

/* ---- opening and closing -------------------------------------------------------------------- */

enum hf_status hf__checker_open(struct hf_scope *s, struct checker *checker,
                                const struct hf_env *env, struct hf_db *engine)
{
    checker->scope = hf_scope_new(env);
    if (!checker->scope)
        return hf__fail_nomem(s);
    checker->env = *env;
    checker->engine = engine;
    checker->state.state = CHECKS_NONE;
    pthread_mutex_init(&checker->lock, NULL);
    return HF_OK;
}

void hf__checker_stop(struct checker *checker)
{
    bool started;

    pthread_mutex_lock(&checker->lock);
    started = checker->started;
    checker->started = false;
    checker->stops = true;
    pthread_mutex_unlock(&checker->lock);
    hf_scope_cancel(checker->scope);
    if (started)
        pthread_join(checker->thread, NULL);
}

void hf__checker_close(struct checker *checker)
{
    if (!checker->scope)
        return;
    hf__checker_stop(checker);
    pthread_mutex_destroy(&checker->lock);
    hf_scope_free(checker->scope);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A copy of the state, for as long as the request's scope. */
static struct wire_check state_of(struct checker *checker, struct hf_scope *s)
{
    struct wire_check state = checker->state;

    ASSERT_HELD(&checker->lock);
    if (state.problem.ptr)
        state.problem = hf_scope_copy(s, state.problem);
    return state;
}

static void answer_state(struct answer *answer, int status, const struct wire_check *state)
{
    struct hf__buf *out = hf__answer_begin(answer);

    hf__wire_write(out, &hf__wire_check, state);
    hf__buf_put_byte(out, '\n');
    hf__answer_end(answer, status);
}

void hf__admin_check_get(struct answer *answer, const struct admin_request *request)
{
    struct checker *checker = &answer->context->server->checker;
    struct wire_check state;

    (void)request;
    pthread_mutex_lock(&checker->lock);
    state = state_of(checker, answer->context->scope);
    pthread_mutex_unlock(&checker->lock);
    answer_state(answer, 200, &state);
}

void hf__admin_check_post(struct answer *answer, const struct admin_request *request)
{
    struct checker *checker = &answer->context->server->checker;
    bool stops, running, started = false;
    struct wire_check state;

    (void)request;
    pthread_mutex_lock(&checker->lock);
    stops = checker->stops;
    running = checker->state.state == CHECKS_RUNNING;
    if (!running && !stops)
        started = start_check(checker);
    state = state_of(checker, answer->context->scope);
    pthread_mutex_unlock(&checker->lock);
    if (running || started)
        answer_state(answer, running ? 200 : 202, &state);
    else
        hf__admin_error(answer, 503,
                        stops ? HF_STR("the server is stopping")
                              : HF_STR("cannot start a thread for the check; try again later"));
}
