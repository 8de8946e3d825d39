/*
 * sinks/sink_redis.c: Redis Streams.
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]/STREAM
 *
 * An event is one XADD, with a field for each attribute of CloudEvents and one called "data". A
 * batch is a pipeline: all commands are written, and the answers, which come in the order of the
 * commands, are matched with them by counting. hiredis makes the commands and reads the answers;
 * the sink itself sends and receives the bytes, as hiredis' own functions heed no deadline in the
 * middle of a write, and raise SIGPIPE when the peer has closed the connection. There is no TLS: use
 * a tunnel.
 *
 * What always holds:
 *
 *  (1) An event is delivered when its own answer was read, and was an id; with `replicas`, when
 *      so many replicas have confirmed the batch, too.
 *  (2) Answers that concern all clients (out of memory, loading, read-only, no password) fail the
 *      batch, not its events; so do those about the stream when all events have the same one. All
 *      others concern one event.
 *  (3) A connection on which an answer is outstanding is never used again.
 *  (4) Nothing is sent that is longer than Redis accepts: it would close the connection, and the
 *      other events of the pipeline would fail as well.
 *
 * A pipeline in which an event fails goes on behind it; events of one key go one by one, in waves.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sinks/broker.h"

#ifndef HF_REDIS_LIBRARY /* the build says which one it has seen */
#define HF_REDIS_LIBRARY "libhiredis.so.0.14"
#endif

enum {
    REDIS_PORT = 6379,
    REDIS_BATCH = 500,
    REDIS_BATCH_BYTES = 8 * 1024 * 1024,
    REDIS_BULK_MAX = 512 * 1024 * 1024, /* Redis' default for proto-max-bulk-len */
    REDIS_READ = 16 * 1024,
    REDIS_ERROR_MAX = 300 /* bytes of an answer's text that are shown */
};

#define REDIS_FUNCTIONS(X)                                                                         \
    X(redisFormatCommandArgv)                                                                      \
    X(redisFreeCommand)                                                                            \
    X(redisReaderCreate)                                                                           \
    X(redisReaderFree)                                                                             \
    X(redisReaderFeed)                                                                             \
    X(redisReaderGetReply)                                                                         \
    X(freeReplyObject)

