/*
 * sinks/lines.c: events as lines, and writing them whole.
 *
 * What always holds:
 *
 *  (1) An event is one line: no line end is inside of it.
 *  (2) A delivery is done when the last byte of its line, the line end, was written, not before.
 *  (3) Writing never waits beyond the deadline of the scope, whoever reads at the other end, as long
 *      as the kernel says whether there is room. SIGPIPE never kills the process.
 */
#include "sinks/private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

enum { SLICE_MS = 20 };

/* ---- lines ---------------------------------------------------------------------------------- */

static enum hf_status put_payload(struct hf_scope *s, struct hf__buf *buf,
                                  const struct hf_event *event)
{
    struct hf_bytes payload = event->payload;

    if (payload.len && hf__wire_json_valid(hf_str_of((const char *)payload.ptr, payload.len))) {
        hf__sink_put_compact_json(buf, payload);
        return HF_OK;
    }
    if (payload.len && memchr(payload.ptr, '\n', payload.len)) /* (1) */
        return hf__fail(s, HF_INVALID, "the payload contains a line end and is not JSON");
    hf__buf_put(buf, payload.ptr, payload.len);
    return HF_OK;
}

static enum hf_status put_line(struct hf_scope *s, enum line_form form,
                               const struct hf_event *event, struct hf__buf *buf)
{
    struct hf_str json;

    if (form == LINE_PAYLOAD) {
        TRY(put_payload(s, buf, event));
    } else {
        TRY(form == LINE_BUS ? hf__sink_bus_message_json(s, event, &json)
                             : hf_event_json(s, event, &json));
        hf__buf_put_str(buf, json);
    }
    hf__buf_put_byte(buf, '\n');
    return buf->failed ? hf__fail_nomem(s) : HF_OK;
}

enum hf_status hf__lines_make(struct hf_scope *s, enum line_form form,
                              struct hf_delivery *deliveries, size_t len, struct lines *lines)
{
    struct hf__buf buf = {.scope = s};
    bool some_failed = false;

    *lines = (struct lines){.ends = hf__scope_array(s, len, sizeof(size_t))};
    if (!lines->ends)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        deliveries[i].status = HF_OK; /* until it is known otherwise */
    for (size_t i = 0; i < len; i++) {
        size_t from = buf.len;
        enum hf_status status;

        if (some_failed && hf__delivery_blocked(deliveries, i)) {
            hf__delivery_block(s, &deliveries[i]);
            continue;
        }
        status = put_line(s, form, &deliveries[i].event->event, &buf);
        if (status == HF_NOMEM)
            return status;
        if (status != HF_OK) {
            hf__delivery_fail_with(s, &deliveries[i], true);
            some_failed = true;
            buf.len = from;
            continue;
        }
        assert(memchr(buf.ptr + from, '\n', buf.len - from) == buf.ptr + buf.len - 1); /* (1) */
        lines->ends[i] = buf.len;
    }
    for (size_t i = 0; i < len; i++)
        if (lines->ends[i])
            deliveries[i].status = HF_INTERNAL;
    hf__scope_error_clear(s);
    lines->text = hf_bytes_of(buf.ptr, buf.len);
    return HF_OK;
}

void hf__lines_done(const struct lines *lines, struct hf_delivery *deliveries, size_t len,
                    size_t written)
{
    assert(written <= lines->text.len);
    for (size_t i = 0; i < len; i++)
        if (lines->ends[i] && lines->ends[i] <= written) /* (2) */
            hf__delivery_done(&deliveries[i]);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Blocks SIGPIPE in this thread while it writes; a SIGPIPE that the write caused is consumed. */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};

static void guard_begin(struct pipe_guard *guard)
{
    sigset_t pipe, pending;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &guard->before);
}

static void guard_end(const struct pipe_guard *guard, bool broken)
{
    const struct timespec now = {0, 0};
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (broken && !guard->was_pending)
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* Wait for room, (3); a file always has some. */
static enum hf_status wait_for_room(struct hf_scope *s, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};

    for (;;) {
        TRY(hf__scope_alive(s));
        if (poll(&wait, 1, SLICE_MS) != 0)
            return HF_OK; /* there is room, or writing says what is wrong */
    }
}

static enum hf_status write_all(struct hf_scope *s, const char *what, int fd, struct hf_bytes bytes,
                                size_t *written)
{
    struct stat info;
    bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);

    while (*written < bytes.len) {
        size_t len = bytes.len - *written;
        ssize_t put;

        if (!is_file) {
            TRY(wait_for_room(s, fd));
            if (len > PIPE_BUF) /* poll() promises room for so many bytes */
                len = PIPE_BUF;
        }
        assert(len > 0);
        put = write(fd, bytes.ptr + *written, len);
        assert(put <= (ssize_t)len);
        if (put > 0)
            *written += (size_t)put;
        else if (put < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
            return hf__fail(s, errno == ENOSPC || errno == EDQUOT ? HF_NO_SPACE : HF_IO,
                            "writing to %s failed: %s", what, strerror(errno));
    }
    return HF_OK;
}

enum hf_status hf__lines_write(struct hf_scope *s, const char *what, int fd, struct hf_bytes bytes,
                               size_t *written)
{
    struct pipe_guard guard;
    enum hf_status status;

    assert(fd >= 0);
    *written = 0;
    guard_begin(&guard);
    status = write_all(s, what, fd, bytes, written);
    guard_end(&guard, status == HF_IO);
    assert(status == HF_OK ? *written == bytes.len : *written < bytes.len);
    return status;
}
