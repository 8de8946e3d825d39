/*
 * test/fuzz/fuzz_http.c: http/read.c and http/head.c.
 *
 * The input is what a client sends. It is read whole, request after request, and once more in parts
 * of random length, each call with the bytes somewhere else; both must come to the same. A request
 * that is accepted is written out again, in the plainest way there is, and must read back the same.
 * Limits and parts follow from the input.
 */
#include "http/http.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { REQUESTS_MAX = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A copy of exactly that size, so that the address sanitizer sees a look past its end. */
static uint8_t *copy_of(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    MUST(copy);
    if (len)
        memcpy(copy, bytes, len);
    return copy;
}

struct reading {
    struct http_reader reader;
    enum http_result result;
    uint8_t *bytes;
};

static bool over(enum http_result result)
{
    return result == HTTP_DONE || result == HTTP_BAD;
}

static void read_whole(struct reading *r, const struct http_limits *limits, const uint8_t *data,
                       size_t size)
{
    hf__http_begin(&r->reader, limits);
    r->bytes = copy_of(data, size);
    r->result = hf__http_read(&r->reader, r->bytes, size);
}

static void read_parts(struct reading *r, const struct http_limits *limits, const uint8_t *data,
                       size_t size, uint64_t *seed)
{
    size_t step = 1 + (size_t)(next_random(seed) % 40), len = 0, heads = 0;

    hf__http_begin(&r->reader, limits);
    r->bytes = copy_of(data, 0);
    r->result = HTTP_MORE;
    while (len < size && !over(r->result)) {
        size_t more = 1 + (size_t)(next_random(seed) % step);
        uint8_t *moved;

        if (more > size - len)
            more = size - len;
        moved = malloc(len + more);
        MUST(moved);
        if (len)
            memcpy(moved, r->bytes, len);
        memcpy(moved + len, data + len, more);
        len += more;
        if (len > more)
            memset(r->bytes, 0xEE, len - more);
        free(r->bytes);
        r->bytes = moved;
        r->result = hf__http_read(&r->reader, r->bytes, len);
        heads += r->result == HTTP_HEAD;
        if (!over(r->result))
            MUST(r->reader.wanted > len);
    }
    MUST(heads <= 1);
}

static bool same_text(struct hf_str a, struct hf_str b)
{
    return (a.ptr == NULL) == (b.ptr == NULL) && hf_str_equal(a, b);
}

static void must_have_same_fields(const struct http_head *a, const struct http_head *b)
{
    MUST(a->fields_len == b->fields_len);
    for (size_t i = 0; i < a->fields_len; i++) {
        MUST(same_text(a->fields[i].name, b->fields[i].name));
        MUST(same_text(a->fields[i].value, b->fields[i].value));
    }
}

static void must_be_same(const struct http_reader *a, const struct http_reader *b)
{
    MUST(same_text(a->head.method, b->head.method));
    MUST(same_text(a->head.target, b->head.target));
    MUST(same_text(a->head.path, b->head.path));
    MUST(same_text(a->head.query, b->head.query));
    MUST(same_text(a->head.host, b->head.host));
    MUST(a->head.minor == b->head.minor && a->head.keep_alive == b->head.keep_alive);
    MUST(a->head.expect_continue == b->head.expect_continue);
    MUST(bytes_compare(a->body.ptr, a->body.len, b->body.ptr, b->body.len) == 0);
    must_have_same_fields(&a->head, &b->head);
}

/* What an accepted request promises, whatever the bytes were. */
static void must_be_sound(const struct http_reader *r, const uint8_t *bytes, size_t len)
{
    size_t hosts = 0, lengths = 0, transfers = 0;

    MUST(r->used <= len && r->body.len <= r->limits.body_bytes);
    MUST(r->body.ptr >= bytes && r->body.ptr + r->body.len <= bytes + r->used);
    MUST(r->head.chunked || r->head.length == r->body.len);
    MUST(r->head.method.len && r->head.target.len && r->head.path.len);
    MUST(r->head.fields_len <= HTTP_FIELDS_MAX);
    for (size_t i = 0; i < r->head.fields_len; i++) {
        struct hf_str name = r->head.fields[i].name, value = r->head.fields[i].value;

        MUST(name.len && !memchr(name.ptr, ':', name.len) && !memchr(name.ptr, ' ', name.len));
        MUST(!memchr(value.ptr, '\r', value.len) && !memchr(value.ptr, '\n', value.len));
        MUST(!memchr(value.ptr, 0, value.len));
        hosts += hf__http_is(name, "Host");
        lengths += hf__http_is(name, "Content-Length");
        transfers += hf__http_is(name, "Transfer-Encoding");
    }
    MUST(hosts <= 1 && hosts >= (size_t)r->head.minor && lengths + transfers <= 1);
    MUST(r->head.chunked == (transfers == 1));
}

