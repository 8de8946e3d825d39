/*
 * server/auth_test.c: who is let in, and in which words the others are not; (n) is an invariant of
 * auth.c.
 */
#include "server/auth.h"

#include "test.h"

#define NOW INT64_C(1440938160) /* 20150830T123600Z */
#define SERVICE "com.amazon.coral.service#"
#define MISMATCH                                                                                   \
    "The request signature we calculated does not match the signature you provided. Check your "   \
    "AWS Secret Access Key and signing method. Consult the service documentation for details."

struct court {
    struct hf_scope *s;
    struct signer *signer;
    struct auth *auth;
    struct http_head head;
    struct hf_bytes body;
    int64_t now_s;
    struct auth_refusal refusal;
};

static const struct sign_credentials ann = {{"ANN", 3}, {"secret of ann", 13}, {0}};
static const struct sign_credentials ben = {{"BEN", 3}, {"secret of ben", 13}, {"token/+=", 8}};

static struct court court_open(struct test *t, const struct sign_credentials *keys, size_t len)
{
    struct court c = {.s = hf_scope_new(test_env(t)), .now_s = NOW};

    CHECK(c.s != NULL);
    CHECK_OK(hf__signer_new(c.s, test_env(t), &c.signer));
    CHECK_OK(hf__auth_new(c.s, test_env(t), keys, len, 0, &c.auth));
    return c;
}

static struct court court_open_two(struct test *t)
{
    const struct sign_credentials keys[] = {ann, ben};

    return court_open(t, keys, 2);
}

static void court_close(struct court *c)
{
    hf__auth_free(c->auth);
    hf__signer_free(c->signer);
    hf_scope_free(c->s);
}

static void begin(struct court *c, const char *target)
{
    const char *mark = strchr(target, '?');

    c->head = (struct http_head){.method = HF_STR("POST"), .target = hf_str_from(target)};
    c->head.path = hf_str_of(target, mark ? (size_t)(mark - target) : strlen(target));
    if (mark)
        c->head.query = hf_str_from(mark + 1);
    c->body = hf_bytes_of("{}", 2);
}

static void field(struct court *c, const char *name, const char *value)
{
    c->head.fields[c->head.fields_len++] =
        (struct http_field){hf_str_from(name), hf_str_from(value)};
}

static struct http_field *find(struct court *c, const char *name)
{
    for (size_t i = 0; i < c->head.fields_len; i++) {
        if (hf__http_is(c->head.fields[i].name, name))
            return &c->head.fields[i];
    }
    fail_msg("no field %s", name);
    return NULL;
}

static void plain(struct court *c)
{
    begin(c, "/");
    field(c, "Host", "localhost:8000");
    field(c, "X-Amz-Target", "DynamoDB_20120810.ListTables");
    field(c, "Content-Type", "application/x-amz-json-1.0");
}

static void sign(struct court *c, const struct sign_credentials *who, const char *region)
{
    struct sign_how how = {.credentials = who,
                           .region = hf_str_from(region),
                           .service = HF_STR("dynamodb"),
                           .now_s = c->now_s,
                           .body = c->body};

    CHECK_OK(hf__sign_request(c->s, c->signer, &c->head, &how));
}

static bool passes(struct court *c)
{
    bool yes = hf__auth_check(c->s, c->auth, &c->head, c->body, c->now_s, &c->refusal);

    CHECK(yes == (c->refusal.status == 0));
    CHECK(yes == (c->refusal.type == NULL));
    CHECK(yes == (c->refusal.message.ptr == NULL));
    return yes;
}

static void check_refused(struct court *c, const char *type, const char *message)
{
    CHECK(!passes(c));
    CHECK_STR(message, c->refusal.message);
    CHECK_STR(type, hf_str_from(c->refusal.type));
    CHECK_INT(400, c->refusal.status);
}

/* A request with this header and a date, of nobody in particular. */
static void with_header(struct court *c, const char *authorization)
{
    plain(c);
    field(c, "X-Amz-Date", "20150830T123600Z");
    field(c, "Authorization", authorization);
}

/* ---- the form, with and without keys -------------------------------------------------------- */

