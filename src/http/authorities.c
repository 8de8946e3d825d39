/*
 * http/authorities.c: the certificates that are trusted, read once.
 *
 * libcurl reads the file of authorities for each connection. The system's has some 150 of them, and
 * taking those apart takes 50 ms of a processor: a program that opens 32 connections at its start
 * would spend more than its time to connect on that alone. So they are read into one X509_STORE,
 * and each connection is given it in place of an empty one of its own.
 *
 * That needs a libcurl which uses the OpenSSL that we use. With any other one, libcurl is told the
 * file's name and does as it always does.
 *
 * What always holds:
 *
 *  (1) A store is not changed after it was filled; OpenSSL itself lets many threads look into it.
 *  (2) The store is read again when it is older than AUTHORITIES_S, as files of authorities change
 *      while programs run. When that fails, the old one stays.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/connection.h"

enum { AUTHORITIES_S = 3600 };

/* libcurl says "OpenSSL/3.0.11", and OpenSSL says "3.0.11". */
bool hf__authorities_same_openssl(void)
{
    const curl_version_info_data *curl = hf__curl.version_info(CURLVERSION_NOW);
    struct hf_str version;

    return curl->ssl_version &&
           str_after(hf_str_from(curl->ssl_version), HF_STR("OpenSSL/"), &version) &&
           hf_str_equal(version, hf_str_from(OpenSSL_version(OPENSSL_VERSION_STRING)));
}

/* A new store with the file that was asked for, or what libcurl would take; NULL when it fails. */
static X509_STORE *store_load(const struct transport *t, CURL *easy, const char **name)
{
    char *file = t->ca_file, *folder = NULL;
    X509_STORE *store = X509_STORE_new();
    bool loaded = store != NULL;

    if (!file) {
        (void)hf__curl.easy_getinfo(easy, CURLINFO_CAINFO, &file);
        (void)hf__curl.easy_getinfo(easy, CURLINFO_CAPATH, &folder);
    }
    *name = file ? file : folder ? folder : "of the system";
    loaded = loaded && (file || folder);
    if (loaded && file)
        loaded = X509_STORE_load_file(store, file) == 1;
    if (loaded && folder)
        loaded = X509_STORE_load_path(store, folder) == 1;
    ERR_clear_error();
    if (loaded)
        return store;
    X509_STORE_free(store);
    return NULL;
}

/*
 * The mutex is held while the file is read: others would need the store as well, and read the same
 * file for it.
 */
static enum hf_status get_store(struct hf_scope *s, struct transport *t, CURL *easy,
                                X509_STORE **store)
{
    int64_t now_us = hf__env_elapsed_us(&t->env);
    const char *name = "";

    (void)pthread_mutex_lock(&t->store_mutex);
    if (!t->store || now_us - t->store_us > AUTHORITIES_S * INT64_C(1000000)) {
        X509_STORE *loaded = store_load(t, easy, &name);

        if (loaded) {
            X509_STORE_free(t->store);
            t->store = loaded;
        }
        t->store_us = now_us;
    }
    *store = t->store;
    if (*store)
        (void)X509_STORE_up_ref(*store);
    (void)pthread_mutex_unlock(&t->store_mutex);
    if (!*store)
        return hf__fail(s, HF_INVALID, "the CA certificates %s cannot be read", name);
    return HF_OK;
}

/* libcurl made a context for a connection; the store becomes its own, with a count of its own. */
static CURLcode give_store(CURL *easy, void *context, void *store)
{
    (void)easy;
    SSL_CTX_set1_cert_store(context, store);
    return CURLE_OK;
}

enum hf_status hf__authorities_set(struct hf_scope *s, struct transport *t, CURL *easy,
                                   X509_STORE **store, CURLcode *code)
{
    *store = NULL;
    *code = CURLE_OK;
    if (!t->insecure && !t->same_openssl) {
        if (t->ca_file)
            *code = hf__curl.easy_setopt(easy, CURLOPT_CAINFO, t->ca_file);
        return HF_OK;
    }
    if (!t->insecure) {
        TRY(get_store(s, t, easy, store));
        *code = hf__curl.easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, give_store);
        if (*code == CURLE_OK)
            *code = hf__curl.easy_setopt(easy, CURLOPT_SSL_CTX_DATA, *store);
    }
    /* libcurl has nothing to read then, and nothing to remember. */
    if (*code == CURLE_OK)
        *code = hf__curl.easy_setopt(easy, CURLOPT_CAINFO, NULL);
    if (*code == CURLE_OK)
        *code = hf__curl.easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (*code == CURLE_OK)
        *code = hf__curl.easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
    return HF_OK;
}
