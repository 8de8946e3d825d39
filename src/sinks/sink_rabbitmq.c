/*
 * sinks/sink_rabbitmq.c: RabbitMQ, by AMQP 0-9-1.
 *
 *     rabbitmq://[USER:PASSWORD@]HOST[:PORT]/VHOST/EXCHANGE?routing_key=TEMPLATE
 *
 * Every message is persistent, mandatory and confirmed. The messages of a batch are published without
 * waiting, and RabbitMQ numbers them on its own; its confirms name those numbers. A message that no
 * queue takes is returned (basic.return), and confirmed after that.
 *
 * librabbitmq blocks and is for one thread, so a lane is a connection with one channel. Frames are
 * read here one by one, those of a returned message too, as the library's function for that waits
 * without a limit.
 *
 * What always holds:
 *
 *  (1) An event is delivered when its message was confirmed, and not returned before.
 *  (2) A lane is kept only when all messages on it are confirmed. So the numbers of a batch begin
 *      behind those of the batch before.
 *  (3) When RabbitMQ closes the channel or the connection, or blocks it, the batch fails; with one
 *      exception: a message was larger than RabbitMQ accepts. Then its text contains the limit, the
 *      events beyond it have failed for good, and the rest is published again.
 *  (4) At most WINDOW messages or WINDOW_BYTES are not confirmed, and nothing is written to a socket
 *      that would block; a write that blocks all the same ends with TCP_USER_TIMEOUT.
 *
 * A returned event does not hold up those behind it; events of one key go one by one, in waves.
 */
#include <amqp.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "sinks/broker.h"

#ifndef HF_RABBITMQ_LIBRARY /* the build says which one it has seen */
#define HF_RABBITMQ_LIBRARY "librabbitmq.so.4"
#endif

enum {
    AMQP_PORT = 5672,
    AMQP_TLS_PORT = 5671,
    AMQP_BATCH = 200,
    AMQP_BATCH_BYTES = 4 * 1024 * 1024,
    AMQP_MESSAGE_MAX = 128 * 1024 * 1024, /* RabbitMQ's default */
    AMQP_SHORT_MAX = 255,                 /* bytes of a short string of AMQP */
    AMQP_HEADER_ROOM = 2048,              /* bytes of the header frame besides the table */
    WINDOW = 128,
    WINDOW_BYTES = 1024 * 1024,
    CONNECT_MS = 10000,
    CHANNEL = 1
};

#define AMQP_FUNCTIONS(X)                                                                          \
    X(amqp_new_connection)                                                                         \
    X(amqp_destroy_connection)                                                                     \
    X(amqp_connection_close)                                                                       \
    X(amqp_tcp_socket_new)                                                                         \
    X(amqp_ssl_socket_new)                                                                         \
    X(amqp_ssl_socket_set_cacert)                                                                  \
    X(amqp_ssl_socket_set_key)                                                                     \
    X(amqp_ssl_socket_set_verify_peer)                                                             \
    X(amqp_ssl_socket_set_verify_hostname)                                                         \
    X(amqp_ssl_socket_set_ssl_versions)                                                            \
    X(amqp_socket_open_noblock)                                                                    \
    X(amqp_get_sockfd)                                                                             \
    X(amqp_get_frame_max)                                                                          \
    X(amqp_set_handshake_timeout)                                                                  \
    X(amqp_set_rpc_timeout)                                                                        \
    X(amqp_login_with_properties)                                                                  \
    X(amqp_channel_open)                                                                           \
    X(amqp_confirm_select)                                                                         \
    X(amqp_exchange_declare)                                                                       \
    X(amqp_get_rpc_reply)                                                                          \
    X(amqp_basic_publish)                                                                          \
    X(amqp_simple_wait_frame_noblock)                                                              \
    X(amqp_maybe_release_buffers)                                                                  \
    X(amqp_error_string2)

