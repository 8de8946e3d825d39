/*
 * sinks/sink_nats.c: NATS JetStream.
 *
 *     nats://[USER:PASSWORD@]HOST[:PORT]/SUBJECT
 *
 * An event is a message with the attributes of CloudEvents as headers and its id as Nats-Msg-Id, by
 * which a stream drops what it got twice within its window. The stream answers each message with a
 * PubAck to the subject that the message names: ours end with the place of the event in its batch,
 * so that answers find their events in whichever order they come.
 *
 * libnats can reconnect by itself, and then sends the messages that it has buffered: after we have
 * reported them as not delivered, and behind later ones. So that is off, and the sink itself replaces
 * a lost connection.
 *
 * What always holds:
 *
 *  (1) An event is delivered when a PubAck without an error came for it; "duplicate" is not an error.
 *  (2) At most WINDOW messages or WINDOW_BYTES are not answered.
 *  (3) A lane is kept only when every message on it was answered.
 *  (4) When no stream listens to a subject, the answer is "no responders". If all events have one
 *      subject, that fails the batch. If the subject is a template, it fails the event when no stream
 *      has the subject, and the batch when a stream has it but does not answer.
 *
 * A stream may refuse one message and take the next; events of one key go one by one, in waves.
 */
#include <nats/nats.h>

#include "sinks/broker.h"
#include "wire/wire.h"

#ifndef HF_NATS_LIBRARY /* the build says which one it has seen */
#define HF_NATS_LIBRARY "libnats.so.3.4"
#endif

enum {
    NATS_PORT = 4222,
    NATS_BATCH = 250,
    NATS_BATCH_BYTES = 8 * 1024 * 1024,
    NATS_EVENT_MAX = 64 * 1024 * 1024, /* the highest max_payload of a server */
    WINDOW = 128,
    WINDOW_BYTES = 4 * 1024 * 1024,
    CONNECT_MS = 10000,
    ERROR_MAX_SIZE = 10054, /* JetStream: larger than the stream takes */
    ERROR_UNAVAILABLE = 503
};

#define NATS_FUNCTIONS(X)                                                                          \
    X(natsOptions_Create)                                                                          \
    X(natsOptions_Destroy)                                                                         \
    X(natsOptions_SetURL)                                                                          \
    X(natsOptions_SetName)                                                                         \
    X(natsOptions_SetTimeout)                                                                      \
    X(natsOptions_SetWriteDeadline)                                                                \
    X(natsOptions_SetAllowReconnect)                                                               \
    X(natsOptions_SetUserInfo)                                                                     \
    X(natsOptions_SetToken)                                                                        \
    X(natsOptions_SetUserCredentialsFromFiles)                                                     \
    X(natsOptions_SetSecure)                                                                       \
    X(natsOptions_LoadCATrustedCertificates)                                                       \
    X(natsOptions_LoadCertificatesChain)                                                           \
    X(natsOptions_SkipServerVerification)                                                          \
    X(natsOptions_SetExpectedHostname)                                                             \
    X(natsOptions_SetErrorHandler)                                                                 \
    X(natsConnection_Connect)                                                                      \
    X(natsConnection_Close)                                                                        \
    X(natsConnection_Destroy)                                                                      \
    X(natsConnection_Status)                                                                       \
    X(natsConnection_GetLastError)                                                                 \
    X(natsConnection_FlushTimeout)                                                                 \
    X(natsConnection_HasHeaderSupport)                                                             \
    X(natsConnection_PublishMsg)                                                                   \
    X(natsConnection_RequestString)                                                                \
    X(natsConnection_SubscribeSync)                                                                \
    X(natsSubscription_SetPendingLimits)                                                           \
    X(natsSubscription_NextMsg)                                                                    \
    X(natsSubscription_Destroy)                                                                    \
    X(natsInbox_Create)                                                                            \
    X(natsInbox_Destroy)                                                                           \
    X(natsMsg_Create)                                                                              \
    X(natsMsg_Destroy)                                                                             \
    X(natsMsg_GetSubject)                                                                          \
    X(natsMsg_GetData)                                                                             \
    X(natsMsg_GetDataLength)                                                                       \
    X(natsMsgHeader_Set)                                                                           \
    X(natsStatus_GetText)

