/*
 * relay/relay_reader.h: the buckets, how far each was read, and the page that is read next.
 * relay_read.c has the essay; relay_page.c, relay_urgent.c and relay_look.c are parts of it.
 *
 * The mutex of the relay guards all of this. It is held in all functions below but for
 * hf__relay_read_run() and hf__look_run(), which take it.
 */
#ifndef HF_RELAY_RELAY_READER_H
#define HF_RELAY_RELAY_READER_H

#include "relay/relay_keys.h"

struct relay_worker;

enum {
    RELAY_OVERLAP_MS = 500, /* how much later than its place an event may appear */
    RELAY_SKEW_MS = 1000,   /* by how much emitters' clocks are ahead, mostly */
    RELAY_FAR_MS = 5000,    /* how often events of clocks that are further ahead are looked for */
    RELAY_SWEEP_PAGES = 4,  /* pages without new events after which a sweep ends */
    RELAY_EXTRA_MAX = 4000  /* events by which a page without new events grows at most */
};

enum bucket_state {
    BUCKET_OTHERS, /* nothing of it is in memory */
    BUCKET_OURS,
    BUCKET_LEAVING /* no delivery begins; it is released when none is running */
};

/* Urgent events have places before all others, and a cursor of their own: relay_urgent.c. */
struct urgent_progress {
    bool woken;      /* there may be urgent events behind `cursor` */
    bool from_start; /* there may be some before it */
    bool whole;      /* all urgent events were read since the bucket is ours */
    char cursor[RELAY_SEQ_SIZE];
    int64_t poll_us; /* when to look for them while other events prevent sweeps */
    int64_t not_before_us;
    uint32_t extra; /* as that of the bucket */
};

struct relay_bucket {
    uint32_t number;
    enum bucket_state state;
    uint64_t fence;
    uint64_t life;               /* changes when it is taken or lost */
    char cursor[RELAY_SEQ_SIZE]; /* all up to it was read, and no late event comes; "": nothing */
    char seen[RELAY_SEQ_SIZE];   /* all events that were there up to it were read */
    uint32_t extra;              /* how many more events a page needs, to show a new one */
    bool more;                   /* there are events behind `seen` */
    bool woken;                  /* there may be some */
    bool forward;                /* the last page was for those */
    bool reading;                /* a worker reads it */
    struct urgent_progress urgent;
    bool sweeping;              /* the events before the cursor are read again */
    char sweep[RELAY_SEQ_SIZE]; /* how far the sweep has come */
    uint32_t sweep_left;        /* after so many pages without new events the sweep ends */
    int64_t sweep_us;           /* when the next sweep begins, on the elapsed clock */
    int64_t far_us;             /* when to look for events with a place far ahead */
    int64_t not_before_us;      /* after a read that has failed */
    uint32_t failures;
    uint64_t recent; /* new events of late, as of recent_us */
    int64_t recent_us;
    int64_t wants_us; /* since when it has to be read; 0: it has not */
    size_t held;      /* events in memory, in any state but gone */
    size_t ready;     /* keys of it in keys.ready */
    size_t running;
    size_t noting;                 /* events that are delivered and not noted */
    bool whole;                    /* it was read to its end since it is ours */
    bool bare;                     /* the last sweep showed no event: relay_look.c */
    uint32_t window;               /* how many deliveries are careful, as its row says; 0: none */
    uint32_t careful;              /* how many of these are left */
    char until[2][RELAY_SEQ_SIZE]; /* events before it may be to blame; [1]: of urgent ones */
    struct relay_key *skipping;    /* keys with `skips` */
    int64_t fetch_us;              /* none of these is read before */
    struct relay_key *back;        /* keys that wait for events with a lower sequence to be read */
    struct held *gone;
};

struct relay_reader {
    struct relay_bucket *buckets; /* as many as the outbox has */
    uint64_t page;                /* the number of the last page */
    uint64_t moved;               /* pages of a backlog that were read: it shows progress */
    bool looking;                 /* a worker looks: relay_look.c */
    int64_t look_again_us;        /* no look begins before */
};

/* What a page is for: relay_read.c has the table. */
enum page_kind { PAGE_FORWARD, PAGE_SWEEP, PAGE_FETCH, PAGE_URGENT };

