/*
 * relay/relay_pause.c: are all relays of the outbox to pause (outbox_pause.c)?
 *
 * An ordered relay sees it whenever it reads the members. A competing one has no members, and reads the
 * mark by itself: before its first claim (`unasked`), and then once in a heartbeat.
 *
 *  (1) A relay begins no delivery before it has seen whether it is to pause. While the table cannot be
 *      read, what it saw last counts; that is reported, as a relay that has seen nothing delivers nothing.
 */
#include "relay/relay.h"

enum { AGAIN_MS = 1000 }; /* after the table could not be read */

void hf__relay_pause_all(struct hf_relay *relay, bool paused)
{
    pthread_mutex_lock(&relay->mutex);
    if (!paused && (relay->all_paused || relay->unasked))
        pthread_cond_broadcast(&relay->work_cond);
    relay->all_paused = paused;
    relay->unasked = false;
    pthread_mutex_unlock(&relay->mutex);
}

int64_t hf__relay_pause_look(struct hf_relay *relay)
{
    int64_t now_us = relay_now_us(relay);
    uint32_t wait_ms = relay->o.heartbeat_ms;
    struct hf_outbox_pause pause;

    if (now_us >= relay->heartbeat.pause_us) {
        hf__relay_begin(relay, relay->heartbeat.scope, relay->o.heartbeat_ms);
        if (hf_outbox_paused(relay->heartbeat.scope, relay->outbox, &pause) == HF_OK) {
            hf__relay_pause_all(relay, pause.paused);
        } else {
            hf__relay_report_error(relay, relay->heartbeat.scope);
            wait_ms = wait_ms < AGAIN_MS ? wait_ms : AGAIN_MS;
        }
        hf__relay_consumed(relay, relay->heartbeat.scope);
        now_us = relay_now_us(relay);
        relay->heartbeat.pause_us = now_us + (int64_t)wait_ms * 1000;
    }
    return relay->heartbeat.pause_us - now_us;
}
