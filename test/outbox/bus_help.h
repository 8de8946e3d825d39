/*
 * test/outbox/bus_help.h: a bus on the stage of a test: handlers and middleware that write down
 * what they see, and a relay without threads that is turned by hand, by the test's clock.
 */
#ifndef HF_TEST_PATTERNS_BUS_HELP_H
#define HF_TEST_PATTERNS_BUS_HELP_H

#include <holdfast/bus.h>

#include <stdio.h>
#include <string.h>

#include "kit.h"

enum {
    STAGE_LOG_MAX = 2000,
    STAGE_ATTEMPTS = 3,
    STAGE_BACKOFF_MS = 1000,
    STAGE_BUCKETS = 4,
    STAGE_TURNS_MAX = 200
};

/* A test of what is the same on every database: on one. */
#define STAGE_TEST(group_, name_)                                                                  \
    static void stage_##group_##_##name_(struct kit *k);                                           \
    TEST(group_, name_)                                                                            \
    {                                                                                              \
        kit_run(t, "memory:", stage_##group_##_##name_);                                           \
    }                                                                                              \
    static void stage_##group_##_##name_(struct kit *k)

struct stage {
    struct kit *k;
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    char log[STAGE_LOG_MAX]; /* what happened, with blanks in between */
    size_t len;
    char errors[STAGE_LOG_MAX]; /* what on_error was told */
    size_t errors_len;
};

/* A handler that plays a role. */
struct role {
    struct stage *stage;
    const char *name;
    int calls;
    int fail_first;       /* so many calls fail */
    enum hf_status fails; /* with this; default HF_IO */
    bool silent;          /* without a word */
    const char *emits;    /* an event of this type */
    void (*inside)(struct hf_scope *s, struct role *role, const struct hf_event *event);
};

static inline void stage_say(struct stage *stage, const char *what, struct hf_str type)
{
    int len = snprintf(stage->log + stage->len, sizeof(stage->log) - stage->len, "%s%s:%.*s",
                       stage->len ? " " : "", what, HF_FMT(type));

    CHECK(len > 0 && (size_t)len < sizeof(stage->log) - stage->len);
    stage->len += (size_t)len;
}

/* Exactly this has happened since it was asked for last. */
#define CHECK_LOG(expected, stage_)                                                                \
    do {                                                                                           \
        CHECK_STR(expected, hf_str_of((stage_)->log, (stage_)->len));                              \
        (stage_)->len = 0;                                                                         \
    } while (0)
#define CHECK_ERRORS(expected, stage_)                                                             \
    do {                                                                                           \
        CHECK_STR(expected, hf_str_of((stage_)->errors, (stage_)->errors_len));                    \
        (stage_)->errors_len = 0;                                                                  \
    } while (0)

static inline void stage_error(const struct hf_outbox_event *event, const struct hf_error *error,
                               enum hf_relay_outcome outcome, void *user)
{
    static const char *const outcomes[] = {"?", "delivered", "retry", "given up", "unsure"};
    struct stage *stage = user;
    int len = snprintf(stage->errors + stage->errors_len, sizeof(stage->errors) - stage->errors_len,
                       "%s%s %s %.*s", stage->errors_len ? "; " : "", outcomes[outcome],
                       event ? hf_status_name(error->status) : "trouble", HF_FMT(error->message));

    CHECK(len > 0 && (size_t)len < sizeof(stage->errors) - stage->errors_len);
    stage->errors_len += (size_t)len;
}

static inline enum hf_status play(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct role *role = user;
    enum hf_status fails = role->fails ? role->fails : HF_IO;

    role->calls++;
    stage_say(role->stage, role->name, event->type);
    if (role->inside)
        role->inside(s, role, event);
    if (role->emits) {
        struct hf_event next = {.type = hf_str_from(role->emits)};
        enum hf_status status = hf_bus_emit(s, role->stage->bus, &next, 1);

        if (status != HF_OK)
            return status;
    }
    if (role->calls > role->fail_first)
        return HF_OK;
    return role->silent ? fails : hf_scope_fail(s, fails, "%s cannot", role->name);
}

/* Do what is to be done now. */
static inline uint32_t stage_turn(struct stage *stage)
{
    uint32_t wait_ms = 0;

    for (int i = 0; i < STAGE_TURNS_MAX && wait_ms == 0; i++)
        CHECK_OK(hf_relay_step(stage->k->scope, hf_bus_relay(stage->bus), &wait_ms));
    return wait_ms;
}

/* The relay has all buckets: from here on a turn delivers what is due. */
static inline void stage_ready(struct stage *stage)
{
    struct hf_relay_metrics metrics = {0};

    for (int i = 0; i < STAGE_TURNS_MAX && metrics.buckets < STAGE_BUCKETS; i++) {
        test_advance_ms(stage->k->t, stage_turn(stage));
        hf_relay_metrics(hf_bus_relay(stage->bus), &metrics);
    }
    CHECK_INT(STAGE_BUCKETS, metrics.buckets);
}

static inline void stage_open(struct stage *stage, struct kit *k, enum hf_bus_unhandled unhandled,
                              enum hf_bus_unhandled dropped)
{
    struct hf_relay_options relay = {.size = sizeof(relay),
                                     .no_threads = true,
                                     .max_attempts = STAGE_ATTEMPTS,
                                     .backoff_ms = STAGE_BACKOFF_MS};

    memset(stage, 0, sizeof(*stage));
    stage->k = k;
    CHECK_OK(
        hf_outbox_open(k->scope, k->db,
                       HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = STAGE_BUCKETS),
                       &stage->outbox));
    CHECK_OK(hf_bus_open(k->scope, stage->outbox,
                         HF_OPTIONS(hf_bus_options, .unhandled = unhandled, .dropped = dropped,
                                    .on_error = stage_error, .user = stage, .relay = &relay),
                         &stage->bus));
    stage_ready(stage);
}

static inline void stage_close(struct stage *stage)
{
    hf_bus_close(stage->bus);
    hf_outbox_close(stage->outbox);
}

static inline void stage_on(struct stage *stage, const char *type, struct role *role)
{
    role->stage = stage;
    CHECK_OK(hf_bus_on(stage->k->scope, stage->bus, hf_str_from(type), play, role));
}

static inline void stage_once(struct stage *stage, const char *type, struct role *role)
{
    role->stage = stage;
    CHECK_OK(hf_bus_once(stage->k->scope, stage->bus, hf_str_from(type), play, role));
}

/* All with one key, so that they are handled in this order. */
static inline void stage_emit(struct stage *stage, const char *type)
{
    struct hf_event event = {.type = hf_str_from(type), .key = HF_STR("k")};

    CHECK_OK(hf_bus_emit(stage->k->scope, stage->bus, &event, 1));
    test_advance_ms(stage->k->t, 2); /* and in the order of their times */
}

static inline size_t stage_pending(struct stage *stage)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_pending(stage->k->scope, stage->outbox,
                               HF_OPTIONS(hf_event_list_options, .not_due_too = true), &list));
    return list.events_len;
}

static inline struct hf_event_list stage_failed(struct stage *stage)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(stage->k->scope, stage->outbox, NULL, &list));
    return list;
}

/* Until nothing waits any more, however long that takes. */
static inline void stage_settle(struct stage *stage)
{
    for (int i = 0; i < STAGE_TURNS_MAX; i++) {
        uint32_t wait_ms = stage_turn(stage);

        if (stage_pending(stage) == 0)
            return;
        test_advance_ms(stage->k->t, wait_ms ? wait_ms : 1);
    }
    fail_msg("events wait forever; so far: %.*s", (int)stage->len, stage->log);
}

#endif
