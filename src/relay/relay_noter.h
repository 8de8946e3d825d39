/*
 * relay/relay_noter.h: events that were delivered, and have to leave the table. relay_note.c has
 * the essay.
 *
 * The mutex of the relay guards all of this. It is held in all functions below but for
 * hf__note_run(), which takes it.
 */
#ifndef HF_RELAY_RELAY_NOTER_H
#define HF_RELAY_RELAY_NOTER_H

#include "relay/relay_keys.h"

struct relay_worker;

enum {
    RELAY_NOTE_MAX = 100,   /* events of one call that notes deliveries */
    RELAY_NOTE_BEHIND = 400 /* when so many wait to be noted, nothing else is done */
};

struct relay_noter {
    struct held *first, **last; /* HELD_DELIVERED, and orphans that were */
    size_t len;
    uint32_t running; /* workers that note some */
    int64_t not_before_us;
    uint32_t failures;
};

/* Add a delivered event to those that have to be noted. */
void hf__note_add(struct hf_relay *relay, struct held *held);

/* Take events that have to be noted and are still ours. */
size_t hf__note_take(struct hf_relay *relay, int64_t now_us, struct held **batch);
void hf__note_run(struct relay_worker *worker, struct held *batch, size_t len);

/* May a worker note some now? *next_us: if not, when. */
bool hf__note_may(const struct hf_relay *relay, int64_t now_us, int64_t *next_us);

/* Does noting have to come before other tasks? Until then the batch grows. */
bool hf__note_is_pressing(const struct hf_relay *relay, int64_t now_us);

/* DEV_CHECKS. */
void hf__noter_check(const struct hf_relay *relay);

#endif