struct redis_library {
    REDIS_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE redis_library
static const struct library_symbol symbols[] = {REDIS_FUNCTIONS(LIBRARY_SYMBOL)};

struct redis {
    struct hf_env env;
    struct redis_library lib;
    struct broker_url url;
    struct hf_str db; /* absent: 0 */
    struct template stream;
    uint64_t maxlen; /* 0: no limit */
    uint64_t replicas;
    int form; /* enum broker_form */
    uint64_t timeout_ms;
    enum hf_flag exact;
    struct broker_lanes lanes;
};

struct redis_lane {
    struct broker_lane lane;
    int fd;
    redisReader *reader;
    uint64_t bulk_max; /* (4) */
};

/* ---- bytes ---------------------------------------------------------------------------------- */

static enum hf_status connection_fail(struct hf_scope *s, const struct redis *redis,
                                      const char *why)
{
    return hf__broker_fail(s, HF_IO, "Redis at %s:%u: %s", redis->url.host.ptr, redis->url.port,
                           why);
}

/* Feed the bytes that have come to the reader. */
static enum hf_status replies_receive(struct hf_scope *s, struct redis *redis,
                                      struct redis_lane *lane)
{
    char bytes[REDIS_READ];
    ssize_t len = recv(lane->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    assert(len <= (ssize_t)sizeof(bytes));
    if (len == 0)
        return connection_fail(s, redis, "the connection was closed");
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? HF_OK
                                                 : connection_fail(s, redis, strerror(errno));
    if (redis->lib.redisReaderFeed(lane->reader, bytes, (size_t)len) != REDIS_OK)
        return connection_fail(s, redis, lane->reader->errstr);
    return HF_OK;
}

/*
 * The next answer, sending what is left of `out` meanwhile. The answer is the caller's, to be freed
 * with freeReplyObject().
 */
static enum hf_status next_reply(struct broker_wait *wait, struct redis *redis,
                                 struct redis_lane *lane, struct hf_bytes *out, redisReply **reply)
{
    for (;;) {
        void *found = NULL;
        short ready;

        if (redis->lib.redisReaderGetReply(lane->reader, &found) != REDIS_OK)
            return connection_fail(wait->s, redis, lane->reader->errstr);
        if (found) {
            *reply = found;
            return HF_OK;
        }
        TRY(hf__broker_poll(wait, lane->fd, (short)(POLLIN | (out->len ? POLLOUT : 0)), &ready));
        if (ready & POLLOUT && out->len) {
            ssize_t len = send(lane->fd, out->ptr, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);

            /* An answer that the server sent before it closed the connection may still be read. */
            if (len < 0 && errno != EAGAIN && errno != EINTR && !(ready & POLLIN))
                return connection_fail(wait->s, redis, strerror(errno));
            assert(len <= (ssize_t)out->len);
            if (len > 0)
                *out = hf_bytes_of(out->ptr + len, out->len - (size_t)len);
        }
        if (ready & (POLLIN | POLLERR | POLLHUP))
            TRY(replies_receive(wait->s, redis, lane));
    }
}

/* Append a command. */
static void put_command(const struct redis *redis, struct hf__buf *buf, int argc, const char **argv,
                        const size_t *lens)
{
    char *command;
    int len;

    assert(argc > 0);
    len = redis->lib.redisFormatCommandArgv(&command, argc, argv, lens);

    if (len < 0) {
        buf->failed = true;
        return;
    }
    hf__buf_put(buf, command, (size_t)len);
    redis->lib.redisFreeCommand(command);
}

/* ---- what answers mean ---------------------------------------------------------------------- */

static bool reply_starts_with(const redisReply *reply, const char *word)
{
    size_t len = strlen(word);

    return reply->len >= len && memcmp(reply->str, word, len) == 0;
}

static struct hf_str text_of(const redisReply *reply)
{
    size_t len = reply->str ? reply->len : 0;

