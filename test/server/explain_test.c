/*
 * server/explain_test.c: /console/api/explain: what statements and queries will read.
 */
#include "help.h"

static void ask(struct line *c, struct hf_scope *s, const char *body)
{
    struct hf_str json = quoted_json(s, body);

    line_text(c, hf_scope_format(s,
                                 "POST /console/api/explain HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                                 "%.*s",
                                 json.len, HF_FMT(json))
                     .ptr);
    line_read(c);
}

#define CREATE                                                                                     \
    "{'TableName':'orders','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':["               \
    "{'AttributeName':'customer','AttributeType':'S'},{'AttributeName':'day','AttributeType':"     \
    "'N'},{'AttributeName':'state','AttributeType':'S'}],'KeySchema':[{'AttributeName':"           \
    "'customer','KeyType':'HASH'},{'AttributeName':'day','KeyType':'RANGE'}],"                     \
    "'GlobalSecondaryIndexes':[{'IndexName':'by_state','KeySchema':[{'AttributeName':'state',"     \
    "'KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}]}"

TEST(explain, it_says_what_is_read)
{
    static const struct {
        const char *body;
        const char *has[4]; /* with ' for " */
    } cases[] = {
        {"{'statement':'SELECT * FROM orders'}",
         {"'operation':'Scan','full_scan':true,'writes':false,'reads':0,'table':'orders'",
          "Every item is read."}},
        {"{'statement':'SELECT * FROM orders WHERE day=7'}",
         {"'full_scan':true", "does not fix the partition key",
          "'filter':'the rest of the WHERE clause, after reading'"}},
        {"{'statement':'SELECT * FROM orders WHERE customer=\\u0027ann\\u0027'}",
         {"'operation':'Query','full_scan':false", "'reads':1",
          "'key_condition':'customer = \\'ann\\''"}},
        {"{'statement':'SELECT * FROM orders WHERE customer=? AND day>=? AND day<9 AND x=1',"
         "'parameters':[{'S':'ann'},{'N':'7'}]}",
         {"'key_condition':'customer = \\'ann\\' AND day >= 7 AND day < 9'", "'reads':1",
          "'filter':"}},
        {"{'statement':'SELECT * FROM orders WHERE customer=? AND day=7','parameters':[{'S':'a'}]}",
         {"'key_condition':'customer = \\'a\\' AND day = 7'", "One item is read"}},
        {"{'statement':'SELECT * FROM orders WHERE customer IN (?,?)',"
         "'parameters':[{'S':'a'},{'S':'b'}]}",
         {"'reads':2", "customer = \\'a\\'; customer = \\'b\\'"}},
        {"{'statement':'SELECT * FROM orders.by_state WHERE state=?','parameters':[{'S':'new'}]}",
         {"'operation':'Query'", "'index':'by_state'", "'key_condition':'state = \\'new\\''"}},
        {"{'statement':'SELECT * FROM orders.by_state WHERE customer=?','parameters':[{'S':'a'}]}",
         {"'operation':'Scan'", "'index':'by_state'"}},
        {"{'statement':'UPDATE orders SET x=1 WHERE customer=? AND day=7 AND x=2',"
         "'parameters':[{'S':'a'}]}",
         {"'operation':'UpdateItem'", "'writes':true", "as the condition of the write"}},
        {"{'statement':'DELETE FROM orders WHERE customer=?','parameters':[{'S':'a'}]}",
         {"'operation':'DeleteItem'", "It will fail"}},
        {"{'query':{'TableName':'orders','KeyConditionExpression':'customer = :c',"
         "'FilterExpression':'x = :c','ExpressionAttributeValues':{':c':{'S':'a'}}}}",
         {"'operation':'Query','full_scan':false", "'key_condition':'customer = :c'",
          "'filter':'x = :c'"}},
        {"{'scan':{'TableName':'orders','IndexName':'by_state'}}",
         {"'operation':'Scan','full_scan':true", "'index':'by_state'"}},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    line_call(&c, "CreateTable", CREATE);
    line_read(&c);
    CHECK_INT(200, c.status);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ask(&c, site.s, cases[i].body);
        for (size_t n = 0; n < ARRAY_LEN(cases[i].has) && cases[i].has[n]; n++) {
            if (c.status != 200 || !contains(c.body, quoted_json(site.s, cases[i].has[n]).ptr))
                fail_msg("%s: no %s in %.*s", cases[i].body, cases[i].has[n], HF_FMT(c.body));
        }
    }
    line_close(&c);
    site_close(&site);
}

TEST(explain, mistakes_are_named)
{
    static const struct {
        const char *body;
        int status;
        const char *says;
    } cases[] = {
        {"", 400, "expected"},
        {"{}", 400, "expected"},
        {"{'statement':'SELECT','query':{}}", 400, "expected"},
        {"{'statement':'SELEC * FROM tab'}", 400, "Statement wasn't well formed"},
        {"{'statement':7}", 400, ""},
        {"{'statement':'SELECT * FROM none'}", 400, "HF_NOT_FOUND"},
        {"{'statement':'SELECT * FROM tab.none'}", 400, "no index none"},
        {"{'query':{'TableName':7}}", 400, ""},
        {"{'query':'x'}", 400, ""},
        {"{'statement':'SELECT * FROM tab'}x", 400, "expected"},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ask(&c, site.s, cases[i].body);
        if (c.status != cases[i].status || !contains(c.body, cases[i].says) ||
            !contains(c.body, "{\"error\":{\"code\":\"HF_"))
            fail_msg("%s gives %d: %.*s", cases[i].body, c.status, HF_FMT(c.body));
    }
    line_close(&c);
    site_close(&site);
}
