/*
 * http/transport.c: one request written, one answer read.
 *
 * The request is put together in one piece of memory and leaves with one call, unless its body is
 * so large that copying it would cost more than a second call. Then its answer is waited for, in
 * slices, so that the scope's deadline and cancellation are noticed. An answer may come before all
 * of a request is sent, mostly to refuse it: so both directions are served while a large body
 * leaves, and when sending fails, what the server had to say is read before giving up.
 *
 *     write the request -> take a connection -> send <-> receive -> keep or close it
 *
 * What always holds:
 *
 *  (1) A request is sent at most once. Where sending or receiving fails, the call fails.
 *  (2) `sent` is set when the kernel, or TLS, took the last byte, and not before. Only then may the
 *      request have happened: a server cannot act on a request whose end is missing.
 *  (3) An answer is whole or an error: the reader says where it ends, and the end of a connection
 *      is the end of an answer only where the answer says so. In TLS that end has to be said, too.
 *  (4) A connection is kept when the request was sent, the answer was read to its last byte,
 *      nothing came behind it, and the server means to go on.
 *  (5) What of the request is ours is wiped before its memory goes back to the scope: the copy of
 *      the head has tokens and signatures in it. It is about a kilobyte, and takes some 20 ns. The
 *      caller's own strings, bodies, and what the kernel and TLS copied are not ours to wipe.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>

#include "base/buf.h"
#include "http/connection.h"
#include "http/private.h"
#include "http/sign.h"

enum {
    ONE_SEND_MAX = 64 * 1024, /* a larger body is not copied behind the head */
    SEND_MAX = 256 * 1024,    /* bytes sent before the other direction is looked at */
    RECEIVE_FIRST = 4 * 1024, /* room for an answer, at first */
    RECEIVE_LEAST = 1024,     /* room that a call to receive should have */
    TRUST_MAX = 1024 * 1024,  /* room made at once because an answer says how long it is */
    SPIN_US = 60,             /* about what it takes to be woken */
    QUICK_US = 150,           /* what an answer took that would have been worth it */
};

struct exchange {
    struct patience patience;
    struct transport *transport;
    const struct transport_call *call;
    struct connection *connection;
    struct hf__buf out;   /* head, and body when it is small */
    size_t out_head;      /* bytes of the head in it */
    struct hf_bytes left; /* of the request, in `out` or in the body */
    bool body_apart;      /* the body follows `left` */
    bool sent;            /* (2) */
    bool send_failed;     /* nothing more can be sent */
    bool answered;        /* the answer is whole */
    struct hf__buf in;
    struct http_reader reader;
};

static void exchange_check(const struct exchange *x)
{
    assert(x->out_head <= x->out.len && x->in.len <= x->in.cap);
    assert(!x->sent || (x->left.len == 0 && !x->body_apart)); /* (2) */
    assert(!x->sent || !x->send_failed);
    assert(!x->answered || x->in.len > 0);
}

/* ---- the request ---------------------------------------------------------------------------- */

static bool is_token(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!hf__http_is_token((uint8_t)text.ptr[i]))
            return false;
    }
    return text.len > 0;
}

/* No blank and nothing that ends a line or could be taken for something else. */
static bool is_visible(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] == 0x7F)
            return false;
    }
    return text.len > 0;
}

/* "http://" or "https://", and then a host and perhaps a port, nothing else. */
static bool is_origin(struct hf_str origin)
{
    struct hf_str host;

    if (!str_after(origin, HF_STR("http://"), &host) &&
        !str_after(origin, HF_STR("https://"), &host))
        return false;
    for (size_t i = 0; i < host.len; i++) {
        if (char_in(host.ptr[i], "/?#@\\"))
            return false;
    }
    return is_visible(host);
}

static enum hf_status write_line(struct exchange *x, const struct http_head *head)
{
    if (!is_token(head->method) || !is_visible(head->target))
        return hf__fail(x->patience.s, HF_INVALID,
                        "the method or the target of the request is invalid");
    hf__buf_put_str(&x->out, head->method);
    hf__buf_put_byte(&x->out, ' ');
    hf__buf_put_str(&x->out, head->target);
    hf__buf_put_str(&x->out, HF_STR(" HTTP/1.1\r\n"));
    return HF_OK;
}

static enum hf_status write_field(struct exchange *x, const struct http_field *field)
{
    const uint8_t *end;

