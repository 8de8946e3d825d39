/*
 * test/lib/chaos.h: a network that fails as it is told. A proxy on a loopback port, with threads of
 * its own, hands requests on to a server and answers back, and damages them by a script:
 *
 *     struct chaos *chaos = chaos_open(server_port);
 *     chaos_play(chaos, &(struct chaos_script){.faults = {CHAOS_CUT_ANSWER}, .len = 1});
 *     ... a client calls chaos_port(chaos): its first request has its effect and no answer ...
 *     chaos_counts(chaos).requests
 *     chaos_close(chaos);
 *
 * It takes whole requests and whole answers and then decides, so that a fault always falls where
 * its name says.
 */
#ifndef HF_TEST_LIB_CHAOS_H
#define HF_TEST_LIB_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What can go wrong, and what a client can make of it:
 *
 *     HARMLESS  nothing: the call succeeds
 *     UNDONE    it knows that nothing was done, and tries again
 *     PASSING   it cannot know what was done, and tries again when that is the same as once
 *     SILENT    the same, but it has to lose patience first
 *     FINAL     trying again may be of no use
 *
 * NOTHING: the server does not get the request. EFFECT: it does. LATE: it does, when the client
 * may have gone.
 */
#define CHAOS_FAULT_MAP(X)                                                                         \
    X(NONE, HARMLESS, EFFECT)                                                                      \
    X(CUT_AT_ONCE, PASSING, NOTHING) /* at the first byte of the request */                        \
    X(RESET_AT_ONCE, PASSING, NOTHING)                                                             \
    X(CUT_IN_REQUEST, PASSING, NOTHING) /* when the server has half of it */                       \
    X(RESET_IN_REQUEST, PASSING, NOTHING)                                                          \
    X(CUT_REQUEST, PASSING, NOTHING) /* when all of it is here and nothing there */                \
    X(RESET_REQUEST, PASSING, NOTHING)                                                             \
    X(HOLE_REQUEST, SILENT, NOTHING)       /* it is never heard of again */                        \
    X(SAY_500, PASSING, NOTHING)           /* InternalServerError */                               \
    X(SAY_503, PASSING, NOTHING)           /* ServiceUnavailable */                                \
    X(SAY_502, PASSING, NOTHING)           /* in HTML, from something on the way */                \
    X(SAY_429, UNDONE, NOTHING)            /* ThrottlingException */                               \
    X(SAY_THROTTLED, UNDONE, NOTHING)      /* the same with 400, as the service says it */         \
    X(SAY_THROTTLED_WAIT, UNDONE, NOTHING) /* ... and x-amz-retry-after */                         \
    X(SAY_REDIRECT, FINAL, NOTHING)        /* 307, to where nobody should go */                    \
    X(SAY_LOGIN, FINAL, NOTHING)           /* 200, of a page that wants a password */              \
    X(CUT_ANSWER, PASSING, EFFECT)         /* no byte of the answer */                             \
    X(RESET_ANSWER, PASSING, EFFECT)                                                               \
    X(HALF_CLOSE, PASSING, EFFECT) /* the way back ends before the server is asked */              \
    X(HOLE_ANSWER, SILENT, EFFECT)                                                                 \
    X(CUT_HEAD, PASSING, EFFECT) /* half of the answer's head */                                   \
    X(RESET_HEAD, PASSING, EFFECT)                                                                 \
    X(CUT_BODY, PASSING, EFFECT) /* half of the answer's body */                                   \
    X(RESET_BODY, PASSING, EFFECT)                                                                 \
    X(HOLE_BODY, SILENT, EFFECT) /* half of it, and then silence */                                \
    X(LIE_500, PASSING, EFFECT)  /* instead of the answer */                                       \
    X(LIE_502, PASSING, EFFECT)                                                                    \
    X(LIE_503, PASSING, EFFECT)                                                                    \
    X(LIE_504, PASSING, EFFECT)                                                                    \
    X(FLIP_BODY, PASSING, EFFECT)    /* one bit */                                                 \
    X(FLIP_HEAD, SILENT, EFFECT)     /* one bit */                                                 \
    X(WRONG_STATUS, PASSING, EFFECT) /* 400 in place of 200 */                                     \
    X(WRONG_LENGTH, SILENT, EFFECT)  /* a few bytes too many */                                    \
    X(SHORT_LENGTH, PASSING, EFFECT) /* a few bytes too few */                                     \
    X(TWO_LENGTHS, PASSING, EFFECT)  /* that contradict each other */                              \
    X(WRONG_CRC, PASSING, EFFECT)                                                                  \
    X(BAD_LINE, PASSING, EFFECT)     /* no HTTP at all */                                          \
    X(ENDLESS_HEAD, PASSING, EFFECT) /* fields without end */                                      \
    X(GZIP_BOMB, FINAL, EFFECT)      /* some hundred megabytes of nothing */                       \
    X(GZIP_CUT, PASSING, EFFECT)     /* with a crc that is right */                                \
    X(CHUNKED_CUT, PASSING, EFFECT)  /* ends between two chunks */                                 \
    X(UNFRAMED_CUT, PASSING, EFFECT) /* no length, and half of the body */                         \
    X(RESET_BEHIND, PASSING, EFFECT) /* the whole answer, and a reset on its heels */              \
    X(LATE_REQUEST, SILENT, LATE)    /* `ms` later */                                              \
    X(LATE_ANSWER, SILENT, EFFECT)   /* `ms` later */                                              \
    X(DELAY, HARMLESS, EFFECT)       /* a few milliseconds on both ways */                         \
    X(TRICKLE, HARMLESS, EFFECT)     /* in small pieces */                                         \
    X(CONTINUE, HARMLESS, EFFECT)    /* 100 Continue comes first */                                \
    X(CHUNKED, HARMLESS, EFFECT)                                                                   \
    X(UNFRAMED, HARMLESS, EFFECT)     /* no length: ends with the connection */                    \
    X(CLOSE_BEHIND, HARMLESS, EFFECT) /* the connection ends unannounced, once it is idle */       \
    X(SPEAK_WITH, HARMLESS, EFFECT)   /* an answer that nobody asked for on its heels */           \
    X(SPEAK_BEHIND, HARMLESS, EFFECT) /* the same once the connection is idle */

