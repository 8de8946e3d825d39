/*
 * server/conn/work.c: the queue and its workers.
 *
 * A job has its own scope, which is freed with it: what a large request took is given back. When
 * its answer is sent in parts, these have the scope.
 */
#include "server/conn/work.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert_held.h"
#include "base/sched_slice.h"
#include "ops/fields.h"
#include "server/console/console.h"
#include "server/console/hot.h"
#include "server/console/tail.h"
#include "server/metrics.h"
#include "server/private.h"

enum {
    LOOK_MS = 20,   /* how often a job that waits for memory is checked */
    WORKER_NICE = 5 /* event loops have precedence over workers */
};

struct job {
    struct job *next;
    struct conn *conn;
    struct http_reader reader;
    struct hf__buf bytes;
    uint64_t counted; /* bytes of it in the budget's input */
    uint64_t needs;   /* bytes that it may need */
    uint64_t until_ns;
    bool call;     /* of a pattern: (4) of work.h */
    bool too_late; /* it is a call that found no worker in time */
};

struct worker {
    struct work *work;
    struct context context;
    pthread_t thread;
    struct hf_scope *running; /* of the job; under the lock of `work`; NULL: none */
};

/* ---- which, and how much -------------------------------------------------------------------- */

static struct hf_str operation_of(const struct http_head *head)
{
    struct hf_str target = hf__http_field(head, "x-amz-target");
    const char *dot = target.len ? memchr(target.ptr, '.', target.len) : NULL;

    if (!dot)
        return (struct hf_str){0};
    return hf_str_of(dot + 1, target.len - (size_t)(dot + 1 - target.ptr));
}

static bool is_packed(const struct http_head *head)
{
    struct hf_str coding = hf__http_field(head, "content-encoding");

    return coding.len && !hf__http_is(coding, "identity");
}

static const struct op *find_op(const struct http_head *head)
{
    struct hf_str name = operation_of(head);

    return name.len ? hf__op_of_name(OP_DYNAMODB, name) : NULL;
}

