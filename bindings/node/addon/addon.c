/*
 * addon.c: the engine and all patterns for node, as one Node-API module of six functions.
 *
 *     open(url, options)            -> promise of a handle; options are JSON
 *     call(handle, method, json, lane, number, timeout) -> promise of the result; rejected with the
 *                                   error, as JSON; the timeout is in milliseconds, 0 for none
 *     now(handle, method, json)     -> the result, if the call can be done without waiting; throws the
 *                                   error, as JSON; undefined: nothing was done, so use call()
 *     cancel(number)                end the call with that number soon; is there one?
 *     close(handle)                 -> promise
 *     teardown()                    cancel everything, wait for it, close what is open
 *
 * What methods there are and what they take is said by <holdfast/bind.h>; what they look like in
 * JavaScript is the business of the scripts. Nothing here blocks the thread of the caller, except
 * teardown(), which is for the end of it. now() is hf_bind_try(): it waits neither for a disk nor for
 * a network, and saves the way to a thread and back, which takes ten times as long as a small call.
 *
 * A call is a job. It goes to a thread of a pool, which does it in a scope of the job's; then it
 * stands in `done`, and the thread of JavaScript, woken by a thread-safe function, resolves its
 * promise. There are two pools: calls that come to an end by themselves share a few threads, calls
 * that wait for something to happen ("lane" 1) have one each, and so have those that wait in the
 * background ("lane" 2), for which no event loop stays alive.
 *
 * What always holds:
 *
 *  (1) Each environment (the main thread, each worker) has a struct home, and nothing is shared
 *      between two of them.
 *  (2) Only the thread of JavaScript calls Node-API, except for napi_call_threadsafe_function().
 *  (3) A job in `jobs` may be canceled: its scope lives until it has been taken out of there.
 *  (4) The database of a handle is closed when `closing` is set and no job of it runs any more;
 *      a job that has not begun by then fails.
 *  (5) While there are jobs that are not in the background, the thread-safe function keeps the event loop alive, otherwise not.
 */
#define NAPI_VERSION 8
#include <node_api.h>

#include <holdfast/bind.h>
#include <holdfast/engine.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

enum {
    CALL_THREADS = 16,   /* for calls that come to an end by themselves */
    WAIT_THREADS = 1024, /* for those that wait, at most */
    SPARE_SCOPES = 32,   /* kept for the next calls */
    METHOD_MAX = 64,     /* bytes of a method of now(), */
    NOW_MAX = 64 * 1024  /* and of its arguments: what is longer takes its time */
};

enum job_kind { JOB_OPEN, JOB_CALL, JOB_CLOSE };

struct handle {
    struct home *home;
    struct hf_bind *bind; /* NULL: closed */
    pthread_cond_t quiet; /* no job runs */
    unsigned running;
    unsigned references; /* of the external value and of jobs */
    bool closing;
    struct handle *next, **at; /* in home->handles */
};

struct job {
    struct task task;
    struct home *home;
    struct handle *handle; /* of JOB_OPEN made when it succeeded */
    enum job_kind kind;
    bool canceled;
    bool failed;
    bool background;
    int64_t number;
    uint32_t timeout_ms;
    char *method; /* of JOB_OPEN the URL */
    size_t method_len;
    char *json;
    size_t json_len;
    struct hf_scope *scope;
    char *opened; /* what hf_bind_open_url() answered */
    struct hf_str answer;
    napi_deferred deferred;
    struct job *next, **at; /* in home->jobs */
    struct job *done;       /* in home->done */
};

struct home {
    napi_threadsafe_function wake;
    struct pool *calls, *waits;
    pthread_mutex_t mutex; /* guards all below, and all of handles */
    struct job *jobs;
    struct job *first_done, **last_done;
    struct handle *handles;
    struct hf_scope *spare[SPARE_SCOPES];
    unsigned spare_len;
    bool down;
    /* of the thread of JavaScript: */
    unsigned pending; /* jobs whose promise is pending */
    char now[NOW_MAX];
};