static void check_forms(struct court *c)
{
    plain(c);
    check_refused(c, SERVICE "MissingAuthenticationTokenException",
                  "Request is missing Authentication Token");
    with_header(c, "");
    check_refused(c, SERVICE "MissingAuthenticationTokenException",
                  "Request is missing Authentication Token");
    with_header(c, "Basic Zm9vOmJhcg==");
    check_refused(c, SERVICE "MissingAuthenticationTokenException",
                  "Request is missing Authentication Token");
    with_header(c, "AWS4");
    check_refused(c, SERVICE "MissingAuthenticationTokenException",
                  "Request is missing Authentication Token");

    plain(c);
    field(c, "Authorization", "AWS4-");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Authorization header requires 'Credential' parameter. Authorization header "
                  "requires 'Signature' parameter. Authorization header requires 'SignedHeaders' "
                  "parameter. Authorization header requires existence of either a 'X-Amz-Date' or "
                  "a 'Date' header. Authorization=AWS4-");
    with_header(c, "AWS4-HMAC-SHA256 Signature=b,, Credential=a/b/c/d/e");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Authorization header requires 'SignedHeaders' parameter. "
                  "Authorization=AWS4-HMAC-SHA256 Signature=b,, Credential=a/b/c/d/e");
    with_header(c, "AWS4-HMAC-SHA256 Signature=, Credential=,SignedHeaders=");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Authorization header requires 'Credential' parameter. Authorization header "
                  "requires 'Signature' parameter. "
                  "Authorization=AWS4-HMAC-SHA256 Signature=, Credential=,SignedHeaders=");
    with_header(c, "AWS4-HMAC-SHA256 credential=a/b/c/d/e Signature=b SignedHeaders=host");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Authorization header requires 'Credential' parameter. Authorization="
                  "AWS4-HMAC-SHA256 credential=a/b/c/d/e Signature=b SignedHeaders=host");
    with_header(c, "AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "'Credential' not a valid key=value pair (missing equal-sign) in Authorization "
                  "header: 'AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders'.");
    with_header(c, "AWS4-HMAC-SHA256 \xff Credential=\xc3\xa4\xc3");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "'?' not a valid key=value pair (missing equal-sign) in Authorization "
                  "header: 'AWS4-HMAC-SHA256 ? Credential=\xc3\xa4?'."); /* (4) */

    with_header(c, "AWS4-HMAC-SHA256 Credential=a/20150830/c/dynamodb/aws4_request,Signature=b,"
                   "SignedHeaders=host;x-amz-target");
    find(c, "x-amz-date")->value = HF_STR("201");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Date must be in ISO-8601 'basic format'. Got '201'. See "
                  "http://en.wikipedia.org/wiki/ISO_8601");
    find(c, "x-amz-date")->name = HF_STR("Date");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Date must be in ISO-8601 'basic format'. Got '201'. See "
                  "http://en.wikipedia.org/wiki/ISO_8601");
    find(c, "date")->value = HF_STR("Sun, 30 Agu 2015 12:36:00 GMT");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Date must be in ISO-8601 'basic format'. Got 'Sun, 30 Agu 2015 12:36:00 GMT'. "
                  "See http://en.wikipedia.org/wiki/ISO_8601");
    find(c, "date")->value = HF_STR("2015\0"
                                    "830T123600Z");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Date must be in ISO-8601 'basic format'. Got '2015?830T123600Z'. "
                  "See http://en.wikipedia.org/wiki/ISO_8601");

    with_header(c, "AWS4-HMAC-SHA25 Credential=a/20150830/c/dynamodb/aws4_request,Signature=b,"
                   "SignedHeaders=host;x-amz-target");
    check_refused(
        c, SERVICE "IncompleteSignatureException",
        "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA25' (only AWS4-HMAC-SHA256 for now). ");
    with_header(c, "AWS4-HMAC-SHA256 Credential=a/b/c/d//,Signature=b,"
                   "SignedHeaders=host;x-amz-target");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Credential must have exactly 5 slash-delimited elements, e.g. "
                  "keyid/date/region/service/term, got 'a/b/c/d//'");
    with_header(c, "AWS4-HMAC-SHA256 Credential=a/b/c/d/e/f,Signature=b,"
                   "SignedHeaders=host;x-amz-target");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Credential must have exactly 5 slash-delimited elements, e.g. "
                  "keyid/date/region/service/term, got 'a/b/c/d/e/f'");
}

