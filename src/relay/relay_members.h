/*
 * relay/relay_members.h: the relays of an outbox, and which of them each bucket belongs to.
 * relay_member.c has the essay, relay_member_item.c what is stored.
 *
 * The heartbeat thread alone uses struct relay_members, but for the fields at its end, which the
 * mutex of the relay guards.
 */
#ifndef HF_RELAY_RELAY_MEMBERS_H
#define HF_RELAY_RELAY_MEMBERS_H

#include "relay/relay_sender.h"

#include "coord/lease.h"
#include "coord/watch.h"

struct relay_member {
    struct pattern_id id;
    bool differs;               /* it delivers another part of the events than we do */
    char only[RELAY_TEXT_MAX];  /* the part that it delivers; "": all */
    char owner[RELAY_TEXT_MAX]; /* for people */
    struct watch_sight sight;   /* of its beat */
    uint32_t lease_ms;
    bool stopped;
    bool orphaned; /* opener.c: it has ended, however long its lease */
    bool there;    /* it was in the last answer */
};

struct relay_row { /* b.n as it was read */
    bool there;
    struct pattern_id owner; /* empty: nobody */
    uint64_t fence;
    uint32_t window; /* relay_suspect.c */
};

struct relay_members {
    struct pattern_id id; /* ours */
    uint64_t beat;
    bool joined;
    struct relay_member *list; /* by id, we among them */
    size_t len, size;
    struct relay_row *rows; /* of each bucket */
    uint32_t *plan;         /* by bucket: the member that should own it, a place in `list` */
    int64_t look_us;        /* when to read the others next */

    /* the mutex guards these */
    struct lease lease; /* until_us 0: we have none; due_us is the heartbeat thread's alone */
    bool leaving;       /* a bucket waits to be released until its work has ended */
    bool complete;      /* we owned all buckets of our plan when the others were read last */
    bool yields;        /* a relay that delivers another part was first */
};

/* ---- relay_member.c ------------------------------------------------------------------------- */

/* Do what is due: renew, look, take, release. Returns in how many microseconds to call it again. */
int64_t hf__member_step(struct hf_relay *relay);

/* Release all buckets, and leave. On failure the others notice it when the lease has ended. */
enum hf_status hf__member_leave(struct hf_relay *relay, uint32_t timeout_ms);

/* The lease has ended: drop all buckets. The mutex is held. */
void hf__member_drop(struct hf_relay *relay);

/* Plan the owners: plan[bucket] is a place in ids (sorted). All relays that know the same ids make the
 * same plan; the numbers of buckets differ by at most one. */
void hf__member_plan(const struct pattern_id *ids, size_t ids_len, uint32_t *plan, uint32_t buckets,
                     uint32_t *loads);

/* Nothing is ours without a lease. DEV_CHECKS. The mutex is held. */
void hf__members_check(const struct hf_relay *relay);

/* ---- relay_member_item.c: the items, in the scope of the heartbeat thread ------------------- */

static inline int compare_ids(const struct pattern_id *a, const struct pattern_id *b)
{
    return memcmp(a->text, b->text, PATTERN_ID_LEN);
}

struct relay_member *hf__member_find(const struct hf_relay *relay, const struct pattern_id *id);

/* Send a heartbeat; the first one creates our item. HF_LOST: we were removed. */
enum hf_status hf__member_send_beat(struct hf_relay *relay, bool first);

/* Take a bucket that has no owner, or one that has ended. HF_CONDITION: another relay was faster. */
enum hf_status hf__member_send_take(struct hf_relay *relay, uint32_t bucket, uint32_t window);

/* HF_OK: it is not ours any more. `over`: no suspects are left in it. */
enum hf_status hf__member_send_release(struct hf_relay *relay, uint32_t bucket, uint64_t fence,
                                       bool over);

/* The bucket has no window any more. HF_OK: it is removed, or not ours. */
enum hf_status hf__member_send_window(struct hf_relay *relay, uint32_t bucket, uint64_t fence);

/* Mark our item as stopped; and remove the item of a member. */
enum hf_status hf__member_send_stopped(struct hf_relay *relay);
enum hf_status hf__member_send_remove(struct hf_relay *relay, const struct relay_member *member);

/* Read all members and rows: one query. */
enum hf_status hf__member_read_all(struct hf_relay *relay);

#endif
