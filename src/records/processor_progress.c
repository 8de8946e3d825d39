/*
 * records/processor_progress.c: how far a processor is, what it reports, and where it can go on.
 *
 *  (1) Figures are taken under one mutex, so they add up at any moment.
 *  (2) The rate is that of the last samples, which are about a second apart, so that a slow start
 *      or a long pause does not spoil it forever.
 *  (3) A checkpoint is an item as JSON: the figures, and a place in the index.
 */
#include "base/assert_held.h"
#include "records/processor.h"

enum { SAMPLE_US = 1000000, CHECKPOINT_VERSION = 1 };

/* ---- progress ------------------------------------------------------------------------------- */

static uint64_t done_of(const struct hf_processor_metrics *m)
{
    return m->completed + m->failed + m->exhausted;
}

void hf__processor_sample(struct hf_processor *p)
{
    int64_t now_us = hf__env_elapsed_us(&p->env);

    ASSERT_HELD(&p->mutex);
    assert(p->samples_len <= SAMPLES);
    if (p->samples_len && now_us - p->samples[p->samples_len - 1].us < SAMPLE_US)
        return;
    if (p->samples_len == SAMPLES)
        memmove(p->samples, p->samples + 1, --p->samples_len * sizeof(p->samples[0]));
    p->samples[p->samples_len].us = now_us;
    p->samples[p->samples_len++].done = done_of(&p->metrics);
}

/* The mutex is held. */
static void progress_measure(struct hf_processor *p, struct hf_processor_progress *progress)
{
    int64_t now_us = p->ended_us ? p->ended_us : hf__env_elapsed_us(&p->env);
    uint64_t done = done_of(&p->metrics);

    ASSERT_HELD(&p->mutex);
    *progress =
        (struct hf_processor_progress){.metrics = p->metrics, .total = p->total, .eta_ms = -1};
    if (p->started_us)
        progress->elapsed_ms = p->elapsed_ms + (now_us - p->started_us) / 1000;
    if (p->samples_len && now_us > p->samples[0].us)
        progress->rate =
            (double)(done - p->samples[0].done) * 1e6 / (double)(now_us - p->samples[0].us);
    if (p->total && done >= p->total)
        progress->eta_ms = 0;
    else if (p->total && progress->rate > 0)
        progress->eta_ms = (int64_t)((double)(p->total - done) * 1e3 / progress->rate);
}

void hf_processor_progress(struct hf_processor *p, struct hf_processor_progress *progress)
{
    pthread_mutex_lock(&p->mutex);
    progress_measure(p, progress);
    pthread_mutex_unlock(&p->mutex);
}

int64_t hf__processor_notify_due_us(struct hf_processor *p)
{
    int64_t at_us;

    if (!p->o.on_progress)
        return INT64_MAX;
    pthread_mutex_lock(&p->mutex);
    at_us = p->notified_us + (int64_t)p->o.progress_ms * 1000;
    pthread_mutex_unlock(&p->mutex);
    return at_us;
}

void hf__processor_notify(struct hf_processor *p, bool now)
{
    struct hf_processor_progress progress;
    int64_t now_us;
    bool due;

    if (!p->o.on_progress)
        return;
    now_us = hf__env_elapsed_us(&p->env);
    pthread_mutex_lock(&p->mutex);
    hf__processor_sample(p);
    due = now || now_us - p->notified_us >= (int64_t)p->o.progress_ms * 1000;
    if (due) {
        p->notified_us = now_us;
        progress_measure(p, &progress);
    }
    pthread_mutex_unlock(&p->mutex);
    if (due)
        p->o.on_progress(&progress, p->o.user);
}

/* ---- errors --------------------------------------------------------------------------------- */

static char *text_append(char *to, struct hf_str text, struct hf_str *kept)
{
    if (text.len)
        memcpy(to, text.ptr, text.len);
    *kept = hf_str_of(to, text.len);
    return to + text.len;
}

void hf__processor_keep_error(struct hf_processor *p, const struct hf_record_info *info,
                              enum hf_status status, struct hf_str text)
{
    size_t size = sizeof(struct error_entry) + info->account.len + info->run_time.len + text.len;
    struct error_entry *entry;
    char *to;

    ASSERT_HELD(&p->mutex);
    if (p->errors_len >= p->o.max_errors)
        return;
    entry = hf__env_zalloc(&p->env, size);
    if (!entry)
        return; /* it is counted, and the record tells it, too */
    entry->size = size;
    entry->status = status;
    entry->attempts = info->attempts;
    to = text_append(entry->bytes, info->account, &entry->account);
    to = text_append(to, info->run_time, &entry->run_time);
    to = text_append(to, text, &entry->text);
    assert(to == entry->bytes + size - sizeof(*entry));
    *p->errors_last = entry;
    p->errors_last = &entry->next;
    p->errors_len++;
}