    if (!is_token(field->name) || hf__http_is(field->name, "Content-Length") ||
        hf__http_is(field->name, "Transfer-Encoding"))
        return hf__fail(x->patience.s, HF_INVALID, "invalid header field \"%.*s\"",
                        (int)(field->name.len < 60 ? field->name.len : 60), field->name.ptr);
    hf__buf_put_str(&x->out, field->name);
    hf__buf_put_str(&x->out, HF_STR(": "));
    hf__buf_put_str(&x->out, field->value);
    hf__buf_put_str(&x->out, HF_STR("\r\n"));
    if (x->out.failed)
        return hf__fail_nomem(x->patience.s);
    /* The first control character has to be the CR that was put there just now. */
    end = x->out.ptr + x->out.len;
    if (hf__http_find_control(end - 2 - field->value.len, end) != end - 2)
        return hf__fail(x->patience.s, HF_INVALID,
                        "the header field \"%.*s\" has a control character in its value",
                        (int)(field->name.len < 60 ? field->name.len : 60), field->name.ptr);
    return HF_OK;
}

/* By hand, as every request has one: formatting it takes longer than all the rest. */
static void write_length(struct exchange *x, size_t length)
{
    char digits[24];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + length % 10);
    while (length /= 10);
    assert(at < sizeof(digits));
    hf__buf_put_str(&x->out, HF_STR("Content-Length: "));
    hf__buf_put(&x->out, digits + at, sizeof(digits) - at);
    hf__buf_put_str(&x->out, HF_STR("\r\n"));
}

/* Requests that usually have a body say so when it is empty, others do not. */
static bool tells_length(const struct transport_call *call)
{
    struct hf_str method = call->head->method;

    return call->body.len > 0 ||
           !(hf_str_equal(method, HF_STR("GET")) || hf_str_equal(method, HF_STR("HEAD")) ||
             hf_str_equal(method, HF_STR("DELETE")));
}

static enum hf_status write_request(struct exchange *x)
{
    const struct transport_call *call = x->call;
    const struct http_head *head = call->head;
    size_t room = 128 + head->method.len + head->target.len;

    x->body_apart = call->body.len > ONE_SEND_MAX;
    for (size_t i = 0; i < head->fields_len; i++)
        room += head->fields[i].name.len + head->fields[i].value.len + 4;
    (void)hf__buf_reserve(&x->out, room + (x->body_apart ? 0 : call->body.len));
    TRY(write_line(x, head));
    for (size_t i = 0; i < head->fields_len; i++)
        TRY(write_field(x, &head->fields[i]));
    if (tells_length(call))
        write_length(x, call->body.len);
    hf__buf_put_str(&x->out, HF_STR("\r\n"));
    x->out_head = x->out.len;
    if (!x->body_apart)
        hf__buf_put(&x->out, call->body.ptr, call->body.len);
    if (x->out.failed)
        return hf__fail_nomem(x->patience.s);
    x->left = hf_bytes_of(x->out.ptr, x->out.len);
    assert(x->left.len == x->out_head + (x->body_apart ? 0 : call->body.len));
    return HF_OK;
}

/* ---- failing -------------------------------------------------------------------------------- */

static enum hf_status fail_io(struct exchange *x, const char *text)
{
    struct hf_scope *s = x->patience.s;

    (void)hf__fail(s, HF_IO, "%s: %s", x->connection->origin, text);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

static enum hf_status fail_answer(struct exchange *x)
{
    if (x->send_failed)
        return fail_io(x, "the connection broke while the request was sent");
    if (x->reader.error.status == 413)
        return hf__fail(x->patience.s, HF_LIMIT, "%s: %s", x->connection->origin,
                        x->reader.error.text);
    return fail_io(x, x->reader.error.text);
}

/* ---- sending and receiving ------------------------------------------------------------------ */

/* Wait until one of the events is there, or something is wrong with the connection. */
static enum hf_status wait_for(struct exchange *x, short events, short *there)
{
    for (;;) {
        struct pollfd poller = {.fd = x->connection->fd, .events = events};
        int count;

        TRY(hf__patience_check(&x->patience));
        count = poll(&poller, 1, (int)hf__patience_left_ms(&x->patience, PATIENCE_SLICE_MS));
        if (count > 0) {
            *there = poller.revents;
            return HF_OK;
        }
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return fail_io(x, "waiting for the connection failed");
    }
}

/* Room for more of the answer; an answer that says how long it is gets it without much copying. */
static bool make_room(struct exchange *x)
{
    size_t wanted = x->reader.wanted > x->in.len ? x->reader.wanted - x->in.len : 0;
    size_t room = wanted > TRUST_MAX ? TRUST_MAX : wanted;

    if (room < RECEIVE_LEAST)
        room = RECEIVE_LEAST;
    /* One byte more shows what comes behind the answer. */
    return hf__buf_reserve(&x->in, room + 1) != NULL;
}

/*
 * Receive what is there, and read it. *more is not set when nothing was: then it is time to wait.
 * TLS may have bytes that the socket does not show, so we wait only after we were told to.
 */
static enum hf_status answer_receive(struct exchange *x, bool *more)
{
    enum http_result result = HTTP_BAD;
    size_t got = 0;
    CURLcode code;

