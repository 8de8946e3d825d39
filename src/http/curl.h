/*
 * http/curl.h: libcurl, which is loaded when the first transport is opened.
 *
 * It brings two dozen libraries along, and loading them takes longer than all else that a server or
 * a short command does before its work. Programs without connections are spared that. docs/decisions/0007.
 */
#ifndef HF_HTTP_CURL_H
#define HF_HTTP_CURL_H

#include "base/base.h"

#include <curl/curl.h>

/* Its functions that we call, by their names without "curl_". */
#define CURL_CALLS(X)                                                                              \
    X(global_init, CURLcode, (long))                                                               \
    X(version_info, curl_version_info_data *, (CURLversion))                                       \
    X(easy_init, CURL *, (void))                                                                   \
    X(easy_cleanup, void, (CURL *))                                                                \
    X(easy_setopt, CURLcode, (CURL *, CURLoption, ...))                                            \
    X(easy_getinfo, CURLcode, (CURL *, CURLINFO, ...))                                             \
    X(easy_send, CURLcode, (CURL *, const void *, size_t, size_t *))                               \
    X(easy_recv, CURLcode, (CURL *, void *, size_t, size_t *))                                     \
    X(easy_strerror, const char *, (CURLcode))                                                     \
    X(multi_init, CURLM *, (void))                                                                 \
    X(multi_cleanup, CURLMcode, (CURLM *))                                                         \
    X(multi_add_handle, CURLMcode, (CURLM *, CURL *))                                              \
    X(multi_remove_handle, CURLMcode, (CURLM *, CURL *))                                           \
    X(multi_perform, CURLMcode, (CURLM *, int *))                                                  \
    X(multi_poll, CURLMcode, (CURLM *, struct curl_waitfd *, unsigned, int, int *))                \
    X(multi_info_read, CURLMsg *, (CURLM *, int *))

struct curl_calls {
#define CURL_MEMBER(name, result, args) result(*name) args;
    CURL_CALLS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* Written once, by the first hf__curl_load(), which comes before every use. */
extern struct curl_calls hf__curl;

/* HF_INTERNAL when it cannot be loaded or initialized; the message says why. */
enum hf_status hf__curl_load(struct hf_scope *s);

#endif
