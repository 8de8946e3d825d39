/*
 * backup/ship.c: copying the journal to a place outside while it is written.
 *
 * Two threads. One makes marks: ten times a second it notes which change is durable, if that has
 * moved, and when. It never waits for anything, so the moments that can be restored are a tenth of
 * a second apart even when the place is slow or away. The other one ships, step by step:
 *
 *     attach     begin an epoch: ship_attach.c
 *     segment    read changes up to the newest mark from the journal, put them with their marks as
 *                the next segment of the chain
 *     snapshot   when one is due, a part of it: ship_snapshot.c
 *     manifest   now and then, and when a snapshot is complete
 *
 * A segment that could not be put is put again as it is, under the same name, until that succeeds:
 * an answer that was lost makes no second segment. What cannot be done now is tried again with
 * growing pauses; meanwhile the store keeps its journal, up to a limit.
 *
 * States:
 *
 *     starting -> shipping <-> behind      the oldest change that was not shipped is too old
 *     starting -> refused -> starting      the place is of another database, damaged, or of another key
 *     any -> fenced                        for good: another process has begun an epoch
 *
 * What always holds:
 *
 *  (1) No writer waits for the shipper, and it holds no lock of the store while it waits.
 *  (2) A change is shipped only when the store cannot take it back any more.
 *  (3) Segments have all changes in order and without a gap; each one has the hash of the one before.
 *  (4) The marks before a change in a segment say by when it was durable; their times never go back.
 *  (5) Changes are released, so that the journal may forget them, only when they are in a segment
 *      that was put, or nobody will ever ship them.
 */
#include "backup/private.h"

#include <errno.h>

#include "base/assert_held.h"
#include "base/cond_monotonic.h"
#include "base/kill.h"

#include <xxhash.h>

enum {
    WINDOW_MS = 1000,
    WINDOW_MIN_MS = 50,
    WINDOW_MAX_MS = 3600 * 1000,
    SNAPSHOT_MS = 24 * 3600 * 1000,
    SNAPSHOT_MIN_MS = 1000,
    CLOSE_MS = 5000,
    BEHIND_MS = 10000, /* a change that is older than this, and than three windows, is too old */
    WAIT_MS = 10       /* how long a waiter sleeps before it looks at its scope again */
};
#define RETAIN_MS (UINT64_C(7) * 24 * 3600 * 1000)
#define JOURNAL_BYTES (UINT64_C(1024) * 1024 * 1024)

/* ---- options -------------------------------------------------------------------------------- */

enum hf_status hf__ship_fill(struct hf_scope *s, const struct hf_backup_options *from,
                             struct hf_backup_options *to)
{
    *to = (struct hf_backup_options){.size = sizeof(*to)};
    memcpy(to, from, from->size && from->size < sizeof(*to) ? from->size : sizeof(*to));
    to->size = sizeof(*to);
    if (!to->window_ms)
        to->window_ms = WINDOW_MS;
    if (!to->snapshot_ms)
        to->snapshot_ms = SNAPSHOT_MS;
    if (!to->retain_ms)
        to->retain_ms = RETAIN_MS;
    if (!to->journal_bytes)
        to->journal_bytes = JOURNAL_BYTES;
    if (!to->close_ms)
        to->close_ms = CLOSE_MS;
    if (to->window_ms < WINDOW_MIN_MS || to->window_ms > WINDOW_MAX_MS)
        return hf__fail(s, HF_INVALID, "the window of a backup must be from %d to %d milliseconds",
                        WINDOW_MIN_MS, WINDOW_MAX_MS);
    if (to->snapshot_ms < SNAPSHOT_MIN_MS)
        return hf__fail(s, HF_INVALID, "snapshots of a backup must be at least a second apart");
    return HF_OK;
}

/* ---- marks ---------------------------------------------------------------------------------- */

static struct ship_mark *mark_at(struct hf__shipper *sh, size_t i)
{
    ASSERT_HELD(&sh->lock);
    assert(i < sh->marks_len);
    return &sh->marks[(sh->marks_at + i) % SHIP_MARKS_MAX];
}

