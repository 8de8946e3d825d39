/*
 * db/batch_sender.c: many entries, sent in batches until all are done.
 *
 * The entries that are not done are a list in their order. A batch is always the first few of that
 * list. What always holds:
 *
 *  (1) An entry is sent only with or after all earlier ones that are not done. So of two entries
 *      for one key the later is never done first: were both in one batch, the service would refuse
 *      it, and smaller batches follow until they are in two.
 *  (2) A batch that is refused as a whole is halved; one that went through lets the next be twice
 *      as large. When a single entry is refused, that is the one at fault.
 *  (3) An entry is sent at most `attempts` times in vain, and delays are capped, so it ends.
 *  (4) The list is allocated at the start, so that what is left can be reported even when there is no
 *      memory for anything else.
 */
#include "db/batch_sender.h"

#include "base/assert_held.h"

enum { ATTEMPTS = 10, DELAY_MS = 50, DELAY_MAX_MS = 5000 };

enum hf_status hf__db_batch_start(struct hf_scope *s, struct batch_sender *m,
                                  const struct hf_many_options *options)
{
    struct hf_many_options *o = &m->options;

    *o = (struct hf_many_options){.size = sizeof(*o)};
    if (options)
        memcpy(o, options,
               options->size && options->size < sizeof(*o) ? options->size : sizeof(*o));
    o->max_attempts = o->max_attempts ? o->max_attempts : ATTEMPTS;
    o->backoff_ms = o->backoff_ms ? o->backoff_ms : DELAY_MS;
    o->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : DELAY_MAX_MS;
    m->delay_ms = o->backoff_ms < o->backoff_max_ms ? o->backoff_ms : o->backoff_max_ms;
    assert(m->batch_max > 0 && m->batch_max <= BATCH_GETS_MAX);
    m->most = m->batch_max;
    m->pending = hf__scope_array(s, m->len, sizeof(*m->pending));
    m->tries = hf__scope_array(s, m->len, sizeof(*m->tries));
    if (!m->pending || !m->tries)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < m->len; i++)
        m->pending[i] = i;
    m->pending_len = m->len;
    return HF_OK;
}

enum hf_status hf__db_batch_name_entry(struct hf_scope *s, const struct batch_sender *m,
                                       size_t entry, enum hf_status status)
{
    struct hf_error *error = hf__scope_error_edit(s);
    struct hf_str text = hf_scope_format(s, "entry %zu (table %.*s): %.*s", entry,
                                         HF_FMT(m->table(m, entry)), HF_FMT(error->message));

    if (text.ptr)
        error->message = text;
    return status;
}

/* ---- when something was not taken ----------------------------------------------------------- */

/* Because of what an entry is, not because of the moment. */
static bool is_refusal(enum hf_status status)
{
    return status == HF_INVALID || status == HF_NOT_FOUND || status == HF_COLLECTION_SIZE ||
           status == HF_SERIALIZATION || status == HF_DENIED;
}

/* The error that says how many are left, with all that the last one knew. */
static enum hf_status give_up(struct hf_scope *s, const struct batch_sender *m,
                              enum hf_status status, const char *why)
{
    struct hf_error last = *hf_scope_error(s);
    size_t first = m->pending[0];

    assert(status != HF_OK && m->pending_len > 0);
    hf__fail(s, status, "%zu of %zu %s are left, the first is entry %zu (table %.*s): %s%s%.*s",
             m->pending_len, m->len, m->what, first, HF_FMT(m->table(m, first)), why,
             last.status ? ": " : "", HF_FMT(last.message));
    hf__scope_error_edit(s)->may_retry = true;
    hf__scope_error_edit(s)->may_have_happened = last.may_have_happened;
    hf__scope_error_edit(s)->retry_after_ms = last.retry_after_ms;
    hf__scope_error_edit(s)->operation = last.operation;
    hf__scope_error_edit(s)->exception = last.exception;
    return status;
}

/* Wait before the next batch: half of the delay, and a random part of the other half. */
static enum hf_status back_off(struct hf_scope *s, struct batch_sender *m)
{
    uint32_t least = hf_scope_error(s)->retry_after_ms, ms, random;
    struct hf_error last = *hf_scope_error(s);
    enum hf_status status;

    hf__env_random(hf__scope_env(s), &random, sizeof(random));
    ms = m->delay_ms / 2 + random % (m->delay_ms - m->delay_ms / 2 + 1);
    status = hf_scope_sleep_ms(s, ms > least ? ms : least);
    m->delay_ms =
        m->delay_ms > m->options.backoff_max_ms / 2 ? m->options.backoff_max_ms : m->delay_ms * 2;
    if (status == HF_TIMEOUT) {
        *hf__scope_error_edit(s) = last;
        return give_up(s, m, HF_TIMEOUT, "the deadline comes before the next attempt");
    }
    return status;
}

/* Take what is done out of the list; (3) may end it all. */
static bool sort_out(struct batch_sender *m, size_t n, const bool *done)
{
    size_t kept = 0;
    bool exhausted = false;

    assert(n <= m->pending_len);
    for (size_t i = 0; i < n; i++)
        if (!done[i]) {
            size_t entry = m->pending[i];

            m->pending[kept++] = entry;
            exhausted = ++m->tries[entry] >= m->options.max_attempts || exhausted;
        }
    memmove(m->pending + kept, m->pending + n, (m->pending_len - n) * sizeof(*m->pending));
    m->pending_len -= n - kept;
    for (size_t i = 1; DEV_CHECKS && i < m->pending_len; i++)
        assert(m->pending[i - 1] < m->pending[i]);
    return exhausted;
}

/* ---- a batch after the other ---------------------------------------------------------------- */

static enum hf_status one_batch(struct hf_scope *s, struct batch_sender *m)
{
    size_t n = m->pending_len < m->most ? m->pending_len : m->most;
    bool done[BATCH_GETS_MAX] = {false};
    size_t before = m->pending_len;
    enum hf_status status;
    bool exhausted;

    if (m->fit)
        n = m->fit(s, m, n);
    assert(n > 0 && n <= m->pending_len && n <= m->batch_max);
    m->calls++;
    status = m->send(s, m, n, done);
    if (is_refusal(status) && n > 1) { /* (2) */
        m->most = n / 2;
        return HF_OK;
    }
    if (is_refusal(status))
        return hf__db_batch_name_entry(s, m, m->pending[0], status);
    if (status != HF_OK && (status == HF_NOMEM || !hf_scope_error(s)->may_retry))
        return status;
    exhausted = sort_out(m, n, done);
    if (exhausted)
        return give_up(s, m, status == HF_OK ? HF_THROTTLED : status,
                       "the limit of attempts is reached");
    if (m->pending_len + n > before)
        return back_off(s, m);
    m->most = m->most * 2 < m->batch_max ? m->most * 2 : m->batch_max;
    m->delay_ms = m->options.backoff_ms < m->options.backoff_max_ms ? m->options.backoff_ms
                                                                    : m->options.backoff_max_ms;
    return HF_OK;
}

enum hf_status hf__db_batch_run(struct hf_scope *s, struct batch_sender *m)
{
    while (m->pending_len) {
        struct hf__mark mark = hf__scope_mark(s);

        TRY(one_batch(s, m));
        if (!m->keep_memory)
            hf__scope_rewind(s, mark);
    }
    hf__scope_error_clear(s);
    return HF_OK;
}