static void check_query_forms(struct court *c)
{
    with_header(c, "AWS4-");
    c->head.query = HF_STR("X-Amz-Algorithm");
    check_refused(c, SERVICE "InvalidSignatureException",
                  "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as "
                  "HTTP header.");
    plain(c);
    c->head.query = HF_STR("a=b&X-Amz-Algorith%6D");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "AWS query-string parameters must include 'X-Amz-Algorithm'. "
                  "AWS query-string parameters must include 'X-Amz-Credential'. "
                  "AWS query-string parameters must include 'X-Amz-Signature'. "
                  "AWS query-string parameters must include 'X-Amz-SignedHeaders'. "
                  "AWS query-string parameters must include 'X-Amz-Date'. "
                  "Re-examine the query-string parameters.");
    plain(c);
    c->head.query = HF_STR("X-Amz-Algorithm=a&X-Amz-SignedHeaders=b&X-Amz-Signature=&"
                           "X-Amz-Credential=d&X-Amz-Date=e&x-amz-signature=f");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "AWS query-string parameters must include 'X-Amz-Signature'. "
                  "Re-examine the query-string parameters.");
    plain(c);
    c->head.query = HF_STR("X-Amz-Algorithm=a&X-Amz-SignedHeaders=b&X-Amz-Signature=c&"
                           "X-Amz-Credential=d&X-Amz-Date=Sun,%2030%20Aug%202015%2012:36:00%20GMT");
    check_refused(c, SERVICE "IncompleteSignatureException",
                  "Date must be in ISO-8601 'basic format'. Got 'Sun, 30 Aug 2015 12:36:00 GMT'. "
                  "See http://en.wikipedia.org/wiki/ISO_8601");
}

TEST(auth, malformed_signatures_are_refused_with_keys)
{
    struct court c = court_open_two(t);

    check_forms(&c);
    check_query_forms(&c);
    court_close(&c);
}

TEST(auth, malformed_signatures_are_refused_without_keys)
{
    struct court c = court_open(t, NULL, 0);

    check_forms(&c);
    check_query_forms(&c);
    court_close(&c);
}

TEST(auth, without_keys_any_signature_passes)
{
    struct court c = court_open(t, NULL, 0);

    with_header(&c, "AWS4-HMAC-SHA256 Credential=fakeMyKeyId/20150830/us-east-1/dynamodb/"
                    "aws4_request, SignedHeaders=host, Signature=00");
    CHECK(passes(&c));
    with_header(&c, "AWS4-HMAC-SHA256 Credential=cassandra/2/3/4/aws4_request SignedHeaders="
                    "x-amz-date;host Signature=123");
    CHECK(passes(&c));
    find(&c, "x-amz-date")->value = HF_STR("30200101T010101Z");
    CHECK(passes(&c));
    find(&c, "x-amz-date")->name = HF_STR("date");
    find(&c, "date")->value = HF_STR("Mon, 09 Sep 2011 23:36:00 GMT");
    CHECK(passes(&c));
    begin(&c, "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=cred%2F20150101%2Fus-east-1%2F"
              "dynamodb%2Faws4_request&X-Amz-Date=20150101T100000Z&X-Amz-Expires=300&"
              "X-Amz-SignedHeaders=host%3Bx-amz-target&X-Amz-Signature=my-signature");
    CHECK(passes(&c));
    plain(&c);
    sign(&c, &ben, "nowhere");
    CHECK(passes(&c));
    CHECK_OK(hf__auth_set_region(c.s, c.auth, HF_STR("here")));
    CHECK(passes(&c));
    court_close(&c);
}

/* ---- with keys: the header ------------------------------------------------------------------ */

TEST(auth, both_keys_may_call)
{
    struct court c = court_open_two(t);

    for (int round = 0; round < 3; round++) { /* the first time derives the key, then it is kept */
        plain(&c);
        sign(&c, &ann, "us-east-1");
        CHECK(passes(&c));
        plain(&c);
        sign(&c, &ben, "us-east-1");
        CHECK(passes(&c));
    }
    court_close(&c);
}

TEST(auth, what_was_signed_must_not_change)
{
    static const char other[] = "[]";
    struct court c = court_open_two(t);

    for (int warm = 0; warm < 2; warm++) {
        plain(&c);
        sign(&c, &ann, "us-east-1");
        c.body = hf_bytes_of(other, 2);
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        c.body = hf_bytes_of("{}", 2);
        CHECK(passes(&c));
        c.head.method = HF_STR("PUT");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        c.head.method = HF_STR("POST");
        c.head.path = HF_STR("/a");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        c.head.path = HF_STR("/");
        c.head.query = HF_STR("a=b");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        c.head.query = (struct hf_str){0};
        find(&c, "host")->value = HF_STR("localhost:8001");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        find(&c, "host")->value = HF_STR("localhost:8000");
        find(&c, "x-amz-target")->value = HF_STR("DynamoDB_20120810.DeleteTable");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        find(&c, "x-amz-target")->value = HF_STR("DynamoDB_20120810.ListTables");
        find(&c, "x-amz-date")->value = HF_STR("20150830T123601Z");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        find(&c, "x-amz-date")->value = HF_STR("20150830T123600Z");
        find(&c, "content-type")->name = HF_STR("Content-Kind"); /* signed, and missing */
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        find(&c, "content-kind")->name = HF_STR("CONTENT-TYPE");
        CHECK(passes(&c));
        field(&c, "User-Agent", "not signed");
        CHECK(passes(&c));
        field(&c, "content-type", "twice");
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
    }
    court_close(&c);
}

