/*
 * http/read.c: requests and answers out of bytes.
 *
 * A request is found in three steps. First the end of its head is looked for, line by line, and
 * nothing else is looked at; this is where a slow sender keeps us, call after call. Then the head
 * is taken apart, all of it in one go, by head.c. Then comes the body, which has a length or is
 * chunked.
 *
 *     START ---> LINE ---> FIELDS ---> LENGTH ------------------------------------> DONE
 *       ^                     |                                                       ^
 *       `---- 1xx answer -----+---> UNTIL_CLOSE, of answers ----- hf__http_end_answer() ---+
 *                             |                                                       |
 *                             `---> CHUNK_LINE ---> CHUNK_DATA ---> CHUNK_END         |
 *                                    |      ^                           |             |
 *                                    |      `---------------------------'             |
 *                                    `---> TRAILERS ----------------------------------'
 *
 * Where requests and answers differ, in their first line and in what ends a body, head.c knows of
 * requests and answer_read.c of answers.
 *
 * The data of chunks moves down to the end of the head, where it forms the body:
 *
 *     | head | body so far | left over from moving | not looked at yet |
 *         head_len     + body_len               scanned               len
 *
 * What always holds:
 *
 *  (1) Every decision is made at a byte that follows from the bytes before it, never from where a
 *      call ends. So the outcome is the same however the bytes are split.
 *  (2) A byte is looked at once by the search for the end of its line, and once more when the line
 *      is taken apart. Only when the caller's bytes moved is a head taken apart again.
 *  (3) Positions are kept as distances from the first byte, so that bytes can move.
 *  (4) A request is bounded: a limit's worth of line, of fields with trailers, and of data; and as
 *      much again as fields and data may have for what is around the data of chunks.
 *
 * A line or fields beyond the limit are a 400, as DynamoDB has it, rather than a 414 or a 431.
 */
#include "http/private.h"

enum state {
    START,
    LINE,
    FIELDS,
    LENGTH,
    CHUNK_LINE,
    CHUNK_DATA,
    CHUNK_END,
    TRAILERS,
    UNTIL_CLOSE,
    DONE,
    BAD
};

/* How a step ended: with too few bytes, with the next state, or with an error set. */
enum step { STEP_MORE, STEP_ON, STEP_BAD };

/* "0" CR LF CR LF: what follows the last chunk at least. */
enum { CHUNKED_END = 5 };

/* Sums of limits, and a limit with one more hexadecimal digit, must not overflow. */
#define LIMIT_MAX (SIZE_MAX / 32)

void hf__http_begin(struct http_reader *reader, const struct http_limits *limits)
{
    struct http_head *head = &reader->head;

    /* The fields are most of a reader, and those beyond fields_len mean nothing: not cleared. */
    reader->limits.head_bytes = limits && limits->head_bytes ? limits->head_bytes : HTTP_HEAD_MAX;
    reader->limits.body_bytes = limits && limits->body_bytes ? limits->body_bytes : HTTP_BODY_MAX;
    assert(reader->limits.head_bytes <= LIMIT_MAX && reader->limits.body_bytes <= LIMIT_MAX);
    head->method = head->target = head->path = head->query = head->host = (struct hf_str){0};
    head->status = head->minor = 0;
    head->keep_alive = head->expect_continue = head->chunked = false;
    head->length = 0;
    head->fields_len = 0;
    reader->body = (struct hf_bytes){0};
    reader->used = reader->wanted = 0;
    reader->error = (struct http_error){0};
    reader->state = START;
    reader->answer = reader->answer_no_body = reader->until_close = false;
    reader->interim = 0;
    reader->head_returned = false;
    reader->at = 0;
    reader->start = reader->fields_at = reader->head_len = reader->body_len = 0;
    reader->chunk_left = reader->framing = reader->trailers_at = reader->trailers_len = 0;
    reader->line = reader->scanned = 0;
}

void hf__http_begin_answer(struct http_reader *reader, const struct http_limits *limits,
                           bool no_body)
{
    hf__http_begin(reader, limits);
    reader->answer = true;
    reader->answer_no_body = no_body;
}

static enum step reader_refuse(struct http_reader *r, int status, const char *text)
{
    hf__http_refuse(r, status, text);
    return STEP_BAD;
}

/*
 * Look for the end of the line that starts at `line`; its LF must come before `bound`. When it is
 * found, `scanned` is where the next line starts. When it is not, `what` has more than `limit`
 * bytes.
 */
