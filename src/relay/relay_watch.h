/*
 * relay/relay_watch.h: news of the outbox by the stream of its table. relay_watch.c has the essay.
 *
 * One thread at a time uses all of this, the watcher or hf_relay_step(); the mutex of the relay
 * guards `thread` and `inside`.
 */
#ifndef HF_RELAY_RELAY_WATCH_H
#define HF_RELAY_RELAY_WATCH_H

#include "outbox/outbox.h"

#include "coord/pattern.h"

struct hf_relay;
struct relay_shard;

/* Where the shards of the stream are to be read on; in the scope of the last round. */
struct shard_list {
    struct hf_str arn;
    struct relay_shard *shards;
    size_t len; /* 0: there is no list */
};

struct relay_watch {
    struct timer *timer;
    struct hf_scope *scopes[2];
    bool second; /* the list is in the second one */
    struct shard_list list;
    int64_t next_us; /* when the stream is read next */
    uint32_t failures;
    pthread_t thread; /* the thread that is inside, if there is one */
    bool inside;      /* a thread asks at this moment */
};

/* Ask what is new. Returns in how many microseconds to ask again. */
int64_t hf__relay_watch_step(struct hf_relay *relay);

/* DEV_CHECKS. */
void hf__relay_watch_check(const struct hf_relay *relay);

#endif