TEST(auth, strangers_and_wrong_secrets)
{
    struct court c = court_open_two(t);
    struct sign_credentials who = ann;

    plain(&c);
    who.access_key = HF_STR("ANNE");
    sign(&c, &who, "us-east-1");
    check_refused(&c, SERVICE "UnrecognizedClientException",
                  "The security token included in the request is invalid.");
    plain(&c);
    who.access_key = HF_STR("ANN");
    who.secret_key = HF_STR("secret of ben");
    sign(&c, &who, "us-east-1");
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
    court_close(&c);
}

TEST(auth, session_tokens_are_compared)
{
    struct court c = court_open_two(t);
    struct sign_credentials who = ben;

    plain(&c);
    who.session_token = (struct hf_str){0};
    sign(&c, &who, "us-east-1");
    check_refused(&c, SERVICE "UnrecognizedClientException",
                  "The security token included in the request is invalid");
    plain(&c);
    who.session_token = HF_STR("token/+-");
    sign(&c, &who, "us-east-1");
    check_refused(&c, SERVICE "UnrecognizedClientException",
                  "The security token included in the request is invalid");
    plain(&c);
    who = ann;
    who.session_token = HF_STR("made up");
    sign(&c, &who, "us-east-1");
    check_refused(&c, SERVICE "UnrecognizedClientException",
                  "The security token included in the request is invalid");
    court_close(&c);
}

/* A secret is replaced while clients still use the old one. */
TEST(auth, one_access_key_may_have_two_secrets)
{
    struct sign_credentials keys[] = {ann, ann, ben, ben};
    struct court c;

    keys[1].secret_key = HF_STR("new secret of ann");
    keys[3].session_token = HF_STR("new token");
    c = court_open(t, keys, 4);
    for (size_t i = 0; i < 8; i++) {
        plain(&c);
        sign(&c, &keys[i % 4], "us-east-1");
        CHECK(passes(&c));
    }
    court_close(&c);
}

TEST(auth, the_clock_may_be_off_a_little)
{
    struct court c = court_open_two(t);

    plain(&c);
    sign(&c, &ann, "us-east-1");
    c.now_s = NOW + 300;
    CHECK(passes(&c));
    c.now_s = NOW + 301;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
                  "(20150830T124101Z - 5 min.)");
    c.now_s = NOW - 300;
    CHECK(passes(&c));
    c.now_s = NOW - 301;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature not yet current: 20150830T123600Z is still later than "
                  "20150830T123559Z (20150830T123059Z + 5 min.)");
    court_close(&c);
}

TEST(auth, the_window_can_be_set)
{
    struct court c = court_open_two(t);

    hf__auth_free(c.auth);
    CHECK_OK(hf__auth_new(c.s, test_env(t), &ann, 1, 90, &c.auth));
    plain(&c);
    sign(&c, &ann, "us-east-1");
    c.now_s = NOW + 90;
    CHECK(passes(&c));
    c.now_s = NOW + 91;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
                  "(20150830T123731Z - 90 sec.)");
    court_close(&c);
}

