/*
 * sinks/sink.c: sinks in general: the table of kinds, URLs and their options, and what every
 * delivery goes through.
 *
 *     kind:rest?name=value&name=value
 *
 * What is behind the first colon is the kind's own business; options are read here, percent-decoded
 * and handed over by name.
 *
 * What always holds:
 *
 *  (1) When send() of a sink is called, every delivery is HF_INTERNAL and nothing else is set. When
 *      hf_sink_send() returns, each one is HF_OK, or has a status and an error; a delivery for which
 *      the sink has set no outcome was not delivered.
 *  (2) A sink never sees an event larger than its event_bytes_max, nor, if it keeps order, one that
 *      follows such an event and has its key.
 *  (3) Messages show neither the values of options nor the URL before them: there may be secrets in
 *      them.
 */
#include "client/url.h"
#include "sinks/private.h"

struct hf_sink {
    struct hf_env env;
    struct hf_scope *memory; /* of the URL; NULL: it was made by hf_sink_new() alone */
    struct hf_sink_ops ops;
    void *self;
    char *name;
    size_t name_size;
};

/* ---- kinds ---------------------------------------------------------------------------------- */

/* A kind has a function, or else the option of the build that adds it. */
static const struct kind {
    const char *name;
    sink_open_fn *open;
    const char *build_option;
} kinds[] = {
    {"stdout", hf__sink_stdout_open, NULL},
    {"file", hf__sink_file_open, NULL},
    {"exec", hf__sink_exec_open, NULL},
    {"webhook", hf__sink_webhook_open, NULL},
    {"sqs", hf__sink_sqs_open, NULL},
    {"sns", hf__sink_sns_open, NULL},
    {"eventbridge", hf__sink_eventbridge_open, NULL},
#ifdef HF_WITH_KAFKA
    {"kafka", hf__sink_kafka_open, NULL},
#else
    {"kafka", NULL, "HF_WITH_KAFKA"},
#endif
#ifdef HF_WITH_RABBITMQ
    {"rabbitmq", hf__sink_rabbitmq_open, NULL},
#else
    {"rabbitmq", NULL, "HF_WITH_RABBITMQ"},
#endif
#ifdef HF_WITH_REDIS
    {"redis", hf__sink_redis_open, NULL},
#else
    {"redis", NULL, "HF_WITH_REDIS"},
#endif
#ifdef HF_WITH_NATS
    {"nats", hf__sink_nats_open, NULL},
#else
    {"nats", NULL, "HF_WITH_NATS"},
#endif
#ifdef HF_WITH_MQTT
    {"mqtt", hf__sink_mqtt_open, NULL},
#else
    {"mqtt", NULL, "HF_WITH_MQTT"},
#endif
};

static bool is_word(struct hf_str text, const char *word)
{
    return hf_str_equal(text, hf_str_from(word));
}

static const struct kind *kind_of(struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (is_word(name, kinds[i].name)) {
            assert(!kinds[i].open == (kinds[i].build_option != NULL));
            return &kinds[i];
        }
    return NULL;
}

static enum hf_status unknown_kind(struct hf_scope *s)
{
    struct hf__buf names = {.scope = s};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        hf__buf_format(&names, "%s%s:", i ? ", " : "", kinds[i].name);
    if (names.failed)
        return hf__fail_nomem(s);
    return hf__fail(s, HF_INVALID, "unknown kind of sink: the URL of a sink begins with one of %s",
                    names.ptr);
}

/* ---- URLs ----------------------------------------------------------------------------------- */

enum { OPTIONS_MAX = 64 };

enum hf_status hf__sink_decode(struct hf_scope *s, struct hf_scope *memory, const char *what,
                               struct hf_str text, struct hf_str *decoded)
{
    enum hf_status status = hf__url_decode(memory, text, decoded);

