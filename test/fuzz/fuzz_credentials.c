/*
 * test/fuzz/fuzz_credentials.c: the documents that sources of credentials answer with.
 *
 * The first byte chooses the document: what a process prints (p), a container answers (c), the
 * metadata service answers (m), the token that `aws sso login` leaves (s), STS's XML (x), or a
 * command line of credential_process (w). The rest is the document.
 *
 *  - what is read is whole: keys have both parts, tokens have a time;
 *  - what is not is HF_INVALID or HF_IO, in a sentence of ours;
 *  - no sentence has a part of the document in it, but a code of the metadata service;
 *  - words of a command are inside of it, each ends, and the last is followed by NULL.
 */
#include "base/child.h"
#include "client/source.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { PLANTED_MAX = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A secret that a sentence must not have in it: the document's word HUSH, if it is there. */
static void check_failure(struct hf_scope *s, enum hf_status status, struct hf_str document,
                          bool may_quote)
{
    MUST(status == HF_INVALID || status == HF_IO);
    MUST(hf_scope_error(s)->status == status);
    MUST(hf_scope_error_text(s)[0] != '\0');
    if (!may_quote && document.len && memmem(document.ptr, document.len, "HUSH", 4))
        MUST(!strstr(hf_scope_error_text(s), "HUSH"));
    for (const char *at = hf_scope_error_text(s); *at; at++)
        MUST(*at >= ' ' && *at <= '~');
}

static void read_keys(struct hf_scope *s, enum source_form form, struct hf_str document)
{
    struct source_keys keys = {.origin = "the source"};
    enum hf_status status = hf__source_read_keys(s, form, document, &keys);

    if (status != HF_OK) {
        check_failure(s, status, document, form == SOURCE_METADATA);
        return;
    }
    MUST(keys.access_key.len && keys.secret_key.len);
    MUST(document.len > keys.access_key.len + keys.secret_key.len + keys.session_token.len);
}

static void read_sso(struct hf_scope *s, struct hf_str document)
{
    struct sso_token token;
    enum hf_status status = hf__source_read_sso(s, document, &token);

    if (status != HF_OK)
        check_failure(s, status, document, false);
    else
        MUST(token.access_token.len && token.expires_us);
}

static void read_sts(struct hf_scope *s, struct hf_str document)
{
    struct sts_answer answer;
    enum hf_status status = hf__source_read_sts(s, document, &answer);
    const struct hf_str texts[] = {answer.access_key,   answer.secret_key, answer.session_token,
                                   answer.expiration,   answer.arn,        answer.error_code,
                                   answer.error_message};
    struct hf_str secret = HF_STR("HUSH");
    struct hf_str quote;

    if (status != HF_OK)
        check_failure(s, status, document, false);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        MUST(status == HF_OK || !texts[i].ptr);
        MUST(texts[i].len < document.len || !texts[i].ptr);
    }
    quote = hf__source_quote(s, answer.error_message, &secret, 1);
    MUST(quote.ptr && quote.len <= 300 && strlen(quote.ptr) == quote.len);
    MUST(!strstr(quote.ptr, "HUSH"));
}

static void read_words(struct hf_scope *s, struct hf_str command)
{
    char **words;
    enum hf_status status = hf__child_words(s, command, &words);
    size_t total = 0;

    if (status != HF_OK) {
        check_failure(s, status, command, false);
        return;
    }
    MUST(words[0] && words[0][0]);
    for (size_t i = 0; words[i]; i++)
        total += strlen(words[i]) + 1;
    MUST(total <= command.len + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str document;
    int64_t us;
    char *copy;

    if (size == 0 || size > PLANTED_MAX) {
        hf_scope_free(s);
        return 0;
    }
    copy = malloc(size); /* exactly as large, so that a read beyond its end shows */
    MUST(s && copy);
    memcpy(copy, data, size);
    document = hf_str_of(copy + 1, size - 1);
    switch (copy[0]) {
    case 'p':
        read_keys(s, SOURCE_PROCESS, document);
        break;
    case 'c':
        read_keys(s, SOURCE_CONTAINER, document);
        break;
    case 'm':
        read_keys(s, SOURCE_METADATA, document);
        break;
    case 's':
        read_sso(s, document);
        break;
    case 'x':
        read_sts(s, document);
        break;
    case 'w':
        read_words(s, document);
        break;
    default:
        MUST(!hf__source_time(document, &us) || us != 0);
    }
    free(copy);
    hf_scope_free(s);
    return 0;
}
