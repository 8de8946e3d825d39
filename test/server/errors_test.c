/*
 * server/errors_test.c: bodies of errors byte for byte, and which of two faults is found first.
 */
#include "help.h"

#include "ops/fields.h"

#define SERVICE "'com.amazon.coral.service#"
#define MODEL "'com.amazonaws.dynamodb.v20120810#"
#define BARE "{'__type':" SERVICE "SerializationException'}"
#define SERIAL(message) "{'__type':" SERVICE "SerializationException','Message':'" message "'}"
#define INVALID(message)                                                                           \
    "{'__type':'com.amazon.coral.validate#ValidationException','message':'" message "'}"
#define NOT_FOUND                                                                                  \
    "{'__type':" MODEL "ResourceNotFoundException','message':'Requested resource not found'}"
#define UNKNOWN "{'__type':" SERVICE "UnknownOperationException'}"
#define NO_TOKEN                                                                                   \
    "{'__type':" SERVICE "MissingAuthenticationTokenException',"                                   \
    "'message':'Request is missing Authentication Token'}"

/* Send a POST with these fields and this body, in which ' is ", and check the answer. */
static void check_post(struct site *site, int status, const char *expected, const char *fields,
                       const char *body, int place)
{
    struct hf_str text =
        post_text(site->s, hf_scope_format(site->s, "Host: localhost\r\n%s", fields).ptr,
                  quoted_json(site->s, body));
    struct line c;

    line_open(site, &c);
    line_send(&c, text.ptr, text.len);
    line_check(&c, status, quoted_json(site->s, expected).ptr, __FILE__, place);
    line_close(&c);
}
#define CHECK_POST(site, status, expected, fields, body)                                           \
    check_post((site), (status), (expected), (fields), (body), __LINE__)

TEST(errors, that_are_malformed_json_have_no_message)
{
    static const char *const bodies[] = {
        " ",
        "{",
        "}",
        "{]",
        "{'a'}",
        "{'a':}",
        "{'a':1,}",
        "{a:1}",
        "{'a':1 'b':2}",
        "{}x",
        "{}{}",
        "[",
        "nul",
        "tru",
        "+1",
        "01",
        "1.",
        ".5",
        "1e",
        "-",
        "'a",
        "'\\x'",
        "'\\u12'",
        "'\t'",
        "{'a':'\\ud8'}",
        "{'TableName':'tab'",
        "\xEF\xBB\xBF{}",
        "{'a':NaN}",
        "//\n{}",
        "\x01{}",
        "{'a':'\xFF'",
        "<xml/>",
    };
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CHECK_CALL(&site, 400, BARE, "ListTables", bodies[i]);
        CHECK_CALL(&site, 400, BARE, "PutItem", bodies[i]);
        CHECK_CALL(&site, 400, BARE, "NoSuchThing", bodies[i]);
    }
    site_close(&site);
}

/* JSON, but no object: an error of the client, for every operation there is. */
TEST(errors, for_payloads_that_are_no_objects)
{
    static const char *const bodies[] = {"null", "[]", "1", "'a'", "true", "[{}]", "[[]]", "-0.5"};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (int i = 0; i < HF_OP_COUNT; i++) {
        const struct op *op = hf__op((enum hf_op)i);
        struct hf_str fields = hf_scope_format(
            site.s, "Host: localhost\r\n" JSON_1_0 "X-Amz-Target: %s_20120810.%.*s\r\n" SIGNED,
            hf__op_of_name(OP_DYNAMODB, op->name) == op ? "DynamoDB" : "DynamoDBStreams",
            HF_FMT(op->name));

        for (size_t j = 0; j < ARRAY_LEN(bodies); j++) {
            struct hf_str text = post_text(site.s, fields.ptr, quoted_json(site.s, bodies[j]));

            line_send(&c, text.ptr, text.len);
            CHECK_ANSWER(&c, 400, NULL);
            if (!contains(c.body, "SerializationException") &&
                !contains(c.body, "ValidationException"))
                fail_msg("%.*s of %s: %.*s", HF_FMT(op->name), bodies[j], HF_FMT(c.body));
        }
    }
    line_close(&c);
    site_close(&site);
}

