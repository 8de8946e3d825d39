/*
 * http/sign.c: signatures, their keys and their times.
 *
 * A signer has the state of one hash. SHA-256 is called by the functions that OpenSSL 3 would
 * rather see replaced by EVP: there each start of a hash takes memory (3.0 frees and allocates the
 * state even if the digest is the same), so it could fail in the middle of a signature. The keyed
 * hash is made here of two plain ones (RFC 2104).
 *
 * What always holds:
 *
 *  (1) After hf__signer_new() no hash takes memory or can fail, so none of them returns a status.
 *  (2) No key stays behind on the stack: blocks that held one are wiped. The last signing key stays
 *      in the signer, with the secret that it belongs to, and is wiped with it.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "http/sign.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <time.h>

#include "base/buf.h"

enum {
    BLOCK = 64,         /* bytes that SHA-256 takes at a time */
    KEPT_TEXT_MAX = 320 /* bytes of secret, date, region and service whose key is kept */
};

/* The key that was used last: it takes four keyed hashes, and is good for a day. */
struct kept_key {
    char text[KEPT_TEXT_MAX]; /* what it was made of, one behind the other with their lengths */
    size_t len;               /* 0: there is none */
    uint8_t key[SIGN_HASH];
};

/* The text of a second: calls come by the thousand in each. */
struct kept_time {
    int64_t seconds;
    char text[SIGN_TIME + 1]; /* empty: there is none */
};

struct signer {
    struct hf_env env;
    SHA256_CTX hash;
    struct kept_key kept;
    struct kept_time time;
};

/* ---- hashes --------------------------------------------------------------------------------- */

enum hf_status hf__signer_new(struct hf_scope *s, const struct hf_env *env, struct signer **signer)
{
    struct hf_env whole = hf__env_fill(env);
    struct signer *made = hf__env_alloc(&whole, sizeof(*made));

    *signer = NULL;
    if (!made)
        return hf__fail_nomem(s);
    *made = (struct signer){.env = whole};
    *signer = made;
    return HF_OK;
}

void hf__signer_free(struct signer *signer)
{
    if (!signer)
        return;
    OPENSSL_cleanse(&signer->hash, sizeof(signer->hash));
    OPENSSL_cleanse(&signer->kept, sizeof(signer->kept));
    hf__env_free(&signer->env, signer, sizeof(*signer));
}

static void hash_start(struct signer *signer)
{
    int done = SHA256_Init(&signer->hash);

    assert(done == 1);
}

static void hash_add(struct signer *signer, const void *bytes, size_t len)
{
    int done = len ? SHA256_Update(&signer->hash, bytes, len) : 1;

    assert(done == 1);
}

static void hash_finish(struct signer *signer, uint8_t hash[SIGN_HASH])
{
    int done = SHA256_Final(hash, &signer->hash);

    assert(done == 1);
}

void hf__sha256(struct signer *signer, const void *bytes, size_t len, uint8_t hash[SIGN_HASH])
{
    hash_start(signer);
    hash_add(signer, bytes, len);
    hash_finish(signer, hash);
}

static void hex_of(const uint8_t hash[SIGN_HASH], char hex[SIGN_HEX + 1])
{
    char *end = hex_write(hex, hash, SIGN_HASH);

    assert(end == hex + SIGN_HEX);
    *end = '\0';
}

void hf__sha256_hex(struct signer *signer, const void *bytes, size_t len, char hex[SIGN_HEX + 1])
{
    uint8_t hash[SIGN_HASH];

    hf__sha256(signer, bytes, len, hash);
    hex_of(hash, hex);
}

/* The keyed hash with a block that has the key and zeros behind it; the block is wiped. */
static void hmac_of(struct signer *signer, uint8_t block[BLOCK], const void *bytes, size_t len,
                    uint8_t mac[SIGN_HASH])
{
    uint8_t inner[SIGN_HASH];

    for (size_t i = 0; i < BLOCK; i++)
        block[i] ^= 0x36;
    hash_start(signer);
    hash_add(signer, block, BLOCK);
    hash_add(signer, bytes, len);
    hash_finish(signer, inner);

    for (size_t i = 0; i < BLOCK; i++)
        block[i] ^= 0x36 ^ 0x5c;
    hash_start(signer);
    hash_add(signer, block, BLOCK);
    hash_add(signer, inner, sizeof(inner));
    hash_finish(signer, mac);
    OPENSSL_cleanse(block, BLOCK);
}

