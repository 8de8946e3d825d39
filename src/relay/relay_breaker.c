/*
 * relay/relay_breaker.c: whether the sink can be reached, and how much may be sent: the circuit
 * breaker and the rate.
 *
 *  (1) An outage lasts from the first failure of the sink as a whole until an event was sent. During
 *      an outage one event at a time is sent, after delays that double: so a sink whose probe succeeds
 *      and whose sends fail is called as rarely as one that cannot be reached.
 *  (2) An outage is reported once; another one with the same text soon after is not.
 *  (3) The rate is a bucket of tokens that holds those of RATE_BURST_MS.
 */
#include "relay/relay.h"

#include <stdio.h>

enum { RATE_BURST_MS = 100, PROBE_TIMEOUT_MS = 10000, ASKED_MAX_MS = 600000 };

/* ---- the rate ------------------------------------------------------------------------------- */

size_t hf__rate_allows(struct hf_relay *relay, size_t want, int64_t now_us, int64_t *next_us)
{
    double most = (double)relay->o.rate * RATE_BURST_MS / 1000;

    ASSERT_RELAY_HELD(relay);
    if (!relay->o.rate)
        return want;
    most = most < 1 ? 1 : most;
    relay->sender.tokens += (double)(now_us - relay->sender.tokens_us) * relay->o.rate / 1e6;
    relay->sender.tokens = relay->sender.tokens > most ? most : relay->sender.tokens;
    relay->sender.tokens_us = now_us;
    if (relay->sender.tokens >= 1)
        return (double)want < relay->sender.tokens ? want : (size_t)relay->sender.tokens;
    {
        int64_t at_us = now_us + (int64_t)((1 - relay->sender.tokens) * 1e6 / relay->o.rate) + 1;

        *next_us = at_us < *next_us ? at_us : *next_us;
    }
    return 0;
}

void hf__rate_spend(struct hf_relay *relay, size_t spent)
{
    ASSERT_RELAY_HELD(relay);
    if (relay->o.rate)
        relay->sender.tokens -= (double)spent;
}

/* ---- the breaker ---------------------------------------------------------------------------- */

/* (2) Report it? The same failure is reported once within the longest delay. */
static bool outage_is_news(struct hf_relay *relay, struct hf_str text, int64_t now_us)
{
    uint64_t hash = fnv_add(FNV_BEGIN, text.ptr, text.len);
    bool news =
        !relay->sender.breaker.reported_us || hash != relay->sender.breaker.reported_hash ||
        now_us - relay->sender.breaker.reported_us > (int64_t)relay->o.backoff_max_ms * 1000;

    if (news) {
        relay->sender.breaker.reported_hash = hash;
        relay->sender.breaker.reported_us = now_us;
    }
    return news;
}

void hf__breaker_failed(struct hf_relay *relay, bool was_probe, const struct hf_error *error,
                        bool *report)
{
    uint32_t wait_ms, asked_ms = error->retry_after_ms;
    int64_t now_us = relay_now_us(relay);

    ASSERT_RELAY_HELD(relay);
    *report = false;
    if (breaker_is_open(&relay->sender) && !was_probe)
        return;
    if (!breaker_has_outage(&relay->sender)) {
        relay->metrics.outages++;
        relay->sender.breaker.probe_wait_ms = relay->o.breaker_ms;
        *report = outage_is_news(relay, error->message, now_us);
    } else if (relay->sender.breaker.probe_wait_ms < relay->o.backoff_max_ms) {
        relay->sender.breaker.probe_wait_ms *= 2; /* (1) */
    }
    relay->sender.breaker.state = BREAKER_OPEN;
    if (relay->sender.breaker.probe_wait_ms > relay->o.backoff_max_ms)
        relay->sender.breaker.probe_wait_ms = relay->o.backoff_max_ms;
    wait_ms = hf__relay_backoff_ms(relay, relay->sender.breaker.probe_wait_ms, 1);
    asked_ms = asked_ms > ASKED_MAX_MS ? ASKED_MAX_MS : asked_ms;
    wait_ms = asked_ms > wait_ms ? asked_ms : wait_ms; /* it said how long */
    relay->sender.breaker.probe_us = now_us + (int64_t)wait_ms * 1000;
    snprintf(relay->sender.breaker.text, sizeof(relay->sender.breaker.text), "%.*s",
             HF_FMT(error->message));
}

void hf__breaker_passed(struct hf_relay *relay, bool was_probe)
{
    ASSERT_RELAY_HELD(relay);
    if (!breaker_has_outage(&relay->sender) || (breaker_is_open(&relay->sender) && !was_probe))
        return;
    relay->sender.breaker.state = BREAKER_CLOSED;
    hf__relay_signal(relay);
}

/* The sink has a way to be asked. */
void hf__probe_run(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;
    bool report;

    hf_scope_reset(worker->work);
    hf_scope_timeout_ms(worker->work, relay->o.timeout_ms < PROBE_TIMEOUT_MS ? relay->o.timeout_ms
                                                                             : PROBE_TIMEOUT_MS);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = true;
    pthread_mutex_unlock(&relay->mutex);
    status = hf_sink_probe(worker->work, relay->sink);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = false;
    relay->sender.breaker.probing = false;
    if (status == HF_OK)
        relay->sender.breaker.state =
            BREAKER_HALF_OPEN; /* one event may find out whether the outage is over (1) */
    else
        hf__breaker_failed(relay, true, hf_scope_error(worker->work), &report);
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}