TEST(auth, the_date_header_serves_too)
{
    struct court c = court_open_two(t);
    struct sign_claim claim = {.date = HF_STR("20150830"),
                               .region = HF_STR("r"),
                               .service = HF_STR("dynamodb"),
                               .time = HF_STR("20150830T123600Z")};
    char hash[SIGN_HEX + 1], signature[SIGN_HEX + 1], header[300];
    struct hf_str canonical, string;
    uint8_t key[SIGN_HASH];

    begin(&c, "/");
    field(&c, "Host", "h");
    field(&c, "Date", "Sun, 30 Aug 2015 12:36:00 GMT");
    hf__sha256_hex(c.signer, c.body.ptr, c.body.len, hash);
    CHECK_OK(
        hf__sign_canonical(c.s, &c.head, HF_STR("date;host"), hf_str_from(hash), true, &canonical));
    CHECK_OK(hf__sign_string(c.s, c.signer, &claim, canonical, &string));
    hf__sign_key(c.signer, ann.secret_key, claim.date, claim.region, claim.service, key);
    hf__sign_signature(c.signer, key, string, signature);
    snprintf(header, sizeof(header),
             "AWS4-HMAC-SHA256 Credential=ANN/20150830/r/dynamodb/aws4_request/,"
             "SignedHeaders=date;host,Signature=%s",
             signature);
    field(&c, "Authorization", header);
    CHECK(passes(&c));
    c.now_s += 301;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
                  "(20150830T124101Z - 5 min.)");
    court_close(&c);
}

TEST(auth, the_scope_is_checked_piece_by_piece)
{
    struct court c = court_open_two(t);

    with_header(&c, "AWS4-HMAC-SHA256 Credential=ANN/b/c/d/e,SignedHeaders=host;x-amz-target,"
                    "Signature=00");
    CHECK_OK(hf__auth_set_region(c.s, c.auth, HF_STR("eu-west-1")));
    CHECK_OK(hf__auth_set_region(c.s, c.auth, HF_STR("us-east-1")));
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Credential should be scoped to a valid region, not 'c'. "
                  "Credential should be scoped to correct service: 'dynamodb'. "
                  "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. "
                  "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
                  "from HTTP: 'b' != '20150830', from '20150830T123600Z'.");
    with_header(&c, "AWS4-HMAC-SHA256 Credential=NOBODY/20150830/us-east-1/s3/aws4_request,"
                    "SignedHeaders=host;x-amz-target,Signature=00");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Credential should be scoped to correct service: 'dynamodb'. ");
    with_header(&c, "AWS4-HMAC-SHA256 Credential=ANN/20150829/us-east-1/dynamodb/aws4_request,"
                    "SignedHeaders=host;x-amz-target,Signature=00");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
                  "from HTTP: '20150829' != '20150830', from '20150830T123600Z'.");
    plain(&c);
    sign(&c, &ann, "us-east-2");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Credential should be scoped to a valid region, not 'us-east-2'. ");
    plain(&c);
    sign(&c, &ann, "us-east-1");
    CHECK(passes(&c));
    court_close(&c);
}

/* A request with everything wrong that can be; each time, what was said is put right. */
TEST(auth, the_first_thing_wrong_is_the_answer)
{
    static const struct {
        const char *date;
        const char *authorization;
        const char *type;
        const char *message;
    } steps[] = {
        {"2016", "AWS4-X a Credential=a/b", SERVICE "IncompleteSignatureException", "'a' not"},
        {"2016", "AWS4-X Credential=a/b", SERVICE "IncompleteSignatureException",
         "Authorization header requires 'Signature'"},
        {"2016", "AWS4-X Credential=a/b Signature=c SignedHeaders=d",
         SERVICE "IncompleteSignatureException", "Date must be"},
        {"20160830T123600Z", "AWS4-X Credential=a/b Signature=c SignedHeaders=d",
         SERVICE "InvalidSignatureException", "Signature not yet current"},
        {"20140830T123600Z", "AWS4-X Credential=a/b Signature=c SignedHeaders=d",
         SERVICE "InvalidSignatureException", "Signature expired"},
        {"20150830T123600Z", "AWS4-X Credential=a/b Signature=c SignedHeaders=d",
         SERVICE "InvalidSignatureException", "'Host' or"},
        {"20150830T123600Z", "AWS4-X Credential=a/b Signature=c SignedHeaders=host",
         SERVICE "InvalidSignatureException", "'X-Amz-Target' must"},
        {"20150830T123600Z", "AWS4-X Credential=a/b Signature=c SignedHeaders=host;x-amz-target",
         SERVICE "IncompleteSignatureException", "Unsupported AWS 'algorithm'"},
        {"20150830T123600Z",
         "AWS4-HMAC-SHA256 Credential=a/b Signature=c SignedHeaders=host;x-amz-target",
         SERVICE "IncompleteSignatureException", "Credential must have exactly 5"},
        {"20150830T123600Z",
         "AWS4-HMAC-SHA256 Credential=a/b/c/d/e Signature=c SignedHeaders=host;x-amz-target",
         SERVICE "InvalidSignatureException", "Credential should be scoped"},
        {"20150830T123600Z",
         "AWS4-HMAC-SHA256 Credential=a/20150830/c/dynamodb/aws4_request Signature=c "
         "SignedHeaders=host;x-amz-target",
         SERVICE "UnrecognizedClientException", "The security token"},
        {"20150830T123600Z",
         "AWS4-HMAC-SHA256 Credential=BEN/20150830/c/dynamodb/aws4_request Signature=c "
         "SignedHeaders=host;x-amz-target",
         SERVICE "InvalidSignatureException", "The request signature we calculated"},
    };
    struct court c = court_open_two(t);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        with_header(&c, steps[i].authorization);
        find(&c, "x-amz-date")->value = hf_str_from(steps[i].date);
        CHECK(!passes(&c));
        CHECK_STR(steps[i].type, hf_str_from(c.refusal.type));
        CHECK(c.refusal.message.len > strlen(steps[i].message));
        CHECK_STR(steps[i].message, hf_str_of(c.refusal.message.ptr, strlen(steps[i].message)));
    }
    court_close(&c);
}