struct nats_library {
    NATS_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE nats_library
static const struct library_symbol symbols[] = {NATS_FUNCTIONS(LIBRARY_SYMBOL)};

struct nats {
    struct hf_env env;
    struct nats_library lib;
    struct broker_url url;
    struct broker_tls tls;
    struct template subject;
    struct hf_str creds, token;
    uint64_t timeout_ms;
    struct broker_lanes lanes;
};

struct nats_lane {
    struct broker_lane lane;
    natsConnection *connection;
    natsSubscription *answers; /* to `inbox`.* */
    natsInbox *inbox;
};

/* A batch under way. */
struct nats_batch {
    struct broker_wait wait;
    struct nats *nats;
    struct nats_lane *lane;
    struct hf_delivery *deliveries;
    size_t len;
    size_t *sizes;         /* by delivery: 1 + its bytes; 0: not sent, or answered */
    size_t open;           /* messages that have no answer that names them */
    size_t open_bytes;     /* sum of their sizes */
    size_t nobody;         /* answers "no responders", which do not name their messages */
    enum hf_status status; /* of the first answer that fails the batch */
    struct hf_error error; /* of the same answer */
};

static void batch_check(const struct nats_batch *batch)
{
    size_t open = 0, bytes = 0;

    for (size_t i = 0; DEV_CHECKS && i < batch->len; i++) {
        open += batch->sizes[i] != 0;
        bytes += batch->sizes[i];
    }
    assert(!DEV_CHECKS || (open == batch->open && bytes == batch->open_bytes));
    assert(batch->status == batch->error.status);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct ack_error {
    int64_t code, err_code;
    struct hf_str description;
};
struct ack {
    const struct ack_error *error;
    struct hf_str stream;
    int64_t seq;
};
struct stream_names {
    int64_t total;
};

static const struct fields ack_error_fields = {
    .name = "PubAckError",
    .list =
        (const struct field[]){
            {.name = "code", .kind = FIELD_INT, .at = offsetof(struct ack_error, code)},
            {.name = "err_code", .kind = FIELD_INT, .at = offsetof(struct ack_error, err_code)},
            {.name = "description",
             .kind = FIELD_STR,
             .at = offsetof(struct ack_error, description)},
        },
    .len = 3,
    .size = sizeof(struct ack_error),
};
static const struct fields ack_fields = {
    .name = "PubAck",
    .list =
        (const struct field[]){
            {.name = "error",
             .kind = FIELD_STRUCT,
             .at = offsetof(struct ack, error),
             .sub = &ack_error_fields},
            {.name = "stream", .kind = FIELD_STR, .at = offsetof(struct ack, stream)},
            {.name = "seq",
             .kind = FIELD_INT,
             .at = offsetof(struct ack, seq),
             .rules = FIELD_LONG},
        },
    .len = 3,
    .size = sizeof(struct ack),
};
static const struct fields names_fields = {
    .name = "StreamNames",
    .list =
        (const struct field[]){
            {.name = "total", .kind = FIELD_INT, .at = offsetof(struct stream_names, total)},
        },
    .len = 1,
    .size = sizeof(struct stream_names),
};

static struct hf_str data_of(const struct nats *nats, const natsMsg *message)
{
    return hf_str_of(nats->lib.natsMsg_GetData(message),
                     (size_t)nats->lib.natsMsg_GetDataLength(message));
}

static enum hf_status connection_fail(struct hf_scope *s, const struct nats *nats,
                                      const char *doing, natsStatus code)
{
    enum hf_status status = HF_IO;

    assert(code != NATS_OK);
    if (code == NATS_NO_MEMORY)
        return hf__fail_nomem(s);
    if (code == NATS_CONNECTION_AUTH_FAILED || code == NATS_NOT_PERMITTED)
        status = HF_DENIED;
    else if (code == NATS_TIMEOUT)
        status = HF_TIMEOUT;
    return hf__broker_fail(s, status, "NATS at %s:%u, while %s: %s", nats->url.host.ptr,
                           nats->url.port, doing, nats->lib.natsStatus_GetText(code));
}

/* Fail the batch with the error of the scope. The answers to its other messages are still read. */
static void fail_batch(struct nats_batch *batch, enum hf_status status)
{
    assert(status != HF_OK && hf_scope_error(batch->wait.s)->status == status);
    if (batch->status != HF_OK)
        return;
    batch->status = status;
    batch->error = *hf_scope_error(batch->wait.s);
}

/* (4) Does any stream have that subject? */
static enum hf_status find_stream(struct nats_batch *batch, struct hf_str subject, bool *found)
{
    const struct nats *nats = batch->nats;
    struct hf__buf request = {.scope = batch->wait.s};
    struct stream_names names = {0};
    enum hf_status status;
    natsMsg *answer = NULL;
    natsStatus code;

    hf__buf_format(&request, "{\"subject\":");
    hf__wire_write_str(&request, subject);
    hf__buf_format(&request, "}");
    if (request.failed)
        return hf__fail_nomem(batch->wait.s);
    code = nats->lib.natsConnection_RequestString(&answer, batch->lane->connection,
                                                  "$JS.API.STREAM.NAMES", (const char *)request.ptr,
                                                  hf__broker_wait_ms(&batch->wait, CONNECT_MS) + 1);
    if (code != NATS_OK)
        return connection_fail(batch->wait.s, nats, "looking for a stream", code);
    status = hf__wire_read_answer(batch->wait.s, &names_fields, data_of(nats, answer), &names);
    nats->lib.natsMsg_Destroy(answer);
    *found = names.total > 0;
    return status;
}

static void take_no_responders(struct nats_batch *batch, struct hf_delivery *delivery)
{
    struct hf_scope *s = batch->wait.s;
    struct hf_str subject;
    bool found = true;
    enum hf_status status =
        hf__template_fill(s, &batch->nats->subject, &delivery->event->event, &subject);

    if (status == HF_OK && !batch->nats->subject.is_fixed)
        status = find_stream(batch, subject, &found);
    if (status != HF_OK) {
        fail_batch(batch, status);
    } else if (!found) {
        hf__delivery_fail(s, delivery, HF_NOT_FOUND, false,
                          "no JetStream stream has the subject \"%.*s\"", HF_FMT(subject));
    } else {
        status = hf__broker_fail(s, HF_NOT_FOUND,
                                 "no JetStream stream at %s:%u answers for the subject \"%.*s\"",
                                 batch->nats->url.host.ptr, batch->nats->url.port, HF_FMT(subject));
        fail_batch(batch, status);
    }
}

static void take_ack(struct nats_batch *batch, natsMsg *message, struct hf_delivery *delivery)
{
    struct hf_scope *s = batch->wait.s;
    struct ack ack = {0};
    enum hf_status status;

    status = hf__wire_read_answer(s, &ack_fields, data_of(batch->nats, message), &ack);
    if (status != HF_OK) {
        fail_batch(batch, hf__broker_fail(s, HF_IO, "NATS sent an answer that is not a PubAck"));
    } else if (!ack.error && ack.stream.len > 0 && ack.seq > 0) {
        hf__delivery_done(delivery); /* (1) */
    } else if (!ack.error) {
        hf__delivery_fail(s, delivery, HF_IO, false, "JetStream's answer names no stream");
    } else if (ack.error->code == ERROR_UNAVAILABLE && ack.error->err_code != ERROR_MAX_SIZE) {
        fail_batch(batch,
                   hf__broker_fail(s, HF_NO_SPACE,
                                   "JetStream is not accepting messages: %.*s (%lld)",
                                   HF_FMT(ack.error->description), (long long)ack.error->err_code));
    } else {
        hf__delivery_fail(s, delivery, HF_INVALID, ack.error->err_code == ERROR_MAX_SIZE,
                          "JetStream refuses it: %.*s (%lld)", HF_FMT(ack.error->description),
                          (long long)ack.error->err_code);
    }
}

/* The place of the event that a message answers: the last part of its subject. */
static size_t place_of(const struct nats *nats, const natsMsg *message)
{
    const char *dot = strrchr(nats->lib.natsMsg_GetSubject(message), '.');

    return dot ? (size_t)strtoull(dot + 1, NULL, 10) : SIZE_MAX;
}

static void message_end(struct nats_batch *batch, size_t at)
{
    assert(batch->open > 0 && batch->sizes[at] > 0 && batch->open_bytes >= batch->sizes[at]);
    batch->open--;
    batch->open_bytes -= batch->sizes[at];
    batch->sizes[at] = 0;
}

/*
 * The library returns "no responders" as an error of its own, without the message that it answers.
 * Once all other messages are answered, it is the answer to all that are left.
 */
static void take_nobody(struct nats_batch *batch)
{
    if (batch->nobody == 0 || batch->open > batch->nobody)
        return;
    for (size_t i = 0; i < batch->len; i++) {
        if (batch->sizes[i]) {
            message_end(batch, i);
            take_no_responders(batch, &batch->deliveries[i]);
        }
    }
    assert(batch->open == 0 && batch->open_bytes == 0);
    batch->nobody = 0;
}

/* Take answers, waiting `ms` for the first. */
static enum hf_status answers_take(struct nats_batch *batch, int ms)
{
    const struct nats_library *lib = &batch->nats->lib;

    for (;; ms = 0) {
        natsMsg *message = NULL;
        natsStatus code;
        size_t at;

        code = lib->natsSubscription_NextMsg(&message, batch->lane->answers,
                                             hf__broker_wait_ms(&batch->wait, ms) + 1);
        if (code == NATS_TIMEOUT)
            return hf__broker_wait_check(&batch->wait);
        if (code != NATS_OK && code != NATS_NO_RESPONDERS)
            return connection_fail(batch->wait.s, batch->nats, "waiting for answers", code);
        if (code == NATS_NO_RESPONDERS) {
            batch->nobody++;
        } else {
            at = place_of(batch->nats, message);
            if (at < batch->len && batch->sizes[at]) {
                message_end(batch, at);
                take_ack(batch, message, &batch->deliveries[at]);
            }
            lib->natsMsg_Destroy(message);
        }
        if (batch->open == batch->nobody)
            return HF_OK;
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

/* As in HTTP: what is not visible ASCII, and '"' and '%', is percent-encoded. */
static struct hf_str encode_value(struct hf_scope *s, struct hf_str text)
{
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c <= ' ' || c >= 0x7F || c == '"' || c == '%')
            hf__buf_format(&buf, "%%%02X", c);
        else
            hf__buf_put_byte(&buf, c);
    }
    hf__buf_put_byte(&buf, '\0');
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len - 1);
}

static bool set_header(struct hf_scope *s, const struct nats *nats, natsMsg *message,
                       const char *name, struct hf_str value)
{
    struct hf_str encoded = encode_value(s, value);

    return name && encoded.ptr &&
           nats->lib.natsMsgHeader_Set(message, name, encoded.ptr) == NATS_OK;
}

static enum hf_status set_headers(struct hf_scope *s, const struct nats *nats,
                                  const struct hf_event *event, natsMsg *message)
{
    const struct event_attribute *list;
    size_t len;

    TRY(hf__sink_event_attributes(s, event, &list, &len));
    for (size_t i = 0; i < len; i++) {
        bool is_type = hf_str_equal(list[i].name, HF_STR("datacontenttype"));
        struct hf_str name =
            is_type ? HF_STR("content-type") : hf_scope_format(s, "ce-%.*s", HF_FMT(list[i].name));

        if (!set_header(s, nats, message, name.ptr, list[i].value))
            return hf__fail_nomem(s);
    }
    return set_header(s, nats, message, "Nats-Msg-Id", event->id) ? HF_OK : hf__fail_nomem(s);
}

/* Subjects are part of a line of the protocol, and have dots between non-empty parts. */
static bool is_subject(struct hf_str text)
{
    bool empty = true;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c <= ' ' || c == 0x7F || c == '*' || c == '>' || (c == '.' && empty))
            return false;
        empty = c == '.';
    }
    return !empty;
}

