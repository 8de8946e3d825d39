/*
 * events/store/append.h: an append on its way; what events_append.c, events_append_ids.c,
 * events_append_tx.c and events_append_large.c share.
 */
#ifndef HF_EVENTS_STORE_APPEND_H
#define HF_EVENTS_STORE_APPEND_H

#include "events/store/events.h"

/* One event on its way. `event` points into this struct and into what the caller gave. */
struct append_event {
    struct hf_stored_event event;
    struct events_position position;
    uint8_t content[EVENTS_HASH];
    uint8_t hash[EVENTS_HASH];
    char sk[EVENTS_VERSION_LEN + 1];
    size_t size;          /* of its item, at most */
    bool chosen;          /* the caller chose its id */
    bool own_correlation; /* it is its own id */
    bool in_blob;         /* its payload goes to the blob store */
    char blob[HF_BLOB_DIGEST_LEN];
    struct hf_item map;
};

/* One stream of an append. */
struct append_target {
    const struct hf_append *append;
    struct hf_str pk;        /* s.STREAM */
    struct events_head head; /* as it was seen */
    struct events_head next; /* as it will be */
    bool known;              /* `head` was looked up, or remembered from an earlier append */
    bool fresh;              /* `head` was read since the append began */
    struct append_event *events;
    size_t len;
};

/* Events of one stream that become one item of the global order. */
struct append_commit {
    struct append_target *target;
    size_t first, len; /* of the events of the target */
    struct events_position position;
};

/* What an action is about, to know it again in the reasons of a refusal. */
enum action_kind {
    ACTION_WITH,
    ACTION_HEAD,
    ACTION_EVENT,
    ACTION_COMMIT,
    ACTION_MARKER,
    ACTION_ID,
    ACTION_RELATED,
    ACTION_BEGUN
};
struct append_action {
    enum action_kind kind;
    uint32_t index; /* of the target, or of the event among all */
};

struct appending {
    struct hf_scope *s;
    struct hf_events *store;
    struct hf_append_options o;
    struct append_target *targets;
    size_t len;
    struct append_event *events; /* of all targets, one after the other */
    size_t events_len;
    size_t chosen;    /* events with ids that the caller chose */
    size_t positions; /* chosen ids that look like positions */
    size_t related;   /* how many r.* items there will be */
    struct append_commit *commits;
    size_t commits_len;
    size_t bytes; /* of all that is put, at most */
    uint32_t shard;
    uint32_t moved;             /* attempts that were refused by heads */
    uint32_t closed;            /* attempts that were refused by markers */
    bool ambiguous;             /* the last request may have happened, or may still happen */
    bool may_still_happen;      /* it was refused since, by an archive, which can be left again:
                                   a request that is under way may still succeed */
    struct hf_str begun;        /* COMMIT of a large append, of this attempt */
    struct hf_str begun_before; /* COMMIT of the attempt before */
    struct hf_transact_write *actions;
    struct append_action *what; /* of each action */
    size_t actions_len;
    struct hf_appended *results; /* may be NULL */
};

/* What always holds once the events are divided among commits. */
void hf__append_check(const struct appending *a);

/* ---- events_append.c ------------------------------------------------------------------------ */

/* Know the heads, by memory if that is allowed, and hold the expectations against them. HF_OK with
 * *repeated: the events are there already, and the results say so. */
enum hf_status hf__append_heads(struct appending *a, bool remembered, bool *repeated);

/* Divide the events among commits: of so many bytes, if `by_bytes`. */
enum hf_status hf__append_divide(struct appending *a, bool by_bytes);

/* Positions, versions and hashes, from that position on. It is greater than those of the heads. */
void hf__append_place(struct appending *a, const struct events_position *base);

/* The map of an event that was placed. */
enum hf_status hf__append_map(struct appending *a, struct append_event *p);

/* The actions that append what was placed. */
enum hf_status hf__append_actions(struct appending *a);
enum hf_status hf__append_add(struct appending *a, struct hf_transact_write action,
                              enum action_kind kind, size_t index);
enum hf_status hf__append_add_put(struct appending *a, struct hf_item item, enum action_kind kind,
                                  size_t index);
enum hf_status hf__append_add_head(struct appending *a, size_t target);
enum hf_status hf__append_add_marker(struct appending *a);
size_t hf__append_actions_len(const struct appending *a);
/* Is there anything to be said about its head? */
bool hf__append_has_head(const struct append_target *t);

/* The items of r.* for the cause and the correlation of an event: at most two. `large` as below. */
size_t hf__append_related(struct appending *a, const struct append_target *t,
                          const struct append_event *p, struct hf_str large, size_t number,
                          struct hf_item items[2]);

/* Copies of requests in the scope; NULL without memory. */
#define APPEND_KEEP(s, request) hf__append_keep((s), &(request), sizeof(request))
void *hf__append_keep(struct hf_scope *s, const void *request, size_t size);

/* Take over the head that a refusal had with it, or that was read. */
enum hf_status hf__append_learn(struct appending *a, struct append_target *t, struct hf_item item);

/* Send the actions until it is known what became of them. */
enum append_verdict {
    APPEND_DONE,
    APPEND_RETRY,   /* others were faster: what is known of heads and positions has been renewed */
    APPEND_REPEATED /* all events were there before, and the results say so */
};
enum hf_status hf__append_send(struct appending *a, enum append_verdict *verdict);

/* It has happened: remember the heads, fill in the results, and wake the listeners. */
void hf__append_done(struct appending *a);
void hf__append_results(struct appending *a);

/* Before the next attempt: fails when there were as many as are allowed, and waits a little. */
enum hf_status hf__append_wait(struct appending *a);

/* ---- events_append_ids.c -------------------------------------------------------------------- */

/* No id twice among the events. */
enum hf_status hf__append_check_ids(struct appending *a);

/* i.ID of an event that was placed. `large` is absent for an ordinary append. */
struct hf_item hf__append_id_item(struct appending *a, const struct append_target *t,
                                  const struct append_event *p, struct hf_str large, size_t number);

/* Look for the chosen ids. *found: some are there. HF_OK with *repeated: all of them are, as they
 * are here, and the results say so; HF_DUPLICATE: some are, or others. */
enum hf_status hf__append_look_for_ids(struct appending *a, bool *repeated);

/* ---- events_blob.c -------------------------------------------------------------------------- */

/* Decide where the payload of an event goes whose size is known. HF_LIMIT. */
enum hf_status hf__append_measure(struct appending *a, struct append_event *p);

/* Put payloads into the blob store, those that are not there yet. */
enum hf_status hf__append_blobs(struct appending *a);

/* ---- events_append_large.c ------------------------------------------------------------------ */

/* Does it take more than one transaction? */
bool hf__append_is_large(const struct appending *a);
enum hf_status hf__append_large(struct appending *a);

/* ---- events_append_tx.c --------------------------------------------------------------------- */

enum hf_status hf__append_join(struct appending *a, struct hf_tx *tx);

#endif
