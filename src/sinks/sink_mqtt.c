/*
 * sinks/sink_mqtt.c: MQTT 5.
 *
 *     mqtt://[USER:PASSWORD@]HOST[:PORT]/TOPIC
 *
 * An event is a PUBLISH with quality of service 1, with the attributes of CloudEvents as user
 * properties; it is answered by a PUBACK, which has a reason. Quality 0 has no answer. Quality 2
 * would promise more only within a session, and libmosquitto does not report when such a message is
 * refused; so there is no option for it.
 *
 * libmosquitto is driven by poll() here: its own loop uses select(), which cannot handle descriptors
 * beyond 1023, and its own thread would resend messages that we have given up.
 *
 * What always holds:
 *
 *  (1) An event is delivered when its PUBACK reports success, or, unless subscribers are required,
 *      that there is no subscriber. MQTT servers drop a message that has no subscriber.
 *  (2) A lane, which is a connection with a session of its own, is kept only when every message on
 *      it was answered.
 *  (3) When all events have the same topic, an answer that refuses the topic fails the batch.
 *
 * A server may refuse one message and take the next; events of one key go one by one, in waves.
 */
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sinks/broker.h"

#ifndef HF_MQTT_LIBRARY /* the build says which one it has seen */
#define HF_MQTT_LIBRARY "libmosquitto.so.1"
#endif

enum {
    MQTT_PORT = 1883,
    MQTT_TLS_PORT = 8883,
    MQTT_BATCH = 200,
    MQTT_BATCH_BYTES = 4 * 1024 * 1024,
    MQTT_EVENT_MAX = 255 * 1024 * 1024, /* a packet has up to 268,435,455 bytes */
    MQTT_KEEPALIVE_S = 60,
    WINDOW = 100 /* unanswered messages; the library sends fewer if the server wants that */
};

#define MQTT_FUNCTIONS(X)                                                                          \
    X(mosquitto_lib_init)                                                                          \
    X(mosquitto_new)                                                                               \
    X(mosquitto_destroy)                                                                           \
    X(mosquitto_int_option)                                                                        \
    X(mosquitto_username_pw_set)                                                                   \
    X(mosquitto_tls_set)                                                                           \
    X(mosquitto_tls_opts_set)                                                                      \
    X(mosquitto_tls_insecure_set)                                                                  \
    X(mosquitto_connect_v5_callback_set)                                                           \
    X(mosquitto_disconnect_v5_callback_set)                                                        \
    X(mosquitto_publish_v5_callback_set)                                                           \
    X(mosquitto_connect_bind_v5)                                                                   \
    X(mosquitto_disconnect_v5)                                                                     \
    X(mosquitto_publish_v5)                                                                        \
    X(mosquitto_socket)                                                                            \
    X(mosquitto_want_write)                                                                        \
    X(mosquitto_loop_read)                                                                         \
    X(mosquitto_loop_write)                                                                        \
    X(mosquitto_loop_misc)                                                                         \
    X(mosquitto_property_add_string)                                                               \
    X(mosquitto_property_add_string_pair)                                                          \
    X(mosquitto_property_add_int32)                                                                \
    X(mosquitto_property_free_all)                                                                 \
    X(mosquitto_pub_topic_check2)                                                                  \
    X(mosquitto_strerror)                                                                          \
    X(mosquitto_reason_string)