/* 200,000 levels: refused, and nothing of it costs a stack. */
TEST(errors, for_deep_nesting)
{
    enum { LEVELS = 200000 };
    static const struct {
        const char *before;
        const char *open;
        const char *close;
    } cases[] = {
        {"", "[", "]"},
        {"", "{\"a\":", "}"},
        {"{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"a\"},\"b\":", "{\"L\":[", "]}"},
        {"{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"a\"},\"b\":", "{\"M\":{\"a\":", "}}"},
        {"{\"TableName\":\"tab\",\"Unknown\":", "[", "]"},
        {"{\"TableName\":\"tab\",\"Unknown\":", "[", ""},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf__buf body = {.scope = site.s};
        struct hf_str text;

        hf__buf_put_str(&body, hf_str_from(cases[i].before));
        for (int j = 0; j < LEVELS; j++)
            hf__buf_put_str(&body, hf_str_from(cases[i].open));
        for (int j = 0; j < LEVELS; j++)
            hf__buf_put_str(&body, hf_str_from(cases[i].close));
        if (cases[i].before[0])
            hf__buf_put_str(&body, HF_STR("}}"));
        text = post_text(site.s, "Host: localhost\r\n" JSON_1_0 TARGET("PutItem") SIGNED,
                         hf_str_of((const char *)body.ptr, body.len));
        line_send(&c, text.ptr, text.len);
        CHECK_ANSWER(&c, 400, NULL);
        CHECK(contains(c.body, "SerializationException") ||
              contains(c.body, "ValidationException"));
        hf_scope_reset(site.s);
    }
    line_call(&c, "ListTables", "{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
    site_close(&site);
}

/* C.1, the table "Type errors". */
TEST(errors, of_types)
{
    static const struct {
        const char *operation;
        const char *body;
        const char *message;
    } cases[] = {
        {"Scan", "{'TableName':'tab','Limit':'x'}", "STRING_VALUE cannot be converted to Integer"},
        {"PutItem", "{'TableName':5}", "NUMBER_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':5.5}", "DECIMAL_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':true}", "TRUE_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':false}", "FALSE_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':['tab']}", "Unrecognized collection type class java.lang.String"},
        {"PutItem", "{'TableName':{'a':'b'}}",
         "Start of structure or map found where not expected"},
        {"PutItem", "{'TableName':'tab','Item':'a'}", "Unexpected field type"},
        {"PutItem", "{'TableName':'tab','Item':5}", "Unexpected field type"},
        {"Query", "{'TableName':'tab','AttributesToGet':'a'}", "Unexpected field type"},
        {"Query", "{'TableName':'tab','AttributesToGet':{'a':'b'}}",
         "Start of structure or map found where not expected"},
        {"CreateTable", "{'TableName':'x','KeySchema':['a']}", "Unexpected value type in payload"},
        {"GetItem", "{'TableName':'tab','ConsistentRead':'true'}",
         "Unexpected token received from parser"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':5}}}",
         "NUMBER_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'N':5}}}",
         "NUMBER_VALUE cannot be converted to String"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'b':{'B':5}}}",
         "only base-64-encoded strings are convertible to bytes"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'b':{'B':'abcde'}}}",
         "Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'b':{'B':'YWJ='}}}",
         "Invalid last non-pad Base64 character dectected"},
        {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'b':{'BS':['abcde']}}}",
         "Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
        /* before any validation, wherever it is */
        {"PutItem", "{'TableName':'!','Item':{'pk':{'S':'a'}},'ReturnValues':5}",
         "NUMBER_VALUE cannot be converted to String"},
    };
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_CALL(&site, 400, hf_scope_format(site.s, SERIAL("%s"), cases[i].message).ptr,
                   cases[i].operation, cases[i].body);
    CHECK_CALL(&site, 400,
               INVALID("Supplied AttributeValue is empty, must contain exactly one of the "
                       "supported datatypes"),
               "PutItem", "{'TableName':'tab','Item':{'pk':{'X':'a'}}}");
    CHECK_CALL(&site, 200, "{}", "PutItem",
               "{'TableName':'tab','Item':{'pk':{'S':'a'}},'NoSuchMember':{'x':[1,2]}}");
    site_close(&site);
}

TEST(errors, of_operations)
{
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    CHECK_CALL(&site, 400, NOT_FOUND, "GetItem", "{'TableName':'none','Key':{'pk':{'S':'a'}}}");
    CHECK_CALL(&site, 400,
               "{'__type':" MODEL "ResourceNotFoundException','message':"
               "'Requested resource not found: Table: none not found'}",
               "DescribeTable", "{'TableName':'none'}");
    CHECK_CALL(&site, 400,
               "{'__type':" MODEL "ResourceInUseException','message':"
               "'Table already exists: tab'}",
               "CreateTable",
               "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk',"
               "'AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
               "'BillingMode':'PAY_PER_REQUEST'}");
    CHECK_CALL(&site, 400,
               "{'__type':" MODEL "ConditionalCheckFailedException','message':"
               "'The conditional request failed'}",
               "PutItem",
               "{'TableName':'tab','Item':{'pk':{'S':'a'}},"
               "'ConditionExpression':'attribute_exists(pk)'}");
    CHECK_CALL(&site, 400,
               INVALID("One or more parameter values were invalid: "
                       "Missing the key pk in the item"),
               "PutItem", "{'TableName':'tab','Item':{'x':{'S':'a'}}}");
    site_close(&site);
}