/* HF_NOMEM; with any other failure the event cannot become a message, and has failed for good. */
static enum hf_status make_message(struct nats_batch *batch, size_t at, natsMsg **message)
{
    const struct nats *nats = batch->nats;
    const struct hf_event *event = &batch->deliveries[at].event->event;
    struct hf_scope *s = batch->wait.s;
    struct hf_str subject, reply;
    enum hf_status status;

    *message = NULL;
    TRY(hf__template_fill(s, &nats->subject, event, &subject));
    if (!is_subject(subject))
        return hf__fail(s, HF_INVALID, "invalid subject \"%.*s\"", HF_FMT(subject));
    if (event->payload.len > NATS_EVENT_MAX)
        return hf__fail(s, HF_LIMIT, "its payload has %zu bytes; NATS takes at most %d",
                        event->payload.len, NATS_EVENT_MAX);
    reply = hf_scope_format(s, "%s.%zu", batch->lane->inbox, at);
    if (!reply.ptr ||
        nats->lib.natsMsg_Create(message, subject.ptr, reply.ptr, (const char *)event->payload.ptr,
                                 (int)event->payload.len) != NATS_OK)
        return hf__fail_nomem(s);
    status = set_headers(s, nats, event, *message);
    if (status != HF_OK) {
        nats->lib.natsMsg_Destroy(*message);
        *message = NULL;
    }
    assert((status == HF_OK) == (*message != NULL));
    return status;
}

