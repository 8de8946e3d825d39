/*
 * test/sinks/help.h: a desk to send events from: a scope with counted memory, the system's clocks
 * unless one is set, and variables that a test sets.
 */
#ifndef HF_TEST_RELAY_HELP_H
#define HF_TEST_RELAY_HELP_H

#include <holdfast/sink.h>

#include "sinks/private.h"
#include "test.h"

enum { DESK_EVENTS = 64 };

struct desk {
    struct test *t;
    struct hf_env env;
    struct hf_scope *s; /* of what is sent; reset by desk_send() */
    struct hf_scope *keep;
    struct hf_sink *sink;
    struct hf_outbox_event events[DESK_EVENTS];
    struct hf_delivery deliveries[DESK_EVENTS];
    size_t len;
};

void desk_open(struct test *t, struct desk *d);
void desk_close(struct desk *d);

/* What the world of all desks says; NULL: it is not set. Forgotten when one is opened. */
void desk_set(const char *name, const char *value);
/* Seconds since 1970 by the wall clock from now on; 0: the system's. */
void desk_set_wall(int64_t seconds);

/* Open by URL; the sink before it is closed. The first has to work. */
void desk_sink(struct desk *d, const char *format, ...) HF_PRINTF(2, 3);
enum hf_status desk_try_sink(struct desk *d, const char *format, ...) HF_PRINTF(2, 3);

/* Forget all events. */
void desk_clear(struct desk *d);
/* One more event to be sent; texts are copied. NULL: it has no options. */
struct hf_event *desk_add(struct desk *d, const char *id, const char *key, const char *payload);

/* Send them all in one call, in a scope that was reset. */
enum hf_status desk_send(struct desk *d);

struct hf_str str_of(const char *text);

/* Does the text have that part? */
bool str_has(struct hf_str text, const char *part);

#define CHECK_HAS(part, text_) test_check(str_has((text_), (part)), part, __FILE__, __LINE__)

#endif