static enum step find_line(struct http_reader *r, const uint8_t *bytes, size_t len, size_t bound,
                           const char *what, size_t limit)
{
    size_t stop = len < bound ? len : bound;
    const uint8_t *found =
        r->scanned < stop ? memchr(bytes + r->scanned, '\n', stop - r->scanned) : NULL;

    if (!found) {
        r->scanned = stop;
        if (stop < bound)
            return STEP_MORE;
        hf__http_refuse_limit(r, 400, what, limit, "bytes");
        return STEP_BAD;
    }
    r->scanned = (size_t)(found - bytes) + 1;
    /* There is a byte before: a request line starts with a token, others follow an LF. */
    if (found[-1] != '\r')
        return reader_refuse(r, 400, "a line does not end with CR LF");
    return STEP_ON;
}

/* ---- the head ------------------------------------------------------------------------------- */

/* Also after an answer that was skipped. Another protocol is recognized at the first byte. */
static enum step at_answer_start(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    if (len <= r->start)
        return STEP_MORE;
    if (bytes[r->start] == 0x15 || bytes[r->start] == 0x16)
        return reader_refuse(r, 400, "received TLS as the answer to plain HTTP");
    if (bytes[r->start] != 'H')
        return reader_refuse(r, 400, "the answer does not start with an HTTP version");
    r->line = r->scanned = r->start;
    r->state = LINE;
    return STEP_ON;
}

/* One empty line before the request is forgiven: some clients send one behind a body. */
static enum step at_start(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    if (r->answer)
        return at_answer_start(r, bytes, len);
    if (len > 0 && bytes[0] == '\r') {
        if (len > 1 && bytes[1] != '\n')
            return reader_refuse(r, 400, "a line does not end with CR LF");
        r->start = 2;
    }
    if (len <= r->start)
        return STEP_MORE;
    /* A client that speaks TLS waits for an answer, and would never send the end of a line. */
    if (bytes[r->start] == 0x16)
        return reader_refuse(r, 400, "received TLS on a port for plain HTTP");
    if (!hf__http_is_token(bytes[r->start]))
        return reader_refuse(r, 400, "the request line does not start with a method");
    r->line = r->scanned = r->start;
    r->state = LINE;
    return STEP_ON;
}

static enum step at_line(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    size_t limit = r->limits.head_bytes;
    enum step step = find_line(r, bytes, len, r->start + limit + 2,
                               r->answer ? "the status line has" : "the request line has", limit);

    if (step == STEP_ON) {
        r->line = r->fields_at = r->scanned;
        r->state = FIELDS;
    }
    return step;
}

static bool take_head(struct http_reader *r, const uint8_t *bytes)
{
    return r->answer ? hf__http_take_answer(r, bytes) : hf__http_take_head(r, bytes);
}

/* An answer that is not the final one has neither body nor meaning to us. */
static enum step skip_interim(struct http_reader *r)
{
    if (++r->interim > HTTP_INTERIM_MAX) {
        hf__http_refuse_limit(r, 400, "before the answer there are", HTTP_INTERIM_MAX, "others");
        return STEP_BAD;
    }
    r->start = r->head_len;
    r->state = START;
    return STEP_ON;
}

static enum step at_fields(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    size_t limit = r->limits.head_bytes;

    for (;;) {
        size_t line = r->line;
        enum step step =
            find_line(r, bytes, len, r->fields_at + limit + 2, "the header fields have", limit);

        if (step != STEP_ON)
            return step;
        r->line = r->scanned;
        if (r->scanned - line == 2)
            break;
    }
    r->head_len = r->scanned;
    if (!take_head(r, bytes))
        return STEP_BAD;
    if (r->answer && r->head.status < 200)
        return skip_interim(r);
    r->at = (uintptr_t)bytes;
    r->state = r->head.chunked ? CHUNK_LINE : r->until_close ? UNTIL_CLOSE : LENGTH;
    return STEP_ON;
}

/* ---- the body ------------------------------------------------------------------------------- */

static enum step at_length(struct http_reader *r, size_t len)
{
    r->body_len = (size_t)r->head.length;
    r->wanted = r->head_len + r->body_len;
    if (len < r->wanted)
        return STEP_MORE;
    r->scanned = r->wanted;
    r->state = DONE;
    return STEP_ON;
}