static const char no_memory[] =
    "{\"code\":\"HF_NOMEM\",\"message\":\"out of memory\",\"retryable\":true,"
    "\"may_have_happened\":false}";
static const char is_closed[] =
    "{\"code\":\"HF_STOPPED\",\"message\":\"the database is closed\",\"retryable\":false,"
    "\"may_have_happened\":false}";
static const char was_canceled[] =
    "{\"code\":\"HF_CANCELED\",\"message\":\"canceled\",\"retryable\":false,"
    "\"may_have_happened\":false}";

/* ---- handles -------------------------------------------------------------------------------- */

/* Call with the mutex held. */
static struct handle *handle_new(struct home *home, struct hf_bind *bind)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return NULL;
    handle->home = home;
    handle->bind = bind;
    handle->references = 1;
    pthread_cond_init(&handle->quiet, NULL);
    handle->next = home->handles;
    handle->at = &home->handles;
    if (handle->next)
        handle->next->at = &handle->next;
    home->handles = handle;
    return handle;
}

/* Begin nothing more on it, and cancel what runs. Call with the mutex held. */
static void handle_cancel(struct handle *handle)
{
    handle->closing = true;
    for (struct job *job = handle->home->jobs; job; job = job->next)
        if (job->handle == handle && job->kind == JOB_CALL && job->scope)
            hf_scope_cancel(job->scope);
}

/* Close its database, once, when nothing runs on it any more (4). */
static void handle_close(struct handle *handle)
{
    struct home *home = handle->home;
    struct hf_bind *bind;

    pthread_mutex_lock(&home->mutex);
    handle_cancel(handle);
    while (handle->running > 0)
        pthread_cond_wait(&handle->quiet, &home->mutex);
    bind = handle->bind;
    handle->bind = NULL;
    pthread_mutex_unlock(&home->mutex);
    hf_bind_close(bind);
}

static void handle_unref(struct handle *handle)
{
    struct home *home = handle->home;
    bool last;

    pthread_mutex_lock(&home->mutex);
    last = --handle->references == 0;
    pthread_mutex_unlock(&home->mutex);
    if (!last)
        return;
    handle_close(handle);
    pthread_mutex_lock(&home->mutex);
    *handle->at = handle->next;
    if (handle->next)
        handle->next->at = handle->at;
    pthread_mutex_unlock(&home->mutex);
    pthread_cond_destroy(&handle->quiet);
    free(handle);
}

/* ---- jobs, on the threads of a pool --------------------------------------------------------- */

static void job_fail(struct job *job, const char *answer)
{
    job->failed = true;
    job->answer = hf_str_from(answer);
}

static void run_open(struct job *job)
{
    struct home *home = job->home;
    struct hf_bind *bind = NULL;
    size_t len = 0;
    int status = hf_bind_open_url(job->method, job->method_len, job->json, job->json_len, &bind,
                                  &job->opened, &len);

    if (status != HF_OK) {
        job->failed = true;
        job->answer = job->opened ? hf_str_of(job->opened, len) : hf_str_from(no_memory);
        return;
    }
    pthread_mutex_lock(&home->mutex);
    job->handle = handle_new(home, bind);
    pthread_mutex_unlock(&home->mutex);
    if (!job->handle) {
        hf_bind_close(bind);
        job_fail(job, no_memory);
    }
}

/* A scope for a call on the handle, which is not closed before call_end(). Otherwise *refused says why
 * there is none. Call with the mutex held. */
static struct hf_scope *call_begin(struct handle *handle, const char **refused)
{
    struct home *home = handle->home;
    struct hf_scope *s = NULL;

    if (handle->closing)
        *refused = is_closed;
    else if (home->spare_len > 0)
        s = home->spare[--home->spare_len];
    else if ((s = hf_scope_new(NULL)) == NULL)
        *refused = no_memory;
    if (s)
        handle->running++;
    return s;
}