static enum hf_status message_publish(struct nats_batch *batch, size_t at)
{
    struct hf_delivery *delivery = &batch->deliveries[at];
    size_t size = delivery->event->event.payload.len + 1;
    enum hf_status status;
    natsMsg *message;
    natsStatus code;

    assert(!batch->sizes[at]);
    assert(batch->open < WINDOW && batch->open_bytes < WINDOW_BYTES); /* (2) */
    status = make_message(batch, at, &message);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) {
        hf__delivery_fail_with(batch->wait.s, delivery, true);
        return HF_OK;
    }
    code = batch->nats->lib.natsConnection_PublishMsg(batch->lane->connection, message);
    batch->nats->lib.natsMsg_Destroy(message);
    if (code == NATS_MAX_PAYLOAD) {
        hf__delivery_fail(
            batch->wait.s, delivery, HF_LIMIT, true,
            "with its headers it is larger than the NATS server accepts (max_payload)");
        return HF_OK;
    }
    if (code != NATS_OK)
        return connection_fail(batch->wait.s, batch->nats, "publishing", code);
    batch->sizes[at] = size;
    batch->open++;
    batch->open_bytes += size;
    return HF_OK;
}

static enum hf_status publish_all(struct nats_batch *batch)
{
    for (size_t i = 0; i < batch->len && batch->status == HF_OK; i++) {
        while (batch->open >= WINDOW || batch->open_bytes >= WINDOW_BYTES) {
            TRY(answers_take(batch, BROKER_SLICE_MS));
            take_nobody(batch);
        }
        TRY(message_publish(batch, i));
    }
    while (batch->open) {
        TRY(answers_take(batch, BROKER_SLICE_MS));
        take_nobody(batch);
    }
    batch_check(batch);
    if (batch->status != HF_OK)
        *hf__scope_error_edit(batch->wait.s) = batch->error;
    return batch->status;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static void close_lane(struct nats *nats, struct nats_lane *lane)
{
    nats->lib.natsSubscription_Destroy(lane->answers);
    if (lane->connection)
        nats->lib.natsConnection_Close(lane->connection);
    nats->lib.natsConnection_Destroy(lane->connection);
    nats->lib.natsInbox_Destroy(lane->inbox);
    hf__env_free(&nats->env, lane, sizeof(*lane));
}

/* Replaces the library's own function, which prints. No error is lost: calls fail with it, too. */
static void ignore_error(natsConnection *connection, natsSubscription *subscription,
                         natsStatus code, void *user)
{
    (void)connection;
    (void)subscription;
    (void)code;
    (void)user;
}

static natsStatus set_tls(const struct nats *nats, natsOptions *options)
{
    const struct nats_library *lib = &nats->lib;
    const struct broker_tls *tls = &nats->tls;
    const char *authorities = tls->ca_file.ptr ? tls->ca_file.ptr : hf__broker_authorities();
    natsStatus code;

    if (tls->on != HF_YES)
        return NATS_OK;
    code = lib->natsOptions_SetSecure(options, true);
    if (code == NATS_OK && authorities)
        code = lib->natsOptions_LoadCATrustedCertificates(options, authorities);
    if (code == NATS_OK && tls->cert_file.ptr)
        code =
            lib->natsOptions_LoadCertificatesChain(options, tls->cert_file.ptr, tls->key_file.ptr);
    if (code == NATS_OK && tls->verify == HF_NO)
        code = lib->natsOptions_SkipServerVerification(options, true);
    else if (code == NATS_OK)
        code = lib->natsOptions_SetExpectedHostname(options, nats->url.host.ptr);
    return code;
}

static natsStatus set_options(struct broker_wait *wait, const struct nats *nats,
                              natsOptions *options)
{
    const struct nats_library *lib = &nats->lib;
    bool v6 = char_in(':', nats->url.host.ptr);
    struct hf_str url =
        hf_scope_format(wait->s, "%s://%s%s%s:%u", nats->tls.on == HF_YES ? "tls" : "nats",
                        v6 ? "[" : "", nats->url.host.ptr, v6 ? "]" : "", nats->url.port);
    natsStatus code = url.ptr ? lib->natsOptions_SetURL(options, url.ptr) : NATS_NO_MEMORY;

#define SET(...)                                                                                   \
    do {                                                                                           \
        if (code == NATS_OK)                                                                       \
            code = lib->__VA_ARGS__;                                                               \
    } while (0)
    SET(natsOptions_SetName(options, "holdfast"));
    SET(natsOptions_SetTimeout(options, hf__broker_wait_ms(wait, CONNECT_MS) + 1));
    SET(natsOptions_SetWriteDeadline(options, (int64_t)nats->timeout_ms));
    SET(natsOptions_SetAllowReconnect(options, false));
    SET(natsOptions_SetErrorHandler(options, ignore_error, NULL));
    if (nats->url.user.ptr)
        SET(natsOptions_SetUserInfo(options, nats->url.user.ptr,
                                    nats->url.password.ptr ? nats->url.password.ptr : ""));
    if (nats->token.ptr)
        SET(natsOptions_SetToken(options, nats->token.ptr));
    if (nats->creds.ptr)
        SET(natsOptions_SetUserCredentialsFromFiles(options, nats->creds.ptr, NULL));
#undef SET
    return code == NATS_OK ? set_tls(nats, options) : code;
}

static enum hf_status connect_lane(struct broker_wait *wait, struct nats *nats,
                                   struct nats_lane *lane)
{
    const struct nats_library *lib = &nats->lib;
    natsOptions *options = NULL;
    struct hf_str subject;
    natsStatus code;

