/*
 * test/botocore/signer.c: requests that we sign as our client does, for client_sign.py, which has
 * them signed by botocore as well. All input is texts of a length (u32, little endian) and bytes,
 * absent ones the length 0xffffffff, and numbers of u64:
 *
 *     requests: how many, then the clock, access key, secret, token, region, service, whether the
 *     body stays unsigned, method, target, body, how many fields, name and value of each
 *
 * One signer signs all of them, as in a client: the key and the time that it keeps must never be
 * those of another request. For each, a line: the fields that were added, "name: value" with tabs
 * between, or "refused" and why.
 */
#include "http/sign.h"

#include <unistd.h>

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

static void take_head(struct input *in, struct http_head *head, struct hf_bytes *body)
{
    struct hf_str text;
    const char *mark;

    *head = (struct http_head){.method = take_text(in)};
    head->target = head->path = take_text(in);
    mark = memchr(head->target.ptr, '?', head->target.len);
    if (mark) {
        head->path.len = (size_t)(mark - head->target.ptr);
        head->query = hf_str_of(mark + 1, head->target.len - head->path.len - 1);
    }
    text = take_text(in);
    *body = hf_bytes_of(text.ptr, text.len);
    head->fields_len = (size_t)take_number(in);
    if (head->fields_len > HTTP_FIELDS_MAX)
        die("too many fields");
    for (size_t i = 0; i < head->fields_len; i++) {
        head->fields[i].name = take_text(in);
        head->fields[i].value = take_text(in);
    }
}

static void sign_next(struct hf_scope *s, struct signer *signer, struct input *in)
{
    static struct http_head head;
    struct sign_credentials credentials;
    struct sign_how how = {.credentials = &credentials, .now_s = (int64_t)take_number(in)};
    size_t before;

    credentials.access_key = take_text(in);
    credentials.secret_key = take_text(in);
    credentials.session_token = take_text(in);
    how.region = take_text(in);
    how.service = take_text(in);
    how.unsigned_body = take_number(in) != 0;
    take_head(in, &head, &how.body);
    before = head.fields_len;
    hf_scope_reset(s);
    if (hf__sign_request(s, signer, &head, &how) != HF_OK) {
        printf("refused: %s\n", hf_scope_error_text(s));
        return;
    }
    for (size_t i = before; i < head.fields_len; i++)
        printf("%s%.*s: %.*s", i == before ? "" : "\t", HF_FMT(head.fields[i].name),
               HF_FMT(head.fields[i].value));
    printf("\n");
}

int main(void)
{
    struct input in = {.bytes = malloc(INPUT_MAX)};
    struct hf_scope *s = hf_scope_new(NULL);
    struct signer *signer;
    uint64_t count;
    ssize_t got;

    if (!in.bytes || !s || hf__signer_new(s, NULL, &signer) != HF_OK)
        die("no memory");
    while ((got = read(STDIN_FILENO, in.bytes + in.len, INPUT_MAX - in.len)) > 0)
        in.len += (size_t)got;
    count = take_number(&in);
    for (uint64_t i = 0; i < count; i++)
        sign_next(s, signer, &in);
    if (in.at != in.len)
        die("that was not all");
    hf__signer_free(signer);
    hf_scope_free(s);
    free(in.bytes);
    return 0;
}