struct amqp_library {
    AMQP_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE amqp_library
static const struct library_symbol symbols[] = {AMQP_FUNCTIONS(LIBRARY_SYMBOL)};

struct rabbit {
    struct hf_env env;
    struct amqp_library lib;
    struct broker_url url;
    struct broker_tls tls;
    struct hf_str vhost, exchange;
    struct hf_str routing_text;
    struct template routing_key;
    int form; /* enum broker_form */
    uint64_t heartbeat_s;
    uint64_t timeout_ms;
    _Atomic uint64_t message_max; /* (3): as far as we know */
    struct broker_lanes lanes;
};

struct rabbit_lane {
    struct broker_lane lane;
    amqp_connection_state_t connection;
    uint64_t published; /* messages on this lane; the number of the last one */
};

/* A batch under way; see (2). */
struct rabbit_batch {
    struct broker_wait wait;
    struct rabbit *rabbit;
    struct rabbit_lane *lane;
    struct hf_delivery *deliveries;
    size_t len;
    bool *ended;               /* by delivery: its outcome is known */
    uint64_t first;            /* number of sent[0] on the lane */
    size_t *sent;              /* by message: which delivery it is */
    size_t *sizes;             /* by message: its bytes */
    bool *confirmed;           /* by message */
    size_t sent_len;           /* messages that were published */
    size_t open;               /* messages that are not confirmed */
    size_t open_bytes;         /* sum of their bytes */
    bool returning;            /* a basic.return was read, and its header has not come yet */
    uint64_t body;             /* bytes of the body of a returned message that have not come yet */
    struct hf_str return_text; /* why it was returned */
    bool too_large;            /* (3) */
};

static void batch_check(const struct rabbit_batch *batch)
{
    size_t open = 0, bytes = 0;

    assert(batch->sent_len <= batch->len);
    assert(batch->lane->published + 1 == batch->first + batch->sent_len); /* (2) */
    for (size_t at = 0; DEV_CHECKS && at < batch->sent_len; at++) {
        open += !batch->confirmed[at];
        bytes += batch->confirmed[at] ? 0 : batch->sizes[at];
        assert(!batch->confirmed[at] || batch->ended[batch->sent[at]]);
    }
    assert(!DEV_CHECKS || (open == batch->open && bytes == batch->open_bytes));
}

static amqp_bytes_t bytes_of(struct hf_str text)
{
    return (amqp_bytes_t){.len = text.len, .bytes = (void *)(uintptr_t)text.ptr};
}

static struct hf_str text_of(amqp_bytes_t bytes)
{
    return hf_str_of(bytes.bytes ? bytes.bytes : "", bytes.bytes ? bytes.len : 0);
}

static enum hf_status connection_fail(struct hf_scope *s, const struct rabbit *rabbit,
                                      const char *doing, int code)
{
    assert(code != AMQP_STATUS_OK);
    return hf__broker_fail(s, code == AMQP_STATUS_TIMEOUT ? HF_TIMEOUT : HF_IO,
                           "RabbitMQ at %s:%u, while %s: %s", rabbit->url.host.ptr,
                           rabbit->url.port, doing, rabbit->lib.amqp_error_string2(code));
}

/* Fail because the broker closes the channel or the connection, with its code and text. */
static enum hf_status fail_closed(struct hf_scope *s, const struct rabbit *rabbit, int code,
                                  amqp_bytes_t text)
{
    struct hf_str words = text_of(text);
    enum hf_status status = code == 403 || code == 530 ? HF_DENIED
                            : code == 404              ? HF_NOT_FOUND
                            : code == 506              ? HF_NO_SPACE
                                                       : HF_IO;

    return hf__broker_fail(s, status, "RabbitMQ at %s:%u reports error %d: %.*s",
                           rabbit->url.host.ptr, rabbit->url.port, code, HF_FMT(words));
}

/* ---- connecting ----------------------------------------------------------------------------- */

static enum hf_status check_reply(struct hf_scope *s, const struct rabbit *rabbit,
                                  const char *doing, amqp_rpc_reply_t reply)
{
    switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
        return HF_OK;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
        if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
            amqp_connection_close_t *method = reply.reply.decoded;

            return fail_closed(s, rabbit, method->reply_code, method->reply_text);
        }
        if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
            amqp_channel_close_t *method = reply.reply.decoded;

            return fail_closed(s, rabbit, method->reply_code, method->reply_text);
        }
        return connection_fail(s, rabbit, doing, AMQP_STATUS_UNEXPECTED_STATE);
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
        return connection_fail(s, rabbit, doing, reply.library_error);
    default:
        return connection_fail(s, rabbit, doing, AMQP_STATUS_CONNECTION_CLOSED);
    }
}

static void close_lane(struct rabbit *rabbit, struct rabbit_lane *lane, bool graceful)
{
    if (lane->connection) {
        struct timeval second = {.tv_sec = 1};

        if (graceful) {
            (void)rabbit->lib.amqp_set_rpc_timeout(lane->connection, &second);
            (void)rabbit->lib.amqp_connection_close(lane->connection, AMQP_REPLY_SUCCESS);
        }
        (void)rabbit->lib.amqp_destroy_connection(lane->connection);
    }
    hf__env_free(&rabbit->env, lane, sizeof(*lane));
}