struct mqtt_library {
    MQTT_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE mqtt_library
static const struct library_symbol symbols[] = {MQTT_FUNCTIONS(LIBRARY_SYMBOL)};

struct mqtt {
    struct hf_env env;
    struct mqtt_library lib;
    struct broker_url url;
    struct broker_tls tls;
    struct template topic;
    struct hf_str client_id;
    enum hf_flag retain, require_subscribers;
    uint64_t expiry_s; /* 0: none */
    uint64_t timeout_ms;
    struct broker_lanes lanes;
};

struct mqtt_batch;

struct mqtt_lane {
    struct broker_lane lane;
    struct mosquitto *client;
    bool answered;            /* the CONNACK has come */
    int connect_reason;       /* the reason in the CONNACK; 0: success */
    int disconnect_reason;    /* the reason of the last DISCONNECT; 0: none */
    struct mqtt_batch *batch; /* the batch that gets the answers; NULL: none */
};

/* A batch under way. */
struct mqtt_batch {
    struct broker_wait wait;
    struct mqtt *mqtt;
    struct mqtt_lane *lane;
    struct hf_delivery *deliveries;
    size_t len;
    int *ids;              /* by delivery: the id of its packet; 0: not sent, or answered */
    size_t open;           /* how many packets are not answered */
    enum hf_status status; /* of the first answer that fails the batch */
    struct hf_error error; /* of the same answer */
};

static void batch_check(const struct mqtt_batch *batch)
{
    size_t open = 0;

    for (size_t i = 0; DEV_CHECKS && i < batch->len; i++)
        open += batch->ids[i] != 0;
    assert(!DEV_CHECKS || open == batch->open);
    assert(batch->status == batch->error.status);
}

static enum hf_status connection_fail(struct hf_scope *s, const struct mqtt *mqtt,
                                      const struct mqtt_lane *lane, const char *doing, int code)
{
    assert(code != MOSQ_ERR_SUCCESS);
    if (code == MOSQ_ERR_NOMEM)
        return hf__fail_nomem(s);
    if (lane && lane->disconnect_reason)
        return hf__broker_fail(s, HF_IO, "the MQTT server at %s:%u disconnected while %s: %s",
                               mqtt->url.host.ptr, mqtt->url.port, doing,
                               mqtt->lib.mosquitto_reason_string(lane->disconnect_reason));
    return hf__broker_fail(s, HF_IO, "the MQTT server at %s:%u, while %s: %s", mqtt->url.host.ptr,
                           mqtt->url.port, doing,
                           code == MOSQ_ERR_ERRNO ? strerror(errno)
                                                  : mqtt->lib.mosquitto_strerror(code));
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Fail the batch. The answers to its other messages are still read. */
static void fail_batch(struct mqtt_batch *batch, enum hf_status status, int reason)
{
    const struct mqtt *mqtt = batch->mqtt;

    assert(status != HF_OK);
    if (batch->status != HF_OK)
        return;
    batch->status = hf__broker_fail(batch->wait.s, status,
                                    "the MQTT server at %s:%u is not accepting messages: %s",
                                    mqtt->url.host.ptr, mqtt->url.port,
                                    mqtt->lib.mosquitto_reason_string(reason));
    batch->error = *hf_scope_error(batch->wait.s);
}

/* The reason of a PUBACK. */
static void take_reason(struct mqtt_batch *batch, struct hf_delivery *delivery, int reason)
{
    const struct mqtt *mqtt = batch->mqtt;
    enum hf_status status = HF_IO;
    bool for_good = false, names_topic = false;

    switch (reason) {
    case MQTT_RC_SUCCESS:
        hf__delivery_done(delivery);
        return;
    case MQTT_RC_NO_MATCHING_SUBSCRIBERS:
        if (mqtt->require_subscribers != HF_YES) {
            hf__delivery_done(delivery);
            return;
        }
        status = HF_NOT_FOUND;
        break;
    case MQTT_RC_NOT_AUTHORIZED:
        status = HF_DENIED;
        for_good = names_topic = true;
        break;
    case MQTT_RC_TOPIC_NAME_INVALID:
        status = HF_INVALID;
        for_good = names_topic = true;
        break;
    case MQTT_RC_PAYLOAD_FORMAT_INVALID:
        status = HF_INVALID;
        for_good = true;
        break;
    case MQTT_RC_PACKET_TOO_LARGE:
        status = HF_LIMIT;
        for_good = true;
        break;
    case MQTT_RC_QUOTA_EXCEEDED:
        fail_batch(batch, HF_THROTTLED, reason);
        return;
    default:
        break;
    }
    if (names_topic && mqtt->topic.is_fixed) { /* (3) */
        fail_batch(batch, status, reason);
        return;
    }
    hf__delivery_fail(batch->wait.s, delivery, status, for_good, "the MQTT server refuses it: %s",
                      mqtt->lib.mosquitto_reason_string(reason));
}

static void on_publish(struct mosquitto *client, void *user, int id, int reason,
                       const mosquitto_property *properties)
{
    struct mqtt_lane *lane = user;
    struct mqtt_batch *batch = lane->batch;

    (void)client;
    (void)properties;
    for (size_t i = 0; batch && id && i < batch->len; i++) {
        if (batch->ids[i] == id) {
            assert(batch->open > 0);
            batch->ids[i] = 0;
            batch->open--;
            take_reason(batch, &batch->deliveries[i], reason);
            return;
        }
    }
}

static void on_connect(struct mosquitto *client, void *user, int reason, int flags,
                       const mosquitto_property *properties)
{
    struct mqtt_lane *lane = user;

    (void)client;
    (void)flags;
    (void)properties;
    lane->answered = true;
    lane->connect_reason = reason;
}

static void on_disconnect(struct mosquitto *client, void *user, int reason,
                          const mosquitto_property *properties)
{
    struct mqtt_lane *lane = user;

    (void)client;
    (void)properties;
    if (reason >= MQTT_RC_UNSPECIFIED) /* smaller ones are the library's own */
        lane->disconnect_reason = reason;
}

/* Send and receive what is possible, and wait up to BROKER_SLICE_MS for it. */
static enum hf_status connection_pump(struct broker_wait *wait, const struct mqtt *mqtt,
                                      struct mqtt_lane *lane, const char *doing)
{
    const struct mqtt_library *lib = &mqtt->lib;
    int fd = lib->mosquitto_socket(lane->client);
    bool writes = lib->mosquitto_want_write(lane->client);
    int code = MOSQ_ERR_SUCCESS, one = 1;
    short ready;

    if (fd < 0)
        return connection_fail(wait->s, mqtt, lane, doing, MOSQ_ERR_CONN_LOST);
    /* Servers that have not switched off Nagle's algorithm would wait for our kernel, which takes
     * its time, between two answers: 40 ms for each batch. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
    TRY(hf__broker_poll(wait, fd, (short)(POLLIN | (writes ? POLLOUT : 0)), &ready));
    /* TLS may have read more from the socket than it has returned. */
    if (ready & (POLLIN | POLLERR | POLLHUP) || mqtt->tls.on == HF_YES)
        code = lib->mosquitto_loop_read(lane->client, 1);
    if (code == MOSQ_ERR_SUCCESS && writes)
        code = lib->mosquitto_loop_write(lane->client, 1);
    if (code == MOSQ_ERR_SUCCESS)
        code = lib->mosquitto_loop_misc(lane->client);
    return code == MOSQ_ERR_SUCCESS ? HF_OK : connection_fail(wait->s, mqtt, lane, doing, code);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static void close_lane(struct mqtt *mqtt, struct mqtt_lane *lane, bool graceful)
{
    if (lane->client) {
        if (graceful)
            (void)mqtt->lib.mosquitto_disconnect_v5(lane->client, 0, NULL);
        mqtt->lib.mosquitto_destroy(lane->client);
    }
    hf__env_free(&mqtt->env, lane, sizeof(*lane));
}

/* libmosquitto counts its users without a lock. */
static int begin_library(const struct mqtt_library *lib)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool begun; /* guarded by it */
    int code = MOSQ_ERR_SUCCESS;

    (void)pthread_mutex_lock(&mutex);
    if (!begun)
        code = lib->mosquitto_lib_init();
    begun = begun || code == MOSQ_ERR_SUCCESS;
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

static int set_options(const struct mqtt *mqtt, struct mosquitto *client)
{
    const struct mqtt_library *lib = &mqtt->lib;
    const struct broker_tls *tls = &mqtt->tls;
    int code = lib->mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);

    if (code == MOSQ_ERR_SUCCESS)
        code = lib->mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, WINDOW);
    if (code == MOSQ_ERR_SUCCESS)
        code = lib->mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    if (code == MOSQ_ERR_SUCCESS && mqtt->url.user.ptr)
        code = lib->mosquitto_username_pw_set(client, mqtt->url.user.ptr, mqtt->url.password.ptr);
    if (code == MOSQ_ERR_SUCCESS && tls->on == HF_YES) {
        const char *file = tls->ca_file.ptr ? tls->ca_file.ptr : hf__broker_authorities();

        code = lib->mosquitto_tls_set(client, file, file ? NULL : "/etc/ssl/certs",
                                      tls->cert_file.ptr, tls->key_file.ptr, NULL);
        if (code == MOSQ_ERR_SUCCESS && tls->verify == HF_NO) {
            code = lib->mosquitto_tls_opts_set(client, 0, NULL, NULL);
            if (code == MOSQ_ERR_SUCCESS)
                code = lib->mosquitto_tls_insecure_set(client, true);
        }
    }
    return code;
}

/* Fail because the server refuses the connection. */
static enum hf_status fail_refused(struct hf_scope *s, const struct mqtt *mqtt, int reason)
{
    bool denied = reason == MQTT_RC_BAD_USERNAME_OR_PASSWORD || reason == MQTT_RC_NOT_AUTHORIZED ||
                  reason == MQTT_RC_BANNED || reason == MQTT_RC_CLIENTID_NOT_VALID ||
                  reason == MQTT_RC_BAD_AUTHENTICATION_METHOD;

