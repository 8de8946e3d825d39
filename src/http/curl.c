/*
 * http/curl.c: loading libcurl. It is never unloaded: what it has registered with OpenSSL and the C
 * library would be called all the same.
 */
#include "http/curl.h"

#include <dlfcn.h>
#include <pthread.h>

#define LIBRARY "libcurl.so.4"

struct curl_calls hf__curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char trouble[256]; /* empty: it works */

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf(trouble, sizeof(trouble), "%s", dlerror());
        return;
    }
    /* POSIX has dlsym() return functions as data, which C does not know how to convert. */
#define CURL_FIND(name, result, args)                                                              \
    *(void **)&hf__curl.name = dlsym(library, "curl_" #name);                                      \
    if (!hf__curl.name) {                                                                          \
        snprintf(trouble, sizeof(trouble), "%s has no curl_%s()", LIBRARY, #name);                 \
        return;                                                                                    \
    }
    CURL_CALLS(CURL_FIND)
#undef CURL_FIND
    if (hf__curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        snprintf(trouble, sizeof(trouble), "it could not be initialized");
}

enum hf_status hf__curl_load(struct hf_scope *s)
{
    (void)pthread_once(&once, load);
    return trouble[0] ? hf__fail(s, HF_INTERNAL, "libcurl cannot be used: %s", trouble) : HF_OK;
}