void hf__processor_free_errors(struct hf_processor *p)
{
    while (p->errors) {
        struct error_entry *entry = p->errors;

        p->errors = entry->next;
        hf__env_free(&p->env, entry, entry->size);
    }
    p->errors_last = &p->errors;
    p->errors_len = 0;
}

/* ---- checkpoints ---------------------------------------------------------------------------- */

struct hf_str hf__processor_checkpoint(struct hf_scope *s, struct hf_processor *p)
{
    const struct hf_processor_metrics *m = &p->metrics;
    struct hf_processor_progress progress;

    progress_measure(p, &progress);
    return hf_item_to_json(
        s, HF_ITEM(s, HF_N("version", CHECKPOINT_VERSION), HF_N("shard", p->shard),
                   HF_S("account", p->at.account.ptr ? p->at.account : HF_STR("")),
                   HF_S("run_time", p->at.run_time.ptr ? p->at.run_time : HF_STR("")),
                   HF_N("elapsed_ms", progress.elapsed_ms), HF_N("begun", m->begun),
                   HF_N("completed", m->completed), HF_N("retried", m->retried),
                   HF_N("failed", m->failed), HF_N("lost", m->lost), HF_N("released", m->released),
                   HF_N("unsure", m->unsure), HF_N("exhausted", m->exhausted),
                   HF_N("taken_over", m->taken_over), HF_N("refused", m->refused),
                   HF_N("trouble", m->trouble)));
}

static bool number_of(struct hf_item item, const char *name, uint64_t *out)
{
    int64_t number;

    if (!hf_value_i64(hf_item_get(item, hf_str_from(name)), &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

enum hf_status hf__processor_resume(struct hf_scope *s, struct hf_processor *p, struct hf_str text)
{
    struct hf_processor_metrics *m = &p->metrics;
    uint64_t version = 0, shard, elapsed_ms;
    struct hf_item item = {0};

    if (hf_item_from_json(s, text, &item) == HF_NOMEM)
        return HF_NOMEM;
    if (!number_of(item, "version", &version) || version != CHECKPOINT_VERSION ||
        !number_of(item, "shard", &shard) || !number_of(item, "elapsed_ms", &elapsed_ms) ||
        !number_of(item, "begun", &m->begun) || !number_of(item, "completed", &m->completed) ||
        !number_of(item, "retried", &m->retried) || !number_of(item, "failed", &m->failed) ||
        !number_of(item, "lost", &m->lost) || !number_of(item, "released", &m->released) ||
        !number_of(item, "unsure", &m->unsure) || !number_of(item, "exhausted", &m->exhausted) ||
        !number_of(item, "taken_over", &m->taken_over) ||
        !number_of(item, "refused", &m->refused) || !number_of(item, "trouble", &m->trouble))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" is not a checkpoint of a processor",
                             HF_FMT(text));
    p->shard = (uint32_t)(shard % p->records->shards);
    p->elapsed_ms = (int64_t)elapsed_ms;
    p->at.account = hf_scope_copy(p->cursor, hf_value_str(hf_item_get(item, HF_STR("account"))));
    p->at.run_time = hf_scope_copy(p->cursor, hf_value_str(hf_item_get(item, HF_STR("run_time"))));
    if (!p->at.account.len || !p->at.run_time.len)
        p->at = NO_KEY;
    if (hf_scope_built(p->cursor) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a checkpoint");
    return hf_scope_ok(s);
}

/* ---- the report ----------------------------------------------------------------------------- */

enum hf_status hf__processor_report(struct hf_scope *s, struct hf_processor *p, bool left,
                                    struct hf_processor_report *report)
{
    struct hf_processor_error *errors;
    struct hf_processor_progress progress;
    size_t len = 0;

    pthread_mutex_lock(&p->mutex);
    progress_measure(p, &progress);
    report->metrics = p->metrics;
    report->total = p->total > done_of(&p->metrics) ? p->total : done_of(&p->metrics);
    report->elapsed_ms = progress.elapsed_ms;
    if (left)
        report->checkpoint = hf__processor_checkpoint(s, p);
    errors = hf_scope_alloc(s, (p->errors_len + 1) * sizeof(*errors));
    for (const struct error_entry *e = p->errors; e && errors; e = e->next)
        errors[len++] = (struct hf_processor_error){.account = hf_scope_copy(s, e->account),
                                                    .run_time = hf_scope_copy(s, e->run_time),
                                                    .status = e->status,
                                                    .text = hf_scope_copy(s, e->text),
                                                    .attempts = e->attempts};
    pthread_mutex_unlock(&p->mutex);
    assert(!errors || len == p->errors_len);
    report->errors = errors;
    report->errors_len = len;
    return hf_scope_built(s);
}
