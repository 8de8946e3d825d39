/*
 * relay/relay_kit.h: a sink that writes down what it gets, and does as it is told.
 */
#ifndef HF_TEST_PATTERNS_RELAY_KIT_H
#define HF_TEST_PATTERNS_RELAY_KIT_H

#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/sink.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

enum { EAR_MAX = 20000 };

/* One delivery as it arrived. The payload of a test's event is its number. */
struct heard {
    int number;
    uint32_t attempts;
    int64_t at_ms; /* on the elapsed clock of the scope */
    size_t batch;  /* which call it was in */
};

struct ear {
    pthread_mutex_t mutex;
    struct heard heard[EAR_MAX];
    size_t len;
    size_t calls;
    bool down; /* cannot be reached */
    int fails; /* the number of an event that fails; -1: none */
    bool fails_for_good;
    int fail_times;             /* so often; 0: always */
    uint32_t work_ms;           /* how long a call takes */
    void (*during)(void *user); /* called in the middle of each call */
    void *user;
    struct hf_sink *sink;
};

static inline int event_number(const struct hf_event *event)
{
    char text[16] = "";

    if (event->payload.len && event->payload.len < sizeof(text))
        memcpy(text, event->payload.ptr, event->payload.len);
    return (int)strtol(text, NULL, 10);
}

static inline void ear_one(struct hf_scope *s, struct ear *ear, struct hf_delivery *delivery)
{
    int number = event_number(&delivery->event->event);

    if (ear->len < EAR_MAX)
        ear->heard[ear->len++] =
            (struct heard){.number = number,
                           .attempts = delivery->event->attempts,
                           .at_ms = hf_scope_env(s)->elapsed_us(hf_scope_env(s)->user) / 1000,
                           .batch = ear->calls};
    delivery->status = HF_OK;
    if (number != ear->fails)
        return;
    delivery->status = HF_IO;
    delivery->for_good = ear->fails_for_good;
    delivery->error = HF_STR("it does not want this one");
    if (ear->fail_times && --ear->fail_times == 0)
        ear->fails = -1;
}

static inline enum hf_status ear_send(struct hf_scope *s, void *self,
                                      struct hf_delivery *deliveries, size_t len)
{
    struct ear *ear = self;

    pthread_mutex_lock(&ear->mutex);
    ear->calls++;
    pthread_mutex_unlock(&ear->mutex);
    if (ear->work_ms) {
        enum hf_status status = hf_scope_sleep_ms(s, ear->work_ms);

        if (status != HF_OK)
            return status;
    }
    if (ear->during)
        ear->during(ear->user);
    if (ear->down)
        return hf_scope_fail(s, HF_IO, "nobody is there");
    pthread_mutex_lock(&ear->mutex);
    for (size_t i = 0; i < len; i++) {
        ear_one(s, ear, &deliveries[i]);
        if (deliveries[i].status != HF_OK && hf_sink_ops(ear->sink)->keeps_order)
            break; /* those of its key are behind it; so are others, who are not to blame either */
    }
    pthread_mutex_unlock(&ear->mutex);
    return HF_OK;
}

static inline struct ear *ear_open(struct hf_scope *s, size_t batch_max, bool keeps_order)
{
    struct ear *ear = calloc(1, sizeof(*ear));
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "ear",
                              .batch_max = batch_max,
                              .keeps_order = keeps_order,
                              .send = ear_send};

    pthread_mutex_init(&ear->mutex, NULL);
    ear->fails = -1;
    CHECK_OK(hf_sink_new(s, &ops, ear, &ear->sink));
    return ear;
}

static inline void ear_close(struct ear *ear)
{
    hf_sink_close(ear->sink);
    pthread_mutex_destroy(&ear->mutex);
    free(ear);
}

static inline size_t ear_calls(struct ear *ear)
{
    size_t calls;

    pthread_mutex_lock(&ear->mutex);
    calls = ear->calls;
    pthread_mutex_unlock(&ear->mutex);
    return calls;
}

static inline size_t ear_len(struct ear *ear)
{
    size_t len;

    pthread_mutex_lock(&ear->mutex);
    len = ear->len;
    pthread_mutex_unlock(&ear->mutex);
    return len;
}

/* Where the first delivery of it is; SIZE_MAX: there was none. */
static inline size_t ear_first(const struct ear *ear, int number)
{
    for (size_t i = 0; i < ear->len; i++)
        if (ear->heard[i].number == number)
            return i;
    return SIZE_MAX;
}

static inline size_t ear_count(const struct ear *ear, int number)
{
    size_t count = 0;

    for (size_t i = 0; i < ear->len; i++)
        count += ear->heard[i].number == number;
    return count;
}

/* Emit one with that key ("": none), due so much later. */
static inline void emit_later(struct hf_scope *s, struct hf_outbox *outbox, const char *key,
                              int number, int64_t later_ms)
{
    struct hf_str payload = hf_scope_format(s, "%d", number);
    const struct hf_env *env = hf_scope_env(s);
    struct hf_event event = {.type = HF_STR("test"),
                             .key = hf_str_from(key),
                             .due_us = later_ms ? env->wall_us(env->user) + later_ms * 1000 : 0,
                             .payload = hf_bytes_of(payload.ptr, payload.len)};

    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
}

static inline void emit(struct hf_scope *s, struct hf_outbox *outbox, const char *key, int number)
{
    emit_later(s, outbox, key, number, 0);
}

/* ---- relays without threads ----------------------------------------------------------------- */

static inline struct hf_relay *relay_by_turns(struct hf_scope *s, struct hf_outbox *outbox,
                                              struct ear *ear, struct hf_relay_options options)
{
    struct hf_relay *relay;

    options.size = sizeof(options);
    options.no_threads = true;
    CHECK_OK(hf_relay_open(s, outbox, ear->sink, &options, &relay));
    return relay;
}

/* Let them take their turns for so long, by the clock of the test. */
static inline void relays_run_for(struct test *t, struct hf_scope *s,
                                  struct hf_relay *const *relays, size_t len, int64_t ms)
{
    int64_t end_us = t->elapsed_us + ms * 1000;

    while (t->elapsed_us < end_us) {
        int64_t wait_ms = (end_us - t->elapsed_us + 999) / 1000;

        for (size_t i = 0; i < len; i++) {
            uint32_t own_ms;

            hf_scope_reset(s);
            CHECK_OK(hf_relay_step(s, relays[i], &own_ms));
            wait_ms = own_ms < wait_ms ? own_ms : wait_ms;
        }
        test_advance_ms(t, wait_ms ? wait_ms : 1);
    }
}

#endif