/* (3) */
TEST(auth, host_and_target_must_be_signed)
{
    struct court c = court_open_two(t);

    with_header(&c, "AWS4-HMAC-SHA256 Credential=ANN/20150830/us-east-1/dynamodb/aws4_request,"
                    "SignedHeaders=hos;host2;x-amz-target,Signature=00");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
    with_header(&c, "AWS4-HMAC-SHA256 Credential=ANN/20150830/us-east-1/dynamodb/aws4_request,"
                    "SignedHeaders=,Signature=00");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
    with_header(&c, "AWS4-HMAC-SHA256 Credential=ANN/20150830/us-east-1/dynamodb/aws4_request,"
                    "SignedHeaders=HOST;x-amz-targe,Signature=00");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");

    /* A target that is added to a request which was signed without one. */
    begin(&c, "/");
    field(&c, "Host", "h");
    sign(&c, &ann, "us-east-1");
    CHECK(passes(&c));
    field(&c, "x-amz-target", "DynamoDB_20120810.DeleteTable");
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");
    court_close(&c);
}

#define UNSIGNED_BODY                                                                              \
    "X-Amz-Content-Sha256 is UNSIGNED-PAYLOAD, but without TLS the body must be signed."

/* (3): without TLS whoever is in between could send another body with the same signature. */
TEST(auth, the_hash_of_the_body_may_be_a_header)
{
    struct court c = court_open_two(t);
    struct sign_how how = {.credentials = &ann,
                           .region = HF_STR("r"),
                           .service = HF_STR("dynamodb"),
                           .now_s = NOW,
                           .unsigned_body = true};
    char hash[SIGN_HEX + 1];

    plain(&c);
    hf__sha256_hex(c.signer, c.body.ptr, c.body.len, hash);
    field(&c, "X-Amz-Content-Sha256", hash);
    sign(&c, &ann, "us-east-1");
    CHECK(passes(&c));
    c.body = hf_bytes_of("[]", 2);
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);

    plain(&c);
    how.body = c.body;
    CHECK_OK(hf__sign_request(c.s, c.signer, &c.head, &how));
    check_refused(&c, SERVICE "InvalidSignatureException", UNSIGNED_BODY);
    hf__auth_allow_unsigned_body(c.auth);
    CHECK(passes(&c));
    c.body = hf_bytes_of("[]", 2);
    CHECK(passes(&c));
    find(&c, "x-amz-content-sha256")->value = HF_STR("unsigned-payload");
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);

    /* Who signs the body is not talked out of it by a header from somebody else. */
    plain(&c);
    sign(&c, &ann, "us-east-1");
    field(&c, "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD");
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
    court_close(&c);
}

/* ---- with keys: the query ------------------------------------------------------------------- */

/* POST /?more&X-Amz-... of `who`, signed with the headers of `signed_headers`. */
static void presign(struct court *c, const struct sign_credentials *who, const char *more,
                    const char *signed_headers, struct hf_str payload)
{
    struct sign_claim claim = {.date = HF_STR("20150830"),
                               .region = HF_STR("us-east-1"),
                               .service = HF_STR("dynamodb"),
                               .time = HF_STR("20150830T123600Z")};
    char hash[SIGN_HEX + 1], signature[SIGN_HEX + 1];
    struct hf_str canonical, string;
    uint8_t key[SIGN_HASH];

    c->head.query = hf_scope_format(
        c->s,
        "%sX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=%.*s%%2F20150830%%2Fus-east-1%%2F"
        "dynamodb%%2Faws4_request&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=%s",
        more, HF_FMT(who->access_key), signed_headers);
    hf__sha256_hex(c->signer, c->body.ptr, c->body.len, hash);
    if (!payload.ptr)
        payload = hf_str_from(hash);
    CHECK_OK(
        hf__sign_canonical(c->s, &c->head, hf_str_from(signed_headers), payload, true, &canonical));
    CHECK_OK(hf__sign_string(c->s, c->signer, &claim, canonical, &string));
    hf__sign_key(c->signer, who->secret_key, claim.date, claim.region, claim.service, key);
    hf__sign_signature(c->signer, key, string, signature);
    c->head.query =
        hf_scope_format(c->s, "%.*s&X-Amz-Signature=%s", HF_FMT(c->head.query), signature);
}

