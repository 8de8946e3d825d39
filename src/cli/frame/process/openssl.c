/*
 * cli/frame/process/openssl.c: OpenSSL, which the command loads when it is first needed.
 *
 * Most of what the command does needs no cipher and no digest: a server for this machine, and
 * whatever works on a directory. Mapping and relocating libcrypto and libssl took a third of the
 * time until such a server answers. So the command is not linked with them. This file has the
 * functions of theirs that we call, under their names; each passes its arguments on to the real
 * one, and the first call loads the library. docs/decisions/0008 has numbers and reasons.
 *
 * Only the command has this file, and only where HF_COMMAND_STATIC is on (cmake/command.cmake).
 * Nobody else notices: the functions have the prototypes of OpenSSL's headers, which the compiler
 * compares. Who calls one more function of OpenSSL gets an undefined reference when the command is
 * linked, and adds a line to the lists below.
 *
 * What always holds:
 *
 *  (1) There is one OpenSSL in a process. These names are not visible outside of the program, so
 *      libcurl and the brokers' libraries find their own, which is the very file that is loaded
 *      here: both ask for the same soname.
 *  (2) A library that was loaded stays: it has handlers for the end of threads and of the program.
 *  (3) Without the library the program ends as the dynamic linker would have ended it, only later.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* whether to call them is decided where they are called */

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"

#ifndef HF_CRYPTO_LIBRARY /* the build says which ones it has seen */
#define HF_CRYPTO_LIBRARY "libcrypto.so.3"
#define HF_SSL_LIBRARY "libssl.so.3"
#endif

#define OPENSSL_PACKAGE "libssl3" /* has both, on Debian and its kin */

enum { CANNOT_LOAD = 127 }; /* the exit code of the dynamic linker */

/* X(return or nothing, result, name, parameters, arguments) */
#define CRYPTO_CALLS(X)                                                                            \
    X(return, long, BIO_ctrl, (BIO * bio, int cmd, long larg, void *parg), (bio, cmd, larg, parg)) \
    X(return, int, BIO_free, (BIO * bio), (bio))                                                   \
    X(return, BIO *, BIO_new, (const BIO_METHOD *type), (type))                                    \
    X(return, int, BIO_read, (BIO * bio, void *to, int len), (bio, to, len))                       \
    X(return, const BIO_METHOD *, BIO_s_mem, (void), ())                                           \
    X(return, int, BIO_write, (BIO * bio, const void *from, int len), (bio, from, len))            \
    X(return, int, CRYPTO_memcmp, (const void *a, const void *b, size_t len), (a, b, len))         \
    X(, void, ERR_clear_error, (void), ())                                                         \
    X(return, unsigned long, ERR_get_error, (void), ())                                            \
    X(return, const char *, ERR_reason_error_string, (unsigned long code), (code))                 \
    X(return, int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX * context, int type, int arg, void *ptr),  \
            (context, type, arg, ptr))                                                             \
    X(, void, EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX * context), (context))                          \
    X(return, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void), ())                                    \
    X(return, int, EVP_CipherFinal_ex, (EVP_CIPHER_CTX * context, unsigned char *to, int *len),    \
            (context, to, len))                                                                    \
    X(return, int, EVP_CipherInit_ex,                                                              \
            (EVP_CIPHER_CTX * context, const EVP_CIPHER *cipher, ENGINE *engine,                   \
             const unsigned char *key, const unsigned char *nonce, int encrypts),                  \
            (context, cipher, engine, key, nonce, encrypts))                                       \
    X(return, int, EVP_CipherUpdate,                                                               \
            (EVP_CIPHER_CTX * context, unsigned char *to, int *len, const unsigned char *from,     \
             int from_len),                                                                        \
            (context, to, len, from, from_len))                                                    \
    X(return, int, EVP_Digest,                                                                     \
            (const void *data, size_t len, unsigned char *digest, unsigned *digest_len,            \
             const EVP_MD *type, ENGINE *engine),                                                  \
            (data, len, digest, digest_len, type, engine))                                         \
    X(return, const EVP_CIPHER *, EVP_aes_256_gcm, (void), ())                                     \
    X(return, const EVP_MD *, EVP_sha1, (void), ())                                                \
    X(return, const EVP_MD *, EVP_sha256, (void), ())                                              \
    X(return, unsigned char *, HMAC,                                                               \
            (const EVP_MD *type, const void *key, int key_len, const unsigned char *data,          \
             size_t len, unsigned char *digest, unsigned *digest_len),                             \
            (type, key, key_len, data, len, digest, digest_len))                                   \
    X(return, const char *, OpenSSL_version, (int what), (what))                                   \
    X(return, int, SHA256_Final, (unsigned char *digest, SHA256_CTX *hash), (digest, hash))        \
    X(return, int, SHA256_Init, (SHA256_CTX * hash), (hash))                                       \
    X(return, int, SHA256_Update, (SHA256_CTX * hash, const void *data, size_t len),               \
            (hash, data, len))                                                                     \
    X(, void, X509_STORE_free, (X509_STORE * store), (store))                                      \
    X(return, int, X509_STORE_load_file, (X509_STORE * store, const char *file), (store, file))    \
    X(return, int, X509_STORE_load_path, (X509_STORE * store, const char *path), (store, path))    \
    X(return, X509_STORE *, X509_STORE_new, (void), ())                                            \
    X(return, int, X509_STORE_up_ref, (X509_STORE * store), (store))