static struct timeval left_of(const struct broker_wait *wait, int cap_ms)
{
    int ms = hf__broker_wait_ms(wait, cap_ms);

    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

/* A socket for the connection, which owns it. NULL: no memory, or *status is set. */
static amqp_socket_t *make_socket(struct hf_scope *s, const struct rabbit *rabbit,
                                  amqp_connection_state_t connection, enum hf_status *status)
{
    const struct amqp_library *lib = &rabbit->lib;
    const struct broker_tls *tls = &rabbit->tls;
    const char *authorities = tls->ca_file.ptr ? tls->ca_file.ptr : hf__broker_authorities();
    amqp_socket_t *socket;
    int code = AMQP_STATUS_OK;

    if (tls->on != HF_YES)
        return lib->amqp_tcp_socket_new(connection);
    socket = lib->amqp_ssl_socket_new(connection);
    if (!socket)
        return NULL;
    lib->amqp_ssl_socket_set_verify_peer(socket, tls->verify != HF_NO);
    lib->amqp_ssl_socket_set_verify_hostname(socket, tls->verify != HF_NO);
    (void)lib->amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
    if (authorities && tls->verify != HF_NO)
        code = lib->amqp_ssl_socket_set_cacert(socket, authorities);
    if (code == AMQP_STATUS_OK && tls->cert_file.ptr)
        code = lib->amqp_ssl_socket_set_key(socket, tls->cert_file.ptr, tls->key_file.ptr);
    if (code != AMQP_STATUS_OK) {
        *status = connection_fail(s, rabbit, "reading certificates", code);
        return NULL;
    }
    return socket;
}

/* The capabilities let RabbitMQ report when it stops reading, and when it refuses our password. */
static amqp_rpc_reply_t log_in(const struct rabbit *rabbit, amqp_connection_state_t connection)
{
    amqp_field_value_t yes = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1};
    amqp_table_entry_t capabilities[] = {
        {.key = bytes_of(HF_STR("connection.blocked")), .value = yes},
        {.key = bytes_of(HF_STR("authentication_failure_close")), .value = yes},
    };
    amqp_table_entry_t entries[] = {
        {.key = bytes_of(HF_STR("capabilities")),
         .value = {.kind = AMQP_FIELD_KIND_TABLE,
                   .value.table = {.num_entries = 2, .entries = capabilities}}},
        {.key = bytes_of(HF_STR("connection_name")),
         .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = bytes_of(HF_STR("holdfast"))}},
    };
    amqp_table_t properties = {.num_entries = 2, .entries = entries};

    return rabbit->lib.amqp_login_with_properties(
        connection, rabbit->vhost.ptr, 0, AMQP_DEFAULT_FRAME_SIZE, (int)rabbit->heartbeat_s,
        &properties, AMQP_SASL_METHOD_PLAIN, rabbit->url.user.ptr ? rabbit->url.user.ptr : "guest",
        rabbit->url.password.ptr ? rabbit->url.password.ptr : "guest");
}

/* Open the channel with confirms. The exchange has to exist. */
static enum hf_status open_channel(struct hf_scope *s, const struct rabbit *rabbit,
                                   amqp_connection_state_t connection)
{
    const struct amqp_library *lib = &rabbit->lib;

    (void)lib->amqp_channel_open(connection, CHANNEL);
    TRY(check_reply(s, rabbit, "opening a channel", lib->amqp_get_rpc_reply(connection)));
    (void)lib->amqp_confirm_select(connection, CHANNEL);
    TRY(check_reply(s, rabbit, "enabling confirms", lib->amqp_get_rpc_reply(connection)));
    if (rabbit->exchange.len == 0)
        return HF_OK;
    (void)lib->amqp_exchange_declare(connection, CHANNEL, bytes_of(rabbit->exchange),
                                     bytes_of(HF_STR("")), 1, 0, 0, 0,
                                     (amqp_table_t){.num_entries = 0});
    return check_reply(s, rabbit, "looking for the exchange", lib->amqp_get_rpc_reply(connection));
}

static enum hf_status connect_lane(struct broker_wait *wait, struct rabbit *rabbit,
                                   struct rabbit_lane *lane)
{
    const struct amqp_library *lib = &rabbit->lib;
    struct timeval left = left_of(wait, CONNECT_MS);
    unsigned user_timeout = (unsigned)rabbit->timeout_ms;
    enum hf_status status = HF_OK;
    amqp_socket_t *socket;
    int code;

    lane->connection = lib->amqp_new_connection();
    if (!lane->connection)
        return hf__fail_nomem(wait->s);
    socket = make_socket(wait->s, rabbit, lane->connection, &status);
    if (!socket)
        return status == HF_OK ? hf__fail_nomem(wait->s) : status;
    TRY(hf__broker_wait_check(wait));
    code =
        lib->amqp_socket_open_noblock(socket, rabbit->url.host.ptr, (int)rabbit->url.port, &left);
    if (code != AMQP_STATUS_OK)
        return connection_fail(wait->s, rabbit, "connecting", code);
    (void)setsockopt(lib->amqp_get_sockfd(lane->connection), IPPROTO_TCP, TCP_USER_TIMEOUT,
                     &user_timeout, sizeof(user_timeout)); /* (4) */
    left = left_of(wait, CONNECT_MS);
    (void)lib->amqp_set_handshake_timeout(lane->connection, &left);
    (void)lib->amqp_set_rpc_timeout(lane->connection, &left);
    TRY(check_reply(wait->s, rabbit, "logging in", log_in(rabbit, lane->connection)));
    return open_channel(wait->s, rabbit, lane->connection);
}