    return hf_str_of(reply->str ? reply->str : "", len < REDIS_ERROR_MAX ? len : REDIS_ERROR_MAX);
}

/* (2) Does an error concern all clients? Then *status is its status. */
static bool is_state(const redisReply *reply, enum hf_status *status)
{
    static const struct {
        const char *word;
        enum hf_status status;
    } states[] = {
        {"OOM ", HF_NO_SPACE},
        {"LOADING ", HF_IO},
        {"READONLY ", HF_IO},
        {"MISCONF ", HF_IO},
        {"NOREPLICAS ", HF_IO},
        {"MASTERDOWN ", HF_IO},
        {"CLUSTERDOWN ", HF_IO},
        {"TRYAGAIN ", HF_IO},
        {"MOVED ", HF_UNSUPPORTED},
        {"ASK ", HF_UNSUPPORTED},
        {"BUSY ", HF_THROTTLED},
        {"NOAUTH ", HF_DENIED},
        {"WRONGPASS ", HF_DENIED},
        {"ERR Protocol error: unauthenticated", HF_DENIED},
        {"ERR Protocol error", HF_IO}, /* Redis closes the connection after it */
        {"ERR unknown command", HF_UNSUPPORTED},
        {"ERR max number of clients", HF_THROTTLED},
    };

    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (reply_starts_with(reply, states[i].word)) {
            *status = states[i].status;
            return true;
        }
    }
    /* A command that is not permitted concerns all events; a key only those of its stream. */
    if (reply_starts_with(reply, "NOPERM ") && !memmem(reply->str, reply->len, " key", 4)) {
        *status = HF_DENIED;
        return true;
    }
    return false;
}

/* An error in answer to an event. */
static enum hf_status take_error(struct hf_scope *s, const struct redis *redis,
                                 const redisReply *reply, struct hf_delivery *delivery)
{
    bool names_stream =
        reply_starts_with(reply, "WRONGTYPE ") || reply_starts_with(reply, "NOPERM ");
    enum hf_status why = reply_starts_with(reply, "NOPERM ") ? HF_DENIED : HF_INVALID;
    struct hf_str text = text_of(reply);
    enum hf_status status;

    if (is_state(reply, &status))
        return hf__broker_fail(s, status, "Redis at %s:%u is not accepting messages: %.*s",
                               redis->url.host.ptr, redis->url.port, HF_FMT(text));
    if (names_stream && redis->stream.is_fixed)
        return hf__broker_fail(s, why, "Redis at %s:%u refuses the stream \"%.*s\": %.*s",
                               redis->url.host.ptr, redis->url.port, HF_FMT(redis->stream.text),
                               HF_FMT(text));
    if (names_stream)
        hf__delivery_fail(s, delivery, why, true, "Redis refuses it: %.*s", HF_FMT(text));
    else
        hf__delivery_fail(s, delivery, HF_IO, false, "Redis did not store it: %.*s", HF_FMT(text));
    return HF_OK;
}

/* ---- connecting ----------------------------------------------------------------------------- */

static void close_lane(struct redis *redis, struct redis_lane *lane)
{
    if (!lane)
        return;
    if (lane->fd >= 0)
        (void)close(lane->fd);
    if (lane->reader)
        redis->lib.redisReaderFree(lane->reader);
    hf__env_free(&redis->env, lane, sizeof(*lane));
}

/* Send one command and read its answer, which the caller frees. */
static enum hf_status command_call(struct broker_wait *wait, struct redis *redis,
                                   struct redis_lane *lane, int argc, const char **argv,
                                   const size_t *lens, redisReply **reply)
{
    struct hf__buf buf = {.scope = wait->s};
    struct hf_bytes out;

    put_command(redis, &buf, argc, argv, lens);
    if (buf.failed)
        return hf__fail_nomem(wait->s);
    out = hf_bytes_of(buf.ptr, buf.len);
    return next_reply(wait, redis, lane, &out, reply);
}

/* Fail because the server refuses a command. */
static enum hf_status fail_refused(struct hf_scope *s, const struct redis *redis,
                                   const char *command, const redisReply *reply)
{
    struct hf_str text = text_of(reply);
    enum hf_status status;

    if (!is_state(reply, &status))
        status = strcmp(command, "AUTH") == 0 ? HF_DENIED : HF_INVALID;
    return hf__broker_fail(s, status, "Redis at %s:%u refuses %s: %.*s", redis->url.host.ptr,
                           redis->url.port, command, HF_FMT(text));
}

/* The same with a command whose answer only matters if it is an error. */
static enum hf_status command_run(struct broker_wait *wait, struct redis *redis,
                                  struct redis_lane *lane, int argc, const char **argv,
                                  const size_t *lens)
{
    redisReply *reply;
    enum hf_status status = HF_OK;

    TRY(command_call(wait, redis, lane, argc, argv, lens, &reply));
    if (reply->type == REDIS_REPLY_ERROR)
        status = fail_refused(wait->s, redis, argv[0], reply);
    redis->lib.freeReplyObject(reply);
    return status;
}

/* Learn how long a text may be; servers that do not answer that have the default. A server that wants
 * a password refuses all other commands, too. */
static enum hf_status learn_limit(struct broker_wait *wait, struct redis *redis,
                                  struct redis_lane *lane)
{
    const char *argv[] = {"CONFIG", "GET", "proto-max-bulk-len"};
    const size_t lens[] = {6, 3, 18};
    enum hf_status status = HF_OK;
    redisReply *reply;