#define SSL_CALLS(X)                                                                               \
    X(return, int, SSL_CTX_check_private_key, (const SSL_CTX *context), (context))                 \
    X(return, long, SSL_CTX_ctrl, (SSL_CTX * context, int cmd, long larg, void *parg),             \
            (context, cmd, larg, parg))                                                            \
    X(, void, SSL_CTX_free, (SSL_CTX * context), (context))                                        \
    X(return, SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *method), (method))                        \
    X(, void, SSL_CTX_set1_cert_store, (SSL_CTX * context, X509_STORE * store), (context, store))  \
    X(, void, SSL_CTX_set_alpn_select_cb,                                                          \
      (SSL_CTX * context, SSL_CTX_alpn_select_cb_func select, void *user),                         \
      (context, select, user))                                                                     \
    X(return, int, SSL_CTX_set_cipher_list, (SSL_CTX * context, const char *list),                 \
            (context, list))                                                                       \
    X(, void, SSL_CTX_set_default_passwd_cb, (SSL_CTX * context, pem_password_cb * ask),           \
      (context, ask))                                                                              \
    X(, void, SSL_CTX_set_default_passwd_cb_userdata, (SSL_CTX * context, void *user),             \
      (context, user))                                                                             \
    X(return, uint64_t, SSL_CTX_set_options, (SSL_CTX * context, uint64_t options),                \
            (context, options))                                                                    \
    X(return, int, SSL_CTX_use_PrivateKey_file, (SSL_CTX * context, const char *file, int type),   \
            (context, file, type))                                                                 \
    X(return, int, SSL_CTX_use_certificate_chain_file, (SSL_CTX * context, const char *file),      \
            (context, file))                                                                       \
    X(, void, SSL_free, (SSL * ssl), (ssl))                                                        \
    X(return, int, SSL_get_error, (const SSL *ssl, int result), (ssl, result))                     \
    X(return, int, SSL_get_shutdown, (const SSL *ssl), (ssl))                                      \
    X(return, int, SSL_is_init_finished, (const SSL *ssl), (ssl))                                  \
    X(return, SSL *, SSL_new, (SSL_CTX * context), (context))                                      \
    X(return, int, SSL_read, (SSL * ssl, void *to, int len), (ssl, to, len))                       \
    X(return, int, SSL_select_next_proto,                                                          \
            (unsigned char **chosen, unsigned char *chosen_len, const unsigned char *ours,         \
             unsigned ours_len, const unsigned char *theirs, unsigned theirs_len),                 \
            (chosen, chosen_len, ours, ours_len, theirs, theirs_len))                              \
    X(, void, SSL_set_accept_state, (SSL * ssl), (ssl))                                            \
    X(, void, SSL_set_bio, (SSL * ssl, BIO * from, BIO * to), (ssl, from, to))                     \
    X(return, int, SSL_shutdown, (SSL * ssl), (ssl))                                               \
    X(return, int, SSL_write, (SSL * ssl, const void *from, int len), (ssl, from, len))            \
    X(return, const SSL_METHOD *, TLS_server_method, (void), ())

/* ---- loading -------------------------------------------------------------------------------- */

#define MEMBER(back, result, name, parameters, arguments) __typeof__(name) *name;
#define CRYPTO_SYMBOL(back, result, name, parameters, arguments)                                   \
    {#name, offsetof(struct crypto_calls, name)},
#define SSL_SYMBOL(back, result, name, parameters, arguments)                                      \
    {#name, offsetof(struct ssl_calls, name)},

static struct crypto_calls {
    CRYPTO_CALLS(MEMBER)
} crypto; /* written once, under crypto_once */

static struct ssl_calls {
    SSL_CALLS(MEMBER)
} tls; /* written once, under ssl_once */

static const struct library_symbol crypto_symbols[] = {CRYPTO_CALLS(CRYPTO_SYMBOL)};
static const struct library_symbol ssl_symbols[] = {SSL_CALLS(SSL_SYMBOL)};

static pthread_once_t crypto_once = PTHREAD_ONCE_INIT;
static pthread_once_t ssl_once = PTHREAD_ONCE_INIT;

/* (3) There may be other threads, so nothing is flushed and nobody's handlers are called. */
static void openssl_load(const char *soname, const struct library_symbol *symbols, size_t len,
                         void *table)
{
    char why[LIBRARY_WHY];

    if (hf__library_find(soname, OPENSSL_PACKAGE, symbols, len, table, why))
        return;
    (void)fprintf(stderr, "holdfast: %s\n", why);
    _exit(CANNOT_LOAD);
}

static void load_crypto(void)
{
    openssl_load(HF_CRYPTO_LIBRARY, crypto_symbols, ARRAY_LEN(crypto_symbols), &crypto);
}

static void load_ssl(void)
{
    openssl_load(HF_SSL_LIBRARY, ssl_symbols, ARRAY_LEN(ssl_symbols), &tls);
}

/* ---- the functions -------------------------------------------------------------------------- */

#define DEFINE_CRYPTO(back, result, name, parameters, arguments)                                   \
    result name parameters                                                                         \
    {                                                                                              \
        (void)pthread_once(&crypto_once, load_crypto);                                             \
        back crypto.name arguments;                                                                \
    }
#define DEFINE_SSL(back, result, name, parameters, arguments)                                      \
    result name parameters                                                                         \
    {                                                                                              \
        (void)pthread_once(&ssl_once, load_ssl);                                                   \
        back tls.name arguments;                                                                   \
    }

CRYPTO_CALLS(DEFINE_CRYPTO)
SSL_CALLS(DEFINE_SSL)

/* The C library has the same, and those who clean up need not have used anything else. */
void OPENSSL_cleanse(void *bytes, size_t len)
{
    explicit_bzero(bytes, len);
}