/* An idle connection is usable if nothing came on it and its heartbeats are not overdue. */
static bool is_fresh(struct rabbit *rabbit, struct rabbit_lane *lane)
{
    int64_t idle_us = hf__broker_now_us() - lane->lane.kept_us;
    struct timeval now = {0};
    amqp_frame_t frame;

    if (rabbit->heartbeat_s && idle_us > (int64_t)rabbit->heartbeat_s * 500000)
        return false;
    return rabbit->lib.amqp_simple_wait_frame_noblock(lane->connection, &frame, &now) ==
           AMQP_STATUS_TIMEOUT;
}

static enum hf_status take_lane(struct broker_wait *wait, struct rabbit *rabbit,
                                struct rabbit_lane **out)
{
    struct rabbit_lane *lane;
    enum hf_status status;

    while ((lane = (struct rabbit_lane *)hf__broker_lane_take(&rabbit->lanes))) {
        if (is_fresh(rabbit, lane)) {
            *out = lane;
            return HF_OK;
        }
        close_lane(rabbit, lane, false);
    }
    lane = hf__env_alloc(&rabbit->env, sizeof(*lane));
    if (!lane)
        return hf__fail_nomem(wait->s);
    *lane = (struct rabbit_lane){0};
    status = connect_lane(wait, rabbit, lane);
    if (status != HF_OK) {
        close_lane(rabbit, lane, false);
        return status;
    }
    *out = lane;
    return HF_OK;
}

/* ---- confirms and returns ------------------------------------------------------------------- */

/* Message `at` of the batch is confirmed, or refused. */
static void message_confirm(struct rabbit_batch *batch, size_t at, bool refused)
{
    size_t which = batch->sent[at];

    assert(at < batch->sent_len && which < batch->len);
    if (batch->confirmed[at])
        return;
    assert(batch->open > 0 && batch->open_bytes >= batch->sizes[at]);
    batch->confirmed[at] = true;
    batch->open--;
    batch->open_bytes -= batch->sizes[at];
    if (batch->ended[which])
        return; /* it was returned: (1) */
    batch->ended[which] = true;
    if (refused)
        hf__delivery_fail(batch->wait.s, &batch->deliveries[which], HF_IO, false,
                          "RabbitMQ refused it (basic.nack)");
    else
        hf__delivery_done(&batch->deliveries[which]);
}

static enum hf_status take_confirm(struct rabbit_batch *batch, uint64_t tag, bool multiple,
                                   bool refused)
{
    uint64_t end = batch->first + batch->sent_len;

    if (multiple && tag == 0)
        tag = end - 1;
    if (tag < batch->first || tag >= end)
        return connection_fail(batch->wait.s, batch->rabbit,
                               "reading a confirm of an unknown message",
                               AMQP_STATUS_BAD_AMQP_DATA);
    for (size_t at = multiple ? 0 : (size_t)(tag - batch->first); at <= tag - batch->first; at++)
        message_confirm(batch, at, refused);
    return HF_OK;
}

static enum hf_status take_return(struct rabbit_batch *batch, const amqp_basic_return_t *method)
{
    struct hf_str key = text_of(method->routing_key), why = text_of(method->reply_text);
    struct hf_str exchange = text_of(method->exchange);

    batch->returning = true;
    batch->return_text =
        hf_scope_format(batch->wait.s,
                        "no queue takes the routing key \"%.*s\" of the exchange \"%.*s\": %.*s",
                        HF_FMT(key), HF_FMT(exchange), HF_FMT(why));
    return batch->return_text.ptr ? HF_OK : hf__fail_nomem(batch->wait.s);
}

/* Fail the event with the id of a returned message; of two with one id, the first. */
static void fail_returned(struct rabbit_batch *batch, struct hf_str id)
{
    for (size_t at = 0; at < batch->sent_len; at++) {
        size_t which = batch->sent[at];
        struct hf_delivery *delivery = &batch->deliveries[which];

        if (!batch->ended[which] && hf_str_equal(delivery->event->event.id, id)) {
            hf__delivery_fail(batch->wait.s, delivery, HF_NOT_FOUND, true, "%s",
                              batch->return_text.ptr);
            batch->ended[which] = true;
            return;
        }
    }
}

static enum hf_status take_header(struct rabbit_batch *batch, const amqp_frame_t *frame)
{
    const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
    bool is_bus = batch->rabbit->form == FORM_BUS_MESSAGE;
    struct hf_str id_name = is_bus ? HF_STR("eventId") : HF_STR("cloudEvents_id");
    bool known = false;

    if (!batch->returning)
        return connection_fail(batch->wait.s, batch->rabbit, "reading a header without a message",
                               AMQP_STATUS_BAD_AMQP_DATA);
    batch->returning = false;
    batch->body = frame->payload.properties.body_size;
    for (int i = 0; i < properties->headers.num_entries && !known; i++) {
        const amqp_table_entry_t *entry = &properties->headers.entries[i];

        known = hf_str_equal(text_of(entry->key), id_name);
        if (known)
            fail_returned(batch, text_of(entry->value.value.bytes));
    }
    return known ? HF_OK
                 : connection_fail(batch->wait.s, batch->rabbit,
                                   "reading a message that is not ours", AMQP_STATUS_BAD_AMQP_DATA);
}