    assert(reason != 0);
    return hf__broker_fail(s, denied ? HF_DENIED : HF_IO,
                           "the MQTT server at %s:%u refuses the connection: %s",
                           mqtt->url.host.ptr, mqtt->url.port,
                           mqtt->lib.mosquitto_reason_string(reason));
}

static enum hf_status connect_lane(struct broker_wait *wait, struct mqtt *mqtt,
                                   struct mqtt_lane *lane)
{
    const struct mqtt_library *lib = &mqtt->lib;
    int fd, code;

    /* The library would wait for minutes for a server that does not answer. */
    TRY(hf__broker_connect(wait, "the MQTT server", &mqtt->url, &fd));
    (void)close(fd);
    code = begin_library(lib);
    if (code != MOSQ_ERR_SUCCESS)
        return connection_fail(wait->s, mqtt, NULL, "initializing the library", code);
    lane->client = lib->mosquitto_new(mqtt->client_id.ptr, true, lane);
    if (!lane->client)
        return hf__fail_nomem(wait->s);
    code = set_options(mqtt, lane->client);
    if (code != MOSQ_ERR_SUCCESS)
        return connection_fail(wait->s, mqtt, NULL, "setting options", code);
    lib->mosquitto_connect_v5_callback_set(lane->client, on_connect);
    lib->mosquitto_disconnect_v5_callback_set(lane->client, on_disconnect);
    lib->mosquitto_publish_v5_callback_set(lane->client, on_publish);
    code = lib->mosquitto_connect_bind_v5(lane->client, mqtt->url.host.ptr, (int)mqtt->url.port,
                                          MQTT_KEEPALIVE_S, NULL, NULL);
    if (code != MOSQ_ERR_SUCCESS)
        return connection_fail(wait->s, mqtt, lane, "connecting", code);
    while (!lane->answered) {
        enum hf_status status = connection_pump(wait, mqtt, lane, "connecting");

        if (status != HF_OK && !(lane->answered && lane->connect_reason))
            return status;
    }
    return lane->connect_reason ? fail_refused(wait->s, mqtt, lane->connect_reason) : HF_OK;
}

/* An idle connection is usable if nothing came on it and it was not idle for too long. */
static bool is_fresh(const struct mqtt *mqtt, const struct mqtt_lane *lane)
{
    int64_t idle_us = hf__broker_now_us() - lane->lane.kept_us;
    struct pollfd poller = {.fd = mqtt->lib.mosquitto_socket(lane->client), .events = POLLIN};

    return idle_us < (int64_t)MQTT_KEEPALIVE_S * 500000 && poller.fd >= 0 &&
           poll(&poller, 1, 0) == 0;
}

static enum hf_status take_lane(struct broker_wait *wait, struct mqtt *mqtt, struct mqtt_lane **out)
{
    struct mqtt_lane *lane;
    enum hf_status status;

