/*
 * engine/maintenance/maintenance.c: the engine's own thread. About once a second, or when woken, it
 * does what is due: copying backups, filling restored tables, building indexes, expiring items,
 * trimming streams, dropping tokens, erasing the keys of what was deleted. hf_engine_upkeep() does
 * the same on the caller's thread; one round runs at a time. Of a database without threads it runs
 * exports and imports, too.
 */
#include "engine/maintenance/maintenance.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/counts.h"
#include "engine/maintenance/erase.h"
#include "engine/maintenance/ttl.h"
#include "engine/stream/streams.h"
#include "engine/transfer/transfers.h"
#include "engine/write/token.h"

#include "base/cond_monotonic.h"
#include "base/kill.h"

#include <errno.h>
#include <time.h>

enum { MAINTENANCE_PAUSE_MS = 1000 };

typedef enum hf_status maintenance_step(struct hf_scope *s, struct engine *e, uint64_t *done);

static enum hf_status count_all(struct hf_scope *s, struct engine *e, uint64_t *done)
{
    (void)done;
    return hf__counts_refresh_all(s, e);
}

/* Run all steps. A step that fails, for example at a damaged item, does not prevent the others; the
 * first error is reported. */
static enum hf_status maintenance_round(struct hf_scope *s, struct engine *e,
                                        struct hf_upkeep_report *report)
{
    uint64_t counted = 0;
    const struct {
        maintenance_step *step;
        uint64_t *done;
    } steps[] = {{count_all, &counted},
                 {hf__backups_copy, &report->backed_up_items},
                 {hf__restore, &report->restored_items},
                 {hf__backfill, &report->indexed_items},
                 {hf__ttl_sweep, &report->expired_items},
                 {hf__streams_trim, &report->trimmed_records},
                 {hf__tokens_drop, &report->dropped_tokens},
                 {hf__erase, &report->erased_keys}};
    struct hf_error first = {.status = HF_OK};

    ASSERT_HELD(&e->maintenance_lock);
    hf__kill_point("before_maintenance");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        bool alive = hf__scope_alive(s) == HF_OK;

        hf__scope_alloc_clear(s); /* a failed allocation of an earlier step does not matter */
        if ((!alive || steps[i].step(s, e, steps[i].done) != HF_OK) && first.status == HF_OK)
            first = *hf_scope_error(s);
    }
    if (first.status != HF_OK)
        *hf__scope_error_edit(s) = first;
    return first.status;
}

enum hf_status hf_engine_upkeep(struct hf_scope *s, struct hf_db *db,
                                struct hf_upkeep_report *report)
{
    struct engine *e = hf__engine_of(db);
    struct hf_upkeep_report ignored;
    enum hf_status status;

    if (!report)
        report = &ignored;
    memset(report, 0, sizeof(*report));
    hf__scope_error_clear(s);
    if (!e)
        return hf__fail(s, HF_UNSUPPORTED, "hf_engine_upkeep() is for embedded databases only");
    TRY(hf__engine_writable(s, e, HF_STR("maintenance")));
    TRY(hf__scope_alive(s));
    pthread_mutex_lock(&e->maintenance_lock);
    status = hf__engine_fit(s, e);
    if (status == HF_OK)
        status = maintenance_round(s, e, report);
    pthread_mutex_unlock(&e->maintenance_lock);
    if (status == HF_OK)
        hf__transfers_run(s, e);
    return status;
}

/* ---- the thread ----------------------------------------------------------------------------- */

enum { LOG_AGAIN_US = 60 * 1000 * 1000, LOGGED_MAX = 512 };

/* The last message that was logged. With a full disk every round fails, for hours. */
struct logged {
    char text[LOGGED_MAX]; /* its beginning */
    int64_t us;
};

static const char *behind_digits(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Compare without digits: numbers such as the free bytes differ every time. */
static bool text_differs(const char *a, const char *b)
{
    a = behind_digits(a);
    b = behind_digits(b);
    while (*a && *a == *b) {
        a = behind_digits(a + 1);
        b = behind_digits(b + 1);
    }
    return *a != *b;
}

/* Log a new message at once, and one that stays the same once a minute. */
static void log_failure(struct engine *e, struct logged *logged, const char *text)
{
    int64_t now = hf__env_elapsed_us(&e->env);
    char begin[LOGGED_MAX];

    snprintf(begin, sizeof(begin), "%s", text);
    if (!text_differs(begin, logged->text) && now - logged->us < LOG_AGAIN_US)
        return;
    memcpy(logged->text, begin, sizeof(begin));
    logged->us = now;
    hf__env_log(&e->env, HF_LOG_ERROR, "maintenance: %s", text);
}

static void wait_for_work(struct engine_maintenance *m)
{
    struct timespec until = monotonic_in_ms(MAINTENANCE_PAUSE_MS);

    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&m->stop) && !m->woken)
        if (pthread_cond_timedwait(&m->wake, &m->lock, &until) == ETIMEDOUT)
            break;
    m->woken = false;
    pthread_mutex_unlock(&m->lock);
}

static void *maintenance_thread(void *arg)
{
    struct engine *e = arg;
    struct hf_scope *s = hf_scope_new(&e->env);
    struct logged logged = {0};

    while (s && !atomic_load(&e->maintenance.stop)) {
        struct hf_upkeep_report report;

        wait_for_work(&e->maintenance);
        if (!atomic_load(&e->maintenance.stop) && hf_engine_upkeep(s, &e->db, &report) != HF_OK &&
            !atomic_load(&e->maintenance.stop))
            log_failure(e, &logged, hf_scope_error_text(s));
        hf_scope_reset(s);
    }
    if (!s)
        hf__env_log(&e->env, HF_LOG_ERROR, "maintenance: out of memory; items will not expire");
    hf_scope_free(s);
    return NULL;
}

enum hf_status hf__engine_maintenance_start(struct hf_scope *s, struct engine *e)
{
    assert(!e->maintenance.running && !e->read_only);
    if (pthread_create(&e->maintenance.thread, NULL, maintenance_thread, e) != 0)
        return hf__fail(
            s, HF_LIMIT,
            "Cannot start the maintenance thread; raise the limit of processes (ulimit -u)");
    e->maintenance.running = true;
    return HF_OK;
}

void hf__engine_maintenance_wake(struct engine *e)
{
    pthread_mutex_lock(&e->maintenance.lock);
    e->maintenance.woken = true;
    pthread_cond_signal(&e->maintenance.wake);
    pthread_mutex_unlock(&e->maintenance.lock);
}

void hf__engine_maintenance_stop(struct engine *e)
{
    pthread_mutex_lock(&e->maintenance.lock);
    atomic_store(&e->maintenance.stop, true);
    pthread_cond_signal(&e->maintenance.wake);
    pthread_mutex_unlock(&e->maintenance.lock);
    if (e->maintenance.running)
        pthread_join(e->maintenance.thread, NULL);
    e->maintenance.running = false;
}