    lane->bulk_max = REDIS_BULK_MAX;
    TRY(command_call(wait, redis, lane, 3, argv, lens, &reply));
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[1]->type == REDIS_REPLY_STRING && reply->element[1]->len)
        lane->bulk_max = strtoull(reply->element[1]->str, NULL, 10);
    else if (reply->type == REDIS_REPLY_ERROR && reply_starts_with(reply, "NOAUTH "))
        status = fail_refused(wait->s, redis, argv[0], reply);
    redis->lib.freeReplyObject(reply);
    return status;
}

static enum hf_status log_in(struct broker_wait *wait, struct redis *redis, struct redis_lane *lane)
{
    const struct broker_url *url = &redis->url;

    if (url->password.ptr) {
        bool named = url->user.len > 0;
        const char *argv[] = {"AUTH", named ? url->user.ptr : url->password.ptr, url->password.ptr};
        const size_t lens[] = {4, named ? url->user.len : url->password.len, url->password.len};

        TRY(command_run(wait, redis, lane, named ? 3 : 2, argv, lens));
    }
    if (redis->db.ptr) {
        const char *argv[] = {"SELECT", redis->db.ptr};
        const size_t lens[] = {6, redis->db.len};

        TRY(command_run(wait, redis, lane, 2, argv, lens));
    }
    return learn_limit(wait, redis, lane);
}

/* An idle connection on which there is something to read is closed, or out of step. */
static bool is_quiet(const struct redis_lane *lane)
{
    struct pollfd poller = {.fd = lane->fd, .events = POLLIN};

    return poll(&poller, 1, 0) == 0;
}

static enum hf_status take_lane(struct broker_wait *wait, struct redis *redis,
                                struct redis_lane **out)
{
    struct redis_lane *lane;
    enum hf_status status;