/* C.1.11: nothing at all is said, not even {}. */
TEST(errors, are_not_what_empty_answers_are)
{
    static const char arn[] = "arn:aws:dynamodb:us-east-1:123456789012:table/tab";
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_call(&c, "DescribeTable", "{'TableName':'tab'}");
    line_read(&c);
    CHECK(contains(c.body, "\"TableArn\":\""));
    if (!contains(c.body, arn))
        fail_msg("another ARN: %.*s", HF_FMT(c.body));
    line_call(
        &c, "TagResource",
        hf_scope_format(site.s, "{'ResourceArn':'%s','Tags':[{'Key':'k','Value':'v'}]}", arn).ptr);
    CHECK_ANSWER(&c, 200, "");
    CHECK_STR("0", line_field(&c, "Content-Length"));
    CHECK_STR("0", line_field(&c, "x-amz-crc32"));
    line_call(&c, "UntagResource",
              hf_scope_format(site.s, "{'ResourceArn':'%s','TagKeys':['k']}", arn).ptr);
    CHECK_ANSWER(&c, 200, "");
    line_call(&c, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
    CHECK_ANSWER(&c, 200, "{}");
    line_close(&c);
    site_close(&site);
}

/* ---- targets and signatures ----------------------------------------------------------------- */

TEST(errors, of_targets)
{
    static const char *const unknown[] = {
        "",
        "X-Amz-Target: \r\n",
        "X-Amz-Target: ListTables\r\n",
        "X-Amz-Target: DynamoDB_20120810\r\n",
        "X-Amz-Target: DynamoDB_20120810.\r\n",
        "X-Amz-Target: DynamoDB_20111205.ListTables\r\n",
        "X-Amz-Target: dynamodb_20120810.ListTables\r\n",
        "X-Amz-Target: Kinesis_20131202.ListStreams\r\n",
        "X-Amz-Target: DynamoDB_20120810.List\xFFTables\r\n", /* which JSON cannot repeat */
    };
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        CHECK_POST(&site, 400, UNKNOWN,
                   hf_scope_format(site.s, JSON_1_0 SIGNED "%s", unknown[i]).ptr, "{}");
    CHECK_POST(&site, 400,
               "{'__type':" SERVICE "UnknownOperationException','message':"
               "'Operation listTables is not supported'}",
               JSON_1_0 SIGNED TARGET("listTables"), "{}");
    CHECK_POST(&site, 400,
               "{'__type':" SERVICE "UnknownOperationException','message':"
               "'Operation GetRecords is not supported'}",
               JSON_1_0 SIGNED TARGET("GetRecords"), "{}");
    CHECK_POST(&site, 200, "{'Streams':[]}",
               JSON_1_0 SIGNED "X-Amz-Target: DynamoDBStreams_20120810.ListStreams\r\n", "{}");
    site_close(&site);
}

/* Each profile: an operation that it has, those that it lacks, in the words of the other database. */
TEST(errors, of_operations_that_a_profile_lacks)
{
    static const struct {
        enum server_profile profile;
        const char *operation, *message; /* NULL: it has it */
    } cases[] = {
        {PROFILE_DYNAMODB, "ListBackups", NULL},
        {PROFILE_ALTERNATOR, "ListTables", NULL},
        {PROFILE_ALTERNATOR, "TransactWriteItems", "Unsupported operation TransactWriteItems"},
        {PROFILE_ALTERNATOR, "TransactGetItems", "Unsupported operation TransactGetItems"},
        {PROFILE_ALTERNATOR, "ExecuteStatement", "Unsupported operation ExecuteStatement"},
        {PROFILE_ALTERNATOR, "CreateBackup", "Unsupported operation CreateBackup"},
        {PROFILE_DYNAMODB_LOCAL, "ListTables", NULL},
        {PROFILE_DYNAMODB_LOCAL, "ListBackups", "An unknown operation was requested."},
        {PROFILE_DYNAMODB_LOCAL, "TagResource",
         "Tagging is not currently supported in DynamoDB Local."},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct site site;
        const char *head;

        site_open(t, &site, &(struct server_options){.profile = cases[i].profile});
        head = hf_scope_format(site.s, JSON_1_0 SIGNED "X-Amz-Target: DynamoDB_20120810.%s\r\n",
                               cases[i].operation)
                   .ptr;
        if (cases[i].message)
            CHECK_POST(&site, 400,
                       hf_scope_format(site.s,
                                       "{'__type':" SERVICE
                                       "UnknownOperationException','message':'%s'}",
                                       cases[i].message)
                           .ptr,
                       head, "{}");
        else
            CHECK_POST(&site, 200,
                       strcmp(cases[i].operation, "ListTables") == 0 ? "{'TableNames':['tab']}"
                                                                     : "{'BackupSummaries':[]}",
                       head, "{}");
        site_close(&site);
    }
}

/* What the message quotes has apostrophes of its own, so these are compared as they are. */
TEST(errors, of_signatures)
{
    static const struct {
        const char *fields;
        const char *body;
    } cases[] = {
        {"", "{\"__type\":\"com.amazon.coral.service#MissingAuthenticationTokenException\","
             "\"message\":\"Request is missing Authentication Token\"}"},
        {"Authorization: Basic eA==\r\n",
         "{\"__type\":\"com.amazon.coral.service#MissingAuthenticationTokenException\","
         "\"message\":\"Request is missing Authentication Token\"}"},
        {"Authorization: AWS4-\r\n",
         "{\"__type\":\"com.amazon.coral.service#IncompleteSignatureException\",\"message\":"
         "\"Authorization header requires 'Credential' parameter. "
         "Authorization header requires 'Signature' parameter. "
         "Authorization header requires 'SignedHeaders' parameter. "
         "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
         "Authorization=AWS4-\"}"},
        {"X-Amz-Date: a\r\nAuthorization: AWS4- Credential=b, Signature=c, SignedHeaders=d\r\n",
         "{\"__type\":\"com.amazon.coral.service#IncompleteSignatureException\",\"message\":"
         "\"Date must be in ISO-8601 'basic format'. Got 'a'. "
         "See http://en.wikipedia.org/wiki/ISO_8601\"}"},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text =
            post_text(site.s,
                      hf_scope_format(site.s,
                                      "Host: localhost\r\n" JSON_1_0 TARGET("ListTables") "%s",
                                      cases[i].fields)
                          .ptr,
                      HF_STR("{}"));

        line_send(&c, text.ptr, text.len);
        CHECK_ANSWER(&c, 400, cases[i].body);
    }
    line_text(&c, "POST /?X-Amz-Algorithm=AWS4-HMAC-SHA256 HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0
                      TARGET("ListTables") SIGNED "Content-Length: 2\r\n\r\n{}");
    CHECK_ANSWER(&c, 400,
                 "{\"__type\":\"com.amazon.coral.service#InvalidSignatureException\",\"message\":"
                 "\"Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as "
                 "HTTP header.\"}");
    line_text(&c, "POST /?X-Amz-Algorithm=AWS4-HMAC-SHA256 HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0
                      TARGET("ListTables") "Content-Length: 2\r\n\r\n{}");
    CHECK_ANSWER(&c, 400,
                 "{\"__type\":\"com.amazon.coral.service#IncompleteSignatureException\","
                 "\"message\":\"AWS query-string parameters must include 'X-Amz-Credential'. "
                 "AWS query-string parameters must include 'X-Amz-Signature'. "
                 "AWS query-string parameters must include 'X-Amz-SignedHeaders'. "
                 "AWS query-string parameters must include 'X-Amz-Date'. "
                 "Re-examine the query-string parameters.\"}");
    line_text(&c, "POST /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20260101%2Fhere%2F"
                  "dynamodb%2Faws4_request&X-Amz-Signature=b&X-Amz-SignedHeaders=host&X-Amz-Date="
                  "20260101T000000Z HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 TARGET(
                      "ListTables") "Content-Length: 2\r\n\r\n{}");
    CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    line_close(&c);
    site_close(&site);
}