    *more = false;
    if (!make_room(x))
        return hf__fail_nomem(x->patience.s);
    code =
        hf__curl.easy_recv(x->connection->easy, x->in.ptr + x->in.len, x->in.cap - x->in.len, &got);
    if (code == CURLE_AGAIN)
        return HF_OK;
    if (code != CURLE_OK)
        return fail_io(x, x->send_failed ? "the connection broke while the request was sent"
                                         : "the connection broke before the end of the answer");
    if (got == 0 && x->reader.until_close && !hf__connection_ended(x->transport, x->connection))
        return fail_io(x, "the connection was cut before the end of the answer");
    if (got == 0) {
        result = hf__http_end_answer(&x->reader, x->in.ptr, x->in.len);
    } else {
        x->in.len += got;
        result = hf__http_read(&x->reader, x->in.ptr, x->in.len);
    }
    if (result == HTTP_BAD)
        return fail_answer(x);
    x->answered = result == HTTP_DONE;
    exchange_check(x);
    *more = true;
    return HF_OK;
}

/* Receive what is there without waiting for it. */
static enum hf_status receive_all(struct exchange *x)
{
    bool more = true;

    while (more && !x->answered) {
        TRY(hf__patience_check(&x->patience));
        TRY(answer_receive(x, &more));
    }
    return HF_OK;
}

/* After a part of a request was sent, or none could be. */
static enum hf_status look_back(struct exchange *x, bool blocked)
{
    short there;

    if (blocked)
        TRY(wait_for(x, POLLIN | POLLOUT, &there));
    else
        TRY(hf__patience_check(&x->patience));
    return receive_all(x);
}

/* Send the request, until it is sent, or is answered already, or sending fails. */
static enum hf_status send_request(struct exchange *x)
{
    while (!x->answered) {
        size_t part = x->left.len < SEND_MAX ? x->left.len : SEND_MAX, taken = 0;
        CURLcode code = hf__curl.easy_send(x->connection->easy, x->left.ptr, part, &taken);

        assert(part > 0 && taken <= part);
        if (code != CURLE_OK && code != CURLE_AGAIN) {
            x->send_failed = true;
            return HF_OK;
        }
        x->left = hf_bytes_of(x->left.ptr + taken, x->left.len - taken);
        if (x->left.len == 0 && x->body_apart) {
            x->body_apart = false;
            x->left = x->call->body;
            continue;
        }
        if (x->left.len == 0) {
            x->sent = true;
            return HF_OK;
        }
        TRY(look_back(x, taken == 0));
    }
    return HF_OK;
}

/*
 * An answer that comes at once is waited for awake: to be woken would take longer than it does.
 * Only by a caller that is alone, as others would have better use for the processor.
 */
static enum hf_status answer_spin(struct exchange *x, int64_t sent_us)
{
    if (!x->connection->quick || !x->transport->may_spin ||
        atomic_load_explicit(&x->transport->running, memory_order_relaxed) > 1)
        return HF_OK;
    while (!x->answered && hf__patience_clock_us() - sent_us < SPIN_US)
        TRY(receive_all(x));
    return HF_OK;
}

static enum hf_status exchange_run(struct exchange *x)
{
    struct http_limits limits = {.body_bytes = x->call->answer_max ? x->call->answer_max
                                                                   : TRANSPORT_ANSWER_MAX};
    /* Nothing can be hidden in TLS yet, unless a handshake was just made or a body just sent. */
    bool try_first = x->connection->fresh || x->body_apart;
    int64_t sent_us;

