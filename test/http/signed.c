/* test/http/signed.c: see signed.h */
#include "signed.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/sign.h"

static struct hf_str part_of(struct hf_str text, const char *name)
{
    const char *at = text.len ? memmem(text.ptr, text.len, name, strlen(name)) : NULL;
    size_t from;

    if (!at)
        return hf_str_of("", 0);
    from = (size_t)(at - text.ptr) + strlen(name);
    return hf_str_of(text.ptr + from, strcspn(text.ptr + from, ",\r\n "));
}

static bool names(struct hf_str signed_headers, struct hf_str name)
{
    char list[600], want[80];

    snprintf(list, sizeof(list), ";%.*s;", HF_FMT(signed_headers));
    snprintf(want, sizeof(want), ";%.*s;", HF_FMT(name));
    return strstr(list, want) != NULL;
}

int64_t signed_check(const struct http_reader *reader, const struct signed_by *by, char *wrong,
                     size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str authorization = hf__http_field(&reader->head, "authorization");
    struct hf_str scope = part_of(authorization, "Credential=");
    struct sign_claim claim = {.access_key = str_cut(&scope, '/'),
                               .date = str_cut(&scope, '/'),
                               .region = str_cut(&scope, '/'),
                               .service = str_cut(&scope, '/'),
                               .signed_headers = part_of(authorization, "SignedHeaders="),
                               .signature = part_of(authorization, "Signature="),
                               .time = hf__http_field(&reader->head, "x-amz-date")};
    bool is_s3 = hf_str_equal(by->service, HF_STR("s3"));
    char hash[SIGN_HEX + 1], expected[SIGN_HEX + 1];
    uint8_t key[SIGN_HASH];
    struct hf_str canonical = {NULL, 0}, string = {NULL, 0};
    struct signer *signer = NULL;
    int64_t seconds = 0;

    if (hf__signer_new(s, hf_scope_env(s), &signer) != HF_OK)
        abort();
    hf__sha256_hex(signer, reader->body.ptr, reader->body.len, hash);
    if (hf__sign_canonical(s, &reader->head, claim.signed_headers,
                           by->payload.ptr ? by->payload : hf_str_of(hash, SIGN_HEX), !is_s3,
                           &canonical) == HF_OK &&
        hf__sign_string(s, signer, &claim, canonical, &string) == HF_OK) {
        hf__sign_key(signer, by->secret, claim.date, claim.region, claim.service, key);
        hf__sign_signature(signer, key, string, expected);
        if (hf_str_equal(claim.signature, hf_str_of(expected, SIGN_HEX)))
            hf__sign_time(claim.time, &seconds);
    }
    if (!seconds)
        snprintf(wrong, size, "the signature does not fit: %.*s", HF_FMT(authorization));
    if (!hf_str_equal(claim.region, by->region) || !hf_str_equal(claim.service, by->service)) {
        snprintf(wrong, size, "signed for another region or service: %.*s", HF_FMT(authorization));
        seconds = 0;
    }
    if (!names(claim.signed_headers, HF_STR("host")) ||
        !names(claim.signed_headers, HF_STR("x-amz-date")) ||
        (by->also.ptr && !names(claim.signed_headers, by->also)) ||
        (is_s3 && !names(claim.signed_headers, HF_STR("x-amz-content-sha256")))) {
        snprintf(wrong, size, "too little is signed: %.*s", HF_FMT(claim.signed_headers));
        seconds = 0;
    }
    hf__signer_free(signer);
    hf_scope_free(s);
    return seconds;
}