/* Call with the mutex held. */
static void call_end(struct handle *handle)
{
    assert(handle->running > 0);
    if (--handle->running == 0)
        pthread_cond_broadcast(&handle->quiet);
}

static void run_call(struct job *job)
{
    struct home *home = job->home;
    struct handle *handle = job->handle;
    const char *refused = NULL;

    pthread_mutex_lock(&home->mutex);
    if (job->canceled)
        refused = was_canceled;
    else
        job->scope = call_begin(handle, &refused);
    pthread_mutex_unlock(&home->mutex);
    if (refused) {
        job_fail(job, refused);
        return;
    }

    hf_scope_timeout_ms(job->scope, job->timeout_ms);
    job->failed = hf_bind_call(job->scope, handle->bind, hf_str_of(job->method, job->method_len),
                               hf_str_of(job->json, job->json_len), &job->answer) != HF_OK;
    if (!job->answer.ptr)
        job_fail(job, no_memory);

    pthread_mutex_lock(&home->mutex);
    call_end(handle);
    pthread_mutex_unlock(&home->mutex);
}

/* Take it out of the jobs. Call with the mutex held. */
static void job_unlink(struct job *job)
{
    *job->at = job->next;
    if (job->next)
        job->next->at = job->at;
}

static void job_run(struct task *task)
{
    struct job *job = (struct job *)task;
    struct home *home = job->home;
    bool first;

    if (job->kind == JOB_OPEN)
        run_open(job);
    else if (job->kind == JOB_CALL)
        run_call(job);
    else
        handle_close(job->handle);

    pthread_mutex_lock(&home->mutex);
    job_unlink(job); /* (3) */
    job->done = NULL;
    first = home->first_done == NULL;
    *home->last_done = job;
    home->last_done = &job->done;
    if (first && !home->down)
        (void)napi_call_threadsafe_function(home->wake, NULL, napi_tsfn_nonblocking);
    pthread_mutex_unlock(&home->mutex);
}

static void scope_give(struct home *home, struct hf_scope *s)
{
    hf_scope_reset(s);
    pthread_mutex_lock(&home->mutex);
    if (home->spare_len < SPARE_SCOPES) {
        home->spare[home->spare_len++] = s;
        s = NULL;
    }
    pthread_mutex_unlock(&home->mutex);
    hf_scope_free(s);
}

/* Call on the thread of JavaScript, or when there is none any more. */
static void job_free(struct job *job)
{
    struct home *home = job->home;

    if (job->scope)
        scope_give(home, job->scope);
    if (job->handle)
        handle_unref(job->handle);
    hf_bind_free(job->opened);
    free(job->method);
    free(job->json);
    free(job);
}

/* ---- promises, on the thread of JavaScript -------------------------------------------------- */

static void handle_finalize(napi_env env, void *data, void *hint)
{
    (void)env, (void)hint;
    handle_unref(data);
}

static napi_value text_value(napi_env env, struct hf_str text)
{
    napi_value value = NULL;

    if (napi_create_string_utf8(env, text.ptr, text.len, &value) != napi_ok)
        (void)napi_create_string_utf8(env, no_memory, NAPI_AUTO_LENGTH, &value);
    return value;
}

static void job_resolve(napi_env env, struct job *job)
{
    napi_value value = NULL;

    if (job->failed) {
        (void)napi_reject_deferred(env, job->deferred, text_value(env, job->answer));
        return;
    }
    if (job->kind == JOB_OPEN) {
        struct handle *handle = job->handle;

        if (napi_create_external(env, handle, handle_finalize, NULL, &value) == napi_ok)
            job->handle = NULL; /* the reference is the value's now */
    } else if (job->kind == JOB_CALL) {
        value = text_value(env, job->answer);
    } else {
        (void)napi_get_undefined(env, &value);
    }
    (void)napi_resolve_deferred(env, job->deferred, value);
}