    while ((lane = (struct redis_lane *)hf__broker_lane_take(&redis->lanes))) {
        assert(lane->fd >= 0 && lane->reader);
        if (is_quiet(lane)) {
            *out = lane;
            return HF_OK;
        }
        close_lane(redis, lane);
    }
    lane = hf__env_alloc(&redis->env, sizeof(*lane));
    if (!lane)
        return hf__fail_nomem(wait->s);
    *lane = (struct redis_lane){.fd = -1, .reader = redis->lib.redisReaderCreate()};
    status = lane->reader ? hf__broker_connect(wait, "Redis", &redis->url, &lane->fd)
                          : hf__fail_nomem(wait->s);
    if (status == HF_OK)
        status = log_in(wait, redis, lane);
    if (status != HF_OK) {
        close_lane(redis, lane);
        return status;
    }
    *out = lane;
    return HF_OK;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* A batch under way. */
struct redis_batch {
    struct broker_wait wait;
    struct redis_lane *lane;
    struct hf_delivery *deliveries;
    struct hf__buf commands;
    size_t *sent; /* which delivery each command is for */
    size_t sent_len;
    bool *stored; /* by command: the answer was an id */
};

/* The words of an XADD, which live in the scope. */
struct redis_words {
    const char **argv;
    size_t *lens;
    int len, room;
    size_t longest; /* bytes of the longest word */
};

static void add_word(struct redis_words *words, struct hf_str text)
{
    assert(words->len < words->room);
    words->argv[words->len] = text.len ? text.ptr : "";
    words->lens[words->len++] = text.len;
    if (text.len > words->longest)
        words->longest = text.len;
}

/* The fields of the form outbox-event-bus; every event has all of them. */
static enum hf_status make_bus_fields(struct hf_scope *s, const struct hf_event *event,
                                      const struct event_attribute **list, size_t *len)
{
    enum { FIELDS = 5 };
    struct event_attribute *fields = hf__scope_array(s, FIELDS, sizeof(*fields));
    struct hf_str payload, time, metadata;

    if (!fields)
        return hf__fail_nomem(s);
    TRY(hf__sink_bus_message_check(s, event));
    TRY(hf__sink_bus_message_payload(s, event, &payload));
    TRY(hf__sink_bus_message_time(s, event, &time));
    TRY(hf__sink_bus_message_metadata(s, event, &metadata));
    if (!metadata.len)
        metadata = HF_STR("{}");
    fields[0] = (struct event_attribute){HF_STR("eventId"), event->id, ATTRIBUTE_TEXT};
    fields[1] = (struct event_attribute){HF_STR("eventType"), event->type, ATTRIBUTE_TEXT};
    fields[2] = (struct event_attribute){HF_STR("payload"), payload, ATTRIBUTE_TEXT};
    fields[3] = (struct event_attribute){HF_STR("occurredAt"), time, ATTRIBUTE_TEXT};
    fields[4] = (struct event_attribute){HF_STR("metadata"), metadata, ATTRIBUTE_TEXT};
    *list = fields;
    *len = FIELDS;
    return HF_OK;
}

static enum hf_status make_words(struct hf_scope *s, const struct redis *redis,
                                 const struct hf_event *event, struct redis_words *words)
{
    bool is_bus = redis->form == FORM_BUS_MESSAGE;
    const struct event_attribute *list;
    struct hf_str stream;
    size_t len, room;

    TRY(hf__template_fill(s, &redis->stream, event, &stream));
    if (stream.len == 0)
        return hf__fail(s, HF_INVALID, "the name of its stream is empty");
    TRY(is_bus ? make_bus_fields(s, event, &list, &len)
               : hf__sink_event_attributes(s, event, &list, &len));
    room = 2 * len + 8;
    assert(room <= INT_MAX);
    *words = (struct redis_words){
        .argv = hf__scope_array(s, room, sizeof(*words->argv)),
        .lens = hf__scope_array(s, room, sizeof(*words->lens)),
        .room = (int)room,
    };
    if (!words->argv || !words->lens)
        return hf__fail_nomem(s);
    add_word(words, HF_STR("XADD"));
    add_word(words, stream);
    if (redis->maxlen) {
        struct hf_str count = hf_scope_format(s, "%llu", (unsigned long long)redis->maxlen);

        if (!count.ptr)
            return hf__fail_nomem(s);
        add_word(words, HF_STR("MAXLEN"));
        add_word(words, redis->exact == HF_YES ? HF_STR("=") : HF_STR("~"));
        add_word(words, count);
    }
    add_word(words, HF_STR("*"));
    for (size_t i = 0; i < len; i++) {
        add_word(words, list[i].name);
        add_word(words, list[i].value);
    }
    if (is_bus)
        return HF_OK;
    add_word(words, HF_STR("data"));
    add_word(words, hf_str_of((const char *)event->payload.ptr, event->payload.len));
    return HF_OK;
}

/* Make the commands; events that cannot be sent fail here, for good. */
static enum hf_status make_commands(struct hf_scope *s, const struct redis *redis,
                                    struct redis_batch *batch, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hf_delivery *delivery = &batch->deliveries[i];
        struct redis_words words = {0};
        enum hf_status status = make_words(s, redis, &delivery->event->event, &words);

        if (status == HF_NOMEM)
            return status;
        if (status != HF_OK) {
            hf__delivery_fail_with(s, delivery, true);
        } else if (words.longest > batch->lane->bulk_max) {
            hf__delivery_fail(s, delivery, HF_LIMIT, true,
                              "a field of it has %zu bytes; this Redis takes at most %llu",
                              words.longest, (unsigned long long)batch->lane->bulk_max);
        } else {
            put_command(redis, &batch->commands, words.len, words.argv, words.lens);
            assert(batch->sent_len <= i);
            batch->sent[batch->sent_len++] = i;
        }
    }
    return batch->commands.failed ? hf__fail_nomem(s) : HF_OK;
}