/* ---- the order ------------------------------------------------------------------------------ */

/*
 * C.1.5. A request with all the faults from one step on: that step's is found. Steps: type of the
 * content, JSON, target, signature, types of members, validation, the operation itself.
 */
TEST(errors, are_found_in_this_order)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});

    line_open(&site, &c);
    line_text(&c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: x\r\n"
                  "X-Amz-Target: x\r\nContent-Length: 1\r\n\r\n{");
    line_read(&c);
    CHECK_INT(404, c.status);
    CHECK_STR("<UnknownOperationException/>\n", c.body);
    line_close(&c);

    CHECK_POST(&site, 400, BARE, JSON_1_0 "X-Amz-Target: x\r\n", "{");
    CHECK_POST(&site, 400, UNKNOWN, JSON_1_0 "X-Amz-Target: x\r\n", "");
    CHECK_POST(&site, 400, BARE, JSON_1_0 TARGET("ListTables"), "{");
    CHECK_POST(&site, 400, BARE, JSON_1_0 TARGET("ListTables") SIGNED, "{");
    CHECK_POST(&site, 400, BARE, JSON_1_0 TARGET("PutItem") SIGNED, "{'TableName':5,");
    CHECK_POST(&site, 400, BARE, JSON_1_0 TARGET("PutItem") SIGNED, "{'TableName':5}x");
    CHECK_POST(&site, 400, UNKNOWN, JSON_1_0 "X-Amz-Target: x\r\n", "{'TableName':5}");
    CHECK_POST(&site, 400, NO_TOKEN, JSON_1_0 TARGET("PutItem"), "{'TableName':5}");
    CHECK_POST(&site, 400, NO_TOKEN, JSON_1_0 TARGET("PutItem"), "{'TableName':''}");
    CHECK_POST(&site, 400, NO_TOKEN, JSON_1_0 TARGET("PutItem"), "{}");
    CHECK_POST(&site, 400, SERIAL("NUMBER_VALUE cannot be converted to String"),
               JSON_1_0 TARGET("PutItem") SIGNED, "{'TableName':'!','ReturnValues':5}");
    CHECK_POST(&site, 400,
               INVALID("One or more parameter values were invalid: "
                       "An string set  may not be empty"),
               JSON_1_0 TARGET("PutItem") SIGNED, "{'TableName':'none','Item':{'pk':{'SS':[]}}}");
    CHECK_POST(&site, 400, NOT_FOUND, JSON_1_0 TARGET("PutItem") SIGNED,
               "{'TableName':'none','Item':{'x':{'S':'a'}}}");
    site_close(&site);
}