    TRY(hf__broker_wait_check(wait));
    code = lib->natsOptions_Create(&options);
    if (code == NATS_OK)
        code = set_options(wait, nats, options);
    if (code == NATS_OK)
        code = lib->natsConnection_Connect(&lane->connection, options);
    lib->natsOptions_Destroy(options);
    if (code != NATS_OK)
        return connection_fail(wait->s, nats, "connecting", code);
    if (lib->natsConnection_HasHeaderSupport(lane->connection) != NATS_OK)
        return hf__fail(wait->s, HF_UNSUPPORTED,
                        "NATS at %s:%u is too old: it does not support headers", nats->url.host.ptr,
                        nats->url.port);
    if (lib->natsInbox_Create(&lane->inbox) != NATS_OK)
        return hf__fail_nomem(wait->s);
    subject = hf_scope_format(wait->s, "%s.*", lane->inbox);
    if (!subject.ptr)
        return hf__fail_nomem(wait->s);
    code = lib->natsConnection_SubscribeSync(&lane->answers, lane->connection, subject.ptr);
    if (code == NATS_OK)
        code = lib->natsSubscription_SetPendingLimits(lane->answers, -1, -1);
    return code == NATS_OK ? HF_OK : connection_fail(wait->s, nats, "subscribing", code);
}

static enum hf_status take_lane(struct broker_wait *wait, struct nats *nats, struct nats_lane **out)
{
    struct nats_lane *lane;
    enum hf_status status;