/* One page, and from where it was read. */
struct relay_page {
    enum page_kind kind;
    char after[RELAY_SEQ_SIZE];
    struct hf_outbox_event *events;
    size_t len;
    bool more;
    int64_t wall_us;                  /* the time before the request was sent */
    char sure[RELAY_SEQ_SIZE];        /* relay_read.c (2): how far the cursor may move */
    char sure_urgent[RELAY_SEQ_SIZE]; /* how far the cursor of urgent events may move */
    bool two_orders;                  /* false: one order for all events, relay_urgent.c (4) */
    uint32_t limit;
    bool far; /* it shows events of emitters whose clocks are far ahead */
    uint64_t life;
    size_t taken; /* events of it that are held now */
    uint64_t number;
    char last[RELAY_SEQ_SIZE]; /* the last event before the first that is not due yet */
    bool early;                /* there is one that is not due yet */
    bool no_memory;
};

/* ---- relay_read.c --------------------------------------------------------------------------- */

/* Of the buckets that can be read now, the one that has waited longest; NULL: none. *next_us: when
 * the next one has to be read. */
struct relay_bucket *hf__relay_read_choose(struct hf_relay *relay, int64_t now_us,
                                           int64_t *next_us);
void hf__relay_read_run(struct relay_worker *worker, struct relay_bucket *bucket);

/* The bucket is ours, and nothing is known of it. */
void hf__relay_read_reset(struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us);

/* By how much reads are ahead of the clock. */
uint32_t hf__relay_read_ahead_ms(const struct hf_relay *relay);

/* Nothing is due in it, as far as we know. */
bool hf__relay_read_is_dry(const struct hf_relay *relay, struct relay_bucket *bucket);

/* May it be read, by whose it is and what is under way? */
bool hf__relay_read_may(const struct hf_relay *relay, const struct relay_bucket *bucket);

/* Is there memory for more of it? */
bool hf__relay_read_has_room(const struct hf_relay *relay, const struct relay_bucket *bucket);

/* Are there too few events in memory, so that the next page has to be read now? */
bool hf__relay_read_is_short(const struct hf_relay *relay, const struct relay_bucket *bucket);

/* May there be events in it that this relay delivers? */
bool hf__relay_read_is_for(const struct hf_relay *relay, const struct relay_bucket *bucket);

/* Assert what holds for each bucket: a few comparisons for each. DEV_CHECKS. */
void hf__reader_check(const struct hf_relay *relay);

/* ---- relay_page.c --------------------------------------------------------------------------- */

/* Hold the due events of the page, and move the cursors that its kind moves. */
void hf__relay_page_take(struct hf_relay *relay, struct relay_bucket *bucket,
                         struct relay_page *page, int64_t now_us);

/* ---- relay_urgent.c ------------------------------------------------------------------------- */

void hf__urgent_reset(const struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us);

/* When to look for urgent events; INT64_MAX: not until something changes. */
int64_t hf__urgent_when(const struct hf_relay *relay, const struct relay_bucket *bucket);

/* Are urgent ones of it to be looked for now? */
bool hf__urgent_is_due(const struct hf_relay *relay, const struct relay_bucket *bucket,
                       int64_t now_us);

/* Move the cursor back to what is sure; and decide by the clock whether there are two orders. */
void hf__urgent_bound(struct relay_bucket *bucket, struct relay_page *page);

/* The page is one of urgent ones, from their cursor on. */
void hf__urgent_plan(struct relay_bucket *bucket, struct relay_page *page);

/* Is it a place among the urgent ones? */
bool hf__urgent_has(const struct relay_page *page, const char *seq);

/* Does the page end among urgent ones where none may go on? */
bool hf__urgent_ends(const struct relay_page *page);

/* A page was taken, of any kind: where the cursor is now. */
void hf__urgent_advance(const struct hf_relay *relay, struct relay_bucket *bucket,
                        const struct relay_page *page, int64_t now_us);

/* A key whose next events are urgent ones that are too new is read on a little later. */
int64_t hf__urgent_pause_until(int64_t now_us);

/* ---- relay_look.c --------------------------------------------------------------------------- */

/* Is nothing expected in it, so that a look is enough? */
bool hf__look_is_for(const struct hf_relay *relay, const struct relay_bucket *bucket,
                     int64_t now_us);

/* May a look begin, instead of reading that bucket? */
bool hf__look_may(const struct hf_relay *relay, const struct relay_bucket *bucket, int64_t now_us);
void hf__look_run(struct relay_worker *worker);

#endif