    assert(x->connection && !x->sent && !x->answered);
    hf__http_begin_answer(&x->reader, &limits, hf_str_equal(x->call->head->method, HF_STR("HEAD")));
    (void)hf__buf_reserve(&x->in, RECEIVE_FIRST);
    TRY(send_request(x));
    exchange_check(x);
    assert(x->sent || x->send_failed || x->answered);
    sent_us = hf__patience_clock_us();
    if (try_first || x->send_failed)
        TRY(receive_all(x));
    TRY(answer_spin(x, sent_us));
    while (!x->answered) {
        short there;

        TRY(wait_for(x, POLLIN, &there));
        TRY(receive_all(x));
    }
    x->connection->quick = hf__patience_clock_us() - sent_us < QUICK_US;
    return HF_OK;
}

/* ---- a call --------------------------------------------------------------------------------- */

/* The fields out of the reader, which is on our stack, into the scope. */
static enum hf_status hand_out(struct exchange *x, struct http_answer *answer)
{
    const struct http_head *head = &x->reader.head;
    size_t size = head->fields_len * sizeof(head->fields[0]);
    struct http_field *fields = hf_scope_alloc(x->patience.s, size);

    if (!fields)
        return hf__fail_nomem(x->patience.s);
    memcpy(fields, head->fields, size);
    *answer = (struct http_answer){
        .status = head->status,
        .fields = fields,
        .fields_len = head->fields_len,
        .body = x->reader.body,
    };
    return HF_OK;
}

enum hf_status hf__transport_call(struct hf_scope *s, struct transport *transport,
                                  const struct transport_call *call, struct http_answer *answer)
{
    struct exchange x; /* not cleared as a whole: the reader is large and clears itself */
    enum hf_status status;

    *answer = (struct http_answer){0};
    if (!is_origin(call->origin)) /* which may have a password in it */
        return hf__fail(s, HF_INVALID, "the URL of the server is not a scheme, a host and a port");
    hf__patience_begin(&x.patience, s, call);
    x.transport = transport;
    x.call = call;
    x.connection = NULL;
    x.in = x.out = (struct hf__buf){.scope = s};
    x.out_head = 0;
    x.left = (struct hf_bytes){0};
    x.body_apart = x.sent = x.send_failed = x.answered = false;
    status = hf__patience_check(&x.patience);
    if (status == HF_OK)
        status = write_request(&x);
    if (status == HF_OK)
        status = hf__connection_take(&x.patience, transport, call->origin, &x.connection);
    (void)atomic_fetch_add_explicit(&transport->running, 1, memory_order_relaxed);
    if (status == HF_OK)
        status = exchange_run(&x);
    (void)atomic_fetch_sub_explicit(&transport->running, 1, memory_order_relaxed);
    if (status == HF_OK)
        status = hand_out(&x, answer);
    if (status != HF_OK)
        hf__scope_error_edit(s)->may_have_happened = x.sent;
    if (x.connection && status == HF_OK && x.sent && x.reader.head.keep_alive &&
        x.reader.used == x.in.len)
        hf__connection_keep(transport, x.connection);
    else if (x.connection)
        hf__connection_close(transport, x.connection);
    if (x.out.ptr)
        OPENSSL_cleanse(x.out.ptr, x.out_head ? x.out_head : x.out.len);
    return status;
}

struct hf_str hf__http_answer_field(const struct http_answer *answer, const char *name)
{
    return hf__http_find(answer->fields, answer->fields_len, name);
}

/* "Sun, 15 Nov 2026 10:30:00 GMT", the one form that is sent, to that of signatures. */
int64_t hf__http_answer_date_s(const struct http_answer *answer)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct hf_str date = hf__http_answer_field(answer, "date");
    const char *p = date.ptr, *month;
    char text[SIGN_TIME + 1];
    int64_t seconds;

    if (date.len != 29 || memcmp(p + 25, " GMT", 4) != 0)
        return 0;
    month = memmem(months, sizeof(months) - 1, p + 8, 3);
    if (!month || (month - months) % 3 != 0)
        return 0;
    snprintf(text, sizeof(text), "%.4s%02u%.2sT%.2s%.2s%.2sZ", p + 12,
             ((unsigned)(month - months) / 3 + 1) % 100, p + 5, p + 17, p + 20, p + 23);
    return hf__sign_time(hf_str_of(text, SIGN_TIME), &seconds) ? seconds : 0;
}
