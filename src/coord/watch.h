/*
 * coord/watch.h: which heartbeats of others were seen, and since when. watch.c has the essay.
 */
#ifndef HF_COORD_WATCH_H
#define HF_COORD_WATCH_H

#include <holdfast/base.h>
#include <holdfast/env.h>

enum {
    WATCH_ID_LEN = 32,   /* of a holder's id; others are cut or filled up */
    WATCH_SETS = 256,    /* a power of two */
    WATCH_WAYS = 4,      /* holders that a new set has room for */
    WATCH_WAYS_MAX = 64, /* holders that a set has room for at most */
    WATCH_FRESH_MS =
        120000 /* a holder that was looked at so recently is not forgotten for another */
};

/* One heartbeat, and when it was seen first. All times are of the elapsed clock. */
struct watch_sight {
    uint64_t beat;
    int64_t since_us;
    bool seen;
};

/* When this beat was seen first: now, unless it was before. */
int64_t hf__watch_see(struct watch_sight *sight, uint64_t beat, int64_t now_us);

/* Until it has been silent for its lease, in microseconds; 0: it has. */
int64_t hf__watch_silent_in(int64_t since_us, uint32_t lease_ms, int64_t now_us);

struct watch_slot {
    char id[WATCH_ID_LEN];
    struct watch_sight sight;
    int64_t looked_us;
};

/* Heartbeats of many holders. Its owner's mutex guards it. */
struct watch {
    const struct hf_env *env;
    struct watch_set {
        struct watch_slot *slots;
        size_t len;
    } sets[WATCH_SETS];
};

/* Zero but for `env` is an empty one. */
void hf__watch_free(struct watch *watch);

/* When this beat of that holder was seen first, as above. Without memory for it: now. */
int64_t hf__watch_holder(struct watch *watch, struct hf_str id, uint64_t beat, int64_t now_us);

#endif
