/*
 * test/sinks/fake_aws.h: SQS, SNS and EventBridge, as strict as the real ones where it matters, and
 * in the mood that a test wants.
 *
 * Every request is checked as a whole: method, path, fields, signature, form, ids, counts, bytes,
 * characters. One that is wrong in a way that no request of ours may be sets `wrong`, with the
 * reason, which the test finds when it closes the fake. One that is wrong in a way that events can
 * cause is refused as the service refuses it.
 */
#ifndef HF_TEST_RELAY_FAKE_AWS_H
#define HF_TEST_RELAY_FAKE_AWS_H

#include <pthread.h>

#include "../http/help.h"
#include "help.h"

enum fake_service { FAKE_SQS, FAKE_SNS, FAKE_EVENTBRIDGE };

/* What becomes of a call. */
enum fake_mood {
    WELL,
    THROTTLED,       /* 400 and the code of throttling */
    BUSY,            /* 503, no body, Retry-After: 7 */
    BROKEN,          /* 500, nothing was done */
    BROKEN_AFTER,    /* 500, everything was done */
    HANG_UP,         /* closed after everything was done, no answer */
    GARBAGE,         /* 200 and something else */
    TRUNCATED,       /* 200 and the first half of the answer, with a length that fits */
    EMPTY,           /* 200, {} or the like; nothing was done */
    SILENT_ON_FIRST, /* all done, the answer lacks the first entry */
    BOTH,            /* all done, the first entry is in both lists (EventBridge: has id and code) */
    STRANGERS,       /* all done, told with ids that nobody asked for (EventBridge: one more) */
    FIRST_SENDER,    /* the first entry refused, its fault */
    FIRST_SERVICE,   /* the first entry refused, the service's fault */
    ALL_THROTTLED,   /* every entry throttled */
    ALL_DENIED,      /* every entry denied, and said to be the sender's fault */
    NAMELESS,        /* all done, told without the ids that the service gave them */
    WRONG_COUNT,     /* EventBridge: FailedEntryCount does not fit */
    DENIED,          /* 403 */
    MISSING,         /* no such queue or topic */
    ODD,             /* 400 with a code that nobody knows */
    STALE_CLOCK,     /* 403 for its time, with a Date an hour ahead; well when that is used */
    EXPIRED,         /* the token is refused */
    MOODS
};

enum { FAKE_ENTRIES = 4096, FAKE_CALLS = 4096 };

struct fake_entry {
    char id[200]; /* of the event */
    char target[200];
    char group[200], dedup[200];
    char *body;
    bool duplicate; /* FIFO: taken, and dropped as a repetition */
};

struct fake_aws {
    struct listener listener;
    enum fake_service service;
    bool fifo;
    bool no_keeping;               /* of connections */
    atomic_int cut_at;             /* answers have so many bytes at most; 0: all */
    atomic_int odd_at;             /* the byte of an answer that is replaced, from 1; 0: none */
    atomic_int said;               /* bytes of the last answer, before it was cut */
    size_t max_bytes, batch_bytes; /* beyond these the service refuses */
    const char *target;            /* that is there; NULL: any */
    enum fake_mood moods[FAKE_CALLS];
    size_t moods_len; /* calls beyond are well */
    atomic_int calls;
    pthread_mutex_t lock; /* guards all below */
    struct fake_entry entries[FAKE_ENTRIES];
    size_t entries_len; /* that it has taken */
    size_t offered;     /* entries of all calls */
    size_t largest;     /* bytes of the largest call */
    char wrong[512];
    char last_body[65536];
};

void fake_open(struct fake_aws *fake, enum fake_service service);
/* Fails the test when something was wrong. */
void fake_close(struct fake_aws *fake);

void fake_moods(struct fake_aws *fake, const enum fake_mood *moods, size_t len);
#define FAKE_MOODS(fake, ...)                                                                      \
    fake_moods(fake, (const enum fake_mood[]){__VA_ARGS__},                                        \
               sizeof((const enum fake_mood[]){__VA_ARGS__}) / sizeof(enum fake_mood))

/* How often it has taken the event of that id, repetitions that it dropped not among them. */
size_t fake_taken(struct fake_aws *fake, const char *id);

/* The sink's URL for a queue, topic or bus of it. */
void fake_sink(struct fake_aws *fake, struct desk *d, const char *options);

#endif