static uint64_t needs_of(const struct http_reader *reader)
{
    const struct op *op = find_op(&reader->head);
    uint64_t body = is_packed(&reader->head) ? HTTP_BODY_MAX : 0, result = WORK_SMALL;

    if (op && op->op == HF_OP_BATCH_GET_ITEM)
        result = WORK_BATCH;
    else if (op && (op->op == HF_OP_BATCH_EXECUTE_STATEMENT || op->op == HF_OP_TRANSACT_GET_ITEMS ||
                    op->op == HF_OP_EXECUTE_TRANSACTION))
        result = WORK_TRANSACTION;
    if (reader->body.len > WORK_BODY || body)
        body += WORK_DECODED * (body ? body : reader->body.len);
    return result + body;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void free_job(struct job *job)
{
    struct server *server = job->conn->loop->server;

    hf__budget_count(&server->budget.input, &job->counted, 0);
    hf__buf_free(&job->bytes);
    hf__env_free(&server->env, job, sizeof(*job));
}

/* The bytes become the job's own: the whole buffer when they are at its start, else a copy. */
static bool take_bytes(struct job *job, struct conn *conn, uint8_t *bytes)
{
    if (bytes == conn->in.ptr) {
        job->bytes = conn->in;
        conn->in = (struct hf__buf){.env = job->bytes.env};
    } else {
        hf__buf_put(&job->bytes, bytes, job->reader.used);
    }
    return !job->bytes.failed;
}

/* What all may hold together when this one starts. */
static uint64_t most_of(const struct budget *budget, const struct job *job)
{
    if (job->needs <= WORK_SMALL && job->needs <= budget->output_max)
        return budget->output_max;
    return budget->output_max - budget->output_max / 4;
}

/* (2): a request that needs more than most of what there can be starts with that. */
static uint64_t share_of(const struct budget *budget, const struct job *job)
{
    uint64_t most = most_of(budget, job);

    assert(job->needs > 0 && most <= budget->output_max);
    return job->needs < most - most / 4 ? job->needs : most - most / 4;
}

static bool job_fits(struct budget *budget, const struct job *job)
{
    return atomic_load(&budget->output) + share_of(budget, job) <= most_of(budget, job);
}

/* (4) of work.h */
static bool calls_are_full(const struct work *work)
{
    return work->calls + 1 >= work->workers_len && work->calls > 0;
}

/* The job that is next, out of the list; NULL: none may start. */
static struct job *next_job(struct work *work)
{
    struct budget *budget = &work->server->budget;
    uint64_t now = work->first ? uv_hrtime() : 0;
    bool short_of_memory = false; /* for one that came earlier */

    ASSERT_HELD(&work->lock);
    for (struct job **at = &work->first; *at; at = &(*at)->next) {
        struct job *job = *at;
        bool has_room, gone, full;

        /* a large job does not overtake earlier ones */
        if (short_of_memory && job->needs > WORK_SMALL)
            continue;
        has_room = job_fits(budget, job); /* once: loops change what is free at any time */
        gone = atomic_load(&job->conn->gone);
        full = job->call && calls_are_full(work);
        if (!gone && now < job->until_ns && full)
            continue;
        if (!gone && now < job->until_ns && !has_room) {
            short_of_memory = true;
            continue;
        }
        *at = job->next;
        if (work->end == &job->next)
            work->end = at;
        assert(work->waiting > 0);
        work->waiting--;
        work->running++;
        work->calls += job->call;
        atomic_store(&budget->pressed, false); /* until a job does not fit */
        assert(job->conn->held == 0);          /* nothing was to be sent when it was given */
        job->too_late = full;                  /* refused, which takes no time */
        if (has_room && !gone && !full)
            hf__budget_count(&budget->output, &job->conn->held, share_of(budget, job));
        return job;
    }
    atomic_store(&budget->pressed, short_of_memory);
    return NULL;
}

void hf__work_room(struct work *work)
{
    if (atomic_load_explicit(&work->waiting, memory_order_relaxed) > 0)
        pthread_cond_signal(&work->changed);
}

/* ---- workers -------------------------------------------------------------------------------- */

static void refuse_job(struct context *context, const struct job *job)
{
    struct answer answer = {.conn = job->conn, .context = context, .head = &job->reader.head};

    if (job->too_late) {
        hf__console_error(&answer, 503, HF_LIMIT,
                          HF_STR("Other calls take too long; try again later"));
        return;
    }
    hf__metrics_busy(context->metrics);
    hf__call_refuse(&answer, 503,
                    HF_STR("The server has no memory left for answers; try again later"));
}

/* What the connection holds from now on: its answer, and what the rest of that is made of. */
static void count_held(struct server *server, struct conn *conn)
{
    uint64_t held = conn->out.cap + (conn->parts ? hf__parts_bytes(conn->parts) + PART_BYTES : 0);

    hf__budget_count(&server->budget.output, &conn->held, held);
    hf__work_room(&server->work);
}

/* A loop that is run by hand has no workers that somebody could cancel. */
static void set_running(struct worker *worker, struct hf_scope *scope)
{
    if (!worker->work)
        return;
    pthread_mutex_lock(&worker->work->lock);
    worker->running = scope;
    pthread_mutex_unlock(&worker->work->lock);
}

static void run_job(struct worker *worker, struct job *job)
{
    struct context *context = &worker->context;
    struct server *server = context->server;
    struct conn *conn = job->conn;

    assert(context->worker && !context->scope && !conn->parts);
    context->scope = hf_scope_new(&server->env);
    set_running(worker, context->scope);
    if (!context->scope)
        conn->close_after = true;
    else if (conn->held == 0)
        refuse_job(context, job);
    else
        hf__route_request(context, conn, &job->reader);
    set_running(worker, NULL);
    if (conn->parts) { /* which has the scope; its result may borrow from the request */
        conn->parts->request = job->bytes;
        job->bytes = (struct hf__buf){.env = &server->env};
    } else {
        hf_scope_free(context->scope);
    }
    context->scope = NULL;
    count_held(server, conn);
}

static void hand_back(struct job *job)
{
    struct loop *loop = job->conn->loop;

    pthread_mutex_lock(&loop->lock);
    job->next = loop->done;
    loop->done = job;
    pthread_mutex_unlock(&loop->lock);
    uv_async_send(&loop->worked);
}

static void enqueue_job(struct work *work, struct job *job)
{
    assert(!job->next);
    pthread_mutex_lock(&work->lock);
    assert(!*work->end && !work->stops);
    *work->end = job;
    work->end = &job->next;
    work->waiting++;
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

/* A loop that is run by hand, as in tests, has no workers, and does their work. */
static void run_here(struct job *job)
{
    struct worker worker = {.context = job->conn->loop->context};
    struct budget *budget = &worker.context.server->budget;

    worker.context.worker = true;
    worker.context.scope = NULL; /* a job has its own */
    hf__budget_count(&budget->output, &job->conn->held, share_of(budget, job));
    run_job(&worker, job);
    hand_back(job);
}

bool hf__work_give(struct conn *conn, const struct http_reader *reader, uint8_t *bytes)
{
    struct server *server = conn->loop->server;
    struct work *work = &server->work;
    struct job *job = hf__env_alloc(&server->env, sizeof(*job));
    enum http_result result;

    assert(!conn_is_busy(conn) || conn->state == CONN_BACKLOG);
    assert(conn->out.len == 0 && !conn->parts && conn->paused && conn->holders == 1);
    if (!job)
        return false;
    *job = (struct job){.conn = conn, .reader = *reader, .bytes = {.env = &server->env}};
    if (!take_bytes(job, conn, bytes)) {
        free_job(job);
        return false;
    }
    result = hf__http_read(&job->reader, job->bytes.ptr, job->reader.used);
    assert(result == HTTP_DONE);
    (void)result;
    hf__budget_count(&server->budget.input, &job->counted, job->reader.used);
    job->needs = needs_of(reader);
    job->call = hf__console_is_call(reader->head.path);
    job->until_ns = uv_hrtime() + (uint64_t)server->options.body_ms * 1000000;
    conn->holders++;
    conn->for_worker = false;
    if (work->started)
        enqueue_job(work, job);
    else
        run_here(job);
    return true;
}

void hf__work_done(struct loop *loop)
{
    struct job *done;

    pthread_mutex_lock(&loop->lock);
    done = loop->done;
    loop->done = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (done) {
        struct job *job = done;
        struct conn *conn = job->conn;

        assert(conn->loop == loop && conn->holders > 0);
        done = job->next;
        free_job(job);
        hf__conn_worked(conn);
    }
}

static void wait_for_job(struct work *work)
{
    struct timespec until;

    ASSERT_HELD(&work->lock);
    if (!work->first) {
        pthread_cond_wait(&work->changed, &work->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)LOOK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&work->changed, &work->lock, &until);
}

static void *run_worker(void *user)
{
    struct worker *worker = user;
    struct work *work = worker->work;
    const id_t self = (id_t)syscall(SYS_gettid);
    struct job *job;

    (void)sched_slice_set(SHORT_SLICE_NS);
    (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + WORKER_NICE);
    pthread_mutex_lock(&work->lock);
    for (;;) {
        job = next_job(work);
        if (job) {
            bool call = job->call;

            pthread_mutex_unlock(&work->lock);
            run_job(worker, job);
            assert(work->running > 0);
            work->running--;
            hand_back(job);
            pthread_mutex_lock(&work->lock);
            assert(work->calls >= call);
            work->calls -= call;
            continue;
        }
        if (work->stops)
            break;
        wait_for_job(work);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static enum hf_status init_worker(struct hf_scope *s, struct server *server, size_t number)
{
    struct worker *worker = &server->work.workers[number];

    worker->work = &server->work;
    worker->context = (struct context){
        .server = server,
        .metrics = hf__metrics_thread(server->metrics, server->loops_len + number),
        .hot = hf__hot_thread(server->hot, server->loops_len + number),
        .tail = hf__tail_thread(server->tails, server->loops_len + number),
        .worker = true,
    };
    hf__env_random(&server->env, worker->context.random, sizeof(worker->context.random));
    worker->context.random[0] |= 1; /* all zero would stay so */
    return hf__context_authenticates(s, &worker->context);
}

static enum hf_status start_workers(struct hf_scope *s, struct server *server)
{
    struct work *work = &server->work;

    for (size_t i = 0; i < work->workers_len; i++)
        TRY(init_worker(s, server, i));
    for (; work->started < work->workers_len; work->started++) {
        struct worker *worker = &work->workers[work->started];

        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0)
            return hf__fail(s, HF_LIMIT,
                            "cannot start a thread: is the limit of processes reached?");
    }
    return HF_OK;
}

enum hf_status hf__work_start(struct hf_scope *s, struct server *server)
{
    struct work *work = &server->work;
    pthread_condattr_t monotonic;
    enum hf_status status;

    assert(!work->first && !work->stops && work->waiting == 0 && work->running == 0);
    work->server = server; /* the figures are not written: others may look at them already */
    work->workers_len = server->options.workers;
    work->end = &work->first;
    work->workers = hf__scope_array(server->memory, work->workers_len, sizeof(*work->workers));
    if (!work->workers)
        return hf__fail_nomem(s);
    pthread_mutex_init(&work->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&work->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    status = start_workers(s, server);
    if (status != HF_OK)
        hf__work_stop(work);
    return status;
}

void hf__work_cancel(struct work *work)
{
    if (work->started == 0)
        return;
    pthread_mutex_lock(&work->lock);
    for (size_t i = 0; i < work->started; i++) {
        if (work->workers[i].running)
            hf_scope_cancel(work->workers[i].running);
    }
    pthread_mutex_unlock(&work->lock);
}

void hf__work_stop(struct work *work)
{
    assert(!work->first);
    pthread_mutex_lock(&work->lock);
    work->stops = true;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
    for (size_t i = 0; i < work->started; i++)
        pthread_join(work->workers[i].thread, NULL);
    for (size_t i = 0; i < work->workers_len; i++)
        hf__auth_free(work->workers[i].context.auth);
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->lock);
    work->workers_len = 0;
    work->started = 0; /* who still has a request runs it where it is */
}
