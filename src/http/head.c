/*
 * http/head.c: the request line and the header fields, taken apart and judged.
 *
 * It works on a whole head, which read.c found: lines that end with CR LF, the last of them empty.
 * So loops need not look for the end of the bytes; each stops at the CR at the latest.
 *
 * What always holds of a head that is not refused:
 *
 *  (1) Names are tokens, directly followed by the colon. Values have no control characters but
 *      tabs, and no blanks around them.
 *  (2) It says in one way where the body ends: one Content-Length, or one "Transfer-Encoding:
 *      chunked", or neither.
 *  (3) It names one host: one Host field in HTTP/1.1 and at most one in HTTP/1.0, and a target with
 *      a host of its own names the same.
 *
 * A typical request has a dozen fields in some 700 bytes, most of them in values, so those are
 * looked through eight bytes at a time.
 */
#include "http/private.h"

/* What a character may be part of. Bytes from 0x80 on are part of a field's value at most. */
enum { TOKEN = 1, HOST = 2, TARGET = 4 };

/* A host's are those of a name or an address without brackets and port; a target has no fragment.
 */
static const uint8_t kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* controls */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* controls */
    0, 7, 4, 1, 7, 7, 7, 7, 6, 6, 7, 7, 6, 7, 7, 4, /* blank ! " # $ % & ' ( ) * + , - . / */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4, 6, 4, 6, 4, 4, /* 0-9 : ; < = > ? */
    4, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* @ A-O */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4, 4, 4, 5, 7, /* P-Z [ \ ] ^ _ */
    5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* ` a-o */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4, 5, 4, 7, 0, /* p-z { | } ~ delete */
};

bool hf__http_refuse(struct http_reader *reader, int status, const char *text)
{
    assert(status >= 400 && status < 600 && text);
    reader->error = (struct http_error){.status = status, .text = text};
    return false;
}

bool hf__http_refuse_limit(struct http_reader *reader, int status, const char *what, size_t limit,
                           const char *units)
{
    (void)snprintf(reader->sentence, sizeof(reader->sentence), "%s more than %zu %s", what, limit,
                   units);
    return hf__http_refuse(reader, status, reader->sentence);
}

bool hf__http_is_token(uint8_t c)
{
    return kinds[c] & TOKEN;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static struct hf_str text_of(const uint8_t *from, const uint8_t *to)
{
    assert(from <= to);
    return hf_str_of((const char *)from, (size_t)(to - from));
}

/*
 * Words in which all bytes are plain ASCII are passed over; in others the lowest mark is at the
 * first byte that is not, as a borrow or carry comes from a byte that is marked itself.
 */
const uint8_t *hf__http_find_control(const uint8_t *p, const uint8_t *end)
{
    const uint64_t ones = UINT64_MAX / 255;

    for (;;) {
        while (end - p >= 8) {
            uint64_t word = load_u64le(p);
            uint64_t marks = ((word - ones * 0x20) | (word + ones) | word) & ones * 0x80;

            if (marks) {
                p += __builtin_ctzll(marks) / 8;
                break;
            }
            p += 8;
        }
        while (*p >= 0x20 && *p != 0x7F)
            p++;
        if (*p != '\t')
            return p;
        p++;
    }
}

/* ---- the request line ----------------------------------------------------------------------- */

/* A host with an optional port: a name or an IPv4 address, or an IPv6 address in brackets. */
static bool is_host(struct hf_str host)
{
    const uint8_t *p = (const uint8_t *)host.ptr, *end = p + host.len;

    if (p < end && *p == '[') {
        const uint8_t *address = ++p;

        while (p < end && (kinds[*p] & HOST || *p == ':'))
            p++;
        if (p == address || p == end || *p++ != ']')
            return false;
    } else {
        while (p < end && kinds[*p] & HOST)
            p++;
    }
    if (p < end && *p++ != ':')
        return false;
    while (p < end && is_digit(*p))
        p++;
    return p == end;
}

/* The length of "http://" or "https://" at the start of `target`; 0 when it is neither. */
static size_t scheme_length(struct hf_str target)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (target.len >= len && hf__http_is(hf_str_of(target.ptr, len), schemes[i]))
            return len;
    }
    return 0;
}

/* Path and query of the target, and its host when it has one. */
static bool take_target(struct http_reader *r)
{
    struct http_head *head = &r->head;
    struct hf_str rest = head->target;
    size_t scheme = scheme_length(rest);
    const char *question;

    if (scheme) {
        size_t host = scheme;

        while (host < rest.len && rest.ptr[host] != '/' && rest.ptr[host] != '?')
            host++;
        head->host = hf_str_of(rest.ptr + scheme, host - scheme);
        if (head->host.len == 0 || !is_host(head->host))
            return hf__http_refuse(r, 400, "the host in the request target is not valid");
        rest = hf_str_of(rest.ptr + host, rest.len - host);
    } else if (rest.len == 1 && rest.ptr[0] == '*') {
        if (!hf_str_equal(head->method, HF_STR("OPTIONS")))
            return hf__http_refuse(r, 400, "the request target * is for OPTIONS only");
    } else if (rest.len == 0 || rest.ptr[0] != '/') {
        return hf__http_refuse(r, 400, "the request target does not start with a slash");
    }
    question = rest.len ? memchr(rest.ptr, '?', rest.len) : NULL;
    head->path = rest;
    if (question) {
        head->path.len = (size_t)(question - rest.ptr);
        head->query = hf_str_of(question + 1, rest.len - head->path.len - 1);
    }
    if (head->path.len == 0)
        head->path = HF_STR("/");
    assert(head->path.len + head->query.len <= head->target.len + 1);
    return true;
}

/* "HTTP/1.0" or "HTTP/1.1" and the end of the line: 10 bytes. */
static bool take_version(struct http_reader *r, const uint8_t *p, const uint8_t *end)
{
    if (end - p < 10 || memcmp(p, "HTTP/", 5) != 0 || !is_digit(p[5]) || p[6] != '.' ||
        !is_digit(p[7]) || p[8] != '\r' || p[9] != '\n')
        return hf__http_refuse(r, 400, "the request line does not end with an HTTP version");
    if (p[5] == '2')
        return hf__http_refuse(r, 505, "HTTP/2 is not supported: use HTTP/1.1");
    if (p[5] != '1' || p[7] > '1')
        return hf__http_refuse(r, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
    r->head.minor = p[7] - '0';
    assert(r->head.minor == 0 || r->head.minor == 1);
    return true;
}

/* Take the line at *line apart, and move *line to the next. */
static bool take_line(struct http_reader *r, const uint8_t **line, const uint8_t *end)
{
    const uint8_t *p = *line, *target;

    while (kinds[*p] & TOKEN)
        p++;
    if (p == *line || *p != ' ')
        return hf__http_refuse(r, 400, "the request line does not start with a method");
    r->head.method = text_of(*line, p);
    target = ++p;
    while (kinds[*p] & TARGET)
        p++;
    if (*p != ' ' && *p != '\r')
        return hf__http_refuse(r, 400, "the request target has a character that is not allowed");
    r->head.target = text_of(target, p);
    /* The version first: of another one we cannot say what a target is. */
    if (!take_version(r, p + 1, end) || !take_target(r))
        return false;
    *line = p + 11;
    assert(*line <= end); /* take_version() has seen them */
    return true;
}

/* ---- fields --------------------------------------------------------------------------------- */

const uint8_t *hf__http_take_field(struct http_reader *reader, const uint8_t *line,
                                   const uint8_t *end, struct http_field *field)
{
    const uint8_t *p = line, *value, *last;

    while (kinds[*p] & TOKEN)
        p++;
    if (p == line || *p != ':') {
        hf__http_refuse(reader, 400,
                        is_blank(*line) ? "a header field goes on in a second line"
                        : *p == '\r'    ? "a header field has no colon"
                                        : "a header field has a name that is not a token");
        return NULL;
    }
    field->name = text_of(line, p);
    do
        p++;
    while (is_blank(*p));
    value = p;
    last = p = hf__http_find_control(p, end);
    if (p[0] != '\r' || p[1] != '\n') {
        hf__http_refuse(reader, 400, "a header field has a control character in its value");
        return NULL;
    }
    while (last > value && is_blank(last[-1]))
        last--;
    field->value = text_of(value, last);
    assert(p + 2 <= end && field->name.len > 0);
    return p + 2;
}

/* Digits alone, no sign, no list. What no number can hold is over every limit. */
static bool take_length(struct http_reader *r, struct hf_str value)
{
    uint64_t length = 0;

    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit((uint8_t)value.ptr[i]))
            return hf__http_refuse(r, 400, "Content-Length is not a number");
        if (length <= (UINT64_MAX - 9) / 10)
            length = length * 10 + (uint64_t)(value.ptr[i] - '0');
        else
            length = UINT64_MAX;
    }
    if (value.len == 0)
        return hf__http_refuse(r, 400, "Content-Length is not a number");
    r->head.length = length;
    return true;
}

/* Connection is a list, in one field or several; other options than ours are nothing to us. */
static void take_connection(struct hf_str value, struct seen *seen)
{
    const char *p = value.ptr, *end = value.ptr + value.len;

    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *next = comma ? comma : end, *last = next;

        while (p < last && is_blank((uint8_t)*p))
            p++;
        while (last > p && is_blank((uint8_t)last[-1]))
            last--;
        if (hf__http_is(hf_str_of(p, (size_t)(last - p)), "close"))
            seen->close = true;
        else if (hf__http_is(hf_str_of(p, (size_t)(last - p)), "keep-alive"))
            seen->keep_alive = true;
        p = next + 1;
    }
}

static bool take_host(struct http_reader *r, struct hf_str value, struct seen *seen)
{
    if (seen->host)
        return hf__http_refuse(r, 400, "there is more than one Host");
    seen->host = true;
    if (!is_host(value))
        return hf__http_refuse(r, 400, "Host is not a host with an optional port");
    if (r->head.host.ptr &&
        (r->head.host.len != value.len || !hf__http_same(r->head.host.ptr, value.ptr, value.len)))
        return hf__http_refuse(r, 400, "Host is not the host of the request target");
    r->head.host = value;
    return true;
}

/* What a field means to the reader; most mean nothing, and their length says so. */
static bool take_meaning(struct http_reader *r, const struct http_field *field, struct seen *seen)
{
    struct http_head *head = &r->head;

    switch (field->name.len) {
    case 4:
        return r->answer || !hf__http_is(field->name, "Host") || take_host(r, field->value, seen);
    case 6:
        if (r->answer || !hf__http_is(field->name, "Expect"))
            return true;
        if (!hf__http_is(field->value, "100-continue"))
            return hf__http_refuse(r, 417,
                                   "unsupported expectation: only 100-continue is supported");
        head->expect_continue = head->minor > 0;
        return true;
    case 10:
        if (hf__http_is(field->name, "Connection"))
            take_connection(field->value, seen);
        return true;
    case 14:
        if (!hf__http_is(field->name, "Content-Length"))
            return true;
        if (seen->length)
            return hf__http_refuse(r, 400, "there is more than one Content-Length");
        seen->length = true;
        return take_length(r, field->value);
    case 17:
        if (!hf__http_is(field->name, "Transfer-Encoding"))
            return true;
        if (seen->transfer)
            return hf__http_refuse(r, 400, "there is more than one Transfer-Encoding");
        seen->transfer = true;
        head->chunked = hf__http_is(field->value, "chunked");
        return true;
    default:
        return true;
    }
}

bool hf__http_take_fields(struct http_reader *reader, const uint8_t *p, const uint8_t *end,
                          struct seen *seen)
{
    struct http_head *head = &reader->head;

    assert(p < end && end[-2] == '\r' && end[-1] == '\n'); /* so every scan ends */
    while (*p != '\r') {
        struct http_field *field = &head->fields[head->fields_len];

        if (head->fields_len == HTTP_FIELDS_MAX)
            return hf__http_refuse_limit(reader, 400,
                                         reader->answer ? "the answer has" : "the request has",
                                         HTTP_FIELDS_MAX, "header fields");
        p = hf__http_take_field(reader, p, end, field);
        if (!p || !take_meaning(reader, field, seen))
            return false;
        head->fields_len++;
    }
    /* A line that starts with CR is the empty one at the end, unless the CR is a stray one. */
    if (p != end - 2)
        return hf__http_refuse(reader, 400, "a header field has a name that is not a token");
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* What only all the fields together say. */
bool hf__http_judge_framing(struct http_reader *reader, const struct seen *seen)
{
    struct http_head *head = &reader->head;

    if (seen->transfer && seen->length)
        return hf__http_refuse(reader, 400, "there are both Content-Length and Transfer-Encoding");
    if (seen->transfer && head->minor == 0)
        return hf__http_refuse(reader, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (seen->transfer && !head->chunked)
        return hf__http_refuse(reader, 501,
                               "unsupported transfer coding: only chunked is supported");
    if (head->length > reader->limits.body_bytes)
        return hf__http_refuse_limit(reader, 413, "the body has", reader->limits.body_bytes,
                                     "bytes");
    assert(!head->chunked || !head->length); /* one of them frames the body */
    head->keep_alive = !seen->close && (head->minor > 0 || seen->keep_alive);
    return true;
}

bool hf__http_take_head(struct http_reader *reader, const uint8_t *bytes)
{
    struct http_head *head = &reader->head;
    const uint8_t *p = bytes + reader->start, *end = bytes + reader->head_len;
    struct seen seen = {0};

    assert(p < end && reader->start < reader->head_len);
    head->fields_len = 0;
    head->host = head->query = (struct hf_str){0};
    head->expect_continue = head->chunked = false;
    head->length = 0;
    if (!take_line(reader, &p, end) || !hf__http_take_fields(reader, p, end, &seen))
        return false;
    if (!seen.host && head->minor > 0)
        return hf__http_refuse(reader, 400, "there is no Host");
    return hf__http_judge_framing(reader, &seen);
}
