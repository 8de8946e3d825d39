/*
 * test/fuzz/fuzz_answer.c: http/read.c and http/answer_read.c.
 *
 * The first byte of the input says how it is read: whether the request was a HEAD, whether the
 * connection ends behind the bytes, and which limits there are. The others are what a server sends.
 * They are read whole, and once more in parts of random length, each call with the bytes somewhere
 * else; both must come to the same. An answer that is accepted is written out again, in the
 * plainest way there is, and must read back the same; and cut anywhere before its end it must not
 * be accepted.
 */
#include "http/http.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { NO_BODY = 1, ENDED = 2, LIMITS_SHIFT = 2, CUTS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

struct how {
    struct http_limits limits;
    bool no_body;
    bool ended;
};

struct reading {
    struct http_reader reader;
    enum http_result result;
    uint8_t *bytes; /* an allocation of exactly that size, so that a look past its end is seen */
    size_t len;
};

static bool over(enum http_result result)
{
    return result == HTTP_DONE || result == HTTP_BAD;
}

static void read_more(struct reading *r, const uint8_t *more, size_t len)
{
    uint8_t *moved = malloc(r->len + len ? r->len + len : 1);

    MUST(moved);
    if (r->len)
        memcpy(moved, r->bytes, r->len);
    if (len)
        memcpy(moved + r->len, more, len);
    if (r->len)
        memset(r->bytes, 0xEE, r->len);
    free(r->bytes);
    r->bytes = moved;
    r->len += len;
    r->result = hf__http_read(&r->reader, r->bytes, r->len);
    if (!over(r->result))
        MUST(r->reader.wanted > r->len);
}

/* In parts of up to `most` bytes. */
static void read_answer(struct reading *r, const struct how *how, const uint8_t *data, size_t size,
                        size_t most, uint64_t *seed)
{
    r->bytes = NULL;
    r->len = 0;
    r->result = HTTP_MORE;
    hf__http_begin_answer(&r->reader, &how->limits, how->no_body);
    for (size_t at = 0; at < size && !over(r->result);) {
        size_t more = most >= size ? size : 1 + (size_t)(next_random(seed) % most);

        if (more > size - at)
            more = size - at;
        read_more(r, data + at, more);
        at += more;
    }
    if (how->ended && !over(r->result))
        r->result = hf__http_end_answer(&r->reader, r->bytes, r->len);
}

static void must_be_same(const struct http_reader *a, const struct http_reader *b)
{
    MUST(a->head.status == b->head.status && a->head.minor == b->head.minor);
    MUST(a->head.keep_alive == b->head.keep_alive && a->until_close == b->until_close);
    MUST(bytes_compare(a->body.ptr, a->body.len, b->body.ptr, b->body.len) == 0);
    MUST(a->head.fields_len == b->head.fields_len);
    for (size_t i = 0; i < a->head.fields_len; i++) {
        MUST(hf_str_equal(a->head.fields[i].name, b->head.fields[i].name));
        MUST(hf_str_equal(a->head.fields[i].value, b->head.fields[i].value));
    }
}

/* What an accepted answer promises, whatever the bytes were. */
static void must_be_sound(const struct reading *r, const struct how *how)
{
    const struct http_reader *reader = &r->reader;
    const struct http_head *head = &reader->head;
    size_t lengths = 0, transfers = 0;

    MUST(reader->used <= r->len && reader->body.len <= reader->limits.body_bytes);
    MUST(reader->body.ptr >= r->bytes &&
         reader->body.ptr + reader->body.len <= r->bytes + reader->used);
    MUST(head->status >= 200 && head->status <= 599 && head->fields_len <= HTTP_FIELDS_MAX);
    MUST(!reader->until_close || (!head->keep_alive && how->ended && reader->used == r->len));
    for (size_t i = 0; i < head->fields_len; i++) {
        struct hf_str name = head->fields[i].name, value = head->fields[i].value;

        MUST(name.len && !memchr(name.ptr, ':', name.len) && !memchr(name.ptr, ' ', name.len));
        MUST(!memchr(value.ptr, '\r', value.len) && !memchr(value.ptr, '\n', value.len));
        MUST(!memchr(value.ptr, 0, value.len));
        lengths += hf__http_is(name, "Content-Length");
        transfers += hf__http_is(name, "Transfer-Encoding");
    }
    MUST(lengths + transfers <= 1);
    if (how->no_body || head->status == 204 || head->status == 304)
        MUST(reader->body.len == 0);
    else
        MUST(reader->until_close == (lengths + transfers == 0));
}

