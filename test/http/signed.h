/* test/http/signed.h: is a request signed as it should be? For servers that are made for tests. */
#ifndef HF_TEST_HTTP_SIGNED_H
#define HF_TEST_HTTP_SIGNED_H

#include "http/http.h"

struct signed_by {
    struct hf_str secret;
    struct hf_str region;
    struct hf_str service;
    struct hf_str also;    /* "content-type": a header that has to be signed, too; absent: none */
    struct hf_str payload; /* the hash that the request says its body has; absent: take it */
};

/* Seconds since 1970 that the request was signed with; 0, and why not in `wrong`. */
int64_t signed_check(const struct http_reader *reader, const struct signed_by *by, char *wrong,
                     size_t size);

#endif