/* "PRECONDITION_FAILED - message size 9 is larger than configured max size 8"; 0: it is not that */
static uint64_t read_message_max(struct hf_str text)
{
    static const char before[] = "max size ";
    const char *at = memmem(text.ptr, text.len, before, sizeof(before) - 1);
    uint64_t max = 0;

    if (!at)
        return 0;
    for (at += sizeof(before) - 1; at < text.ptr + text.len && *at >= '0' && *at <= '9'; at++)
        max = max * 10 + (uint64_t)(*at - '0');
    return max;
}

/* (3) */
static enum hf_status take_channel_close(struct rabbit_batch *batch,
                                         const amqp_channel_close_t *method)
{
    uint64_t max = method->reply_code == AMQP_PRECONDITION_FAILED
                       ? read_message_max(text_of(method->reply_text))
                       : 0;

    if (max) {
        atomic_store_explicit(&batch->rabbit->message_max, max, memory_order_relaxed);
        batch->too_large = true;
    }
    return fail_closed(batch->wait.s, batch->rabbit, method->reply_code, method->reply_text);
}

static enum hf_status take_method(struct rabbit_batch *batch, const amqp_method_t *method)
{
    switch (method->id) {
    case AMQP_BASIC_ACK_METHOD: {
        const amqp_basic_ack_t *ack = method->decoded;

        return take_confirm(batch, ack->delivery_tag, ack->multiple, false);
    }
    case AMQP_BASIC_NACK_METHOD: {
        const amqp_basic_nack_t *nack = method->decoded;

        return take_confirm(batch, nack->delivery_tag, nack->multiple, true);
    }
    case AMQP_BASIC_RETURN_METHOD:
        return take_return(batch, method->decoded);
    case AMQP_CHANNEL_CLOSE_METHOD:
        return take_channel_close(batch, method->decoded);
    case AMQP_CONNECTION_CLOSE_METHOD: {
        const amqp_connection_close_t *close = method->decoded;

        return fail_closed(batch->wait.s, batch->rabbit, close->reply_code, close->reply_text);
    }
    case AMQP_CONNECTION_BLOCKED_METHOD: {
        const amqp_connection_blocked_t *blocked = method->decoded;
        struct hf_str why = text_of(blocked->reason);

        return hf__broker_fail(batch->wait.s, HF_THROTTLED,
                               "RabbitMQ at %s:%u blocks publishers: %.*s",
                               batch->rabbit->url.host.ptr, batch->rabbit->url.port, HF_FMT(why));
    }
    default:
        return HF_OK;
    }
}

/* Read all frames that have come, and wait `wait_ms` for the first. */
static enum hf_status frames_read(struct rabbit_batch *batch, int wait_ms)
{
    const struct amqp_library *lib = &batch->rabbit->lib;

    for (;;) {
        struct timeval left = left_of(&batch->wait, wait_ms);
        amqp_frame_t frame;
        int code;

        code = lib->amqp_simple_wait_frame_noblock(batch->lane->connection, &frame, &left);
        if (code == AMQP_STATUS_TIMEOUT)
            break;
        if (code != AMQP_STATUS_OK)
            return connection_fail(batch->wait.s, batch->rabbit, "waiting for confirms", code);
        if (frame.frame_type == AMQP_FRAME_METHOD)
            TRY(take_method(batch, &frame.payload.method));
        else if (frame.frame_type == AMQP_FRAME_HEADER)
            TRY(take_header(batch, &frame));
        else if (frame.frame_type == AMQP_FRAME_BODY && frame.payload.body_fragment.len)
            batch->body -= batch->body < frame.payload.body_fragment.len
                               ? batch->body
                               : frame.payload.body_fragment.len;
        if (!batch->returning && !batch->body)
            lib->amqp_maybe_release_buffers(batch->lane->connection);
        wait_ms = 0;
    }
    return hf__broker_wait_check(&batch->wait);
}

/* ---- publishing ----------------------------------------------------------------------------- */

struct rabbit_message {
    struct hf_str key, body;
    amqp_basic_properties_t properties;
};

static bool is_short(struct hf_str text)
{
    return text.len > 0 && text.len <= AMQP_SHORT_MAX;
}

static amqp_field_value_t field_of(const struct event_attribute *attribute)
{
    if (attribute->type == ATTRIBUTE_INTEGER) {
        char digits[16] = ""; /* it fits 32 bits */

        if (attribute->value.len < sizeof(digits))
            memcpy(digits, attribute->value.ptr, attribute->value.len);
        return (amqp_field_value_t){.kind = AMQP_FIELD_KIND_I64,
                                    .value.i64 = strtoll(digits, NULL, 10)};
    }
    if (attribute->type == ATTRIBUTE_BOOLEAN)
        return (amqp_field_value_t){.kind = AMQP_FIELD_KIND_BOOLEAN,
                                    .value.boolean =
                                        hf_str_equal(attribute->value, HF_STR("true"))};
    return (amqp_field_value_t){.kind = AMQP_FIELD_KIND_UTF8,
                                .value.bytes = bytes_of(attribute->value)};
}

