/*
 * http/sign_test.c: signatures as AWS published them, hashes as NIST and RFC 4231 did.
 */
#include "http/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>

#include "test.h"

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define NOW INT64_C(1440938160) /* 20150830T123600Z */

struct desk {
    struct hf_scope *s;
    struct signer *signer;
    struct http_head head;
};

static struct desk desk_open(struct test *t)
{
    struct desk d = {.s = hf_scope_new(test_env(t))};

    CHECK(d.s != NULL);
    CHECK_OK(hf__signer_new(d.s, test_env(t), &d.signer));
    return d;
}

static void desk_close(struct desk *d)
{
    hf__signer_free(d->signer);
    hf_scope_free(d->s);
}

static void begin(struct desk *d, const char *method, const char *target)
{
    const char *mark = strchr(target, '?');

    d->head = (struct http_head){.method = hf_str_from(method), .target = hf_str_from(target)};
    d->head.path = hf_str_of(target, mark ? (size_t)(mark - target) : strlen(target));
    if (mark)
        d->head.query = hf_str_from(mark + 1);
}

static void field(struct desk *d, const char *name, const char *value)
{
    d->head.fields[d->head.fields_len++] =
        (struct http_field){hf_str_from(name), hf_str_from(value)};
}

static void check_hex(const char *expected, const uint8_t hash[SIGN_HASH])
{
    char hex[SIGN_HEX + 1];

    for (size_t i = 0; i < SIGN_HASH; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    CHECK_STR(expected, hf_str_from(hex));
}

/* ---- hashes --------------------------------------------------------------------------------- */

TEST(sign, sha256_has_the_published_values)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    struct desk d = desk_open(t);
    uint8_t hash[SIGN_HASH];
    char hex[SIGN_HEX + 1];
    char *million = malloc(1000000);

    hf__sha256(d.signer, NULL, 0, hash);
    check_hex(EMPTY_HASH, hash);
    hf__sha256(d.signer, "abc", 3, hash);
    check_hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hash);
    hf__sha256_hex(d.signer, two_blocks, sizeof(two_blocks) - 1, hex);
    CHECK_STR("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", hf_str_from(hex));
    CHECK(million != NULL);
    memset(million, 'a', 1000000);
    hf__sha256(d.signer, million, 1000000, hash);
    check_hex("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", hash);
    free(million);
    desk_close(&d);
}

/* RFC 4231: keys shorter than, about and longer than a block. */
TEST(sign, hmac_has_the_published_values)
{
    struct desk d = desk_open(t);
    uint8_t key[131], data[50], mac[SIGN_HASH];

    memset(key, 0x0b, 20);
    hf__hmac_sha256(d.signer, hf_bytes_of(key, 20), "Hi There", 8, mac);
    check_hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7", mac);
    hf__hmac_sha256(d.signer, hf_bytes_of("Jefe", 4), "what do ya want for nothing?", 28, mac);
    check_hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", mac);
    memset(key, 0xaa, sizeof(key));
    memset(data, 0xdd, sizeof(data));
    hf__hmac_sha256(d.signer, hf_bytes_of(key, 20), data, 50, mac);
    check_hex("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe", mac);
    hf__hmac_sha256(d.signer, hf_bytes_of(key, 131),
                    "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
    check_hex("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54", mac);
    hf__hmac_sha256(d.signer, hf_bytes_of(NULL, 0), NULL, 0, mac);
    check_hex("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad", mac);
    desk_close(&d);
}

TEST(sign, signing_keys_are_those_of_the_documents)
{
    struct desk d = desk_open(t);
    uint8_t key[SIGN_HASH], by_hand[SIGN_HASH];
    char secret[104] = "AWS4";

    hf__sign_key(d.signer, HF_STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), HF_STR("20120215"),
                 HF_STR("us-east-1"), HF_STR("iam"), key);
    check_hex("f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d", key);
    hf__sign_key(d.signer, HF_STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), HF_STR("20150830"),
                 HF_STR("us-east-1"), HF_STR("iam"), key);
    check_hex("c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9", key);

    /* A secret around and beyond a block is no different. */
    memset(secret + 4, 's', 100);
    for (size_t len = 55; len <= 100; len++) {
        const char *const steps[] = {"20120215", "r", "x", "aws4_request"};

        hf__sign_key(d.signer, hf_str_of(secret + 4, len), HF_STR("20120215"), HF_STR("r"),
                     HF_STR("x"), key);
        hf__hmac_sha256(d.signer, hf_bytes_of(secret, len + 4), steps[0], 8, by_hand);
        for (size_t i = 1; i < 4; i++) {
            uint8_t last[SIGN_HASH];

            memcpy(last, by_hand, SIGN_HASH);
            hf__hmac_sha256(d.signer, hf_bytes_of(last, SIGN_HASH), steps[i], strlen(steps[i]),
                            by_hand);
        }
        CHECK(memcmp(key, by_hand, SIGN_HASH) == 0);
    }
    desk_close(&d);
}