    while ((lane = (struct nats_lane *)hf__broker_lane_take(&nats->lanes))) {
        if (nats->lib.natsConnection_Status(lane->connection) == NATS_CONN_STATUS_CONNECTED) {
            *out = lane;
            return HF_OK;
        }
        close_lane(nats, lane);
    }
    lane = hf__env_alloc(&nats->env, sizeof(*lane));
    if (!lane)
        return hf__fail_nomem(wait->s);
    *lane = (struct nats_lane){0};
    status = connect_lane(wait, nats, lane);
    if (status != HF_OK) {
        close_lane(nats, lane);
        return status;
    }
    *out = lane;
    return HF_OK;
}

static enum hf_status nats_send_wave(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                     size_t len)
{
    struct nats *nats = self;
    struct nats_batch batch = {.nats = nats, .deliveries = deliveries, .len = len};
    enum hf_status status;

    hf__broker_wait_begin(&batch.wait, s, nats->timeout_ms);
    batch.sizes = hf__scope_array(s, len, sizeof(*batch.sizes));
    if (!batch.sizes)
        return hf__fail_nomem(s);
    TRY(take_lane(&batch.wait, nats, &batch.lane));
    status = publish_all(&batch);
    if (batch.open == 0 && (status == HF_OK || status == batch.status))
        hf__broker_lane_keep(&nats->lanes, &batch.lane->lane);
    else
        close_lane(nats, batch.lane); /* (3) */
    return status;
}

static enum hf_status nats_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    return hf__broker_send_waves(s, self, deliveries, len, nats_send_wave);
}

