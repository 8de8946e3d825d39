/*
 * test/sinks/help.c: a desk to send events from.
 */
#include "help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VARIABLES_MAX = 16 };

static struct {
    const char *name, *value;
} variables[VARIABLES_MAX];
static size_t variables_len;
static int64_t wall_s;

static const char *variable(const char *name, void *user)
{
    (void)user;
    for (size_t i = 0; i < variables_len; i++)
        if (strcmp(variables[i].name, name) == 0)
            return variables[i].value;
    return NULL;
}

void desk_set(const char *name, const char *value)
{
    variables[variables_len].name = name;
    variables[variables_len++].value = value;
}

void desk_set_wall(int64_t seconds)
{
    wall_s = seconds;
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wall_us(void *user)
{
    (void)user;
    return wall_s ? wall_s * 1000000 : clock_us(CLOCK_REALTIME);
}

static int64_t elapsed_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_MONOTONIC);
}

static void sleep_us(int64_t us, void *user)
{
    struct timespec wait = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    (void)user;
    nanosleep(&wait, NULL);
}

void desk_open(struct test *t, struct desk *d)
{
    variables_len = 0;
    wall_s = 0;
    desk_set("AWS_EC2_METADATA_DISABLED", "true");
    desk_set("HOME", test_directory(t));
    *d = (struct desk){.t = t, .env = *test_env(t)};
    d->env.getenv = variable;
    d->env.wall_us = wall_us;
    d->env.elapsed_us = elapsed_us;
    d->env.sleep = sleep_us;
    d->s = hf_scope_new(&d->env);
    d->keep = hf_scope_new(&d->env);
}

void desk_close(struct desk *d)
{
    hf_sink_close(d->sink);
    hf_scope_free(d->s);
    hf_scope_free(d->keep);
}

static enum hf_status try_sink(struct desk *d, const char *format, va_list args)
{
    char url[2048];

    vsnprintf(url, sizeof(url), format, args);
    hf_sink_close(d->sink);
    return hf_sink_open(d->s, str_of(url), &d->sink);
}

enum hf_status desk_try_sink(struct desk *d, const char *format, ...)
{
    enum hf_status status;
    va_list args;

    va_start(args, format);
    status = try_sink(d, format, args);
    va_end(args);
    return status;
}

void desk_sink(struct desk *d, const char *format, ...)
{
    enum hf_status status;
    va_list args;

    va_start(args, format);
    status = try_sink(d, format, args);
    va_end(args);
    if (status != HF_OK)
        fprintf(stderr, "%s\n", hf_scope_error_text(d->s));
    CHECK_OK(status);
}

void desk_clear(struct desk *d)
{
    d->len = 0;
    hf_scope_reset(d->keep);
}

static struct hf_str keep(struct desk *d, const char *text)
{
    return text ? hf_scope_copy(d->keep, str_of(text)) : (struct hf_str){0};
}

struct hf_event *desk_add(struct desk *d, const char *id, const char *key, const char *payload)
{
    struct hf_outbox_event *event = &d->events[d->len];
    struct hf_str body = keep(d, payload);

    CHECK(d->len < DESK_EVENTS);
    *event = (struct hf_outbox_event){.event = {.id = keep(d, id),
                                                .type = HF_STR("order.placed"),
                                                .source = HF_STR("/shop"),
                                                .key = keep(d, key),
                                                .time_us = INT64_C(1769904000123456),
                                                .payload = hf_bytes_of(body.ptr, body.len)},
                                      .state = HF_OUTBOX_PENDING};
    d->deliveries[d->len++] = (struct hf_delivery){.event = event};
    return &event->event;
}

enum hf_status desk_send(struct desk *d)
{
    hf_scope_reset(d->s);
    for (size_t i = 0; i < d->len; i++)
        d->deliveries[i] = (struct hf_delivery){.event = &d->events[i], .status = HF_OK};
    return hf_sink_send(d->s, d->sink, d->deliveries, d->len);
}

struct hf_str str_of(const char *text)
{
    return hf_str_from(text);
}

bool str_has(struct hf_str text, const char *part)
{
    bool has = text.len && memmem(text.ptr, text.len, part, strlen(part)) != NULL;

    if (!has)
        fprintf(stderr, "\"%s\" is not in \"%.*s\"\n", part, HF_FMT(text));
    return has;
}