static void put_wait(const struct redis *redis, struct redis_batch *batch)
{
    char count[24], ms[24];
    const char *argv[] = {"WAIT", count, ms};
    size_t lens[] = {4, 0, 0};

    lens[1] = (size_t)snprintf(count, sizeof(count), "%llu", (unsigned long long)redis->replicas);
    lens[2] = (size_t)snprintf(ms, sizeof(ms), "%d",
                               hf__broker_wait_ms(&batch->wait, (int)redis->timeout_ms) / 2 + 1);
    put_command(redis, &batch->commands, 3, argv, lens);
}

/* Read an answer for every command. */
static enum hf_status read_answers(struct redis *redis, struct redis_batch *batch)
{
    struct hf_bytes out = hf_bytes_of(batch->commands.ptr, batch->commands.len);

    for (size_t i = 0; i < batch->sent_len; i++) {
        enum hf_status status = HF_OK;
        redisReply *reply;

        TRY(next_reply(&batch->wait, redis, batch->lane, &out, &reply));
        if (reply->type == REDIS_REPLY_ERROR)
            status = take_error(batch->wait.s, redis, reply, &batch->deliveries[batch->sent[i]]);
        else if (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS)
            batch->stored[i] = true;
        redis->lib.freeReplyObject(reply);
        TRY(status);
    }
    if (redis->replicas) {
        redisReply *reply;
        long long count;

        TRY(next_reply(&batch->wait, redis, batch->lane, &out, &reply));
        count = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        redis->lib.freeReplyObject(reply);
        if (count < (long long)redis->replicas) {
            memset(batch->stored, 0, batch->sent_len); /* (1) */
            return hf__broker_fail(batch->wait.s, HF_IO,
                                   "%lld replicas of Redis have the events; %llu are required",
                                   count, (unsigned long long)redis->replicas);
        }
    }
    return HF_OK;
}

/* Events that were stored are delivered, whatever happened to the rest. */
static void note_stored(const struct redis *redis, struct redis_batch *batch, enum hf_status status)
{
    if (status != HF_OK && redis->replicas)
        return;
    for (size_t i = 0; i < batch->sent_len; i++)
        if (batch->stored[i])
            hf__delivery_done(&batch->deliveries[batch->sent[i]]);
}

static enum hf_status redis_send_wave(struct hf_scope *s, void *self,
                                      struct hf_delivery *deliveries, size_t len)
{
    struct redis *redis = self;
    struct redis_batch batch = {.deliveries = deliveries, .commands = {.scope = s}};
    enum hf_status status;

    hf__broker_wait_begin(&batch.wait, s, redis->timeout_ms);
    batch.sent = hf__scope_array(s, len, sizeof(*batch.sent));
    batch.stored = hf__scope_array(s, len, sizeof(*batch.stored));
    if (!batch.sent || !batch.stored)
        return hf__fail_nomem(s);
    TRY(take_lane(&batch.wait, redis, &batch.lane));
    status = make_commands(s, redis, &batch, len);
    if (status == HF_OK && redis->replicas && batch.sent_len)
        put_wait(redis, &batch);
    if (status == HF_OK && batch.commands.failed)
        status = hf__fail_nomem(s);
    if (status == HF_OK && batch.sent_len) {
        status = read_answers(redis, &batch);
        note_stored(redis, &batch, status);
    }
    if (status == HF_OK)
        hf__broker_lane_keep(&redis->lanes, &batch.lane->lane);
    else
        close_lane(redis, batch.lane); /* (3) */
    return status;
}

static enum hf_status redis_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                 size_t len)
{
    return hf__broker_send_waves(s, self, deliveries, len, redis_send_wave);
}

static enum hf_status redis_probe(struct hf_scope *s, void *self)
{
    const char *argv[] = {"PING"};
    const size_t lens[] = {4};
    struct redis *redis = self;
    struct redis_lane *lane;
    struct broker_wait wait;
    enum hf_status status;