TEST(auth, a_query_may_be_signed)
{
    struct court c = court_open_two(t);
    struct hf_str query;

    plain(&c);
    presign(&c, &ann, "b=1&a=%20&a=+&X-Amz-Expires=60&", "host;x-amz-target", (struct hf_str){0});
    CHECK(passes(&c));
    c.now_s = NOW + 60;
    CHECK(passes(&c));
    c.now_s = NOW + 61;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
                  "(20150830T123701Z - 1 min.)");
    c.now_s = NOW - 301;
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature not yet current: 20150830T123600Z is still later than "
                  "20150830T123559Z (20150830T123059Z + 5 min.)");
    c.now_s = NOW;
    query = c.head.query;
    c.head.query = hf_scope_format(c.s, "%.*s&c=1", HF_FMT(query));
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
    c.head.query = hf_scope_format(c.s, "%.*s", HF_FMT(query));
    CHECK(passes(&c));
    c.body = hf_bytes_of("[]", 2);
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);

    plain(&c);
    presign(&c, &ann, "", "host", (struct hf_str){0});
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");
    plain(&c);
    presign(&c, &ann, "", "x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
    court_close(&c);
}

TEST(auth, a_query_may_last_a_week_or_as_long_as_the_window)
{
    struct court c = court_open_two(t);

    plain(&c);
    presign(&c, &ann, "X-Amz-Expires=604800&", "host;x-amz-target", (struct hf_str){0});
    c.now_s = NOW + 604800;
    CHECK(passes(&c));
    plain(&c);
    presign(&c, &ann, "", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "InvalidSignatureException",
                  "Signature expired: 20150830T123600Z is now earlier than 20150906T123100Z "
                  "(20150906T123600Z - 5 min.)");
    c.now_s = NOW;
    CHECK(passes(&c));

    presign(&c, &ann, "X-Amz-Expires=604801&", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "IncompleteSignatureException",
                  "X-Amz-Expires must be less than a week (in seconds); that is, the given "
                  "X-Amz-Expires must be less than 604800 seconds");
    presign(&c, &ann, "X-Amz-Expires=99999999999999999999999&", "host;x-amz-target",
            (struct hf_str){0});
    check_refused(&c, SERVICE "IncompleteSignatureException",
                  "X-Amz-Expires must be less than a week (in seconds); that is, the given "
                  "X-Amz-Expires must be less than 604800 seconds");
    presign(&c, &ann, "X-Amz-Expires=0&", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "IncompleteSignatureException", "X-Amz-Expires must be positive");
    presign(&c, &ann, "X-Amz-Expires=&", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "IncompleteSignatureException", "X-Amz-Expires should be a number");
    presign(&c, &ann, "X-Amz-Expires=-1&", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "IncompleteSignatureException", "X-Amz-Expires should be a number");
    court_close(&c);
}

TEST(auth, a_query_may_have_a_token_and_leave_out_the_body)
{
    struct court c = court_open_two(t);

    plain(&c);
    presign(&c, &ben, "X-Amz-Security-Token=token%2F%2B%3D&", "host;x-amz-target",
            (struct hf_str){0});
    CHECK(passes(&c));
    presign(&c, &ben, "X-Amz-Security-Token=token%2F%2B&", "host;x-amz-target", (struct hf_str){0});
    check_refused(&c, SERVICE "UnrecognizedClientException",
                  "The security token included in the request is invalid");
    presign(&c, &ben, "", "host;x-amz-target", (struct hf_str){0});
    CHECK(!passes(&c));
    field(&c, "X-Amz-Security-Token", "token/+=");
    CHECK(passes(&c));

    plain(&c);
    presign(&c, &ann, "X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&", "host;x-amz-target",
            HF_STR("UNSIGNED-PAYLOAD"));
    check_refused(&c, SERVICE "InvalidSignatureException", UNSIGNED_BODY);
    hf__auth_allow_unsigned_body(c.auth);
    CHECK(passes(&c));
    c.body = hf_bytes_of("[]", 2);
    CHECK(passes(&c));
    presign(&c, &ann, "", "host;x-amz-target", HF_STR("UNSIGNED-PAYLOAD"));
    check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
    court_close(&c);
}