static enum hf_status nats_probe(struct hf_scope *s, void *self)
{
    struct nats *nats = self;
    struct nats_lane *lane;
    struct broker_wait wait;
    natsStatus code;

    hf__broker_wait_begin(&wait, s, nats->timeout_ms);
    TRY(take_lane(&wait, nats, &lane));
    code = nats->lib.natsConnection_FlushTimeout(lane->connection,
                                                 hf__broker_wait_ms(&wait, CONNECT_MS) + 1);
    if (code != NATS_OK) {
        close_lane(nats, lane);
        return connection_fail(s, nats, "probing the connection", code);
    }
    hf__broker_lane_keep(&nats->lanes, &lane->lane);
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void nats_close(void *self)
{
    struct nats *nats = self;
    struct hf_env env = nats->env;
    struct broker_lane *lane;

    while ((lane = hf__broker_lane_take(&nats->lanes)))
        close_lane(nats, (struct nats_lane *)lane);
    hf__broker_lanes_destroy(&nats->lanes);
    hf__env_free(&env, nats, sizeof(*nats));
}

static enum hf_status set_up(struct hf_scope *s, const struct sink_url *url, struct nats *nats)
{
    static const struct sink_option options[] = {
        {.name = "creds", .kind = SINK_TEXT, .at = offsetof(struct nats, creds)},
        {.name = "token", .kind = SINK_TEXT, .at = offsetof(struct nats, token)},
        {.name = "timeout_ms",
         .kind = SINK_NUMBER,
         .at = offsetof(struct nats, timeout_ms),
         .min = 1,
         .max = 3600000},
        BROKER_TLS_OPTIONS(struct nats),
    };
    struct hf_str subject;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), nats));
    TRY(hf__broker_check_tls(s, &nats->tls));
    TRY(hf__broker_c_text(s, "the option creds", nats->creds));
    TRY(hf__broker_c_text(s, "the option token", nats->token));
    TRY(hf__broker_url(s, url, NATS_PORT, &nats->url));
    if (nats->url.path.len == 0)
        return hf__fail(s, HF_INVALID, "the URL of a nats sink has to end with a subject");
    TRY(hf__sink_decode(s, url->memory, "the subject", nats->url.path, &subject));
    TRY(hf__template_read(s, url->memory, "the subject", subject, &nats->subject));
    if (nats->subject.is_fixed && !is_subject(nats->subject.text))
        return hf__fail(s, HF_INVALID,
                        "the subject of a nats sink has non-empty parts between dots, without "
                        "spaces, \"*\" and \">\"");
    return hf__library_load(s, HF_NATS_LIBRARY, symbols, ARRAY_LEN(symbols), &nats->lib);
}

enum hf_status hf__sink_nats_open(struct hf_scope *s, const struct sink_url *url,
                                  struct hf_sink **sink)
{
    const struct hf_env *env = hf_scope_env(s);
    struct nats *nats = hf__env_alloc(env, sizeof(*nats));
    const struct hf_sink_ops ops = {
        .size = sizeof(ops),
        .name = "nats",
        .batch_max = NATS_BATCH,
        .batch_bytes_max = NATS_BATCH_BYTES,
        .event_bytes_max = NATS_EVENT_MAX,
        .keeps_order = true,
        .send = nats_send,
        .probe = nats_probe,
        .close = nats_close,
    };
    enum hf_status status;

    if (!nats)
        return hf__fail_nomem(s);
    *nats = (struct nats){.env = *env, .timeout_ms = BROKER_TIMEOUT_MS};
    hf__broker_lanes_init(&nats->lanes);
    status = set_up(s, url, nats);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, nats, sink);
    if (status != HF_OK)
        nats_close(nats);
    return status;
}