    hf__broker_wait_begin(&wait, s, redis->timeout_ms);
    TRY(take_lane(&wait, redis, &lane));
    status = command_run(&wait, redis, lane, 1, argv, lens);
    if (status == HF_OK)
        hf__broker_lane_keep(&redis->lanes, &lane->lane);
    else
        close_lane(redis, lane);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void redis_close(void *self)
{
    struct redis *redis = self;
    struct hf_env env = redis->env;
    struct broker_lane *lane;

    while ((lane = hf__broker_lane_take(&redis->lanes)))
        close_lane(redis, (struct redis_lane *)lane);
    hf__broker_lanes_destroy(&redis->lanes);
    hf__env_free(&env, redis, sizeof(*redis));
}

/* "3/orders" is a stream of database 3. */
static enum hf_status read_path(struct hf_scope *s, const struct sink_url *url, struct redis *redis)
{
    struct hf_str path = redis->url.path, stream;
    size_t digits = 0;

    while (digits < path.len && path.ptr[digits] >= '0' && path.ptr[digits] <= '9')
        digits++;
    if (digits > 0 && digits < path.len && path.ptr[digits] == '/') {
        redis->db = hf_scope_copy(url->memory, hf_str_of(path.ptr, digits));
        if (!redis->db.ptr)
            return hf__fail_nomem(s);
        path = hf_str_of(path.ptr + digits + 1, path.len - digits - 1);
    }
    if (path.len == 0)
        return hf__fail(s, HF_INVALID,
                        "the URL of a redis sink has to end with the name of a stream");
    TRY(hf__sink_decode(s, url->memory, "the stream", path, &stream));
    return hf__template_read(s, url->memory, "the stream", stream, &redis->stream);
}

static enum hf_status set_up(struct hf_scope *s, const struct sink_url *url, struct redis *redis)
{
    static const struct sink_option options[] = {
        {.name = "maxlen",
         .kind = SINK_NUMBER,
         .at = offsetof(struct redis, maxlen),
         .min = 1,
         .max = INT64_MAX},
        {.name = "form",
         .kind = SINK_WORD,
         .at = offsetof(struct redis, form),
         .words = BROKER_FORMS},
        {.name = "maxlen_exact", .kind = SINK_YES_NO, .at = offsetof(struct redis, exact)},
        {.name = "replicas",
         .kind = SINK_NUMBER,
         .at = offsetof(struct redis, replicas),
         .min = 1,
         .max = 100},
        {.name = "timeout_ms",
         .kind = SINK_NUMBER,
         .at = offsetof(struct redis, timeout_ms),
         .min = 1,
         .max = 3600000},
    };

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), redis));
    if (redis->exact && !redis->maxlen)
        return hf__fail(s, HF_INVALID, "the option maxlen_exact needs the option maxlen");
    TRY(hf__broker_url(s, url, REDIS_PORT, &redis->url));
    TRY(read_path(s, url, redis));
    return hf__library_load(s, HF_REDIS_LIBRARY, symbols, ARRAY_LEN(symbols), &redis->lib);
}

enum hf_status hf__sink_redis_open(struct hf_scope *s, const struct sink_url *url,
                                   struct hf_sink **sink)
{
    const struct hf_env *env = hf_scope_env(s);
    struct redis *redis = hf__env_alloc(env, sizeof(*redis));
    const struct hf_sink_ops ops = {
        .size = sizeof(ops),
        .name = "redis",
        .batch_max = REDIS_BATCH,
        .batch_bytes_max = REDIS_BATCH_BYTES,
        .event_bytes_max = REDIS_BULK_MAX,
        .keeps_order = true,
        .send = redis_send,
        .probe = redis_probe,
        .close = redis_close,
    };
    enum hf_status status;

    if (!redis)
        return hf__fail_nomem(s);
    *redis = (struct redis){.env = *env, .timeout_ms = BROKER_TIMEOUT_MS};
    hf__broker_lanes_init(&redis->lanes);
    status = set_up(s, url, redis);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, redis, sink);
    if (status != HF_OK)
        redis_close(redis);
    return status;
}