struct writer {
    uint8_t *bytes;
    size_t len;
};

static void put(struct writer *w, struct hf_str text)
{
    if (text.len)
        memcpy(w->bytes + w->len, text.ptr, text.len);
    w->len += text.len;
}

/* The request written plainly: no blanks, one chunk, nothing before or behind it. */
static void must_read_back(const struct http_reader *r)
{
    size_t room = 2000 + 2 * r->used;
    struct writer w = {.bytes = malloc(room)};
    struct hf_str body = hf_str_of((const char *)r->body.ptr, r->body.len);
    struct reading again;
    char size[32];

    MUST(w.bytes);
    put(&w, r->head.method);
    put(&w, HF_STR(" "));
    put(&w, r->head.target);
    put(&w, r->head.minor ? HF_STR(" HTTP/1.1\r\n") : HF_STR(" HTTP/1.0\r\n"));
    for (size_t i = 0; i < r->head.fields_len; i++) {
        put(&w, r->head.fields[i].name);
        put(&w, HF_STR(":"));
        put(&w, r->head.fields[i].value);
        put(&w, HF_STR("\r\n"));
    }
    put(&w, HF_STR("\r\n"));
    if (r->head.chunked && body.len) {
        put(&w, hf_str_of(size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", body.len)));
        put(&w, body);
        put(&w, HF_STR("\r\n"));
    } else if (!r->head.chunked) {
        put(&w, body);
    }
    if (r->head.chunked)
        put(&w, HF_STR("0\r\n\r\n"));
    MUST(w.len <= room);
    read_whole(&again, NULL, w.bytes, w.len);
    MUST(again.result == HTTP_DONE && again.reader.used == w.len);
    must_be_same(r, &again.reader);
    must_be_sound(&again.reader, again.bytes, w.len);
    free(again.bytes);
    free(w.bytes);
}

/* Read one request in both ways. Its bytes, or 0 when there is no whole one or a bad one. */
static size_t one(const struct http_limits *limits, const uint8_t *data, size_t size,
                  uint64_t *seed)
{
    struct reading whole, parts;
    size_t used = 0;

    read_whole(&whole, limits, data, size);
    read_parts(&parts, limits, data, size, seed);
    MUST(over(whole.result) == over(parts.result));
    MUST(!over(whole.result) || whole.result == parts.result);
    if (whole.result == HTTP_BAD) {
        MUST(whole.reader.error.status == parts.reader.error.status);
        MUST(strcmp(whole.reader.error.text, parts.reader.error.text) == 0);
        MUST(strcmp(hf__http_reason(whole.reader.error.status), "Unknown") != 0);
    } else if (whole.result == HTTP_DONE) {
        used = whole.reader.used;
        MUST(used == parts.reader.used && whole.reader.head.length == parts.reader.head.length);
        MUST(whole.reader.head.chunked == parts.reader.head.chunked);
        must_be_same(&whole.reader, &parts.reader);
        must_be_sound(&whole.reader, whole.bytes, size);
        must_read_back(&whole.reader);
    }
    free(whole.bytes);
    free(parts.bytes);
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_limits limits[] = {{0},
                                                {.head_bytes = 200},
                                                {.body_bytes = 20},
                                                {.head_bytes = 100, .body_bytes = 5}};
    uint64_t seed = size;
    size_t at = 0;

    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    for (int i = 0; i < REQUESTS_MAX && at < size; i++) {
        size_t used = one(&limits[i == 0 ? 0 : seed % 4], data + at, size - at, &seed);

        if (used == 0)
            break;
        at += used;
    }
    /* Once more with narrow limits, which small inputs can reach. */
    if (size)
        one(&limits[1 + seed % 3], data, size, &seed);
    return 0;
}