/* ---- the table of signing keys -------------------------------------------------------------- */

/* (2): more regions and days than are kept, strangers between them, regions too long to keep. */
TEST(auth, kept_keys_are_never_mixed_up)
{
    struct court c = court_open_two(t);
    struct sign_credentials liar = ann;
    char region[200];

    liar.secret_key = HF_STR("another secret");
    for (int i = 0; i < 200; i++) {
        int number = (int)test_random_below(t, 40);

        snprintf(region, sizeof(region), "region-%0*d", 1 + 3 * number, number);
        hf_scope_reset(c.s);
        c.now_s = NOW + (int64_t)test_random_below(t, 3) * 86400;
        plain(&c);
        sign(&c, &liar, region);
        check_refused(&c, SERVICE "InvalidSignatureException", MISMATCH);
        plain(&c);
        sign(&c, i % 2 ? &ann : &ben, region);
        CHECK(passes(&c));
        CHECK(passes(&c));
        c.body = hf_bytes_of("[]", 2);
        CHECK(!passes(&c));
    }
    court_close(&c);
}

/* ---- making it ------------------------------------------------------------------------------ */

TEST(auth, keys_must_not_be_empty)
{
    struct court c = court_open(t, NULL, 0);
    struct sign_credentials keys[] = {ann, ben};
    struct auth *auth;

    keys[1].secret_key = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf__auth_new(c.s, test_env(t), keys, 2, 0, &auth));
    CHECK(!auth);
    keys[1] = ben;
    keys[0].access_key = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf__auth_new(c.s, test_env(t), keys, 2, 0, &auth));
    CHECK(!auth);
    hf__auth_free(NULL);
    court_close(&c);
}

/* Memory that runs out anywhere never lets a request in, nor a good one out without a word. */
TEST(auth, without_memory_nobody_passes)
{
    bool passed = false, refused = false;
    static char padding[9000];

    memset(padding, 'x', sizeof(padding) - 1); /* more than the first chunk of a scope */
    ALLOC_SWEEP (t, nth) {
        const struct sign_credentials keys[] = {ann, ben};
        struct court c = {.now_s = NOW};
        struct hf_scope *s = NULL;
        enum hf_status status;
        bool good = false, bad = false;

        /* The request is made before memory runs out. */
        t->fail_at = 0;
        c.s = hf_scope_new(test_env(t));
        CHECK_OK(hf__signer_new(c.s, test_env(t), &c.signer));
        plain(&c);
        field(&c, "Padding", padding);
        sign(&c, &ben, "us-east-1");
        t->fail_at = (int64_t)t->allocs + nth;

        s = hf_scope_new(test_env(t));
        status = s ? hf__auth_new(s, test_env(t), keys, 2, 0, &c.auth) : HF_NOMEM;
        if (status == HF_OK)
            status = hf__auth_set_region(s, c.auth, HF_STR("us-east-1"));
        if (status == HF_OK) {
            good = hf__auth_check(s, c.auth, &c.head, c.body, NOW, &c.refusal);
            if (!good)
                CHECK_INT(500, c.refusal.status);
            find(&c, "authorization")->value = hf_str_of(padding, 8999);
            memcpy(padding, "AWS4-", 5);
            bad = hf__auth_check(s, c.auth, &c.head, c.body, NOW, &c.refusal);
            CHECK(!bad);
            CHECK(c.refusal.status == 400 || c.refusal.status == 500);
            CHECK(c.refusal.status == 400 || t->alloc_failed);
            CHECK(c.refusal.message.ptr != NULL);
        }
        ALLOC_SWEEP_STOP(t);
        passed |= good;
        refused |= status == HF_OK && !good;
        CHECK(t->alloc_failed || (good && c.refusal.status == 400));
        CHECK(status == HF_OK || t->alloc_failed);
        hf__auth_free(c.auth);
        hf_scope_free(s);
        hf__signer_free(c.signer);
        hf_scope_free(c.s);
        memset(padding, 'x', 5);
    }
    CHECK(passed && refused);
}