static enum step at_until_close(struct http_reader *r, size_t len)
{
    if (len - r->head_len > r->limits.body_bytes) {
        hf__http_refuse_limit(r, 413, "the body has", r->limits.body_bytes, "bytes");
        return STEP_BAD;
    }
    r->body_len = len - r->head_len;
    r->scanned = len;
    return STEP_MORE;
}

/* A chunk's size, and extensions that mean nothing to us: `p` up to CR LF. */
static enum step take_chunk_line(struct http_reader *r, const uint8_t *p)
{
    size_t room = r->limits.body_bytes - r->body_len, size = 0;
    bool digits = false, over = false;

    for (; hex_digit((char)*p) >= 0; p++) {
        digits = true;
        size = size * 16 + (size_t)hex_digit((char)*p);
        over = over || size > room; /* from then on `size` may be anything */
    }
    if (!digits || (*p != ';' && *p != '\r'))
        return reader_refuse(r, 400, "a chunk does not start with its size");
    while (*p == '\t' || (*p >= 0x20 && *p != 0x7F))
        p++;
    if (p[0] != '\r' || p[1] != '\n')
        return reader_refuse(r, 400, "a chunk has a control character in its extensions");
    if (over) {
        hf__http_refuse_limit(r, 413, "the body has", r->limits.body_bytes, "bytes");
        return STEP_BAD;
    }
    r->chunk_left = size;
    return STEP_ON;
}

static enum step at_chunk_line(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    size_t most = r->limits.head_bytes + r->limits.body_bytes;
    enum step step = find_line(r, bytes, len, r->line + HTTP_CHUNK_LINE_MAX + 2,
                               "the size and extensions of a chunk have", HTTP_CHUNK_LINE_MAX);

    if (step == STEP_ON)
        step = take_chunk_line(r, bytes + r->line);
    if (step != STEP_ON)
        return step;
    /* Tiny chunks with long extensions would make a small body fill the memory. */
    r->framing += r->scanned - r->line + 2;
    if (r->framing > most) {
        hf__http_refuse_limit(r, 400, "the sizes and extensions of chunks have", most, "bytes");
        return STEP_BAD;
    }
    r->line = r->trailers_at = r->scanned;
    r->state = r->chunk_left ? CHUNK_DATA : TRAILERS;
    return STEP_ON;
}

static enum step at_chunk_data(struct http_reader *r, uint8_t *bytes, size_t len)
{
    size_t there = len - r->scanned, some = there < r->chunk_left ? there : r->chunk_left;

    if (some)
        memmove(bytes + r->head_len + r->body_len, bytes + r->scanned, some);
    r->body_len += some;
    r->scanned += some;
    r->chunk_left -= some;
    if (r->chunk_left)
        return STEP_MORE;
    r->state = CHUNK_END;
    return STEP_ON;
}

static enum step at_chunk_end(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    const uint8_t *p = bytes + r->scanned;
    size_t there = len - r->scanned;

    if ((there > 0 && p[0] != '\r') || (there > 1 && p[1] != '\n'))
        return reader_refuse(r, 400, "a chunk is longer than its size says");
    if (there < 2)
        return STEP_MORE;
    r->line = r->scanned += 2;
    r->state = CHUNK_LINE;
    return STEP_ON;
}

/* Trailers are fields like any other, share the limits of the head's, and are dropped. */
static enum step take_trailer(struct http_reader *r, const uint8_t *bytes)
{
    static const char *const misplaced[] = {"Content-Length", "Transfer-Encoding", "Host"};
    struct http_field field;

    if (r->head.fields_len + ++r->trailers_len > HTTP_FIELDS_MAX) {
        hf__http_refuse_limit(r, 400, r->answer ? "the answer has" : "the request has",
                              HTTP_FIELDS_MAX, "header fields");
        return STEP_BAD;
    }
    if (!hf__http_take_field(r, bytes + r->line, bytes + r->scanned, &field))
        return STEP_BAD;
    for (size_t i = 0; i < ARRAY_LEN(misplaced); i++) {
        if (hf__http_is(field.name, misplaced[i]))
            return reader_refuse(
                r, 400,
                r->answer ? "a field that frames the answer comes after the body"
                          : "a field that frames or routes the request comes after the body");
    }
    return STEP_ON;
}