/* Attributes as headers: cloudEvents_x for all but the content type; eventType and eventId in the
 * form outbox-event-bus. */
static enum hf_status make_headers(struct hf_scope *s, const struct rabbit *rabbit,
                                   const struct hf_event *event, size_t frame_max,
                                   amqp_table_t *table)
{
    const struct event_attribute bus[] = {{HF_STR("eventType"), event->type, ATTRIBUTE_TEXT},
                                          {HF_STR("eventId"), event->id, ATTRIBUTE_TEXT}};
    const struct event_attribute *list = bus;
    bool is_bus = rabbit->form == FORM_BUS_MESSAGE;
    size_t len = ARRAY_LEN(bus), bytes = AMQP_HEADER_ROOM;

    if (!is_bus)
        TRY(hf__sink_event_attributes(s, event, &list, &len));
    table->num_entries = 0;
    table->entries = hf__scope_array(s, len, sizeof(*table->entries));
    if (!table->entries)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        amqp_table_entry_t *entry = &table->entries[table->num_entries];
        struct hf_str name;

        if (hf_str_equal(list[i].name, HF_STR("datacontenttype")))
            continue;
        name = is_bus ? list[i].name : hf_scope_format(s, "cloudEvents_%.*s", HF_FMT(list[i].name));
        if (!name.ptr)
            return hf__fail_nomem(s);
        if (name.len > AMQP_SHORT_MAX)
            return hf__fail(s, HF_LIMIT, "the name of its header \"%.*s\" is too long for AMQP",
                            HF_FMT(list[i].name));
        *entry = (amqp_table_entry_t){.key = bytes_of(name), .value = field_of(&list[i])};
        table->num_entries++;
        bytes += name.len + list[i].value.len + 16;
    }
    if (bytes > frame_max)
        return hf__fail(s, HF_LIMIT, "its headers have about %zu bytes; RabbitMQ takes at most %zu",
                        bytes, frame_max);
    return HF_OK;
}

/* Properties of the CloudEvents form. Texts that are too long for a property are only in the headers. */
static void add_properties(const struct hf_event *event, amqp_basic_properties_t *p)
{
    if (is_short(event->id)) {
        p->_flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
        p->message_id = bytes_of(event->id);
    }
    if (is_short(event->type)) {
        p->_flags |= AMQP_BASIC_TYPE_FLAG;
        p->type = bytes_of(event->type);
    }
    if (is_short(event->correlation)) {
        p->_flags |= AMQP_BASIC_CORRELATION_ID_FLAG;
        p->correlation_id = bytes_of(event->correlation);
    }
    if (event->time_us > 0) {
        p->_flags |= AMQP_BASIC_TIMESTAMP_FLAG;
        p->timestamp = (uint64_t)event->time_us / 1000000;
    }
}

static enum hf_status make_message(struct hf_scope *s, const struct rabbit *rabbit,
                                   const struct hf_event *event, size_t frame_max,
                                   struct rabbit_message *message)
{
    uint64_t max = atomic_load_explicit(&rabbit->message_max, memory_order_relaxed);
    amqp_basic_properties_t *p = &message->properties;
    bool is_bus = rabbit->form == FORM_BUS_MESSAGE;
    struct hf_str content_type =
        is_bus ? HF_STR("application/json") : hf__sink_event_content_type(event);

    *message = (struct rabbit_message){
        .body = hf_str_of((const char *)event->payload.ptr, event->payload.len)};
    if (is_bus)
        TRY(hf__sink_bus_message_json(s, event, &message->body));
    if (message->body.len > max)
        return hf__fail(s, HF_LIMIT, "it has %zu bytes; this RabbitMQ takes at most %llu",
                        message->body.len, (unsigned long long)max);
    TRY(hf__template_fill(s, &rabbit->routing_key, event, &message->key));
    if (message->key.len > AMQP_SHORT_MAX)
        return hf__fail(s, HF_LIMIT, "its routing key has %zu bytes; AMQP takes at most %d",
                        message->key.len, AMQP_SHORT_MAX);
    p->_flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_HEADERS_FLAG;
    p->delivery_mode = AMQP_DELIVERY_PERSISTENT;
    TRY(make_headers(s, rabbit, event, frame_max, &p->headers));
    if (is_short(content_type)) {
        p->_flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
        p->content_type = bytes_of(content_type);
    }
    if (!is_bus)
        add_properties(event, p);
    return HF_OK;
}

