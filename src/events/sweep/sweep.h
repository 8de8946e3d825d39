/*
 * events/sweep/sweep.h: a sweep on its way; what events_sweep.c, events_sweep_tx.c and
 * events_sweep_large.c share. The essay of events_sweep.c has the whole, and the numbers in
 * parentheses.
 */
#ifndef HF_EVENTS_SWEEP_SWEEP_H
#define HF_EVENTS_SWEEP_SWEEP_H

#include "events/store/events.h"

enum {
    SWEEP_SOME = 24, /* events of one transaction */
    SWEEP_COMMITS_MAX = 25
};

_Static_assert(SWEEP_SOME < SWEEP_COMMITS_MAX, "each event may have a commit of its own");
_Static_assert(SWEEP_COMMITS_MAX + 1 <= HF_TX_ACTIONS_MAX, "a large append is hidden at once");

struct sweep {
    struct hf_scope *s;
    struct hf_events *store;
    int64_t before_ms; /* what is younger stays */
    struct hf_events_swept swept;
};

/* A stream that is being swept. */
struct sweep_stream {
    struct hf_str pk;
    struct events_head head;           /* as it was seen */
    uint64_t first;                    /* that is read */
    struct events_position unfinished; /* COMMIT of a large append whose removal was begun */
};

/* Commits of events that are to go, and where they are now. */
struct sweep_commits {
    struct events_position list[SWEEP_COMMITS_MAX];
    size_t len;
    const struct hf_item *items; /* first those of a.*, then those of z.* */
};

static inline struct hf_item sweep_key(struct hf_scope *s, struct hf_str pk, struct hf_str sk)
{
    return HF_ITEM(s, HF_S("pk", pk), HF_S("sk", sk));
}

/* ---- events_sweep.c ------------------------------------------------------------------------- */

/* The oldest items of a partition, SWEEP_SOME at most. */
enum hf_status hf__sweep_oldest(const struct sweep *w, struct hf_str pk, struct hf_str from,
                                struct hf_str to, struct hf_query_result *result);

/* What is there begins behind that event (5). `large`: and its append is not wholly gone yet. */
struct hf_update_item hf__sweep_head(const struct sweep *w, const struct sweep_stream *stream,
                                     uint64_t next, struct hf_bytes hash, struct hf_str large);

/* ---- events_sweep_tx.c ---------------------------------------------------------------------- */

/* Remove an item, on the condition that it has that attribute (absent: on none). */
enum hf_status hf__sweep_delete(const struct sweep *w, struct hf_tx *tx, struct hf_item key,
                                struct hf_str attribute);

/* The id of an event, unless that is the position, and what it has in r.*. `large`: the id only if
 * it is still that of this append (4). */
enum hf_status hf__sweep_belongings(const struct sweep *w, struct hf_tx *tx,
                                    const struct hf_stored_event *event, struct hf_str large);

/* Others may be at the same: *again says that it is to be looked at again, after a while. */
enum hf_status hf__sweep_commit(const struct sweep *w, struct hf_tx *tx, bool *again);
enum hf_status hf__sweep_wait(const struct sweep *w, int *attempt);

/* Add the commit of that position, unless it is the last of the list. False: it is full. */
bool hf__sweep_add_commit(struct sweep_commits *commits, struct hf_str position);

/* Look where they are. */
enum hf_status hf__sweep_read_commits(const struct sweep *w, struct sweep_commits *commits);

/* Take the events out of them (1); *again: one was in neither part, so look again. */
enum hf_status hf__sweep_tx_commits(const struct sweep *w, struct hf_tx *tx,
                                    const struct sweep_commits *commits,
                                    const struct hf_stored_event *events, size_t len, bool *again);

/* ---- events_sweep_large.c ------------------------------------------------------------------- */

/* The range of a large append goes as a whole (2). */
enum hf_status hf__sweep_large(struct sweep *w, struct sweep_stream *stream,
                               const struct events_step *step, bool *again);

/* What unfinished large appends have staged (3). */
enum hf_status hf__sweep_unfinished(struct sweep *w);

#endif
