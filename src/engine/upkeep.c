/*
 * engine/upkeep.c: the engine's own thread. About once a second, or when poked, it does what is
 * due: copying what is backed up, filling what is restored, building indexes, expiring items,
 * trimming streams, dropping tokens, erasing what is gone. hf_engine_upkeep() does the same on the
 * caller's thread; one round runs at a time.
 */
#include "engine/upkeep.h"
#include "engine/backups.h"
#include "engine/counts.h"
#include "engine/engine.h"
#include "engine/erase.h"
#include "engine/streams.h"
#include "engine/token.h"
#include "engine/ttl.h"

#include "base/cond_monotonic.h"
#include "base/kill.h"

#include <errno.h>
#include <time.h>

enum { UPKEEP_PAUSE_MS = 1000 };

typedef enum hf_status upkeep_step(struct hf_scope *s, struct engine *e, uint64_t *done);

static enum hf_status count_all(struct hf_scope *s, struct engine *e, uint64_t *done)
{
    (void)done;
    return hf__counts_refresh_all(s, e);
}

/* All that is due. A step that fails, because of one damaged item say, does not keep the others
 * from being done; the first error is the one that is reported. */
static enum hf_status upkeep_round(struct hf_scope *s, struct engine *e,
                                   struct hf_upkeep_report *report)
{
    uint64_t counted = 0;
    const struct {
        upkeep_step *step;
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

    ASSERT_HELD(&e->upkeep_lock);
    hf__kill_point("before_upkeep");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        bool alive = hf__scope_alive(s) == HF_OK;

        hf__scope_alloc_clear(
            s); /* what an earlier call or step missed does not matter to this one */
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
        return hf__fail(s, HF_UNSUPPORTED, "Upkeep is only for embedded databases");
    TRY(hf__engine_writable(s, e, HF_STR("upkeep")));
    TRY(hf__scope_alive(s));
    pthread_mutex_lock(&e->upkeep_lock);
    status = hf__engine_fit(s, e);
    if (status == HF_OK)
        status = upkeep_round(s, e, report);
    pthread_mutex_unlock(&e->upkeep_lock);
    return status;
}

/* ---- the thread ----------------------------------------------------------------------------- */

enum { SAY_AGAIN_US = 60 * 1000 * 1000, SAID_MAX = 512 };

/* What the log was last told. A disk that is full fails every round, for hours. */
struct said {
    char text[SAID_MAX]; /* its beginning */
    int64_t us;
};

static const char *behind_digits(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Numbers, such as that of free bytes, are others every time. */
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

/* At once what is new, and once a minute what stays. */
static void log_failure(struct engine *e, struct said *said, const char *text)
{
    int64_t now = hf__env_elapsed_us(&e->env);
    char begin[SAID_MAX];

    snprintf(begin, sizeof(begin), "%s", text);
    if (!text_differs(begin, said->text) && now - said->us < SAY_AGAIN_US)
        return;
    memcpy(said->text, begin, sizeof(begin));
    said->us = now;
    hf__env_log(&e->env, HF_LOG_ERROR, "upkeep: %s", text);
}

static void wait_for_work(struct upkeep *u)
{
    struct timespec until = monotonic_in_ms(UPKEEP_PAUSE_MS);

    pthread_mutex_lock(&u->lock);
    while (!atomic_load(&u->stop) && !u->poked)
        if (pthread_cond_timedwait(&u->wake, &u->lock, &until) == ETIMEDOUT)
            break;
    u->poked = false;
    pthread_mutex_unlock(&u->lock);
}

static void *upkeep_thread(void *arg)
{
    struct engine *e = arg;
    struct hf_scope *s = hf_scope_new(&e->env);
    struct said said = {0};

    while (s && !atomic_load(&e->upkeep.stop)) {
        struct hf_upkeep_report report;

        wait_for_work(&e->upkeep);
        if (!atomic_load(&e->upkeep.stop) && hf_engine_upkeep(s, &e->db, &report) != HF_OK &&
            !atomic_load(&e->upkeep.stop))
            log_failure(e, &said, hf_scope_error_text(s));
        hf_scope_reset(s);
    }
    if (!s)
        hf__env_log(&e->env, HF_LOG_ERROR, "upkeep: no memory; items will not expire");
    hf_scope_free(s);
    return NULL;
}

enum hf_status hf__upkeep_start(struct hf_scope *s, struct engine *e)
{
    assert(!e->upkeep.running && !e->read_only);
    if (pthread_create(&e->upkeep.thread, NULL, upkeep_thread, e) != 0)
        return hf__fail(s, HF_LIMIT, "The upkeep thread could not be started");
    e->upkeep.running = true;
    return HF_OK;
}

void hf__upkeep_poke(struct engine *e)
{
    pthread_mutex_lock(&e->upkeep.lock);
    e->upkeep.poked = true;
    pthread_cond_signal(&e->upkeep.wake);
    pthread_mutex_unlock(&e->upkeep.lock);
}

void hf__upkeep_stop(struct engine *e)
{
    pthread_mutex_lock(&e->upkeep.lock);
    atomic_store(&e->upkeep.stop, true);
    pthread_cond_signal(&e->upkeep.wake);
    pthread_mutex_unlock(&e->upkeep.lock);
    if (e->upkeep.running)
        pthread_join(e->upkeep.thread, NULL);
    e->upkeep.running = false;
}