/* (4) Wait until there is room in the window, and in the socket. */
static enum hf_status wait_for_room(struct rabbit_batch *batch)
{
    int fd = batch->rabbit->lib.amqp_get_sockfd(batch->lane->connection);

    TRY(frames_read(batch, 0));
    while (batch->open >= WINDOW || batch->open_bytes >= WINDOW_BYTES)
        TRY(frames_read(batch, BROKER_SLICE_MS));
    for (;;) {
        struct pollfd poller = {.fd = fd, .events = POLLOUT};

        if (poll(&poller, 1, hf__broker_wait_ms(&batch->wait, BROKER_SLICE_MS)) > 0)
            return HF_OK;
        TRY(frames_read(batch, 0));
    }
}

static enum hf_status message_publish(struct rabbit_batch *batch, size_t which)
{
    const struct amqp_library *lib = &batch->rabbit->lib;
    struct hf_delivery *delivery = &batch->deliveries[which];
    const struct hf_event *event = &delivery->event->event;
    size_t frame_max = (size_t)lib->amqp_get_frame_max(batch->lane->connection);
    struct rabbit_message message;
    enum hf_status status;
    int code;

    status = make_message(batch->wait.s, batch->rabbit, event, frame_max, &message);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) {
        hf__delivery_fail_with(batch->wait.s, delivery, true);
        batch->ended[which] = true;
        return HF_OK;
    }
    TRY(wait_for_room(batch));
    assert(!batch->ended[which] && batch->sent_len < batch->len);
    assert(batch->open < WINDOW && batch->open_bytes < WINDOW_BYTES); /* (4) */
    code = lib->amqp_basic_publish(batch->lane->connection, CHANNEL,
                                   bytes_of(batch->rabbit->exchange), bytes_of(message.key), 1, 0,
                                   &message.properties, bytes_of(message.body));
    if (code != AMQP_STATUS_OK)
        return connection_fail(batch->wait.s, batch->rabbit, "publishing", code);
    batch->sent[batch->sent_len] = which;
    batch->sizes[batch->sent_len] = message.body.len;
    batch->confirmed[batch->sent_len++] = false;
    batch->lane->published++;
    batch->open++;
    batch->open_bytes += message.body.len;
    return HF_OK;
}

/* Publish all events that have no outcome yet, and wait for the confirms. */
static enum hf_status publish_all(struct rabbit_batch *batch)
{
    batch->first = batch->lane->published + 1;
    batch->sent_len = batch->open = batch->open_bytes = 0;
    batch->returning = batch->too_large = false;
    batch->body = 0;
    for (size_t i = 0; i < batch->len; i++)
        if (!batch->ended[i])
            TRY(message_publish(batch, i));
    while (batch->open || batch->returning || batch->body)
        TRY(frames_read(batch, BROKER_SLICE_MS));
    batch_check(batch);
    return HF_OK;
}

/* (3) Was a message published that the limit, as it is known now, excludes? */
static bool has_too_large(const struct rabbit_batch *batch)
{
    uint64_t max = atomic_load_explicit(&batch->rabbit->message_max, memory_order_relaxed);

    for (size_t at = 0; at < batch->sent_len; at++)
        if (!batch->ended[batch->sent[at]] && batch->sizes[at] > max)
            return true;
    return false;
}

static enum hf_status rabbit_send_wave(struct hf_scope *s, void *self,
                                       struct hf_delivery *deliveries, size_t len)
{
    struct rabbit *rabbit = self;
    struct rabbit_batch batch = {.rabbit = rabbit, .deliveries = deliveries, .len = len};
    enum hf_status status;
    bool again;

    hf__broker_wait_begin(&batch.wait, s, rabbit->timeout_ms);
    batch.ended = hf__scope_array(s, len, sizeof(*batch.ended));
    batch.sent = hf__scope_array(s, len, sizeof(*batch.sent));
    batch.sizes = hf__scope_array(s, len, sizeof(*batch.sizes));
    batch.confirmed = hf__scope_array(s, len, sizeof(*batch.confirmed));
    if (!batch.ended || !batch.sent || !batch.sizes || !batch.confirmed)
        return hf__fail_nomem(s);
    do {
        TRY(take_lane(&batch.wait, rabbit, &batch.lane));
        status = publish_all(&batch);
        again = status != HF_OK && batch.too_large && has_too_large(&batch);
        if (status == HF_OK)
            hf__broker_lane_keep(&rabbit->lanes, &batch.lane->lane);
        else
            close_lane(rabbit, batch.lane, false);
    } while (again); /* ends: at least one event has failed as too large each time */
    return status;
}

static enum hf_status rabbit_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                  size_t len)
{
    return hf__broker_send_waves(s, self, deliveries, len, rabbit_send_wave);
}

static enum hf_status rabbit_probe(struct hf_scope *s, void *self)
{
    struct rabbit *rabbit = self;
    struct rabbit_lane *lane;
    struct broker_wait wait;