/* The jobs that have been done, in the order in which they were. */
static struct job *take_done(struct home *home)
{
    struct job *first;

    pthread_mutex_lock(&home->mutex);
    first = home->first_done;
    home->first_done = NULL;
    home->last_done = &home->first_done;
    pthread_mutex_unlock(&home->mutex);
    return first;
}

static void woken(napi_env env, napi_value function, void *context, void *data)
{
    struct home *home = context;
    struct job *job = take_done(home), *next;

    (void)function, (void)data;
    for (; job; job = next) {
        next = job->done;
        if (env) {
            napi_handle_scope scope;

            if (napi_open_handle_scope(env, &scope) == napi_ok) {
                job_resolve(env, job);
                (void)napi_close_handle_scope(env, scope);
            }
        }
        if (!job->background && --home->pending == 0 && env)
            (void)napi_unref_threadsafe_function(env, home->wake); /* (5) */
        job_free(job);
    }
}

/* ---- functions ------------------------------------------------------------------------------ */

static napi_value throw_error(napi_env env, const char *message)
{
    (void)napi_throw_error(env, NULL, message);
    return NULL;
}

/* A copy of a string, with a NUL behind it; NULL when it is no string, or there is no memory. */
static char *text_of(napi_env env, napi_value value, size_t *len)
{
    char *text;

    if (napi_get_value_string_utf8(env, value, NULL, 0, len) != napi_ok)
        return NULL;
    text = malloc(*len + 1);
    if (text)
        (void)napi_get_value_string_utf8(env, value, text, *len + 1, len);
    return text;
}

static napi_value job_begin(napi_env env, struct job *job, struct pool *pool)
{
    struct home *home = job->home;
    napi_value promise = NULL;

    if (home->down) {
        job_free(job);
        return throw_error(env, "holdfast: this thread is ending");
    }
    job->task.run = job_run;
    if (napi_create_promise(env, &job->deferred, &promise) != napi_ok) {
        job_free(job);
        return throw_error(env, "holdfast: out of memory");
    }
    pthread_mutex_lock(&home->mutex);
    job->next = home->jobs;
    job->at = &home->jobs;
    if (job->next)
        job->next->at = &job->next;
    home->jobs = job;
    pthread_mutex_unlock(&home->mutex);
    if (!job->background && home->pending++ == 0)
        (void)napi_ref_threadsafe_function(env, home->wake); /* (5) */
    if (!pool_submit(pool, &job->task)) {                    /* no thread */
        pthread_mutex_lock(&home->mutex);
        job_unlink(job);
        pthread_mutex_unlock(&home->mutex);
        if (!job->background && --home->pending == 0)
            (void)napi_unref_threadsafe_function(env, home->wake);
        job_fail(job, no_memory);
        (void)napi_reject_deferred(env, job->deferred, text_value(env, job->answer));
        job_free(job);
    }
    return promise;
}

static struct job *job_new(struct home *home, enum job_kind kind)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job) {
        job->home = home;
        job->kind = kind;
    }
    return job;
}

static struct home *arguments(napi_env env, napi_callback_info info, size_t wanted,
                              napi_value *args)
{
    size_t count = wanted;
    void *home = NULL;

    if (napi_get_cb_info(env, info, &count, args, NULL, &home) != napi_ok || count < wanted)
        return NULL;
    return home;
}

static struct handle *handle_of(napi_env env, napi_value value)
{
    void *handle = NULL;

    return napi_get_value_external(env, value, &handle) == napi_ok ? handle : NULL;
}

static napi_value addon_open(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    struct home *home = arguments(env, info, 2, args);
    struct job *job = home ? job_new(home, JOB_OPEN) : NULL;

    if (!job)
        return throw_error(env, "open(url, options)");
    job->method = text_of(env, args[0], &job->method_len);
    job->json = text_of(env, args[1], &job->json_len);
    if (!job->method || !job->json) {
        job_free(job);
        return throw_error(env, "open(url, options): both are strings");
    }
    return job_begin(env, job, home->waits);
}