    assert(what);
    if (status == HF_INVALID)
        return hf__fail(s, HF_INVALID,
                        "%s of the sink's URL has a %% that is not followed by two hex digits",
                        what);
    return status == HF_OK ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status read_options(struct hf_scope *s, struct hf_str text, struct sink_url *url)
{
    struct sink_option_given *given =
        hf__scope_array(url->memory, OPTIONS_MAX, sizeof(struct sink_option_given));

    if (!given)
        return hf__fail_nomem(s);
    url->given = given;
    while (text.len > 0) {
        struct hf_str value = str_cut(&text, '&');
        struct hf_str name = str_cut(&value, '=');

        if (url->given_len == OPTIONS_MAX)
            return hf__fail(s, HF_INVALID, "the sink's URL has more than %d options", OPTIONS_MAX);
        given[url->given_len].name = name;
        TRY(hf__sink_decode(s, url->memory, "an option", value, &given[url->given_len].value));
        for (size_t i = 0; i < url->given_len; i++)
            if (hf_str_equal(name, given[i].name))
                return hf__fail(s, HF_INVALID, "the sink's URL has the option \"%.*s\" twice",
                                HF_FMT(name));
        url->given_len++;
        assert(url->given_len <= OPTIONS_MAX);
    }
    return HF_OK;
}

/* ---- options -------------------------------------------------------------------------------- */

static enum hf_status wrong_option(struct hf_scope *s, const struct sink_url *url,
                                   const struct sink_option *option, const char *wanted)
{
    return hf__fail(s, HF_INVALID, "the option %s of a %.*s sink has to be %s", option->name,
                    HF_FMT(url->kind), wanted);
}

static enum hf_status read_number(struct hf_scope *s, const struct sink_url *url,
                                  const struct sink_option *option, struct hf_str text,
                                  uint64_t *out)
{
    uint64_t max = option->max ? option->max : UINT32_MAX;
    uint64_t number = 0;
    bool good = text.len > 0;
    char wanted[80];

    assert(option->min <= max);
    for (size_t i = 0; good && i < text.len; i++) {
        good = text.ptr[i] >= '0' && text.ptr[i] <= '9' && number <= UINT64_MAX / 10 - 1;
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (good && number >= option->min && number <= max) {
        *out = number;
        return HF_OK;
    }
    snprintf(wanted, sizeof(wanted), "a number from %llu to %llu", (unsigned long long)option->min,
             (unsigned long long)max);
    return wrong_option(s, url, option, wanted);
}

/* The place of a word in "one|two", from 1; 0: it is not there. */
static int word_at(const char *words, struct hf_str word)
{
    struct hf_str left = hf_str_from(words);

    assert(left.len > 0);
    for (int at = 1; left.len > 0; at++)
        if (hf_str_equal(str_cut(&left, '|'), word))
            return word.len ? at : 0;
    return 0;
}

static enum hf_status set_option(struct hf_scope *s, const struct sink_url *url,
                                 const struct sink_option *option, struct hf_str value, void *out)
{
    void *at = (char *)out + option->at;
    int word;

    switch (option->kind) {
    case SINK_TEXT:
        *(struct hf_str *)at = value;
        return HF_OK;
    case SINK_NUMBER:
        return read_number(s, url, option, value, at);
    case SINK_YES_NO:
        word = word_at("yes|no", value);
        if (!word)
            return wrong_option(s, url, option, "yes or no");
        *(enum hf_flag *)at = word == 1 ? HF_YES : HF_NO;
        return HF_OK;
    case SINK_WORD:
        assert(option->words);
        word = word_at(option->words, value);
        if (!word)
            return wrong_option(s, url, option, option->words);
        *(int *)at = word;
        return HF_OK;
    }
    return HF_OK;
}

static enum hf_status unknown_option(struct hf_scope *s, const struct sink_url *url,
                                     const struct sink_option *list, size_t len, struct hf_str name)
{
    struct hf__buf names = {.scope = s};

    hf__buf_format(&names, "%s", len ? "; it has " : "; it has no options");
    for (size_t i = 0; i < len; i++)
        hf__buf_format(&names, "%s%s", i ? ", " : "", list[i].name);
    if (names.failed)
        return hf__fail_nomem(s);
    return hf__fail(s, HF_INVALID, "a %.*s sink has no option \"%.*s\"%s", HF_FMT(url->kind),
                    HF_FMT(name), names.ptr);
}

enum hf_status hf__sink_options(struct hf_scope *s, const struct sink_url *url,
                                const struct sink_option *list, size_t len, void *out)
{
    for (size_t i = 0; i < url->given_len; i++) {
        size_t at = 0;

        while (at < len && !is_word(url->given[i].name, list[at].name))
            at++;
        if (at == len)
            return unknown_option(s, url, list, len, url->given[i].name);
        TRY(set_option(s, url, &list[at], url->given[i].value, out));
    }
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status open_kind(struct hf_scope *s, const struct kind *kind, struct hf_str rest,
                                struct hf_scope *memory, struct hf_sink **sink)
{
    struct sink_url url = {.memory = memory};
    struct hf_str options = hf_scope_copy(memory, rest);

    assert(kind->open);
    if (!options.ptr)
        return hf__fail_nomem(s);
    url.kind = hf_str_from(kind->name);
    url.rest = str_cut(&options, '?');
    TRY(read_options(s, options, &url));
    return kind->open(s, &url, sink);
}

enum hf_status hf_sink_open(struct hf_scope *s, struct hf_str url, struct hf_sink **sink)
{
    struct hf_str rest = url;
    struct hf_str name = str_cut(&rest, ':');
    const struct kind *kind = name.len < url.len ? kind_of(name) : NULL;
    struct hf_scope *memory;
    enum hf_status status;

    *sink = NULL;
    hf__scope_error_clear(s);
    if (!kind)
        return unknown_kind(s);
    if (!kind->open)
        return hf__fail(s, HF_UNSUPPORTED,
                        "holdfast was built without %s sinks: build it with -D%s=ON", kind->name,
                        kind->build_option);
    if (memchr(url.ptr, '\0', url.len))
        return hf__fail(s, HF_INVALID, "the URL of a sink contains a NUL byte");
    memory = hf_scope_new(hf_scope_env(s));
    if (!memory)
        return hf__fail_nomem(s);
    status = open_kind(s, kind, rest, memory, sink);
    assert((status == HF_OK) == (*sink != NULL));
    if (status != HF_OK) {
        hf_scope_free(memory);
        return status;
    }
    assert(!(*sink)->memory);
    (*sink)->memory = memory;
    return HF_OK;
}

/* The members that `ops` has; it may be an older and smaller struct. The others get defaults. */
static struct hf_sink_ops fill_ops(const struct hf_sink_ops *ops)
{
    struct hf_sink_ops filled = {0};
    size_t size = ops->size && ops->size < sizeof(filled) ? ops->size : sizeof(filled);

    memcpy(&filled, ops, size);
    filled.size = sizeof(filled);
    if (!filled.name)
        filled.name = "sink";
    if (!filled.batch_max)
        filled.batch_max = 1;
    assert(filled.name && filled.batch_max > 0);
    return filled;
}

enum hf_status hf_sink_new(struct hf_scope *s, const struct hf_sink_ops *ops, void *self,
                           struct hf_sink **sink)
{
    struct hf_sink_ops filled = fill_ops(ops);
    const struct hf_env *env = hf_scope_env(s);
    struct hf_sink *made;

    *sink = NULL;
    hf__scope_error_clear(s);
    if (!filled.send)
        return hf__fail(s, HF_INVALID, "the sink %s has no send function", filled.name);
    made = hf__env_alloc(env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    *made = (struct hf_sink){.env = *env, .ops = filled, .self = self};
    made->name_size = strlen(filled.name) + 1;
    made->name = hf__env_alloc(env, made->name_size);
    if (!made->name) {
        hf__env_free(env, made, sizeof(*made));
        return hf__fail_nomem(s);
    }
    memcpy(made->name, filled.name, made->name_size);
    made->ops.name = made->name;
    *sink = made;
    return HF_OK;
}

void hf_sink_close(struct hf_sink *sink)
{
    struct hf_env env;

    if (!sink)
        return;
    env = sink->env;
    if (sink->ops.close)
        sink->ops.close(sink->self);
    hf_scope_free(sink->memory);
    hf__env_free(&env, sink->name, sink->name_size);
    hf__env_free(&env, sink, sizeof(*sink));
}

const struct hf_sink_ops *hf_sink_ops(const struct hf_sink *sink)
{
    return &sink->ops;
}

/* ---- outcomes ------------------------------------------------------------------------------- */

void hf__delivery_done(struct hf_delivery *delivery)
{
    delivery->status = HF_OK;
    delivery->for_good = false;
    delivery->error = (struct hf_str){0};
}

void hf__delivery_fail(struct hf_scope *s, struct hf_delivery *delivery, enum hf_status status,
                       bool for_good, const char *format, ...)
{
    struct hf__buf text = {.scope = s};
    va_list args;

    assert(status != HF_OK);
    va_start(args, format);
    hf__buf_vformat(&text, format, args);
    va_end(args);
    delivery->status = status;
    delivery->for_good = for_good;
    delivery->error = text.failed ? hf_str_from(hf_status_text(status))
                                  : hf_str_of((const char *)text.ptr, text.len);
}

void hf__delivery_fail_with(struct hf_scope *s, struct hf_delivery *delivery, bool for_good)
{
    const struct hf_error *error = hf_scope_error(s);

    delivery->status = error->status == HF_OK ? HF_INTERNAL : error->status;
    delivery->for_good = for_good && delivery->status != HF_NOMEM;
    delivery->error =
        error->message.len ? error->message : hf_str_from(hf_status_text(delivery->status));
    assert(delivery->status != HF_OK && delivery->error.len > 0);
}

bool hf__delivery_blocked(const struct hf_delivery *deliveries, size_t at)
{
    struct hf_str key = deliveries[at].event->event.key;

    for (size_t i = 0; key.len > 0 && i < at; i++)
        if (deliveries[i].status != HF_OK && hf_str_equal(key, deliveries[i].event->event.key))
            return true;
    return false;
}

void hf__delivery_block(struct hf_scope *s, struct hf_delivery *delivery)
{
    (void)s;
    delivery->status = HF_INTERNAL;
    delivery->for_good = false;
    delivery->error = HF_STR("an earlier event with the same key was not delivered");
}

size_t hf__sink_event_bytes(const struct hf_event *event)
{
    return event->payload.len + (event->headers.ptr ? hf_item_size(event->headers) : 0);
}

/* ---- sending -------------------------------------------------------------------------------- */

static bool is_too_large(const struct hf_sink *sink, const struct hf_delivery *delivery)
{
    return sink->ops.event_bytes_max &&
           hf__sink_event_bytes(&delivery->event->event) > sink->ops.event_bytes_max;
}

/* (2): fail the events that are too large, and those that may not overtake them, and send the rest. */
static enum hf_status send_rest(struct hf_scope *s, struct hf_sink *sink,
                                struct hf_delivery *deliveries, size_t len)
{
    struct hf_delivery *rest = hf__scope_array(s, len, sizeof(*rest));
    size_t *from = hf__scope_array(s, len, sizeof(*from));
    enum hf_status status = HF_OK;
    size_t rest_len = 0;

    if (!rest || !from)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        deliveries[i].status = HF_OK; /* for hf__delivery_blocked() */
    for (size_t i = 0; i < len; i++) {
        if (is_too_large(sink, &deliveries[i])) {
            hf__delivery_fail(s, &deliveries[i], HF_LIMIT, true,
                              "payload and headers have %zu bytes; a %s sink takes at most %zu",
                              hf__sink_event_bytes(&deliveries[i].event->event), sink->ops.name,
                              sink->ops.event_bytes_max);
        } else if (sink->ops.keeps_order && hf__delivery_blocked(deliveries, i)) {
            hf__delivery_block(s, &deliveries[i]);
        } else {
            from[rest_len] = i;
            rest[rest_len++] =
                (struct hf_delivery){.event = deliveries[i].event, .status = HF_INTERNAL};
        }
    }
    assert(rest_len < len);
    if (rest_len > 0)
        status = sink->ops.send(s, sink->self, rest, rest_len);
    for (size_t i = 0; i < rest_len; i++)
        deliveries[from[i]] = rest[i];
    return status;
}

/* (1) */
static void delivery_finish(struct hf_delivery *delivery)
{
    if (delivery->status == HF_OK) {
        delivery->for_good = false;
        delivery->error = (struct hf_str){0};
    } else if (!delivery->error.len) {
        delivery->error = delivery->status == HF_INTERNAL
                              ? HF_STR("the sink reported no outcome for it")
                              : hf_str_from(hf_status_text(delivery->status));
    }
    assert((delivery->status == HF_OK) == (delivery->error.len == 0));
}

enum hf_status hf_sink_send(struct hf_scope *s, struct hf_sink *sink,
                            struct hf_delivery *deliveries, size_t len)
{
    enum hf_status status;
    bool all_fit = true;

    hf__scope_error_clear(s);
    if (len > sink->ops.batch_max)
        return hf__fail(s, HF_INVALID, "a %s sink takes at most %zu events in one call, not %zu",
                        sink->ops.name, sink->ops.batch_max, len);
    for (size_t i = 0; i < len; i++) {
        deliveries[i].status = HF_INTERNAL;
        deliveries[i].for_good = false;
        deliveries[i].error = (struct hf_str){0};
        all_fit = all_fit && !is_too_large(sink, &deliveries[i]);
    }
    if (len == 0)
        return HF_OK;
    status = hf__scope_alive(s);
    if (status == HF_OK)
        status = all_fit ? sink->ops.send(s, sink->self, deliveries, len)
                         : send_rest(s, sink, deliveries, len);
    for (size_t i = 0; i < len; i++)
        delivery_finish(&deliveries[i]);
    if (status == HF_OK) /* what failed is in the deliveries */
        hf__scope_error_clear(s);
    return status;
}

enum hf_status hf_sink_probe(struct hf_scope *s, struct hf_sink *sink)
{
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    return sink->ops.probe ? sink->ops.probe(s, sink->self) : HF_OK;
}