void hf__hmac_sha256(struct signer *signer, struct hf_bytes key, const void *bytes, size_t len,
                     uint8_t mac[SIGN_HASH])
{
    uint8_t block[BLOCK] = {0};

    if (key.len > BLOCK)
        hf__sha256(signer, key.ptr, key.len, block);
    else if (key.len)
        memcpy(block, key.ptr, key.len);
    hmac_of(signer, block, bytes, len, mac);
}

/* ---- signatures ----------------------------------------------------------------------------- */

void hf__sign_key(struct signer *signer, struct hf_str secret_key, struct hf_str date,
                  struct hf_str region, struct hf_str service, uint8_t key[SIGN_HASH])
{
    static const char prefix[4] = {'A', 'W', 'S', '4'};
    const struct hf_str steps[] = {region, service, HF_STR(SIGN_TERMINATOR)};
    uint8_t block[BLOCK] = {0};

    /* The secret is of any length, so its hash is taken in two parts when it needs one. */
    if (secret_key.len > BLOCK - sizeof(prefix)) {
        hash_start(signer);
        hash_add(signer, prefix, sizeof(prefix));
        hash_add(signer, secret_key.ptr, secret_key.len);
        hash_finish(signer, block);
    } else {
        memcpy(block, prefix, sizeof(prefix));
        if (secret_key.len)
            memcpy(block + sizeof(prefix), secret_key.ptr, secret_key.len);
    }
    hmac_of(signer, block, date.ptr, date.len, key);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        memset(block, 0, sizeof(block));
        memcpy(block, key, SIGN_HASH);
        hmac_of(signer, block, steps[i].ptr, steps[i].len, key);
    }
}

enum hf_status hf__sign_string(struct hf_scope *s, struct signer *signer,
                               const struct sign_claim *claim, struct hf_str canonical,
                               struct hf_str *string)
{
    const struct hf_str scope[] = {claim->date, claim->region, claim->service};
    struct hf__buf out = {.scope = s};
    char hash[SIGN_HEX + 1];

    hf__sha256_hex(signer, canonical.ptr, canonical.len, hash);
    hf__buf_put_str(&out, HF_STR(SIGN_ALGORITHM "\n"));
    hf__buf_put_str(&out, claim->time);
    hf__buf_put_byte(&out, '\n');
    for (size_t i = 0; i < ARRAY_LEN(scope); i++) {
        hf__buf_put_str(&out, scope[i]);
        hf__buf_put_byte(&out, '/');
    }
    hf__buf_put_str(&out, HF_STR(SIGN_TERMINATOR "\n"));
    hf__buf_put(&out, hash, SIGN_HEX);
    if (out.failed)
        return hf__fail_nomem(s);
    *string = hf_str_of((const char *)out.ptr, out.len);
    return HF_OK;
}

void hf__sign_signature(struct signer *signer, const uint8_t key[SIGN_HASH], struct hf_str string,
                        char hex[SIGN_HEX + 1])
{
    uint8_t mac[SIGN_HASH];

    hf__hmac_sha256(signer, hf_bytes_of(key, SIGN_HASH), string.ptr, string.len, mac);
    hex_of(mac, hex);
}