    while ((lane = (struct mqtt_lane *)hf__broker_lane_take(&mqtt->lanes))) {
        assert(lane->client && !lane->batch);
        if (is_fresh(mqtt, lane)) {
            *out = lane;
            return HF_OK;
        }
        close_lane(mqtt, lane, false);
    }
    lane = hf__env_alloc(&mqtt->env, sizeof(*lane));
    if (!lane)
        return hf__fail_nomem(wait->s);
    *lane = (struct mqtt_lane){0};
    status = connect_lane(wait, mqtt, lane);
    if (status != HF_OK) {
        close_lane(mqtt, lane, false);
        return status;
    }
    *out = lane;
    return HF_OK;
}

/* ---- sending -------------------------------------------------------------------------------- */

static enum hf_status add_property(struct hf_scope *s, const struct mqtt *mqtt,
                                   const struct event_attribute *attribute,
                                   mosquitto_property **properties)
{
    bool is_type = hf_str_equal(attribute->name, HF_STR("datacontenttype"));
    struct hf_str name = hf_scope_copy(s, attribute->name);
    struct hf_str value = hf_scope_copy(s, attribute->value);
    int code;

    if (!name.ptr || !value.ptr)
        return hf__fail_nomem(s);
    TRY(hf__broker_c_text(s, "one of its texts", value));
    if (is_type)
        code =
            mqtt->lib.mosquitto_property_add_string(properties, MQTT_PROP_CONTENT_TYPE, value.ptr);
    else
        code = mqtt->lib.mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY,
                                                            name.ptr, value.ptr);
    if (code == MOSQ_ERR_NOMEM)
        return hf__fail_nomem(s);
    if (code != MOSQ_ERR_SUCCESS)
        return hf__fail(s, HF_INVALID, "MQTT does not accept its %s: %s", name.ptr,
                        mqtt->lib.mosquitto_strerror(code));
    return HF_OK;
}