    hf__broker_wait_begin(&wait, s, rabbit->timeout_ms);
    TRY(take_lane(&wait, rabbit, &lane));
    hf__broker_lane_keep(&rabbit->lanes, &lane->lane);
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void rabbit_close(void *self)
{
    struct rabbit *rabbit = self;
    struct hf_env env = rabbit->env;
    struct broker_lane *lane;

    while ((lane = hf__broker_lane_take(&rabbit->lanes)))
        close_lane(rabbit, (struct rabbit_lane *)lane, true);
    hf__broker_lanes_destroy(&rabbit->lanes);
    hf__env_free(&env, rabbit, sizeof(*rabbit));
}

/* VHOST/EXCHANGE, both encoded: "%2F/events". The exchange may be the one without a name. */
static enum hf_status read_path(struct hf_scope *s, const struct sink_url *url,
                                struct rabbit *rabbit)
{
    struct hf_str path = rabbit->url.path;
    const char *slash = path.len ? memchr(path.ptr, '/', path.len) : NULL;
    size_t len = slash ? (size_t)(slash - path.ptr) : 0;

    if (!slash)
        return hf__fail(s, HF_INVALID,
                        "the URL of a rabbitmq sink has to end with /VHOST/EXCHANGE; the default "
                        "VHOST \"/\" is written %%2F");
    TRY(hf__sink_decode(s, url->memory, "the vhost", hf_str_of(path.ptr, len), &rabbit->vhost));
    TRY(hf__broker_c_text(s, "the vhost", rabbit->vhost));
    TRY(hf__sink_decode(s, url->memory, "the exchange", hf_str_of(slash + 1, path.len - len - 1),
                        &rabbit->exchange));
    if (rabbit->vhost.len == 0)
        return hf__fail(s, HF_INVALID, "the URL of a rabbitmq sink has no VHOST");
    if (rabbit->exchange.len > AMQP_SHORT_MAX)
        return hf__fail(s, HF_INVALID, "the name of the exchange is longer than %d bytes",
                        AMQP_SHORT_MAX);
    if (rabbit->exchange.len == 0 && rabbit->routing_text.len == 0)
        return hf__fail(s, HF_INVALID,
                        "a rabbitmq sink without an exchange needs the option routing_key");
    return hf__template_read(s, url->memory, "the routing key",
                             rabbit->routing_text.ptr ? rabbit->routing_text : HF_STR("{type}"),
                             &rabbit->routing_key);
}

static enum hf_status set_up(struct hf_scope *s, const struct sink_url *url, struct rabbit *rabbit)
{
    static const struct sink_option options[] = {
        {.name = "routing_key", .kind = SINK_TEXT, .at = offsetof(struct rabbit, routing_text)},
        {.name = "form",
         .kind = SINK_WORD,
         .at = offsetof(struct rabbit, form),
         .words = BROKER_FORMS},
        {.name = "heartbeat_s",
         .kind = SINK_NUMBER,
         .at = offsetof(struct rabbit, heartbeat_s),
         .min = 1,
         .max = 3600},
        {.name = "timeout_ms",
         .kind = SINK_NUMBER,
         .at = offsetof(struct rabbit, timeout_ms),
         .min = 1,
         .max = 3600000},
        BROKER_TLS_OPTIONS(struct rabbit),
    };

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), rabbit));
    TRY(hf__broker_check_tls(s, &rabbit->tls));
    TRY(hf__broker_url(s, url, rabbit->tls.on == HF_YES ? AMQP_TLS_PORT : AMQP_PORT, &rabbit->url));
    TRY(read_path(s, url, rabbit));
    return hf__library_load(s, HF_RABBITMQ_LIBRARY, symbols, ARRAY_LEN(symbols), &rabbit->lib);
}

enum hf_status hf__sink_rabbitmq_open(struct hf_scope *s, const struct sink_url *url,
                                      struct hf_sink **sink)
{
    const struct hf_env *env = hf_scope_env(s);
    struct rabbit *rabbit = hf__env_alloc(env, sizeof(*rabbit));
    const struct hf_sink_ops ops = {
        .size = sizeof(ops),
        .name = "rabbitmq",
        .batch_max = AMQP_BATCH,
        .batch_bytes_max = AMQP_BATCH_BYTES,
        .event_bytes_max = AMQP_MESSAGE_MAX,
        .keeps_order = true,
        .send = rabbit_send,
        .probe = rabbit_probe,
        .close = rabbit_close,
    };
    enum hf_status status;

    if (!rabbit)
        return hf__fail_nomem(s);
    *rabbit = (struct rabbit){.env = *env, .timeout_ms = BROKER_TIMEOUT_MS, .heartbeat_s = 30};
    atomic_init(&rabbit->message_max, AMQP_MESSAGE_MAX);
    hf__broker_lanes_init(&rabbit->lanes);
    status = set_up(s, url, rabbit);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, rabbit, sink);
    if (status != HF_OK)
        rabbit_close(rabbit);
    return status;
}