bool hf__sign_equal(struct hf_str a, struct hf_str b)
{
    return a.len == b.len && (!a.len || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- times ---------------------------------------------------------------------------------- */

/* The number that `digits` digits make; -1 when they are none. */
static int digits_of(const char *text, size_t digits)
{
    int number = 0;

    for (size_t i = 0; i < digits; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days of a valid date since 1970-01-01. timegm() asks for the time zone, and takes as long as all
 * the rest of a signature's form. */
static int64_t days_of(int year, int month, int day)
{
    static const uint16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const int past = year + 399; /* full years, and 400 more, so that nothing is below zero */
    const int leaps = past / 4 - past / 100 + past / 400;
    const int leaps_1970 = 2369 / 4 - 2369 / 100 + 2369 / 400;

    return INT64_C(365) * (year - 1970) + leaps - leaps_1970 + before[month - 1] +
           (month > 2 && is_leap(year)) + day - 1;
}

bool hf__sign_time(struct hf_str text, int64_t *seconds)
{
    static const uint8_t month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, hour, minute, second;

    if (text.len != SIGN_TIME || text.ptr[8] != 'T' || text.ptr[15] != 'Z')
        return false;
    year = digits_of(text.ptr, 4);
    month = digits_of(text.ptr + 4, 2);
    day = digits_of(text.ptr + 6, 2);
    hour = digits_of(text.ptr + 9, 2);
    minute = digits_of(text.ptr + 11, 2);
    second = digits_of(text.ptr + 13, 2);
    if (year < 0 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0 || second > 59)
        return false;
    if (day > month_days[month - 1] + (month == 2 && is_leap(year)))
        return false;
    *seconds = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    return true;
}

void hf__sign_time_text(int64_t seconds, char text[SIGN_TIME + 1])
{
    const int64_t first = INT64_C(-62167219200); /* 0000-01-01 */
    const int64_t last = INT64_C(253402300799);  /* 9999-12-31 */
    time_t time = (time_t)(seconds < first ? first : seconds > last ? last : seconds);
    struct tm tm;
    int len;

    gmtime_r(&time, &tm);
    len = snprintf(text, SIGN_TIME + 1, "%04u%02u%02uT%02u%02u%02uZ",
                   (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
                   (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
                   (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
    assert(len == SIGN_TIME);
}

/* ---- for clients ---------------------------------------------------------------------------- */

/* Fields that are not signed, as they may differ on arrival or are about one connection. */
static bool is_signable(struct hf_str name)
{
    static const char *const unsignable[] = {"accept-encoding", "authorization",
                                             "connection",      "expect",
                                             "keep-alive",      "te",
                                             "trailer",         "upgrade",
                                             "user-agent",      "transfer-encoding",
                                             "x-amzn-trace-id"};

    for (size_t i = 0; i < ARRAY_LEN(unsignable); i++) {
        if (hf__http_is(name, unsignable[i]))
            return false;
    }
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct hf_str *x = a, *y = b;

    return bytes_compare(x->ptr, x->len, y->ptr, y->len);
}

/* "host;x-amz-date": the names of what is signed, in lower case, in order, each once. */
static enum hf_status names_to_sign(struct hf_scope *s, const struct http_head *head,
                                    struct hf_str *names)
{
    struct hf_str *all = hf__scope_array(s, head->fields_len, sizeof(*all));
    struct hf__buf list = {.scope = s};
    size_t len = 0;

    if (!all)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < head->fields_len; i++) {
        struct hf_str name = head->fields[i].name;
        char *lower;

        if (!is_signable(name))
            continue;
        lower = hf_scope_alloc(s, name.len + 1);
        if (!lower)
            return hf__fail_nomem(s);
        for (size_t j = 0; j < name.len; j++) {
            char c = name.ptr[j];

            lower[j] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
        }
        all[len++] = hf_str_of(lower, name.len);
    }
    qsort(all, len, sizeof(*all), by_text);
    for (size_t i = 0; i < len; i++) {
        if (i && hf_str_equal(all[i], all[i - 1]))
            continue;
        if (list.len)
            hf__buf_put_byte(&list, ';');
        hf__buf_put_str(&list, all[i]);
    }
    if (list.failed)
        return hf__fail_nomem(s);
    *names = hf_str_of((const char *)list.ptr, list.len);
    return HF_OK;
}

/* Add a field that the request must not have yet. */
static enum hf_status add_field(struct hf_scope *s, struct http_head *head, const char *name,
                                struct hf_str value)
{
    if (!value.ptr)
        return hf__fail_nomem(s);
    if (hf__http_field(head, name).ptr)
        return hf__fail(s, HF_INVALID, "The request to sign has the field %s already", name);
    if (head->fields_len == HTTP_FIELDS_MAX)
        return hf__fail(s, HF_LIMIT, "The request has no room for the fields of a signature");
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
    return HF_OK;
}

static struct hf_str authorization_of(struct hf_scope *s, const struct sign_how *how,
                                      const struct sign_claim *claim, const char *signature)
{
    const struct hf_str parts[] = {
        HF_STR(SIGN_ALGORITHM " Credential="),
        how->credentials->access_key,
        HF_STR("/"),
        claim->date,
        HF_STR("/"),
        how->region,
        HF_STR("/"),
        how->service,
        HF_STR("/" SIGN_TERMINATOR ", SignedHeaders="),
        claim->signed_headers,
        HF_STR(", Signature="),
        hf_str_from(signature),
    };
    struct hf__buf out = {.scope = s};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hf__buf_put_str(&out, parts[i]);
    return out.failed ? (struct hf_str){0} : hf_str_of((const char *)out.ptr, out.len);
}

/* hf__sign_key(), or the same as last time. The key lives in the signer. */
static const uint8_t *kept_key(struct signer *signer, const struct sign_how *how,
                               struct hf_str date)
{
    const struct hf_str parts[] = {how->credentials->secret_key, date, how->region, how->service};
    struct kept_key *kept = &signer->kept;
    char text[KEPT_TEXT_MAX];
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].len > UINT8_MAX || parts[i].len + 1 > sizeof(text) - len) {
            len = sizeof(text) + 1; /* too long to keep */
            break;
        }
        text[len++] = (char)parts[i].len;
        memcpy(text + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
    }
    if (len > sizeof(text) || len != kept->len || memcmp(text, kept->text, len) != 0) {
        hf__sign_key(signer, how->credentials->secret_key, date, how->region, how->service,
                     kept->key);
        kept->len = len > sizeof(text) ? 0 : len;
        memcpy(kept->text, text, kept->len);
    }
    OPENSSL_cleanse(text, sizeof(text));
    return kept->key;
}

static struct hf_str kept_time(struct signer *signer, int64_t seconds)
{
    struct kept_time *kept = &signer->time;

    if (!kept->text[0] || kept->seconds != seconds) {
        hf__sign_time_text(seconds, kept->text);
        kept->seconds = seconds;
    }
    return hf_str_of(kept->text, SIGN_TIME);
}

enum hf_status hf__sign_request(struct hf_scope *s, struct signer *signer, struct http_head *head,
                                const struct sign_how *how)
{
    bool is_s3 = hf_str_equal(how->service, HF_STR("s3"));
    char hash[SIGN_HEX + 1], signature[SIGN_HEX + 1];
    struct sign_claim claim = {.region = how->region, .service = how->service};
    struct hf_str payload, canonical, string;

    if (!hf__http_field(head, "host").ptr)
        return hf__fail(s, HF_INVALID, "The request to sign has no field Host");
    hf__sha256_hex(signer, how->body.ptr, how->body.len, hash);
    payload = how->unsigned_body ? HF_STR(SIGN_UNSIGNED) : hf_str_of(hash, SIGN_HEX);
    claim.time = hf_scope_copy(s, kept_time(signer, how->now_s));
    TRY(add_field(s, head, "X-Amz-Date", claim.time));
    claim.date = hf_str_of(claim.time.ptr, SIGN_DATE);
    if (how->credentials->session_token.ptr)
        TRY(add_field(s, head, "X-Amz-Security-Token",
                      hf_scope_copy(s, how->credentials->session_token)));
    if (is_s3 || how->unsigned_body)
        TRY(add_field(s, head, "X-Amz-Content-Sha256", hf_scope_copy(s, payload)));

    TRY(names_to_sign(s, head, &claim.signed_headers));
    TRY(hf__sign_canonical(s, head, claim.signed_headers, payload, !is_s3, &canonical));
    TRY(hf__sign_string(s, signer, &claim, canonical, &string));
    hf__sign_signature(signer, kept_key(signer, how, claim.date), string, signature);

    return add_field(s, head, "Authorization", authorization_of(s, how, &claim, signature));
}