static napi_value addon_call(napi_env env, napi_callback_info info)
{
    napi_value args[6];
    struct home *home = arguments(env, info, 6, args);
    struct handle *handle = home ? handle_of(env, args[0]) : NULL;
    struct job *job = handle ? job_new(home, JOB_CALL) : NULL;
    uint32_t lane = 0;

    if (!job)
        return throw_error(env, "call(handle, method, json, lane, number, timeout)");
    pthread_mutex_lock(&home->mutex);
    handle->references++;
    pthread_mutex_unlock(&home->mutex);
    job->handle = handle;
    job->method = text_of(env, args[1], &job->method_len);
    job->json = text_of(env, args[2], &job->json_len);
    if (!job->method || !job->json || napi_get_value_uint32(env, args[3], &lane) != napi_ok ||
        napi_get_value_int64(env, args[4], &job->number) != napi_ok ||
        napi_get_value_uint32(env, args[5], &job->timeout_ms) != napi_ok) {
        job_free(job);
        return throw_error(env, "call(handle, method, json, lane, number, timeout): wrong types");
    }
    job->background = lane == 2;
    return job_begin(env, job, lane == 0 ? home->calls : home->waits);
}

/* Throw what is no Error but a text, as promises are rejected with one. */
static napi_value throw_text(napi_env env, struct hf_str text)
{
    (void)napi_throw(env, text_value(env, text));
    return NULL;
}

static napi_value addon_now(napi_env env, napi_callback_info info)
{
    napi_value args[3], result = NULL;
    struct home *home = arguments(env, info, 3, args);
    struct handle *handle = home ? handle_of(env, args[0]) : NULL;
    const char *refused = NULL;
    char method[METHOD_MAX];
    size_t method_len = 0, len = 0;
    struct hf_scope *s;
    struct hf_str answer = {0};
    bool done = false, failed;

    if (!handle ||
        napi_get_value_string_utf8(env, args[1], method, sizeof(method), &method_len) != napi_ok ||
        napi_get_value_string_utf8(env, args[2], home->now, NOW_MAX, &len) != napi_ok)
        return throw_error(env, "now(handle, method, json)");
    /* A text that was cut ends at a whole character, so up to three bytes before the end. */
    if (method_len + 1 == sizeof(method) || len + 4 >= NOW_MAX)
        return NULL;
    pthread_mutex_lock(&home->mutex);
    s = call_begin(handle, &refused);
    pthread_mutex_unlock(&home->mutex);
    if (!s)
        return throw_text(env, hf_str_from(refused));
    failed = hf_bind_try(s, handle->bind, hf_str_of(method, method_len), hf_str_of(home->now, len),
                         &done, &answer) != HF_OK;
    if (done && failed)
        throw_text(env, answer.ptr ? answer : hf_str_from(no_memory));
    else if (done)
        result = text_value(env, answer);
    pthread_mutex_lock(&home->mutex);
    call_end(handle);
    pthread_mutex_unlock(&home->mutex);
    scope_give(home, s);
    return result;
}

static napi_value addon_cancel(napi_env env, napi_callback_info info)
{
    napi_value args[1], result = NULL;
    struct home *home = arguments(env, info, 1, args);
    int64_t number = 0;
    bool found = false;

    if (!home || napi_get_value_int64(env, args[0], &number) != napi_ok)
        return throw_error(env, "cancel(number)");
    pthread_mutex_lock(&home->mutex);
    for (struct job *job = home->jobs; job; job = job->next)
        if (job->kind == JOB_CALL && job->number == number) {
            found = true;
            job->canceled = true;
            if (job->scope)
                hf_scope_cancel(job->scope);
        }
    pthread_mutex_unlock(&home->mutex);
    (void)napi_get_boolean(env, found, &result);
    return result;
}