enum chaos_fault {
#define X(name, outlook, effect) CHAOS_##name,
    CHAOS_FAULT_MAP(X)
#undef X
        CHAOS_FAULTS
};

enum chaos_outlook { CHAOS_HARMLESS, CHAOS_UNDONE, CHAOS_PASSING, CHAOS_SILENT, CHAOS_FINAL };
enum chaos_effect { CHAOS_NOTHING, CHAOS_EFFECT, CHAOS_LATE };

const char *chaos_name(enum chaos_fault fault);
enum chaos_outlook chaos_outlook(enum chaos_fault fault);
enum chaos_effect chaos_effect(enum chaos_fault fault);

enum { CHAOS_SCRIPT_MAX = 8 };

struct chaos_script {
    enum chaos_fault faults[CHAOS_SCRIPT_MAX]; /* of the first request, the second, ... */
    size_t len;                                /* those behind go well, */
    bool for_ever;                             /* or have the last of these faults */
    unsigned odds;                             /* instead: any of `faults` has one in so many */
    uint32_t ms;                               /* of LATE_*; default 150 */
    uint64_t seed;                             /* which bit is flipped, and the dice of odds */
};

struct chaos_count {
    unsigned connections; /* taken */
    unsigned requests;    /* of which a byte was seen */
    unsigned whole;       /* that the server had in full */
    unsigned done;        /* that it answered with 200 */
    unsigned unspoken;    /* of SPEAK_BEHIND, that are about to follow; not forgotten by a script */
};

struct chaos;

/* A proxy for 127.0.0.1:target. Everything works, until chaos_play(). Aborts when it cannot. */
struct chaos *chaos_open(uint16_t target);
uint16_t chaos_port(const struct chaos *chaos);

/* From the next request on; counts start over. */
void chaos_play(struct chaos *chaos, const struct chaos_script *script);
struct chaos_count chaos_counts(struct chaos *chaos);

/* Hold back what is under way in these directions until the next call; nothing is lost. */
enum { CHAOS_THERE = 1, CHAOS_BACK = 2 };
void chaos_partition(struct chaos *chaos, unsigned directions);

/* Wait until every connection has ended and what was under way is done; false: not by then. */
bool chaos_quiet(struct chaos *chaos, int64_t ms);

/* Ends every connection. */
void chaos_close(struct chaos *chaos);

int64_t chaos_now_ms(void);

/* How long this thread has waited for a processor so far, and how long a hypervisor kept processors from us:
 * a busy machine is no fault of a client's. 0 where the system does not say. */
int64_t chaos_late_ms(void);

#endif
