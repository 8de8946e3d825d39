/*
 * blob/seal.c: encrypting objects, see seal.h.
 *
 * The key never leaves this file, and is wiped when it is closed. Nonces of 96 random bits are good
 * for 2^32 objects under one key; a backup that ships a segment every second makes as many in 136
 * years.
 */
#include "blob/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

struct hf__seal {
    struct hf_env env;
    uint8_t key[SEAL_KEY];
};

enum { FILE_MAX = 2 * SEAL_KEY + 2 /* digits and a line end */, ERROR_TEXT_MAX = 128 };

/* ---- the key -------------------------------------------------------------------------------- */

static bool read_hex(const uint8_t *text, size_t len, uint8_t key[SEAL_KEY])
{
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (len != 2 * SEAL_KEY)
        return false;
    for (size_t i = 0; i < SEAL_KEY; i++) {
        int high = hex_digit((char)text[2 * i]), low = hex_digit((char)text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum hf_status key_read(struct hf_scope *s, const char *path, uint8_t key[SEAL_KEY])
{
    uint8_t text[FILE_MAX + 1];
    char room[ERROR_TEXT_MAX];
    enum hf_status status = HF_OK;
    struct stat info;
    ssize_t len;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info)) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return hf__fail(s, error == ENOENT ? HF_NOT_FOUND : HF_IO,
                        "cannot open the key file %s: %s", path,
                        strerror_r(error, room, sizeof(room)));
    }
    len = read(fd, text, sizeof(text));
    close(fd);
    if (info.st_mode & (S_IRWXG | S_IRWXO))
        status = hf__fail(s, HF_INVALID,
                          "the key file %s can be read by others than its owner; run: chmod 600 %s",
                          path, path);
    else if (len == SEAL_KEY)
        memcpy(key, text, SEAL_KEY);
    else if (len < 0 || !read_hex(text, (size_t)len, key))
        status = hf__fail(s, HF_INVALID,
                          "the key file %s must have 32 bytes or 64 hexadecimal digits; make one "
                          "with: openssl rand -hex 32",
                          path);
    OPENSSL_cleanse(text, sizeof(text));
    return status;
}

enum hf_status hf__seal_open(struct hf_scope *s, const struct hf_env *env, struct hf_str file,
                             struct hf__seal **seal)
{
    struct hf_env whole = hf__env_fill(env);
    struct hf__seal *made = hf__env_zalloc(&whole, sizeof(*made));
    struct hf_str path = hf_scope_copy(s, file); /* with a NUL behind */
    enum hf_status status;

    *seal = NULL;
    if (!made || !path.ptr) {
        hf__env_free(&whole, made, sizeof(*made));
        return hf__fail_nomem(s);
    }
    made->env = whole;
    status = key_read(s, path.ptr, made->key);
    if (status != HF_OK) {
        hf__seal_close(made);
        return status;
    }
    *seal = made;
    return HF_OK;
}

void hf__seal_close(struct hf__seal *seal)
{
    struct hf_env env;

    if (!seal)
        return;
    env = seal->env;
    OPENSSL_cleanse(seal, sizeof(*seal));
    hf__env_free(&env, seal, sizeof(*seal));
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* All but the end, which is where the tag is made or checked. */
static bool cipher_update(EVP_CIPHER_CTX *context, struct hf_bytes head, uint8_t *bytes, size_t len)
{
    int done = 0;

    if (head.len && EVP_CipherUpdate(context, NULL, &done, head.ptr, (int)head.len) != 1)
        return false;
    return len == 0 || EVP_CipherUpdate(context, bytes, &done, bytes, (int)len) == 1;
}

static EVP_CIPHER_CTX *context_make(const struct hf__seal *seal, const uint8_t nonce[SEAL_NONCE],
                                    bool encrypts)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();

    if (context &&
        EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, seal->key, nonce, encrypts) != 1) {
        EVP_CIPHER_CTX_free(context);
        context = NULL;
    }
    return context;
}

enum hf_status hf__seal_lock(struct hf_scope *s, const struct hf__seal *seal,
                             const uint8_t nonce[SEAL_NONCE], struct hf_bytes head, uint8_t *bytes,
                             size_t len, uint8_t tag[SEAL_TAG])
{
    EVP_CIPHER_CTX *context = context_make(seal, nonce, true);
    uint8_t rest[SEAL_TAG];
    int done = 0;
    bool good;

    assert(len <= INT_MAX && head.len <= INT_MAX);
    good = context && cipher_update(context, head, bytes, len) &&
           EVP_CipherFinal_ex(context, rest, &done) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, tag) == 1;
    EVP_CIPHER_CTX_free(context);
    return good ? HF_OK : hf__fail_nomem(s); /* it has no other reason to fail */
}

enum hf_status hf__seal_unlock(struct hf_scope *s, const struct hf__seal *seal,
                               const uint8_t nonce[SEAL_NONCE], struct hf_bytes head,
                               uint8_t *bytes, size_t len, const uint8_t tag[SEAL_TAG])
{
    EVP_CIPHER_CTX *context = context_make(seal, nonce, false);
    uint8_t expected[SEAL_TAG], rest[SEAL_TAG];
    int done = 0;
    bool good;

    assert(len <= INT_MAX && head.len <= INT_MAX);
    if (!context)
        return hf__fail_nomem(s);
    memcpy(expected, tag, SEAL_TAG);
    good = cipher_update(context, head, bytes, len) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG, expected) == 1 &&
           EVP_CipherFinal_ex(context, rest, &done) == 1;
    EVP_CIPHER_CTX_free(context);
    return good ? HF_OK : hf__fail(s, HF_DENIED, "the key is another one");
}
