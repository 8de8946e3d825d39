/*
 * test/botocore/verify.c: requests that somebody else signed, see sign.py for how they come in.
 *
 * Each must pass, and again after it went through the reader of HTTP. Then each of its bytes that
 * matters is changed, one at a time, and it must not pass. Letters and digits become other ones:
 * blanks, separators and the case of escapes can be written in several ways that mean the same.
 */
#include "server/auth.h"

#include <ctype.h>
#include <unistd.h>

#include "base/buf.h"

enum { INPUT_MAX = 64 * 1024 * 1024 };

struct input {
    uint8_t *bytes;
    size_t len;
    size_t at;
};

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static uint8_t *take(struct input *in, size_t len)
{
    uint8_t *at = in->bytes + in->at;

    if (in->len - in->at < len)
        die("the input ends early");
    in->at += len;
    return at;
}

static uint64_t take_number(struct input *in)
{
    uint8_t *p = take(in, 8);

    return load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

static struct hf_str take_text(struct input *in)
{
    uint32_t len = load_u32le(take(in, 4));

    if (len == UINT32_MAX)
        return (struct hf_str){0};
    return hf_str_of((const char *)take(in, len), len);
}

struct request {
    struct http_head head;
    struct hf_bytes body;
    int64_t now_s;
};

static void take_request(struct input *in, struct request *r)
{
    struct hf_str body;
    const char *mark;

    *r = (struct request){.now_s = (int64_t)take_number(in)};
    r->head.method = take_text(in);
    r->head.target = r->head.path = take_text(in);
    mark = memchr(r->head.target.ptr, '?', r->head.target.len);
    if (mark) {
        r->head.path.len = (size_t)(mark - r->head.target.ptr);
        r->head.query = hf_str_of(mark + 1, r->head.target.len - r->head.path.len - 1);
    }
    body = take_text(in);
    r->body = hf_bytes_of(body.ptr, body.len);
    r->head.fields_len = (size_t)take_number(in);
    if (r->head.fields_len > HTTP_FIELDS_MAX)
        die("too many fields");
    for (size_t i = 0; i < r->head.fields_len; i++) {
        r->head.fields[i].name = take_text(in);
        r->head.fields[i].value = take_text(in);
    }
}

static bool passes(struct hf_scope *s, struct auth *auth, const struct request *r,
                   struct auth_refusal *refusal)
{
    hf_scope_reset(s);
    return hf__auth_check(s, auth, &r->head, r->body, r->now_s, refusal);
}

/* Change the bytes of a piece in turn; how many changes there were. The bytes are the input's. */
static size_t spoil(struct hf_scope *s, struct auth *auth, const struct request *r, const void *ptr,
                    size_t len, bool all)
{
    const uint8_t *from = ptr;
    size_t changes = 0;

    for (size_t i = 0; i < len; i++) {
        uint8_t *byte = (uint8_t *)(uintptr_t)(from + i), was = *byte;
        struct auth_refusal refusal;

        if (!all &&
            (!isalnum(was) || (i >= 1 && from[i - 1] == '%') || (i >= 2 && from[i - 2] == '%')))
            continue;
        *byte = isdigit(was) ? (uint8_t)('0' + (was - '0' + 1) % 10)
                : all        ? (uint8_t)(was + 1)
                             : (uint8_t)((was & 0x20) | ('A' + ((was & 0x1f) % 26)));
        if (passes(s, auth, r, &refusal)) {
            fprintf(stderr, "a request passed with %02x for %02x at %zu of '%.*s'\n", *byte, was, i,
                    (int)len, (const char *)from);
            exit(1);
        }
        *byte = was;
        changes++;
    }
    return changes;
}

static bool is_body_signed(const struct request *r)
{
    return !hf_str_equal(hf__http_field(&r->head, "x-amz-content-sha256"), HF_STR(SIGN_UNSIGNED));
}

/* The request as bytes on a connection, read as the server does. */
static bool passes_as_bytes(struct hf_scope *s, struct auth *auth, const struct request *r)
{
    static struct http_reader reader;
    struct hf__buf bytes = {.scope = s};
    struct auth_refusal refusal;
    enum http_result result;

    hf_scope_reset(s);
    hf__buf_format(&bytes, "%.*s %.*s HTTP/1.1\r\n", HF_FMT(r->head.method),
                   HF_FMT(r->head.target));
    for (size_t i = 0; i < r->head.fields_len; i++)
        hf__buf_format(&bytes, "%.*s: %.*s \r\n", HF_FMT(r->head.fields[i].name),
                       HF_FMT(r->head.fields[i].value));
    hf__buf_format(&bytes, "Content-Length: %zu\r\n\r\n", r->body.len);
    hf__buf_put(&bytes, r->body.ptr, r->body.len);
    if (bytes.failed)
        die("no memory");
    hf__http_begin(&reader, NULL);
    do {
        result = hf__http_read(&reader, bytes.ptr, bytes.len);
    } while (result == HTTP_HEAD);
    if (result != HTTP_DONE) {
        fprintf(stderr, "not read: %s\n", result == HTTP_BAD ? reader.error.text : "more wanted");
        return false;
    }
    return hf__auth_check(s, auth, &reader.head, reader.body, r->now_s, &refusal);
}

static size_t verify(struct hf_scope *s, struct auth *auth, const struct request *r)
{
    struct auth_refusal refusal;
    size_t changes = 0;

    refusal.message = HF_STR("as bytes");
    if (!passes_as_bytes(s, auth, r) || !passes(s, auth, r, &refusal)) {
        fprintf(stderr, "refused: %.*s\n%.*s %.*s\n", HF_FMT(refusal.message),
                HF_FMT(r->head.method), HF_FMT(r->head.target));
        for (size_t i = 0; i < r->head.fields_len; i++)
            fprintf(stderr, "%.*s: %.*s\n", HF_FMT(r->head.fields[i].name),
                    HF_FMT(r->head.fields[i].value));
        exit(1);
    }
    changes += spoil(s, auth, r, r->head.method.ptr, r->head.method.len, true);
    if (!memmem(r->head.path.ptr, r->head.path.len, "..", 2)) /* a segment before it is dropped */
        changes += spoil(s, auth, r, r->head.path.ptr, r->head.path.len, false);
    changes += spoil(s, auth, r, r->head.query.ptr, r->head.query.len, false);
    if (is_body_signed(r))
        changes += spoil(s, auth, r, r->body.ptr, r->body.len, true);
    for (size_t i = 0; i < r->head.fields_len; i++) {
        const struct http_field *field = &r->head.fields[i];

        if (hf__http_is(field->name, "user-agent")) /* which is not signed */
            continue;
        changes += spoil(s, auth, r, field->name.ptr, field->name.len, false);
        changes += spoil(s, auth, r, field->value.ptr, field->value.len, false);
    }
    return changes;
}

int main(void)
{
    static struct request request;
    struct input in = {.bytes = malloc(INPUT_MAX)};
    struct sign_credentials keys[16];
    struct hf_scope *s = hf_scope_new(NULL);
    struct auth *auth;
    size_t keys_len, changes = 0;
    uint64_t count;
    ssize_t got;

    if (!in.bytes || !s)
        die("no memory");
    while ((got = read(STDIN_FILENO, in.bytes + in.len, INPUT_MAX - in.len)) > 0)
        in.len += (size_t)got;
    keys_len = (size_t)take_number(&in);
    if (keys_len > ARRAY_LEN(keys))
        die("too many keys");
    for (size_t i = 0; i < keys_len; i++) {
        keys[i].access_key = take_text(&in);
        keys[i].secret_key = take_text(&in);
        keys[i].session_token = take_text(&in);
    }
    if (hf__auth_new(s, NULL, keys, keys_len, 300, &auth) != HF_OK)
        die("the keys are not good");
    hf__auth_allow_unsigned_body(auth); /* botocore leaves it out of some */
    count = take_number(&in);
    for (uint64_t i = 0; i < count; i++) {
        take_request(&in, &request);
        changes += verify(s, auth, &request);
    }
    if (!count || in.at != in.len)
        die("that was not all, or nothing");
    printf("%llu requests passed, %zu changes of them did not\n", (unsigned long long)count,
           changes);
    hf__auth_free(auth);
    hf_scope_free(s);
    free(in.bytes);
    return 0;
}