struct writer {
    uint8_t *bytes;
    size_t len;
};

static void put(struct writer *w, const void *bytes, size_t len)
{
    if (len)
        memcpy(w->bytes + w->len, bytes, len);
    w->len += len;
}

static void put_str(struct writer *w, struct hf_str text)
{
    put(w, text.ptr, text.len);
}

/* The answer written plainly: no reason, no blanks, one chunk, nothing before or behind it. */
static void must_read_back(const struct reading *r, const struct how *how, uint64_t *seed)
{
    const struct http_head *head = &r->reader.head;
    struct writer w = {.bytes = malloc(2000 + 2 * r->len)};
    struct how plain = {.no_body = how->no_body, .ended = how->ended};
    struct reading again;
    char text[32];

    MUST(w.bytes);
    put(&w, text,
        (size_t)snprintf(text, sizeof(text), "HTTP/1.%d %d\r\n", head->minor, head->status));
    for (size_t i = 0; i < head->fields_len; i++) {
        put_str(&w, head->fields[i].name);
        put_str(&w, HF_STR(":"));
        put_str(&w, head->fields[i].value);
        put_str(&w, HF_STR("\r\n"));
    }
    put_str(&w, HF_STR("\r\n"));
    if (head->chunked && r->reader.body.len)
        put(&w, text, (size_t)snprintf(text, sizeof(text), "%zx\r\n", r->reader.body.len));
    put(&w, r->reader.body.ptr, r->reader.body.len);
    if (head->chunked)
        put_str(&w, r->reader.body.len ? HF_STR("\r\n0\r\n\r\n") : HF_STR("0\r\n\r\n"));
    MUST(w.len <= 2000 + 2 * r->len);
    read_answer(&again, &plain, w.bytes, w.len, SIZE_MAX, seed);
    MUST(again.result == HTTP_DONE && again.reader.used == w.len);
    must_be_same(&r->reader, &again.reader);
    free(again.bytes);
    free(w.bytes);
}

/* The end of the connection ends an answer only where the answer says so. */
static void must_not_be_cut(const struct reading *whole, const struct how *how, const uint8_t *data,
                            uint64_t *seed)
{
    struct how cut = *how;

    cut.ended = true;
    for (int i = 0; i < CUTS; i++) {
        size_t len = (size_t)(next_random(seed) % whole->reader.used);
        struct reading r;

        read_answer(&r, &cut, data, len, SIZE_MAX, seed);
        MUST(whole->reader.until_close || r.result == HTTP_BAD);
        free(r.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_limits limits[] = {{0},
                                                {.head_bytes = 100},
                                                {.body_bytes = 5},
                                                {.head_bytes = 60, .body_bytes = 20}};
    struct reading whole, parts;
    struct how how;
    uint64_t seed = size;

    if (size == 0)
        return 0;
    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    how = (struct how){.limits = limits[data[0] >> LIMITS_SHIFT & 3],
                       .no_body = data[0] & NO_BODY,
                       .ended = data[0] & ENDED};
    data++;
    size--;
    read_answer(&whole, &how, data, size, SIZE_MAX, &seed);
    read_answer(&parts, &how, data, size, 1 + (size_t)(next_random(&seed) % 40), &seed);
    MUST(over(whole.result) == over(parts.result));
    MUST(!over(whole.result) || whole.result == parts.result);
    if (whole.result == HTTP_BAD) {
        MUST(whole.reader.error.status == parts.reader.error.status);
        MUST(strcmp(whole.reader.error.text, parts.reader.error.text) == 0);
    } else if (whole.result == HTTP_DONE) {
        MUST(whole.reader.used == parts.reader.used);
        must_be_same(&whole.reader, &parts.reader);
        must_be_sound(&whole, &how);
        must_read_back(&whole, &how, &seed);
        must_not_be_cut(&whole, &how, data, &seed);
    }
    free(whole.bytes);
    free(parts.bytes);
    return 0;
}