static enum hf_status make_properties(struct hf_scope *s, const struct mqtt *mqtt,
                                      const struct hf_event *event, mosquitto_property **properties)
{
    const struct event_attribute *list;
    size_t len;

    *properties = NULL;
    TRY(hf__sink_event_attributes(s, event, &list, &len));
    for (size_t i = 0; i < len; i++)
        TRY(add_property(s, mqtt, &list[i], properties));
    if (mqtt->expiry_s &&
        mqtt->lib.mosquitto_property_add_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                               (uint32_t)mqtt->expiry_s) != MOSQ_ERR_SUCCESS)
        return hf__fail_nomem(s);
    return HF_OK;
}

static bool is_topic(const struct mqtt *mqtt, struct hf_str text)
{
    return text.len > 0 && !memchr(text.ptr, '\0', text.len) &&
           mqtt->lib.mosquitto_pub_topic_check2(text.ptr, text.len) == MOSQ_ERR_SUCCESS;
}

/* Pass one event to the library. A mistake in the event fails it for good. */
static enum hf_status hand_over(struct mqtt_batch *batch, size_t at, struct hf_str topic,
                                const mosquitto_property *properties)
{
    const struct mqtt *mqtt = batch->mqtt;
    const struct hf_event *event = &batch->deliveries[at].event->event;
    int id = 0, code;

    assert(!batch->ids[at]);
    code =
        mqtt->lib.mosquitto_publish_v5(batch->lane->client, &id, topic.ptr, (int)event->payload.len,
                                       event->payload.ptr, 1, mqtt->retain == HF_YES, properties);
    switch (code) {
    case MOSQ_ERR_SUCCESS:
        batch->ids[at] = id;
        batch->open++;
        return HF_OK;
    case MOSQ_ERR_OVERSIZE_PACKET:
    case MOSQ_ERR_PAYLOAD_SIZE:
        hf__delivery_fail(batch->wait.s, &batch->deliveries[at], HF_LIMIT, true,
                          "with its properties it is larger than the MQTT server accepts");
        return HF_OK;
    case MOSQ_ERR_INVAL:
    case MOSQ_ERR_MALFORMED_UTF8:
        hf__delivery_fail(batch->wait.s, &batch->deliveries[at], HF_INVALID, true,
                          "libmosquitto rejects it: %s", mqtt->lib.mosquitto_strerror(code));
        return HF_OK;
    default:
        return connection_fail(batch->wait.s, mqtt, batch->lane, "publishing", code);
    }
}