TEST(sign, a_signer_is_there_or_memory_is_not)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct signer *signer = NULL;
        enum hf_status status = s ? hf__signer_new(s, test_env(t), &signer) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_OK) == (signer != NULL));
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf__signer_free(signer);
        hf_scope_free(s);
    }
    hf__signer_free(NULL);
}

/* How often OpenSSL asked for memory. It takes our functions only before it first did, so they are
 * set before main(). */
static atomic_size_t crypto_allocs;
static bool crypto_counted;

static void *crypto_alloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    atomic_fetch_add(&crypto_allocs, 1);
    return malloc(size);
}

static void *crypto_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    atomic_fetch_add(&crypto_allocs, 1);
    return realloc(ptr, size);
}

static void crypto_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    free(ptr);
}

__attribute__((constructor)) static void count_crypto(void)
{
    crypto_counted = CRYPTO_set_mem_functions(crypto_alloc, crypto_realloc, crypto_free) == 1;
}

/* (1): what takes no memory cannot fail for lack of it. */
TEST(sign, no_hash_takes_memory)
{
    struct desk d = desk_open(t);
    char hex[SIGN_HEX + 1];
    uint8_t mac[SIGN_HASH];
    EVP_MD_CTX *probe;
    size_t before;

    CHECK(crypto_counted);
    before = atomic_load(&crypto_allocs);
    probe = EVP_MD_CTX_new();
    CHECK(probe && atomic_load(&crypto_allocs) > before); /* they would be noticed */
    EVP_MD_CTX_free(probe);

    before = atomic_load(&crypto_allocs);
    for (int i = 0; i < 3; i++) {
        hf__sha256_hex(d.signer, "text", 4, hex);
        hf__hmac_sha256(d.signer, hf_bytes_of("key", 3), "text", 4, mac);
    }
    CHECK_INT(0, (int64_t)(atomic_load(&crypto_allocs) - before));
    desk_close(&d);
}

/* ---- the test suite ------------------------------------------------------------------------- */

/* What the suite's requests have in common; their own fields were added before. */
static struct hf_str sign(struct desk *d, const char *service, const char *token, const char *body)
{
    struct sign_credentials credentials = {
        .access_key = HF_STR("AKIDEXAMPLE"),
        .secret_key = HF_STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        .session_token = hf_str_from(token),
    };
    struct sign_how how = {.credentials = &credentials,
                           .region = HF_STR("us-east-1"),
                           .service = hf_str_from(service),
                           .now_s = NOW,
                           .body = hf_bytes_of(body, strlen(body))};

    CHECK_OK(hf__sign_request(d->s, d->signer, &d->head, &how));
    return hf__http_field(&d->head, "Authorization");
}