/* Of an empty body target and signature are judged first, and it needs no type of content. */
TEST(errors, an_empty_body_is_judged_last)
{
    static const char *const types[] = {"", JSON_1_0, "Content-Type: application/json\r\n"};
    static const char *const answers[] = {"application/json", "application/x-amz-json-1.0",
                                          "application/json"};
    static const struct {
        const char *fields;
        const char *body;
    } cases[] = {
        {"X-Amz-Target: x\r\n", UNKNOWN},
        {TARGET("ListTables"), NO_TOKEN},
        {TARGET("ListTables") SIGNED, BARE},
        {TARGET("PutItem") SIGNED, BARE},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        for (size_t j = 0; j < ARRAY_LEN(cases); j++) {
            struct hf_str text =
                hf_scope_format(site.s, "POST / HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", types[i],
                                cases[j].fields);

            line_send(&c, text.ptr, text.len);
            line_read(&c);
            CHECK_INT(400, c.status);
            CHECK_STR(quoted_json(site.s, cases[j].body).ptr, c.body);
            CHECK_STR(answers[i], line_field(&c, "Content-Type"));
        }
    }
    line_text(&c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" TARGET(
                      "ListTables") SIGNED "\r\n");
    line_read(&c);
    CHECK_INT(404, c.status);
    line_text(&c, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(404, c.status);
    line_close(&c);
    site_close(&site);
}

/* With keys: a signature of another day is refused, whether there is a body or not. */
TEST(errors, an_empty_body_with_an_old_signature)
{
    const struct sign_credentials key = {HF_STR("key"), HF_STR("secret"), {NULL, 0}};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.keys = &key, .keys_len = 1});
    line_open(&site, &c);
    line_text(&c, "POST / HTTP/1.1\r\nHost: localhost\r\n" TARGET("ListTables") SIGNED "\r\n");
    line_read(&c);
    CHECK_INT(400, c.status);
    CHECK(contains(c.body, "InvalidSignatureException"));
    line_close(&c);
    site_close(&site);
}

/* The size goes before all of them. */
TEST(errors, the_size_is_found_first)
{
    struct site site;
    bool closes;

    site_open(t, &site, &(struct server_options){0});
    CHECK_INT(413, site_status(&site,
                               "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: x\r\n"
                               "Content-Length: 16777217\r\n\r\n",
                               &closes));
    CHECK(closes);
    site_close(&site);
}