static enum hf_status message_publish(struct mqtt_batch *batch, size_t at)
{
    const struct mqtt *mqtt = batch->mqtt;
    const struct hf_event *event = &batch->deliveries[at].event->event;
    mosquitto_property *properties = NULL;
    struct hf_str topic;
    enum hf_status status;

    status = hf__template_fill(batch->wait.s, &mqtt->topic, event, &topic);
    if (status == HF_OK && !is_topic(mqtt, topic))
        status = hf__fail(batch->wait.s, HF_INVALID, "invalid topic \"%.*s\"", HF_FMT(topic));
    if (status == HF_OK)
        status = make_properties(batch->wait.s, mqtt, event, &properties);
    if (status == HF_OK) {
        status = hand_over(batch, at, topic, properties);
    } else if (status != HF_NOMEM) {
        hf__delivery_fail_with(batch->wait.s, &batch->deliveries[at], true);
        status = HF_OK;
    }
    mqtt->lib.mosquitto_property_free_all(&properties);
    return status;
}

static enum hf_status publish_all(struct mqtt_batch *batch)
{
    for (size_t i = 0; i < batch->len && batch->status == HF_OK; i++) {
        while (batch->open >= WINDOW)
            TRY(connection_pump(&batch->wait, batch->mqtt, batch->lane, "publishing"));
        TRY(message_publish(batch, i));
    }
    while (batch->open)
        TRY(connection_pump(&batch->wait, batch->mqtt, batch->lane, "waiting for answers"));
    batch_check(batch);
    if (batch->status != HF_OK)
        *hf__scope_error_edit(batch->wait.s) = batch->error;
    return batch->status;
}

static enum hf_status mqtt_send_wave(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                     size_t len)
{
    struct mqtt *mqtt = self;
    struct mqtt_batch batch = {.mqtt = mqtt, .deliveries = deliveries, .len = len};
    enum hf_status status;

    hf__broker_wait_begin(&batch.wait, s, mqtt->timeout_ms);
    batch.ids = hf__scope_array(s, len, sizeof(*batch.ids));
    if (!batch.ids)
        return hf__fail_nomem(s);
    TRY(take_lane(&batch.wait, mqtt, &batch.lane));
    batch.lane->batch = &batch;
    status = publish_all(&batch);
    batch.lane->batch = NULL;
    if (batch.open == 0 && status == batch.status)
        hf__broker_lane_keep(&mqtt->lanes, &batch.lane->lane);
    else
        close_lane(mqtt, batch.lane, false); /* (2) */
    return status;
}

static enum hf_status mqtt_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    return hf__broker_send_waves(s, self, deliveries, len, mqtt_send_wave);
}

static enum hf_status mqtt_probe(struct hf_scope *s, void *self)
{
    struct mqtt *mqtt = self;
    struct mqtt_lane *lane;
    struct broker_wait wait;

