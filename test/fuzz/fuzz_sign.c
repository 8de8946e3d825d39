/*
 * test/fuzz/fuzz_sign.c: server/auth.c and http/sign.c on any head.
 *
 * The input is a request as text: "METHOD target", a line "Name: value" for each field, an empty
 * line, the body. Nothing in it can be a signature of ours, as the secret is made again for each
 * run:
 *
 *  - with keys it never passes;
 *  - whatever is said against it is UTF-8 and one of the exceptions there are;
 *  - once we sign it, it passes, with keys and without, and no longer when its body differs.
 */
#include "server/auth.h"

#include <unistd.h>

#include "base/utf8.h"

#define NOW INT64_C(1440938160) /* 20150830T123600Z */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text up to `end`; *text goes on behind it. */
static struct hf_str cut(struct hf_str *text, char end)
{
    const char *at = text->len ? memchr(text->ptr, end, text->len) : NULL;
    struct hf_str part = hf_str_of(text->ptr, at ? (size_t)(at - text->ptr) : text->len);

    *text = hf_str_of(text->ptr + part.len + (at != NULL), text->len - part.len - (at != NULL));
    return part;
}

static void read_head(struct hf_str text, struct http_head *head, struct hf_bytes *body)
{
    struct hf_str line = cut(&text, '\n'), query;

    *head = (struct http_head){.method = cut(&line, ' '), .target = line};
    query = line;
    head->path = cut(&query, '?');
    if (head->path.len < head->target.len)
        head->query = query;
    while (head->fields_len < HTTP_FIELDS_MAX && (line = cut(&text, '\n')).len) {
        struct http_field *field = &head->fields[head->fields_len++];

        field->name = cut(&line, ':');
        while (line.len && *line.ptr == ' ')
            cut(&line, ' ');
        field->value = line;
    }
    *body = hf_bytes_of(text.ptr, text.len);
}

static bool passes(struct hf_scope *s, struct auth *auth, const struct http_head *head,
                   struct hf_bytes body)
{
    static const char service[] = "com.amazon.coral.service#";
    struct auth_refusal refusal;
    bool yes = hf__auth_check(s, auth, head, body, NOW, &refusal);

    MUST(yes == !refusal.status);
    if (!yes) {
        MUST(refusal.status == 400);
        MUST(strncmp(refusal.type, service, sizeof(service) - 1) == 0);
        MUST(refusal.message.ptr && refusal.message.len && hf__utf8_valid(refusal.message));
    }
    return yes;
}

/* Whether nothing in the request stands in the way of a signature in its header. */
static bool is_free(struct hf_scope *s, const struct http_head *head)
{
    struct hf_str algorithm, hash = hf__http_field(head, "x-amz-content-sha256");

    MUST(hf__sign_param(s, head->query, "X-Amz-Algorithm", &algorithm) == HF_OK);
    for (size_t i = 0; i < head->fields_len; i++) {
        struct hf_str name = head->fields[i].name;

        /* The list of names is separated by these; the reader lets no such name in. */
        if (!name.len || memchr(name.ptr, ';', name.len) || memchr(name.ptr, ',', name.len) ||
            memchr(name.ptr, ' ', name.len) || memchr(name.ptr, '\t', name.len))
            return false;
    }
    return !algorithm.ptr && !hf__http_field(head, "x-amz-security-token").ptr &&
           !hf_str_equal(hash, HF_STR(SIGN_UNSIGNED));
}

static void sign_it(struct hf_scope *s, struct signer *signer, struct auth *known,
                    struct auth *anybody, const struct sign_credentials *key,
                    struct http_head *head, struct hf_bytes body)
{
    struct sign_how how = {.credentials = key,
                           .region = HF_STR("us-east-1"),
                           .service = HF_STR("dynamodb"),
                           .now_s = NOW,
                           .body = body};
    enum hf_status status = hf__sign_request(s, signer, head, &how);
    uint8_t *other;

    MUST(status == HF_OK || status == HF_INVALID || status == HF_LIMIT);
    if (status != HF_OK)
        return;
    MUST(passes(s, known, head, body));
    MUST(passes(s, anybody, head, body));
    other = hf_scope_alloc(s, body.len + 1);
    MUST(other != NULL);
    if (body.len)
        memcpy(other, body.ptr, body.len);
    other[body.len] = 'x';
    MUST(!passes(s, known, head, hf_bytes_of(other, body.len + 1)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head head;
    struct sign_credentials key = {.access_key = HF_STR("AKID")};
    struct hf_env env = hf__env_fill(NULL);
    struct hf_scope *s = hf_scope_new(NULL);
    struct signer *signer = NULL;
    struct auth *known = NULL, *anybody = NULL;
    struct hf_bytes body;
    char secret[32];

    hf__env_random(&env, secret, sizeof(secret));
    key.secret_key = hf_str_of(secret, sizeof(secret));
    MUST(s && hf__signer_new(s, NULL, &signer) == HF_OK);
    MUST(hf__auth_new(s, NULL, &key, 1, 0, &known) == HF_OK);
    MUST(hf__auth_new(s, NULL, NULL, 0, 0, &anybody) == HF_OK);

    read_head(hf_str_of((const char *)data, size), &head, &body);
    MUST(!passes(s, known, &head, body));
    passes(s, anybody, &head, body);
    if (is_free(s, &head))
        sign_it(s, signer, known, anybody, &key, &head, body);

    hf__auth_free(anybody);
    hf__auth_free(known);
    hf__signer_free(signer);
    hf_scope_free(s);
    return 0;
}