static napi_value addon_close(napi_env env, napi_callback_info info)
{
    napi_value args[1];
    struct home *home = arguments(env, info, 1, args);
    struct handle *handle = home ? handle_of(env, args[0]) : NULL;
    struct job *job = handle ? job_new(home, JOB_CLOSE) : NULL;

    if (!job)
        return throw_error(env, "close(handle)");
    pthread_mutex_lock(&home->mutex);
    handle->references++;
    handle_cancel(handle); /* at once: calls that wait may have all threads */
    pthread_mutex_unlock(&home->mutex);
    job->handle = handle;
    return job_begin(env, job, home->waits);
}

/* ---- begin and end -------------------------------------------------------------------------- */

/* Cancel all, wait for it, and close what is open. Once; promises stay pending. */
static void home_down(struct home *home)
{
    struct job *job, *next;

    pthread_mutex_lock(&home->mutex);
    if (home->down) {
        pthread_mutex_unlock(&home->mutex);
        return;
    }
    home->down = true;
    for (struct handle *handle = home->handles; handle; handle = handle->next)
        handle->closing = true;
    for (job = home->jobs; job; job = job->next) {
        job->canceled = true;
        if (job->scope)
            hf_scope_cancel(job->scope);
    }
    pthread_mutex_unlock(&home->mutex);
    pool_free(home->calls);
    pool_free(home->waits);
    home->calls = home->waits = NULL;
    for (job = take_done(home); job; job = next) {
        next = job->done;
        job_free(job);
    }
    for (struct handle *handle = home->handles; handle; handle = handle->next)
        handle_close(handle); /* who has a reference frees it later */
}

static napi_value addon_teardown(napi_env env, napi_callback_info info)
{
    struct home *home = arguments(env, info, 0, NULL);

    if (home)
        home_down(home);
    return NULL;
}

static void home_end(void *arg)
{
    home_down(arg);
}

/* After the last finalizer of a handle. */
static void home_free(napi_env env, void *data, void *hint)
{
    struct home *home = data;

    (void)env, (void)hint;
    home_down(home);
    if (home->handles)
        return; /* their finalizers come later still: a page of memory at the end of a thread */
    while (home->spare_len > 0)
        hf_scope_free(home->spare[--home->spare_len]);
    pthread_mutex_destroy(&home->mutex);
    free(home);
}

static bool home_start(napi_env env, struct home *home)
{
    napi_value name;

    pthread_mutex_init(&home->mutex, NULL);
    home->last_done = &home->first_done;
    home->calls = pool_new(CALL_THREADS);
    home->waits = pool_new(WAIT_THREADS);
    return home->calls && home->waits &&
           napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name) == napi_ok &&
           napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, home, woken,
                                           &home->wake) == napi_ok &&
           napi_unref_threadsafe_function(env, home->wake) == napi_ok &&
           napi_set_instance_data(env, home, home_free, NULL) == napi_ok &&
           napi_add_env_cleanup_hook(env, home_end, home) == napi_ok;
}

/* Node finds the module by this name; without a version of its own it is one of Node-API 8. */
NAPI_EXTERN napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {
        {"open", addon_open},     {"call", addon_call},   {"now", addon_now},
        {"cancel", addon_cancel}, {"close", addon_close}, {"teardown", addon_teardown},
    };
    struct home *home = calloc(1, sizeof(*home));
    napi_value value;

    if (!home || !home_start(env, home))
        return throw_error(env, "holdfast: no memory, or no threads");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, home,
                                 &value) != napi_ok ||
            napi_set_named_property(env, exports, functions[i].name, value) != napi_ok)
            return throw_error(env, "holdfast: out of memory");
    if (napi_create_string_utf8(env, hf_version(), NAPI_AUTO_LENGTH, &value) == napi_ok)
        (void)napi_set_named_property(env, exports, "version", value);
    return exports;
}
