/*
 * http/curl.c: loading libcurl. It is never unloaded: what it has registered with OpenSSL and the C
 * library would be called all the same.
 */
#include "http/curl.h"

#include <pthread.h>

#include "base/library.h"

struct curl_calls hf__curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char load_error[LIBRARY_WHY]; /* empty: it works */

#define CURL_SYMBOL(name, result, args) {"curl_" #name, offsetof(struct curl_calls, name)},
static const struct library_symbol symbols[] = {CURL_CALLS(CURL_SYMBOL)};

static void load_once(void)
{
    if (hf__library_find("libcurl.so.4", NULL, symbols, ARRAY_LEN(symbols), &hf__curl,
                         load_error) &&
        hf__curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        snprintf(load_error, sizeof(load_error), "libcurl could not be initialized");
}

enum hf_status hf__curl_load(struct hf_scope *s)
{
    (void)pthread_once(&once, load_once);
    return load_error[0] ? hf__fail(s, HF_INTERNAL, "%s", load_error) : HF_OK;
}