static void check_suite(struct desk *d, const char *signed_headers, const char *signature,
                        const char *body)
{
    char expected[512];

    snprintf(expected, sizeof(expected),
             "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             signed_headers, signature);
    CHECK_STR(expected, sign(d, "service", NULL, body));
    CHECK_STR("20150830T123600Z", hf__http_field(&d->head, "x-amz-date"));
}

TEST(sign, paths_and_queries_of_the_suite)
{
    static const char vanilla[] =
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    static const struct {
        const char *method;
        const char *target;
        const char *signature;
    } cases[] = {
        {"GET", "/", vanilla},
        {"GET", "/?", vanilla},
        {"GET", "", vanilla},
        {"GET", "/example/..", vanilla},
        {"GET", "/example1/example2/../..", vanilla},
        {"GET", "/./", vanilla},
        {"GET", "//", vanilla},
        {"GET", "/../..", vanilla},
        {"GET", "/?Param2=value2&Param1=value1",
         "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
        {"GET", "/?Param1=value1",
         "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
        {"GET", "/\xe1\x88\xb4",
         "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
        {"GET", "/?\xe1\x88\xb4=bar",
         "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
        {"GET", "/?%E1%88%B4=bar",
         "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
        {"GET", "/example space/",
         "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
        {"GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
         "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
        {"POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
        {"POST", "/?Param1=value1",
         "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    };
    struct desk d = desk_open(t);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        begin(&d, cases[i].method, cases[i].target);
        field(&d, "Host", "example.amazonaws.com");
        check_suite(&d, "host;x-amz-date", cases[i].signature, "");
        hf_scope_reset(d.s);
    }
    desk_close(&d);
}

TEST(sign, headers_and_bodies_of_the_suite)
{
    struct desk d = desk_open(t);

    begin(&d, "GET", "/");
    field(&d, "Host", "example.amazonaws.com");
    field(&d, "My-Header1", "value1");
    field(&d, "My-Header2", "\"a   b   c\"");
    check_suite(&d, "host;my-header1;my-header2;x-amz-date",
                "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", "");

    begin(&d, "GET", "/");
    field(&d, "Host", "example.amazonaws.com");
    field(&d, "My-Header1", "value2");
    field(&d, "My-Header1", "value2");
    field(&d, "My-Header1", "value1");
    check_suite(&d, "host;my-header1;x-amz-date",
                "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea", "");

    begin(&d, "GET", "/");
    field(&d, "Host", "example.amazonaws.com");
    field(&d, "My-Header1", "value4");
    field(&d, "My-Header1", "value1");
    field(&d, "My-Header1", "value3");
    field(&d, "My-Header1", "value2");
    check_suite(&d, "host;my-header1;x-amz-date",
                "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01", "");

    begin(&d, "POST", "/");
    field(&d, "Content-Type", "application/x-www-form-urlencoded");
    field(&d, "Host", "example.amazonaws.com");
    field(&d, "User-Agent", "not signed");
    check_suite(&d, "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
                "Param1=value1");
    desk_close(&d);
}

TEST(sign, session_tokens_are_sent_and_signed)
{
    static const char token[] =
        "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpS"
        "PfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDY"
        "wT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqK"
        "mlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
    struct desk d = desk_open(t);

    begin(&d, "POST", "/");
    field(&d, "Host", "example.amazonaws.com");
    CHECK_STR("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
              "SignedHeaders=host;x-amz-date;x-amz-security-token, "
              "Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
              sign(&d, "service", token, ""));
    CHECK_STR(token, hf__http_field(&d.head, "x-amz-security-token"));
    desk_close(&d);
}

TEST(sign, the_list_users_example)
{
    struct desk d = desk_open(t);
    struct hf_str canonical;

    begin(&d, "GET", "/?Action=ListUsers&Version=2010-05-08");
    field(&d, "Host", "iam.amazonaws.com");
    field(&d, "Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
    CHECK_STR("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
              "SignedHeaders=content-type;host;x-amz-date, "
              "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
              sign(&d, "iam", NULL, ""));
    CHECK_OK(hf__sign_canonical(d.s, &d.head, HF_STR("content-type;host;x-amz-date"),
                                HF_STR(EMPTY_HASH), true, &canonical));
    CHECK_STR("GET\n/\nAction=ListUsers&Version=2010-05-08\n"
              "content-type:application/x-www-form-urlencoded; charset=utf-8\n"
              "host:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
              "content-type;host;x-amz-date\n" EMPTY_HASH,
              canonical);
    desk_close(&d);
}

/* ---- S3's documents ------------------------------------------------------------------------- */

static void sign_s3(struct desk *d, const char *body)
{
    struct sign_credentials credentials = {
        .access_key = HF_STR("AKIAIOSFODNN7EXAMPLE"),
        .secret_key = HF_STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    };
    struct sign_how how = {.credentials = &credentials,
                           .region = HF_STR("us-east-1"),
                           .service = HF_STR("s3"),
                           .now_s = INT64_C(1369353600), /* 20130524T000000Z */
                           .body = hf_bytes_of(body, strlen(body))};

    CHECK_OK(hf__sign_request(d->s, d->signer, &d->head, &how));
}

static void check_signature(struct desk *d, const char *expected)
{
    struct hf_str value = hf__http_field(&d->head, "authorization");

    CHECK(value.len > SIGN_HEX);
    CHECK_STR(expected, hf_str_of(value.ptr + value.len - SIGN_HEX, SIGN_HEX));
}

TEST(sign, objects_of_s3)
{
    struct desk d = desk_open(t);

    begin(&d, "GET", "/test.txt");
    field(&d, "Host", "examplebucket.s3.amazonaws.com");
    field(&d, "Range", "bytes=0-9");
    sign_s3(&d, "");
    check_signature(&d, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    CHECK_STR(EMPTY_HASH, hf__http_field(&d.head, "x-amz-content-sha256"));

    begin(&d, "PUT", "/test%24file.text");
    field(&d, "Host", "examplebucket.s3.amazonaws.com");
    field(&d, "Date", "Fri, 24 May 2013 00:00:00 GMT");
    field(&d, "x-amz-storage-class", "REDUCED_REDUNDANCY");
    sign_s3(&d, "Welcome to Amazon S3.");
    check_signature(&d, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

    begin(&d, "GET", "/?lifecycle");
    field(&d, "Host", "examplebucket.s3.amazonaws.com");
    sign_s3(&d, "");
    check_signature(&d, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

    begin(&d, "GET", "/?max-keys=2&prefix=J");
    field(&d, "Host", "examplebucket.s3.amazonaws.com");
    sign_s3(&d, "");
    check_signature(&d, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    desk_close(&d);
}

/* The signature in a query is not part of what is signed. */
TEST(sign, a_presigned_object_of_s3)
{
    struct desk d = desk_open(t);
    struct sign_claim claim = {.date = HF_STR("20130524"),
                               .region = HF_STR("us-east-1"),
                               .service = HF_STR("s3"),
                               .time = HF_STR("20130524T000000Z")};
    struct hf_str canonical, string;
    uint8_t key[SIGN_HASH];
    char signature[SIGN_HEX + 1];

    begin(&d, "GET",
          "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2013"
          "0524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
          "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404&"
          "X-Amz-SignedHeaders=host");
    field(&d, "Host", "examplebucket.s3.amazonaws.com");
    CHECK_OK(
        hf__sign_canonical(d.s, &d.head, HF_STR("host"), HF_STR(SIGN_UNSIGNED), false, &canonical));
    CHECK_OK(hf__sign_string(d.s, d.signer, &claim, canonical, &string));
    hf__sign_key(d.signer, HF_STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), claim.date,
                 claim.region, claim.service, key);
    hf__sign_signature(d.signer, key, string, signature);
    CHECK_STR("aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
              hf_str_from(signature));
    desk_close(&d);
}

/* ---- the canonical form --------------------------------------------------------------------- */

static void check_lines(struct desk *d, const char *target, bool normalize, const char *path,
                        const char *query)
{
    struct hf_str canonical;
    char expected[1024];

    begin(d, "GET", target);
    CHECK_OK(hf__sign_canonical(d->s, &d->head, HF_STR(""), HF_STR("HASH"), normalize, &canonical));
    snprintf(expected, sizeof(expected), "GET\n%s\n%s\n\n\nHASH", path, query);
    CHECK_STR(expected, canonical);
}

TEST(sign, paths_are_encoded_once_or_twice)
{
    struct desk d = desk_open(t);

    check_lines(&d, "/a%20b/c", true, "/a%2520b/c", "");
    check_lines(&d, "/a%20b/c", false, "/a%20b/c", "");
    check_lines(&d, "//a//b/", true, "/a/b/", "");
    check_lines(&d, "//a//b/", false, "//a//b/", "");
    check_lines(&d, "/a/./b/../c", true, "/a/c", "");
    check_lines(&d, "/a/./b/../c", false, "/a/./b/../c", "");
    check_lines(&d, "/a/..b/.c./...", true, "/a/..b/.c./...", "");
    check_lines(&d, "/../../a", true, "/a", "");
    check_lines(&d, "/a/b/..", true, "/a", "");
    check_lines(&d, "/a/b/../", true, "/a/", "");
    check_lines(&d, "/a(b)%2z%", false, "/a%28b%29%252z%25", "");
    check_lines(&d, "", false, "/", "");
    check_lines(&d, "*", true, "/%2A", "");
    desk_close(&d);
}

TEST(sign, queries_are_sorted_as_they_are_encoded)
{
    struct desk d = desk_open(t);

    check_lines(&d, "/?b=2&a=1&a=0", true, "/", "a=0&a=1&b=2");
    check_lines(&d, "/?a&b=&&c", true, "/", "a=&b=&c=");
    check_lines(&d, "/?a=b=c", true, "/", "a=b%3Dc");
    check_lines(&d, "/?a=1+2&b=1%2b2", true, "/", "a=1%202&b=1%2B2");
    check_lines(&d, "/?%61=%7e%2f", true, "/", "a=~%2F");
    check_lines(&d, "/?a=%&b=%4&c=%zz", true, "/", "a=%25&b=%254&c=%25zz");
    check_lines(&d, "/?Param-3=3&Param=2&\xe1\x88\xb4=1", true, "/",
                "%E1%88%B4=1&Param=2&Param-3=3");
    check_lines(&d, "/?a-=1&a=2&A=3", true, "/", "A=3&a=2&a-=1");
    check_lines(&d, "/?b=1&X-Amz-Signature=ff&X-Amz-Signatur%65=00&a=1", true, "/", "a=1&b=1");
    check_lines(&d, "/?=x&==", true, "/", "=%3D&=x");
    check_lines(&d, "/?X-Amz-Signature=ff", true, "/", "");
    desk_close(&d);
}

TEST(sign, headers_are_trimmed_joined_and_there)
{
    struct desk d = desk_open(t);
    struct hf_str canonical;

    begin(&d, "GET", "/");
    field(&d, "B", "  one\t \ttwo  ");
    field(&d, "a", "");
    field(&d, "HOST", "x:1");
    field(&d, "b", "three ");
    CHECK_OK(hf__sign_canonical(d.s, &d.head, HF_STR("a;B;host"), HF_STR("H"), true, &canonical));
    CHECK_STR("GET\n/\n\na:\nb:one two,three\nhost:x:1\n\na;B;host\nH", canonical);

    CHECK_STATUS(HF_INVALID, hf__sign_canonical(d.s, &d.head, HF_STR("a;c;host"), HF_STR("H"), true,
                                                &canonical));
    CHECK_ERROR(HF_INVALID, "The header 'c' is signed but missing", d.s);
    CHECK(!canonical.ptr);
    CHECK_STATUS(HF_INVALID,
                 hf__sign_canonical(d.s, &d.head, HF_STR("b;a"), HF_STR("H"), true, &canonical));
    CHECK_STATUS(HF_INVALID,
                 hf__sign_canonical(d.s, &d.head, HF_STR("a;A"), HF_STR("H"), true, &canonical));
    CHECK_STATUS(HF_INVALID,
                 hf__sign_canonical(d.s, &d.head, HF_STR("a;;b"), HF_STR("H"), true, &canonical));
    CHECK_STATUS(HF_INVALID,
                 hf__sign_canonical(d.s, &d.head, HF_STR(";a"), HF_STR("H"), true, &canonical));
    desk_close(&d);
}

TEST(sign, parameters_are_found_decoded)
{
    struct desk d = desk_open(t);
    struct hf_str value, query = HF_STR("a=1&b=x%2fy+z&c&%64=4&b=second&e=%0");

    CHECK_OK(hf__sign_param(d.s, query, "b", &value));
    CHECK_STR("x/y z", value);
    CHECK_OK(hf__sign_param(d.s, query, "c", &value));
    CHECK(value.ptr && !value.len);
    CHECK_OK(hf__sign_param(d.s, query, "d", &value));
    CHECK_STR("4", value);
    CHECK_OK(hf__sign_param(d.s, query, "e", &value));
    CHECK_STR("%0", value);
    CHECK_OK(hf__sign_param(d.s, query, "B", &value));
    CHECK(!value.ptr);
    CHECK_OK(hf__sign_param(d.s, (struct hf_str){0}, "a", &value));
    CHECK(!value.ptr);
    desk_close(&d);
}

TEST(sign, equal_is_equal)
{
    CHECK(hf__sign_equal(HF_STR("abc"), HF_STR("abc")));
    CHECK(!hf__sign_equal(HF_STR("abc"), HF_STR("abd")));
    CHECK(!hf__sign_equal(HF_STR("abc"), HF_STR("ab")));
    CHECK(hf__sign_equal(HF_STR(""), (struct hf_str){0}));
}

TEST(sign, times_there_and_back)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } good[] = {
        {"19700101T000000Z", 0},
        {"20150830T123600Z", NOW},
        {"20240229T235959Z", 1709251199},
        {"19691231T235959Z", -1},
        {"00010101T000000Z", INT64_C(-62135596800)},
        {"99991231T235959Z", INT64_C(253402300799)},
    };
    static const char *const bad[] = {
        "",
        "2015083",
        "20150830T123600",
        "20150830T123600z",
        "20150830 123600Z",
        "20151330T123600Z",
        "20150830T243600Z",
        "20150830T126000Z",
        "20150830T123660Z",
        "20150832T123600Z",
        "20150931T123600Z",
        "20150229T123600Z",
        "19000229T123600Z",
        "20150800T123600Z",
        "20150030T123600Z",
        "2015083aT123600Z",
        "-0150830T123600Z",
        "20150830T1236000Z",
    };
    char text[SIGN_TIME + 1];
    int64_t seconds;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(hf__sign_time(hf_str_from(good[i].text), &seconds));
        CHECK_INT(good[i].seconds, seconds);
        hf__sign_time_text(good[i].seconds, text);
        CHECK_STR(good[i].text, hf_str_from(text));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!hf__sign_time(hf_str_from(bad[i]), &seconds));
    hf__sign_time_text(INT64_MAX, text);
    CHECK_STR("99991231T235959Z", hf_str_from(text));
    hf__sign_time_text(INT64_MIN, text);
    CHECK_STR("00000101T000000Z", hf_str_from(text));
}

/* Every day that can be written, as the C library counts them. */
TEST(sign, times_of_all_days)
{
    struct tm tm = {.tm_year = -1900, .tm_mday = 1};
    int64_t first = timegm(&tm), seconds;
    char text[SIGN_TIME + 1];

    for (int day = 0; day < 3652425; day++) { /* 10,000 years */
        int64_t expected = first + INT64_C(86400) * day + day % 86400;

        hf__sign_time_text(expected, text);
        if (!hf__sign_time(hf_str_of(text, SIGN_TIME), &seconds) || seconds != expected)
            CHECK_STR(text, HF_STR("a time that is read as it was written"));
    }
    CHECK_STR("9999", hf_str_of(text, 4));
}

/* ---- what goes wrong ------------------------------------------------------------------------ */

TEST(sign, requests_that_cannot_be_signed)
{
    struct desk d = desk_open(t);
    struct sign_credentials credentials = {.access_key = HF_STR("a"), .secret_key = HF_STR("b")};
    struct sign_how how = {.credentials = &credentials,
                           .region = HF_STR("r"),
                           .service = HF_STR("dynamodb"),
                           .now_s = NOW};

    begin(&d, "POST", "/");
    CHECK_STATUS(HF_INVALID, hf__sign_request(d.s, d.signer, &d.head, &how));
    CHECK_ERROR(HF_INVALID, "The request to sign has no field Host", d.s);
    field(&d, "host", "h");
    field(&d, "x-amz-date", "20150830T123600Z");
    CHECK_STATUS(HF_INVALID, hf__sign_request(d.s, d.signer, &d.head, &how));
    CHECK_ERROR(HF_INVALID, "The request to sign has the field X-Amz-Date already", d.s);

    begin(&d, "POST", "/");
    field(&d, "host", "h");
    while (d.head.fields_len < HTTP_FIELDS_MAX - 1)
        field(&d, "more", "of it");
    CHECK_STATUS(HF_LIMIT, hf__sign_request(d.s, d.signer, &d.head, &how));
    desk_close(&d);
}

TEST(sign, signing_fails_for_lack_of_memory_only)
{
    struct hf_str first = {0};
    char kept[400];

    ALLOC_SWEEP (t, nth) {
        struct desk d = {.s = hf_scope_new(test_env(t))};
        struct sign_credentials credentials = {.access_key = HF_STR("a"),
                                               .secret_key = HF_STR("b"),
                                               .session_token = HF_STR("c")};
        struct sign_how how = {.credentials = &credentials,
                               .region = HF_STR("r"),
                               .service = HF_STR("s3"),
                               .now_s = NOW};
        enum hf_status status = d.s ? hf__signer_new(d.s, test_env(t), &d.signer) : HF_NOMEM;
        char *large = malloc(9000);

        /* More than the first chunk of the scope holds, so that there is more than one to fail. */
        memset(large, 'x', 8999);
        large[8999] = '\0';
        begin(&d, "POST", "/a?b=c&d=e");
        field(&d, "Host", "h");
        field(&d, "Large", large);
        if (status == HF_OK)
            status = hf__sign_request(d.s, d.signer, &d.head, &how);
        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        if (status == HF_OK) {
            first = hf__http_field(&d.head, "authorization");
            CHECK(first.len < sizeof(kept));
            memcpy(kept, first.ptr, first.len);
            first.ptr = kept;
        } else {
            CHECK_INT(HF_NOMEM, status);
        }
        desk_close(&d);
        free(large);
    }
    CHECK(first.len > SIGN_HEX);
}

TEST(sign, a_body_may_stay_unsigned)
{
    struct desk d = desk_open(t);
    struct sign_credentials credentials = {.access_key = HF_STR("a"), .secret_key = HF_STR("b")};
    struct sign_how how = {.credentials = &credentials,
                           .region = HF_STR("r"),
                           .service = HF_STR("s3"),
                           .now_s = NOW,
                           .body = hf_bytes_of("one", 3),
                           .unsigned_body = true};
    struct hf_str one;

    begin(&d, "PUT", "/o");
    field(&d, "Host", "h");
    CHECK_OK(hf__sign_request(d.s, d.signer, &d.head, &how));
    CHECK_STR("UNSIGNED-PAYLOAD", hf__http_field(&d.head, "x-amz-content-sha256"));
    one = hf__http_field(&d.head, "authorization");
    begin(&d, "PUT", "/o");
    field(&d, "Host", "h");
    how.body = hf_bytes_of("another", 7);
    CHECK_OK(hf__sign_request(d.s, d.signer, &d.head, &how));
    CHECK(hf_str_equal(one, hf__http_field(&d.head, "authorization")));
    how.unsigned_body = false;
    begin(&d, "PUT", "/o");
    field(&d, "Host", "h");
    CHECK_OK(hf__sign_request(d.s, d.signer, &d.head, &how));
    CHECK(!hf_str_equal(one, hf__http_field(&d.head, "authorization")));
    desk_close(&d);
}