/* The ring is full: every other mark goes. What it covered is covered by the one behind it. */
static void marks_thin(struct hf__shipper *sh)
{
    size_t kept = 0;

    for (size_t i = 1; i < sh->marks_len; i += 2)
        *mark_at(sh, kept++) = *mark_at(sh, i);
    sh->marks_len = kept;
}

void hf__ship_mark(struct hf__shipper *shipper)
{
    uint64_t durable = hf__store_durable(shipper->store); /* before the clock is read: (4) */
    struct ship_mark mark = {hf__env_wall_us(&shipper->env), durable};

    pthread_mutex_lock(&shipper->lock);
    if (durable > shipper->marked.change) {
        if (mark.time_us <= shipper->marked.time_us)
            mark.time_us = shipper->marked.time_us + 1;
        if (shipper->marks_len == SHIP_MARKS_MAX)
            marks_thin(shipper);
        shipper->marks_len++;
        *mark_at(shipper, shipper->marks_len - 1) = mark;
        shipper->marked = mark;
        if (shipper->marks_len == 1)
            pthread_cond_broadcast(&shipper->wake);
    }
    pthread_mutex_unlock(&shipper->lock);
}

/* Drop marks of which everything was shipped. */
static void marks_drop(struct hf__shipper *sh, uint64_t shipped)
{
    ASSERT_HELD(&sh->lock);
    while (sh->marks_len && mark_at(sh, 0)->change <= shipped) {
        sh->marks_at = (sh->marks_at + 1) % SHIP_MARKS_MAX;
        sh->marks_len--;
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

enum hf_status hf__ship_put(struct hf_scope *s, struct hf__shipper *sh, struct hf_str name,
                            struct hf_bytes bytes, bool once, bool *made)
{
    enum hf_status status = hf__objects_put(s, sh->objects, name, bytes, once, made);

    pthread_mutex_lock(&sh->lock);
    sh->status.requests++;
    sh->status.objects += status == HF_OK;
    sh->status.bytes += status == HF_OK ? bytes.len : 0;
    pthread_mutex_unlock(&sh->lock);
    return status;
}

enum hf_status hf__ship_lost(struct hf_scope *s, struct hf__shipper *sh)
{
    hf__ship_snapshot_drop(sh);
    sh->attached = false;
    pthread_mutex_lock(&sh->lock);
    sh->status.state = HF_BACKUP_FENCED;
    pthread_cond_broadcast(&sh->done);
    pthread_mutex_unlock(&sh->lock);
    hf__env_log(&sh->env, HF_LOG_ERROR,
                "backup: another process ships to %.*s now; this one ships nothing any more. Two "
                "databases need two places",
                HF_FMT(hf__objects_url(sh->objects)));
    return hf__fail(s, HF_LOST, "another process ships to %.*s now",
                    HF_FMT(hf__objects_url(sh->objects)));
}

static enum hf_status look_at_epochs(struct hf_scope *s, struct hf_str name, uint64_t size,
                                     void *user)
{
    uint64_t *highest = user;
    struct form_head head;

    (void)s;
    (void)size;
    if (hf__form_name_read(name, &head) && head.kind == FORM_MANIFEST && head.epoch > *highest)
        *highest = head.epoch;
    return HF_OK;
}

/* Nobody has begun a later epoch, and this one is ours. */
static enum hf_status check_ours(struct hf_scope *s, struct hf__shipper *sh)
{
    const struct chain_object ours = {.head = {.kind = FORM_MANIFEST, .epoch = sh->manifest.epoch}};
    uint64_t highest = 0;
    struct hf_bytes object;
    struct manifest there;
    char name[FORM_NAME];

    TRY(hf__objects_list(s, sh->objects, "manifest/", look_at_epochs, &highest));
    if (highest > sh->manifest.epoch)
        return hf__ship_lost(s, sh);
    hf__form_name(&ours.head, name);
    TRY(hf__objects_get(s, sh->objects, hf_str_from(name), 0, &object));
    TRY(hf__chain_manifest_read(s, &sh->form, hf_str_from(name), object, &there));
    if (memcmp(there.token, sh->manifest.token, MANIFEST_TOKEN) != 0)
        return hf__ship_lost(s, sh);
    return HF_OK;
}

enum hf_status hf__ship_manifest(struct hf_scope *s, struct hf__shipper *sh)
{
    const struct form_head head = {.kind = FORM_MANIFEST, .epoch = sh->manifest.epoch};
    struct hf_bytes object;
    char name[FORM_NAME];

    TRY(check_ours(s, sh));
    TRY(hf__chain_manifest_make(s, &sh->form, &sh->manifest, &object));
    hf__form_name(&head, name);
    TRY(hf__ship_put(s, sh, hf_str_from(name), object, false, NULL));
    sh->manifest_us = hf__env_elapsed_us(&sh->env);
    sh->manifest_dirty = false;
    return HF_OK;
}

/* ---- segments ------------------------------------------------------------------------------- */

struct filling {
    struct hf__shipper *sh;
    size_t next;              /* index of the mark that covers what comes */
    struct ship_mark covered; /* the mark that was put last */
    uint64_t check;
};

/* A change goes behind the mark that covers it: (4). */
static enum hf_status take_change(struct hf_scope *s, uint64_t ticket, struct hf_bytes record,
                                  void *user)
{
    struct filling *f = user;
    struct hf__shipper *sh = f->sh;

    (void)s;
    if (ticket > f->covered.change) {
        pthread_mutex_lock(&sh->lock);
        if (f->next >= sh->marks_len || mark_at(sh, f->next)->change >= ticket)
            f->next = 0; /* they may have become fewer */
        while (mark_at(sh, f->next)->change < ticket)
            f->next++;
        f->covered = *mark_at(sh, f->next);
        pthread_mutex_unlock(&sh->lock);
        hf__form_put_mark(&sh->segment, f->covered.time_us, f->covered.change);
    }
    hf__form_put_change(&sh->segment, ticket, record);
    f->check = XXH3_64bits(record.ptr, record.len);
    return HF_OK;
}

/* Make the next segment from changes up to `upto`. HF_NOT_FOUND: the journal has lost some. */
static enum hf_status segment_make(struct hf_scope *s, struct hf__shipper *sh, uint64_t upto)
{
    const struct backup_tail *tail = &sh->manifest.tail;
    struct store_changes changes = sh->changes;
    struct filling f = {.sh = sh, .check = tail->check};
    enum hf_status status;

    assert(!sh->segment.len && sh->changes.after < upto);
    hf__form_begin(&sh->segment);
    status = hf__store_changes(s, sh->store, &changes, upto, SHIP_SEGMENT, take_change, &f);
    if (status == HF_OK) {
        struct form_head *head = &sh->segment_head;

        *head = (struct form_head){.kind = FORM_LOG,
                                   .id = sh->manifest.id,
                                   .epoch = sh->manifest.epoch,
                                   .seq = tail->seq + 1,
                                   .first = sh->changes.after + 1,
                                   .last = changes.after,
                                   .from_us = tail->to_us,
                                   .to_us = f.covered.time_us,
                                   .check = f.check};
        if (changes.after < f.covered.change) /* it was cut: not all of that moment is in it */
            head->to_us = tail->to_us;
        if (head->to_us < tail->to_us)
            head->to_us = tail->to_us;
        memcpy(head->before, tail->hash, FORM_HASH);
        status = hf__form_end(s, &sh->form, head, &sh->segment, sh->segment_hash);
    }
    if (status != HF_OK)
        sh->segment.len = 0;
    else
        sh->changes = changes;
    return status;
}

/* Put the segment that was made. */
static enum hf_status segment_put(struct hf_scope *s, struct hf__shipper *sh)
{
    const struct form_head *head = &sh->segment_head;
    char name[FORM_NAME];

    hf__form_name(head, name);
    hf__kill_point("before_segment");
    TRY(hf__ship_put(s, sh, hf_str_from(name), hf_bytes_of(sh->segment.ptr, sh->segment.len), false,
                     NULL));
    hf__kill_point("after_segment");
    sh->manifest.tail = (struct backup_tail){.seq = head->seq,
                                             .to_us = head->to_us,
                                             .last = head->last,
                                             .check = head->check};
    memcpy(sh->manifest.tail.hash, sh->segment_hash, FORM_HASH);
    if (sh->manifest.to_us < head->to_us)
        sh->manifest.to_us = head->to_us;
    sh->manifest_dirty = true;
    sh->segment.len = 0;
    if (sh->segment.cap > 2 * SHIP_SEGMENT) {
        hf__buf_free(&sh->segment);
        sh->segment.env = &sh->env;
    }
    pthread_mutex_lock(&sh->lock);
    sh->shipped = head->last;
    marks_drop(sh, head->last);
    sh->status.segments = head->seq;
    sh->status.newest_us = sh->manifest.to_us;
    pthread_cond_broadcast(&sh->done);
    pthread_mutex_unlock(&sh->lock);
    hf__store_changes_release(sh->store, head->last); /* (5) */
    return HF_OK;
}

/* The newest change that has a mark, if changes are due to be shipped; otherwise 0. */
static uint64_t changes_due(struct hf__shipper *sh, bool all)
{
    int64_t now_us = hf__env_wall_us(&sh->env);
    uint64_t upto = 0;

    pthread_mutex_lock(&sh->lock);
    marks_drop(sh, sh->changes.after);
    if (sh->marks_len &&
        (all || sh->hurry || now_us - mark_at(sh, 0)->time_us >= (int64_t)sh->o.window_ms * 500 ||
         now_us < mark_at(sh, 0)->time_us))
        upto = sh->marked.change;
    pthread_mutex_unlock(&sh->lock);
    return upto;
}

enum hf_status hf__ship_changes(struct hf_scope *s, struct hf__shipper *sh, bool all)
{
    uint64_t upto = 0;

    if (sh->segment.len)
        TRY(segment_put(s, sh));
    upto = changes_due(sh, all);
    while (sh->changes.after < upto) {
        enum hf_status status = segment_make(s, sh, upto);

        if (status == HF_NOT_FOUND) {
            hf__env_log(
                &sh->env, HF_LOG_ERROR,
                "backup: the place was away for too long, and the journal has given up what "
                "it kept: shipping begins anew, with a snapshot (%s)",
                hf_scope_error_text(s));
            hf__scope_error_clear(s);
            hf__ship_snapshot_drop(sh);
            sh->breaks = true;
            sh->attached = false;
            return HF_OK;
        }
        TRY(status);
        TRY(segment_put(s, sh));
    }
    return HF_OK;
}

/* Nothing is to be shipped: then that is known up to now. */
static void note_idle(struct hf__shipper *sh)
{
    int64_t now_us = hf__env_wall_us(&sh->env); /* first: what became durable by then is in */
    uint64_t durable = hf__store_durable(sh->store);

    if (sh->segment.len || durable != sh->manifest.tail.last || now_us <= sh->manifest.to_us)
        return;
    pthread_mutex_lock(&sh->lock);
    if (sh->marked.time_us < now_us) /* (4) */
        sh->marked.time_us = now_us;
    pthread_mutex_unlock(&sh->lock);
    sh->manifest.to_us = now_us;
}

/* ---- a step --------------------------------------------------------------------------------- */

static bool is_snapshot_due(struct hf__shipper *sh)
{
    size_t len = manifest_snapshots(&sh->manifest);
    int64_t now_us = hf__env_wall_us(&sh->env);
    const struct backup_snapshot *newest = len ? manifest_snapshot(&sh->manifest, len - 1) : NULL;

    if (sh->snapshot.from || sh->wants_snapshot)
        return true;
    return newest && newest->last < sh->manifest.tail.last &&
           now_us - newest->time_us >= (int64_t)sh->o.snapshot_ms * 1000;
}

static bool is_manifest_due(struct hf__shipper *sh, bool all)
{
    int64_t age_ms = (hf__env_elapsed_us(&sh->env) - sh->manifest_us) / 1000;

    return all || age_ms >= (sh->manifest_dirty ? SHIP_MANIFEST_MS : SHIP_IDLE_MS);
}

static enum hf_status step_inside(struct hf_scope *s, struct hf__shipper *sh, bool all)
{
    if (!sh->attached) {
        TRY(hf__ship_attach(s, sh));
        assert(sh->attached);
    }
    TRY(hf__ship_changes(s, sh, all));
    if (!sh->attached) /* the next step begins anew */
        return HF_OK;
    while (is_snapshot_due(sh)) {
        TRY(hf__ship_snapshot_step(s, sh));
        if (!all)
            break;
    }
    if (is_manifest_due(sh, all)) {
        note_idle(sh);
        TRY(hf__ship_manifest(s, sh));
        pthread_mutex_lock(&sh->lock);
        sh->status.newest_us = sh->manifest.to_us;
        pthread_mutex_unlock(&sh->lock);
    }
    return HF_OK;
}

/* Is it something that only people can mend? */
static bool is_refusal(enum hf_status status)
{
    return status == HF_INVALID || status == HF_CORRUPT || status == HF_FORMAT;
}

static uint64_t lag_ms(struct hf__shipper *sh)
{
    int64_t age_us;

    ASSERT_HELD(&sh->lock);
    if (!sh->marks_len || sh->status.state == HF_BACKUP_FENCED)
        return 0;
    age_us = hf__env_wall_us(&sh->env) - mark_at(sh, 0)->time_us;
    return age_us > 0 ? (uint64_t)age_us / 1000 : 0;
}

/* Is the oldest change too old? Say when that changes. */
static void note_lag(struct hf__shipper *sh)
{
    bool behind, was = sh->was_behind;
    uint64_t lag;

    pthread_mutex_lock(&sh->lock);
    lag = lag_ms(sh);
    behind = lag > BEHIND_MS && lag > 3 * (uint64_t)sh->o.window_ms;
    if (behind && sh->status.state == HF_BACKUP_SHIPPING)
        sh->status.state = HF_BACKUP_BEHIND;
    if (!behind && sh->status.state == HF_BACKUP_BEHIND)
        sh->status.state = HF_BACKUP_SHIPPING;
    pthread_mutex_unlock(&sh->lock);
    if (behind && !was)
        hf__env_log(&sh->env, HF_LOG_ERROR,
                    "backup to %.*s is behind: changes of the last %llu seconds are not in it",
                    HF_FMT(hf__objects_url(sh->objects)), (unsigned long long)lag / 1000);
    if (was && !behind)
        hf__env_log(&sh->env, HF_LOG_INFO, "backup to %.*s has caught up",
                    HF_FMT(hf__objects_url(sh->objects)));
    sh->was_behind = behind;
}

/* Note how the step went, and say what people should know. */
static void note_step(struct hf_scope *s, struct hf__shipper *sh, enum hf_status status)
{
    bool failed = status != HF_OK && status != HF_LOST;

    pthread_mutex_lock(&sh->lock);
    sh->status.error[0] = '\0';
    if (failed) {
        sh->status.failures++;
        snprintf(sh->status.error, sizeof(sh->status.error), "%s", hf_scope_error_text(s));
    }
    if (sh->status.state != HF_BACKUP_FENCED && !sh->attached)
        sh->status.state = is_refusal(status) ? HF_BACKUP_REFUSED : HF_BACKUP_STARTING;
    pthread_mutex_unlock(&sh->lock);
    if (failed && !sh->backoff_ms)
        hf__env_log(&sh->env, is_refusal(status) ? HF_LOG_ERROR : HF_LOG_WARNING,
                    "backup to %.*s: %s; it is tried again", HF_FMT(hf__objects_url(sh->objects)),
                    hf_scope_error_text(s));
    note_lag(sh);
}

/* When to try again. */
static void note_retry(struct hf__shipper *sh, enum hf_status status)
{
    if (status == HF_OK) {
        sh->backoff_ms = 0;
        sh->retry_us = 0;
        return;
    }
    sh->backoff_ms = sh->backoff_ms ? sh->backoff_ms * 2 : SHIP_BACKOFF_MS;
    if (sh->backoff_ms > SHIP_BACKOFF_MAX_MS)
        sh->backoff_ms = SHIP_BACKOFF_MAX_MS;
    if (is_refusal(status))
        sh->backoff_ms = SHIP_REFUSED_MS;
    sh->retry_us = hf__env_elapsed_us(&sh->env) + (int64_t)sh->backoff_ms * 1000;
}

enum hf_status hf__ship_step(struct hf_scope *s, struct hf__shipper *shipper, bool all)
{
    enum hf_status status = HF_OK;

    if (shipper->status.state == HF_BACKUP_FENCED) { /* only this thread sets it */
        hf__store_changes_release(shipper->store, hf__store_written(shipper->store));
        return hf__fail(s, HF_LOST, "another process ships to %.*s now",
                        HF_FMT(hf__objects_url(shipper->objects)));
    }
    if (!all && shipper->retry_us > hf__env_elapsed_us(&shipper->env)) {
        note_lag(shipper);
        return HF_OK;
    }
    do
        status = step_inside(s, shipper, all);
    while (status == HF_OK && all && !shipper->attached);
    note_step(s, shipper, status);
    note_retry(shipper, status);
    return status;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool is_done(struct hf__shipper *sh, uint64_t upto)
{
    ASSERT_HELD(&sh->lock);
    return sh->shipped >= upto && sh->status.snapshots > 0;
}

enum hf_status hf__ship_wait(struct hf_scope *s, struct hf__shipper *shipper)
{
    enum hf_status status = HF_OK;
    uint64_t upto;

    hf__ship_mark(shipper);
    pthread_mutex_lock(&shipper->lock);
    upto = shipper->marked.change; /* all of a moment: a restore to a part of one is not possible */
    while (status == HF_OK && !is_done(shipper, upto)) {
        if (shipper->status.state == HF_BACKUP_FENCED) {
            status = hf__fail(s, HF_LOST, "another process ships to %.*s now",
                              HF_FMT(hf__objects_url(shipper->objects)));
            break;
        }
        shipper->hurry = true;
        pthread_cond_broadcast(&shipper->wake);
        cond_wait_ms(&shipper->done, &shipper->lock, WAIT_MS);
        status = hf__scope_alive(s);
        if (status != HF_OK && shipper->status.error[0])
            status = hf__fail(s, status, "the backup to %.*s is not up to date: %s",
                              HF_FMT(hf__objects_url(shipper->objects)), shipper->status.error);
    }
    pthread_mutex_unlock(&shipper->lock);
    return status;
}

void hf__ship_health(struct hf__shipper *shipper, struct hf_backup_health *health)
{
    uint64_t durable = hf__store_durable(shipper->store);
    struct store_stats stats;

    hf__store_stats(shipper->store, &stats);
    pthread_mutex_lock(&shipper->lock);
    *health = shipper->status;
    health->lag_ms = lag_ms(shipper);
    health->lag_changes = durable > shipper->shipped ? durable - shipper->shipped : 0;
    pthread_mutex_unlock(&shipper->lock);
    health->journal_bytes = stats.kept_bytes;
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *mark_thread(void *user)
{
    struct hf__shipper *sh = user;
    uint32_t every_ms = sh->o.window_ms / 4 < SHIP_MARK_MS ? sh->o.window_ms / 4 : SHIP_MARK_MS;

    pthread_mutex_lock(&sh->lock);
    while (!sh->closing) {
        pthread_mutex_unlock(&sh->lock);
        hf__ship_mark(sh);
        pthread_mutex_lock(&sh->lock);
        if (!sh->closing)
            cond_wait_ms(&sh->done, &sh->lock, every_ms);
    }
    pthread_mutex_unlock(&sh->lock);
    return NULL;
}

/* How long until there may be something to do. */
static uint32_t pause_ms(struct hf__shipper *sh)
{
    uint32_t tick = sh->o.window_ms / 4 < SHIP_MARK_MS ? sh->o.window_ms / 4 : SHIP_MARK_MS;

    ASSERT_HELD(&sh->lock);
    if (sh->snapshot.from && !sh->retry_us)
        return 0;
    return sh->marks_len || sh->retry_us ? tick : 1000;
}

static void *ship_thread(void *user)
{
    struct hf__shipper *sh = user;

    pthread_mutex_lock(&sh->lock);
    while (!sh->closing) {
        uint32_t pause;
        bool hurry = sh->hurry;

        hf_scope_reset(sh->work); /* not when a close has canceled it */
        hf_scope_timeout_ms(sh->work, SHIP_CALL_MS);
        pthread_mutex_unlock(&sh->lock);
        (void)hf__ship_step(sh->work, sh, false);
        pthread_mutex_lock(&sh->lock);
        if (hurry)
            sh->hurry = false;
        pause = pause_ms(sh);
        if (!sh->closing && pause)
            cond_wait_ms(&sh->wake, &sh->lock, pause);
    }
    pthread_mutex_unlock(&sh->lock);
    return NULL;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static enum hf_status start_threads(struct hf_scope *s, struct hf__shipper *sh)
{
    sh->has_threads = pthread_create(&sh->ship_thread, NULL, ship_thread, sh) == 0;
    if (sh->has_threads && pthread_create(&sh->mark_thread, NULL, mark_thread, sh)) {
        pthread_mutex_lock(&sh->lock);
        sh->closing = true;
        pthread_cond_broadcast(&sh->wake);
        pthread_mutex_unlock(&sh->lock);
        pthread_join(sh->ship_thread, NULL);
        sh->has_threads = false;
    }
    return sh->has_threads ? HF_OK
                           : hf__fail(s, HF_LIMIT,
                                      "Cannot start a thread for the backup; raise the limit of "
                                      "processes (ulimit -u)");
}

static enum hf_status keep_texts(struct hf_scope *s, struct hf__shipper *sh,
                                 const struct ship_options *options)
{
    sh->memory = hf_scope_new(&sh->env);
    sh->work = hf_scope_new(&sh->env);
    if (!sh->memory || !sh->work)
        return hf__fail_nomem(s);
    sh->o.to = hf_scope_copy(sh->memory, options->user.to);
    sh->directory = hf_scope_copy(sh->memory, options->directory);
    return sh->o.to.ptr && sh->directory.ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status open_inside(struct hf_scope *s, struct hf__shipper *sh,
                                  const struct ship_options *options)
{
    TRY(keep_texts(s, sh, options));
    TRY(hf__objects_open(s, &sh->env, sh->o.to, options->user.client, &sh->objects));
    if (sh->o.key_file.len)
        TRY(hf__seal_open(s, &sh->env, sh->o.key_file, &sh->seal));
    TRY(hf__signer_new(s, &sh->env, &sh->form.signer));
    sh->form.env = sh->env;
    sh->form.seal = sh->seal;
    sh->marks = hf__env_alloc(&sh->env, SHIP_MARKS_MAX * sizeof(*sh->marks));
    if (!sh->marks)
        return hf__fail_nomem(s);
    return options->no_threads ? HF_OK : start_threads(s, sh);
}

static void shipper_free(struct hf__shipper *sh)
{
    struct hf_env env = sh->env;

    hf__ship_snapshot_drop(sh);
    hf__buf_free(&sh->manifest.epochs);
    hf__buf_free(&sh->manifest.snapshots);
    hf__buf_free(&sh->segment);
    hf__buf_free(&sh->snapshot.part);
    hf__env_free(&env, sh->marks, sh->marks ? SHIP_MARKS_MAX * sizeof(*sh->marks) : 0);
    hf__signer_free(sh->form.signer);
    hf__seal_close(sh->seal);
    hf__objects_close(sh->objects);
    hf_scope_free(sh->work);
    hf_scope_free(sh->memory);
    pthread_cond_destroy(&sh->done);
    pthread_cond_destroy(&sh->wake);
    pthread_mutex_destroy(&sh->lock);
    hf__env_free(&env, sh, sizeof(*sh));
}

enum hf_status hf__ship_open(struct hf_scope *s, const struct hf_env *env, struct hf__store *store,
                             const struct ship_options *options, struct hf__shipper **shipper)
{
    struct hf_env whole = hf__env_fill(env);
    struct hf__shipper *made = hf__env_zalloc(&whole, sizeof(*made));
    enum hf_status status;

    *shipper = NULL;
    if (!made)
        return hf__fail_nomem(s);
    made->env = whole;
    made->store = store;
    made->o = options->user;
    made->segment.env = made->snapshot.part.env = &made->env;
    made->manifest.epochs.env = made->manifest.snapshots.env = &made->env;
    made->status.state = HF_BACKUP_STARTING;
    pthread_mutex_init(&made->lock, NULL);
    cond_monotonic_init(&made->wake);
    cond_monotonic_init(&made->done);
    status = open_inside(s, made, options);
    if (status != HF_OK) {
        shipper_free(made);
        return status;
    }
    *shipper = made;
    return HF_OK;
}

/* The last step: all that is durable, and a manifest that says so. */
static void ship_rest(struct hf__shipper *sh)
{
    struct hf_scope *s = hf_scope_new(&sh->env);
    enum hf_status status;

    if (!s)
        return;
    hf_scope_timeout_ms(s, sh->o.close_ms);
    hf__ship_snapshot_drop(sh); /* it would take too long; the next epoch takes one */
    sh->wants_snapshot = false;
    if (hf__store_sync(s, sh->store, hf__store_written(sh->store)) != HF_OK)
        hf__scope_error_clear(s); /* writes were stopped: what is durable is shipped */
    hf__ship_mark(sh);
    status = HF_OK;
    if (!sh->attached && !sh->backoff_ms && sh->status.state == HF_BACKUP_STARTING)
        status = hf__ship_attach(s, sh);
    if (status == HF_OK && sh->attached)
        status = hf__ship_changes(s, sh, true);
    if (status == HF_OK && sh->attached) {
        note_idle(sh);
        sh->manifest.closed = true;
        status = hf__ship_manifest(s, sh);
    }
    if (sh->status.state != HF_BACKUP_FENCED && (status != HF_OK || !sh->attached))
        hf__env_log(&sh->env, HF_LOG_WARNING,
                    "backup to %.*s: the newest changes were not shipped before the end%s%s",
                    HF_FMT(hf__objects_url(sh->objects)), status == HF_OK ? "" : ": ",
                    status == HF_OK ? "" : hf_scope_error_text(s));
    hf_scope_free(s);
}

void hf__ship_close(struct hf__shipper *shipper)
{
    if (!shipper)
        return;
    pthread_mutex_lock(&shipper->lock);
    shipper->closing = true;
    if (shipper->has_threads)
        hf_scope_cancel(shipper->work); /* a request that hangs is sent again below */
    pthread_cond_broadcast(&shipper->wake);
    pthread_cond_broadcast(&shipper->done);
    pthread_mutex_unlock(&shipper->lock);
    if (shipper->has_threads) {
        pthread_join(shipper->mark_thread, NULL);
        pthread_join(shipper->ship_thread, NULL);
    }
    ship_rest(shipper);
    shipper_free(shipper);
}