static enum step at_trailers(struct http_reader *r, const uint8_t *bytes, size_t len)
{
    size_t limit = r->limits.head_bytes, room = limit - (r->head_len - 2 - r->fields_at);

    for (;;) {
        enum step step =
            find_line(r, bytes, len, r->trailers_at + room + 2, "the header fields have", limit);

        if (step != STEP_ON)
            return step;
        if (r->scanned - r->line == 2)
            break;
        step = take_trailer(r, bytes);
        if (step != STEP_ON)
            return step;
        r->line = r->scanned;
    }
    r->state = DONE;
    return STEP_ON;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static enum step reader_advance(struct http_reader *r, uint8_t *bytes, size_t len)
{
    switch ((enum state)r->state) {
    case START:
        return at_start(r, bytes, len);
    case LINE:
        return at_line(r, bytes, len);
    case FIELDS:
        return at_fields(r, bytes, len);
    case LENGTH:
        return at_length(r, len);
    case CHUNK_LINE:
        return at_chunk_line(r, bytes, len);
    case CHUNK_DATA:
        return at_chunk_data(r, bytes, len);
    case CHUNK_END:
        return at_chunk_end(r, bytes, len);
    case TRAILERS:
        return at_trailers(r, bytes, len);
    case UNTIL_CLOSE:
        return at_until_close(r, len);
    case DONE:
    case BAD:
        break;
    }
    assert(false); /* a request that is over is not read on */
    return STEP_BAD;
}

/* Of HTTP_MORE: how many bytes there are at least, given what is there. */
static size_t bytes_wanted(const struct http_reader *r, size_t len)
{
    switch ((enum state)r->state) {
    case LENGTH:
        return r->head_len + r->body_len;
    case CHUNK_DATA:
        return r->scanned + r->chunk_left + 2 + CHUNKED_END;
    case CHUNK_END:
        return r->scanned + 2 + CHUNKED_END;
    default:
        return len + 1;
    }
}

/* What holds between two calls, when `len` bytes are there. */
static void reader_check(const struct http_reader *r, size_t len)
{
    if (r->state == BAD) {
        assert(r->error.status != 0 && r->error.text);
        return;
    }
    assert(r->scanned <= len && r->line <= len);
    assert(r->head.fields_len <= HTTP_FIELDS_MAX);
    if (r->state < LENGTH) /* the head is not complete */
        return;
    assert(r->head_len > 0 && r->head_len <= len && r->at != 0);
    assert(r->body_len <= r->limits.body_bytes && r->chunk_left <= r->limits.body_bytes);
}

enum http_result hf__http_read(struct http_reader *reader, uint8_t *bytes, size_t len)
{
    assert(len >= reader->scanned || reader->state == BAD);
    if (reader->at && reader->at != (uintptr_t)bytes && reader->state != BAD) {
        bool again = take_head(reader, bytes);

        assert(again); /* or the caller changed the bytes */
        (void)again;
        reader->at = (uintptr_t)bytes;
    }
    while (reader->state != DONE && reader->state != BAD) {
        switch (reader_advance(reader, bytes, len)) {
        case STEP_ON:
            break;
        case STEP_MORE:
            reader->wanted = bytes_wanted(reader, len);
            reader_check(reader, len);
            assert(reader->wanted > len);
            if (reader->head_returned || reader->state < LENGTH)
                return HTTP_MORE;
            reader->head_returned = true;
            return HTTP_HEAD;
        case STEP_BAD:
            reader->state = BAD;
            break;
        }
    }
    reader_check(reader, len);
    if (reader->state == BAD)
        return HTTP_BAD;
    reader->used = reader->wanted = reader->scanned;
    reader->body = hf_bytes_of(bytes + reader->head_len, reader->body_len);
    return HTTP_DONE;
}

enum http_result hf__http_end_answer(struct http_reader *reader, const uint8_t *bytes, size_t len)
{
    assert(reader->answer && reader->state != DONE);
    if (reader->state == UNTIL_CLOSE) {
        assert(reader->at == (uintptr_t)bytes && reader->scanned == len);
        reader->state = DONE;
        reader->used = len;
        reader->body = hf_bytes_of(bytes + reader->head_len, reader->body_len);
        return HTTP_DONE;
    }
    if (reader->state != BAD)
        hf__http_refuse(reader, 400,
                        len ? "the connection was closed before the end of the answer"
                            : "the connection was closed without an answer");
    reader->state = BAD;
    return HTTP_BAD;
}