    hf__broker_wait_begin(&wait, s, mqtt->timeout_ms);
    TRY(take_lane(&wait, mqtt, &lane));
    hf__broker_lane_keep(&mqtt->lanes, &lane->lane);
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void mqtt_close(void *self)
{
    struct mqtt *mqtt = self;
    struct hf_env env = mqtt->env;
    struct broker_lane *lane;

    while ((lane = hf__broker_lane_take(&mqtt->lanes)))
        close_lane(mqtt, (struct mqtt_lane *)lane, true);
    hf__broker_lanes_destroy(&mqtt->lanes);
    hf__env_free(&env, mqtt, sizeof(*mqtt));
}

static enum hf_status set_up(struct hf_scope *s, const struct sink_url *url, struct mqtt *mqtt)
{
    static const struct sink_option options[] = {
        {.name = "client_id", .kind = SINK_TEXT, .at = offsetof(struct mqtt, client_id)},
        {.name = "retain", .kind = SINK_YES_NO, .at = offsetof(struct mqtt, retain)},
        {.name = "require_subscribers",
         .kind = SINK_YES_NO,
         .at = offsetof(struct mqtt, require_subscribers)},
        {.name = "expiry_s", .kind = SINK_NUMBER, .at = offsetof(struct mqtt, expiry_s), .min = 1},
        {.name = "timeout_ms",
         .kind = SINK_NUMBER,
         .at = offsetof(struct mqtt, timeout_ms),
         .min = 1,
         .max = 3600000},
        BROKER_TLS_OPTIONS(struct mqtt),
    };
    struct hf_str topic;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), mqtt));
    TRY(hf__broker_check_tls(s, &mqtt->tls));
    TRY(hf__broker_c_text(s, "the option client_id", mqtt->client_id));
    TRY(hf__broker_url(s, url, mqtt->tls.on == HF_YES ? MQTT_TLS_PORT : MQTT_PORT, &mqtt->url));
    if (mqtt->url.path.len == 0)
        return hf__fail(s, HF_INVALID, "the URL of an mqtt sink has to end with a topic");
    TRY(hf__sink_decode(s, url->memory, "the topic", mqtt->url.path, &topic));
    TRY(hf__template_read(s, url->memory, "the topic", topic, &mqtt->topic));
    TRY(hf__library_load(s, HF_MQTT_LIBRARY, symbols, ARRAY_LEN(symbols), &mqtt->lib));
    if (mqtt->topic.is_fixed && !is_topic(mqtt, mqtt->topic.text))
        return hf__fail(s, HF_INVALID,
                        "the topic of an mqtt sink may not contain \"+\" or \"#\", and has at most "
                        "65535 bytes");
    return HF_OK;
}

enum hf_status hf__sink_mqtt_open(struct hf_scope *s, const struct sink_url *url,
                                  struct hf_sink **sink)
{
    const struct hf_env *env = hf_scope_env(s);
    struct mqtt *mqtt = hf__env_alloc(env, sizeof(*mqtt));
    struct hf_sink_ops ops = {
        .size = sizeof(ops),
        .name = "mqtt",
        .batch_max = MQTT_BATCH,
        .batch_bytes_max = MQTT_BATCH_BYTES,
        .event_bytes_max = MQTT_EVENT_MAX,
        .keeps_order = true,
        .send = mqtt_send,
        .probe = mqtt_probe,
        .close = mqtt_close,
    };
    enum hf_status status;

    if (!mqtt)
        return hf__fail_nomem(s);
    *mqtt = (struct mqtt){.env = *env, .timeout_ms = BROKER_TIMEOUT_MS};
    hf__broker_lanes_init(&mqtt->lanes);
    status = set_up(s, url, mqtt);
    if (status == HF_OK) {
        ops.workers = mqtt->client_id.ptr ? 1 : 0; /* a client_id has one connection */
        status = hf_sink_new(s, &ops, mqtt, sink);
    }
    if (status != HF_OK)
        mqtt_close(mqtt);
    return status;
}
