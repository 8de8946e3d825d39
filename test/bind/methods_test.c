/*
 * bind/methods_test.c: the methods of each pattern, one story for each; and what holds for all of
 * them, whatever they do.
 */
#include "base/base.h"
#include "help.h"

/* ---- all methods ---------------------------------------------------------------------------- */

/* The names of all methods, one after the other, from bind.methods. */
static bool next_method(const char **at, char *name, size_t cap, bool *writes)
{
    static const char begin[] = "{\"name\":\"", middle[] = "\",\"writes\":";
    const char *found, *end;

    for (found = *at; (found = strstr(found, begin)) != NULL; found = end) {
        end = strchr(found + sizeof(begin) - 1, '"');
        if (!strncmp(end, middle, sizeof(middle) - 1))
            break;
    }
    if (!found)
        return false;
    found += sizeof(begin) - 1;
    CHECK((size_t)(end - found) < cap);
    memcpy(name, found, (size_t)(end - found));
    name[end - found] = '\0';
    *writes = end[sizeof(middle) - 1] == 't';
    *at = end;
    return true;
}

TEST(bind_all, methods_refuse_what_they_do_not_know_and_do_not_need_arguments_to_survive)
{
    struct rig_bind r = bind_rig(t, false);
    struct rig_bind lists = bind_rig(t, false);
    const char *at;
    char name[64];
    bool writes;
    int count = 0;

    CHECK_OK(bind_call(&lists, "bind.methods", "{}"));
    for (at = lists.result.ptr; next_method(&at, name, sizeof(name), &writes); count++) {
        CHECK_STATUS(HF_INVALID, bind_call(&r, name, "{'no_such_member':1}"));
        CHECK(strstr(r.result.ptr, "unknown member \\\"no_such_member\\\"") != NULL);
        CHECK_STATUS(HF_INVALID, bind_call(&r, name, "[]"));
        CHECK_STATUS(HF_INVALID, bind_call(&r, name, "{'table':'\\ud800'}"));
        (void)bind_call(&r, name, "{}");
        CHECK(r.result.ptr != NULL);
    }
    CHECK(count > 80);
    bind_rig_close(&lists);
    bind_rig_close(&r);
}

TEST(bind_all, methods_that_only_read_make_no_table_and_those_that_write_are_refused_read_only)
{
    struct rig_bind r = bind_rig(t, true);
    const char *at, *all;
    char name[64];
    bool writes;

    CHECK_OK(bind_call(&r, "bind.methods", "{}"));
    all = r.result.ptr;
    for (at = all; next_method(&at, name, sizeof(name), &writes);) {
        static const char *const args[] = {"{}",
                                           "{'name':'a'}",
                                           "{'id':'a'}",
                                           "{'user':'a','key':'b'}",
                                           "{'domain':'a'}",
                                           "{'account':'a','run_time':'b'}"};

        for (size_t i = 0; i < ARRAY_LEN(args); i++) {
            enum hf_status status = bind_call(&r, name, args[i]);

            CHECK(!writes || status == HF_DENIED || status == HF_INVALID);
        }
    }
    CHECK_BIND(&r, "{'TableNames':[]}", "ListTables", "{}");
    bind_rig_close(&r);
}

/* ---- counters ------------------------------------------------------------------------------- */

TEST(bind_counter, adds_sets_lists_and_takes)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND(&r, "{'value':5,'again':false}", "counter.add", "{'id':'a','by':5}");
    CHECK_BIND(&r, "{'value':3,'again':false}", "counter.add",
               "{'id':'a','by':-2,'request':'r1','floor':0}");
    CHECK_BIND(&r, "{'value':3,'again':true}", "counter.add", "{'id':'a','by':-2,'request':'r1'}");
    CHECK_STATUS(HF_LIMIT, bind_call(&r, "counter.add", "{'id':'a','by':-4,'floor':0}"));
    CHECK_BIND(&r, "{'value':3}", "counter.get", "{'id':'a'}");
    CHECK_BIND(&r, "{'was':3}", "counter.set", "{'id':'a','value':'9223372036854775807'}");
    CHECK_BIND(&r, "{'value':'9223372036854775807'}", "counter.get", "{'id':'a'}");
    CHECK_BIND(
        &r, "{'counters':[{'space':'global','id':'a','value':'9223372036854775807','found':true}]}",
        "counter.list", "{}");
    CHECK_BIND(&r, "{'was':'9223372036854775807'}", "counter.reset", "{'id':'a'}");
    CHECK_BIND(
        &r, "{'counters':[{'id':'a','value':0,'found':true},{'id':'b','value':0,'found':false}]}",
        "counter.get_many", "{'keys':[{'id':'a'},{'id':'b'}]}");
    CHECK_BIND(&r, "{}", "counter.delete", "{'id':'a'}");
    CHECK_BIND(&r, "{'first':1}", "sequence.take", "{'id':'t','count':10}");
    CHECK_BIND(&r, "{'first':11}", "sequence.take", "{'id':'t'}");
    CHECK_BIND(&r, "{'value':1,'again':false}", "counter.add", "{'partition':'p','id':'a','by':1}");
    CHECK_OK(bind_call(&r, "counter.list", "{'partition':'p'}"));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "counter.get_many", "{'keys':[{}]}"));
    CHECK_STR("counter.get_many: \"keys[0].id\" is missing", hf_scope_error(r.s)->message);
    bind_rig_close(&r);
}

/* The actions of several patterns are one transaction. */
TEST(bind_actions, of_all_patterns_happen_together)
{
    struct rig_bind r = bind_rig(t, false);
    static const char *const calls[][2] = {
        {"counter.add_actions", "{'id':'a','by':5}"},
        {"kv.set_actions", "{'id':'k','value':{'S':'v'}}"},
        {"set.add_actions", "{'id':'s','elements':[{'S':'x'}]}"},
        {"limit.take_actions", "{'name':'l','rule':{'limit':5,'window_ms':1000}}"},
        {"outbox.emit_actions", "{'events':[{'type':'t','payload':'p'},{'type':'u'}]}"},
        {"events.append_actions",
         "{'domain':'d','id':'1','expect':'none','events':[{'type':'t'}]}"},
        {"records.put_actions", "{'record':{'AccountId':{'S':'a'},'RunTime':{'S':'r'}}}"}};
    struct hf_str all = HF_STR("");

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        const char *from, *end;

        CHECK_OK(bind_call(&r, calls[i][0], calls[i][1]));
        from = strstr(r.result.ptr, "\"actions\":[");
        CHECK(from != NULL);
        from += strlen("\"actions\":[");
        end = strstr(from, "}],\"verdict\"");
        if (!end)
            end = strrchr(from, ']') - 1;
        all = hf_scope_format(r.s, "%.*s%s%.*s", HF_FMT(all), all.len ? "," : "",
                              (int)(end + 1 - from), from);
    }
    all = hf_scope_format(r.s, "{\"TransactItems\":[%.*s]}", HF_FMT(all));
    CHECK_OK(hf_bind_call(r.s, r.bind, HF_STR("TransactWriteItems"), all, &r.result));
    CHECK_BIND(&r, "{'value':5}", "counter.get", "{'id':'a'}");
    CHECK_OK(bind_call(&r, "kv.get", "{'id':'k'}"));
    CHECK(strstr(r.result.ptr, "\"value\":{\"S\":\"v\"}") != NULL);
    CHECK_BIND(&r, "{'contains':true}", "set.contains", "{'id':'s','element':{'S':'x'}}");
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("2", bind_member(&r, "pending"));
    CHECK_OK(bind_call(&r, "events.stream", "{'domain':'d','id':'1'}"));
    CHECK_STR("1", bind_member(&r, "version"));
    CHECK_BIND(&r, "{'count':1}", "records.count", "{'state':'unprocessed'}");
    CHECK_STATUS(HF_TX_CANCELED,
                 hf_bind_call(r.s, r.bind, HF_STR("TransactWriteItems"), all, &r.result));
    CHECK(strstr(r.result.ptr, "CancellationReasons") != NULL);
    CHECK_BIND(&r, "{'value':5}", "counter.get", "{'id':'a'}");
    bind_rig_close(&r);
}

/* ---- keys and values ------------------------------------------------------------------------ */

TEST(bind_kv, sets_gets_lists_and_deletes)
{
    struct rig_bind r = bind_rig(t, false);
    struct hf_str version;

    CHECK_OK(
        bind_call(&r, "kv.set", "{'space':'u','id':'a\\u0000b','value':{'N':'1'},'ttl_s':60}"));
    version = hf_scope_copy(r.s, bind_member(&r, "version"));
    CHECK_OK(bind_call(&r, "kv.get", "{'space':'u','id':'a\\u0000b'}"));
    CHECK(strstr(r.result.ptr, "\"id\":\"a\\u0000b\",\"value\":{\"N\":\"1\"}") != NULL);
    CHECK_STATUS(HF_CONDITION, bind_call(&r, "kv.set",
                                         "{'space':'u','id':'a\\u0000b','value':{'N':"
                                         "'2'},'if_absent':true}"));
    CHECK_STATUS(HF_OK,
                 hf_bind_call(r.s, r.bind, HF_STR("kv.set"),
                              hf_scope_format(r.s,
                                              "{\"space\":\"u\",\"id\":\"a\\u0000b\",\"value\":{"
                                              "\"N\":\"2\"},\"if_version\":\"%.*s\"}",
                                              HF_FMT(version)),
                              &r.result));
    CHECK_OK(bind_call(&r, "kv.list", "{'space':'u','prefix':'a'}"));
    CHECK(strstr(r.result.ptr, "{\"entries\":[{\"space\":\"u\",") == r.result.ptr);
    CHECK_BIND_REFUSES(&r,
                       "kv.set: \"value\": expected a value in DynamoDB's JSON, such as {\"S\": "
                       "\"7\"}, got \"x\"",
                       "kv.set", "{'id':'a','value':'x'}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "kv.set", "{'id':'a','value':{'N':'x'}}"));
    CHECK_OK(bind_call(&r, "kv.get_many", "{'keys':[{'id':'no'},{'space':'u','id':'a\\u0000b'}]}"));
    CHECK(strstr(r.result.ptr, "\"value\":{\"N\":\"2\"}") != NULL);
    CHECK_OK(bind_call(&r, "kv.delete", "{'space':'u','id':'a\\u0000b'}"));
    CHECK(strstr(r.result.ptr, "\"value\":{\"N\":\"2\"}") != NULL);
    CHECK_OK(bind_call(&r, "kv.set", "{'partition':'p','id':'x','value':{'B':'AAH/'}}"));
    CHECK_BIND(&r, "{'cleared':1}", "kv.clear", "{'partition':'p'}");
    CHECK_OK(bind_call(&r, "set.add", "{'id':'s','elements':[{'S':'a'},{'S':'b'},{'S':'a'}]}"));
    CHECK_STR("2", bind_member(&r, "len"));
    CHECK_OK(bind_call(&r, "set.remove", "{'id':'s','elements':[{'S':'a'}]}"));
    CHECK_OK(bind_call(&r, "set.get", "{'id':'s'}"));
    CHECK(strstr(r.result.ptr, "{\"elements\":[{\"S\":\"b\"}],\"version\":\"") == r.result.ptr);
    bind_rig_close(&r);
}

/* ---- once, limits --------------------------------------------------------------------------- */

TEST(bind_once, is_marked_listed_and_cleared)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_OK(bind_call(&r, "once.mark_done",
                       "{'user':'ann','key':'mail','result':{'n':{'N':'1'}},'payload':'x'}"));
    CHECK_STR("true", bind_member(&r, "did"));
    CHECK_STATUS(HF_TOKEN_MISMATCH, bind_call(&r, "once.mark_done",
                                              "{'user':'ann','key':'mail','payload':{'base64':"
                                              "'AAH/'}}"));
    CHECK_OK(bind_call(&r, "once.get", "{'user':'ann','key':'mail'}"));
    CHECK_STR("done", bind_member(&r, "state"));
    CHECK_OK(bind_call(&r, "once.list", "{'user':'ann'}"));
    CHECK(strstr(r.result.ptr, "\"result\":{\"n\":{\"N\":\"1\"}}") != NULL);
    CHECK_BIND(&r, "{'cleared':true}", "once.clear", "{'user':'ann','key':'mail'}");
    CHECK_OK(bind_call(&r, "once.get", "{'user':'ann','key':'mail'}"));
    CHECK_STR("none", bind_member(&r, "state"));
    CHECK_BIND_REFUSES(&r,
                       "once.mark_done: \"payload\": expected a string, or bytes as {\"base64\": "
                       "\"...\"}, got {\"base64\":\"A\"}",
                       "once.mark_done", "{'user':'a','key':'b','payload':{'base64':'A'}}");
    bind_rig_close(&r);
}

TEST(bind_limit, says_what_is_allowed_and_takes_it_back)
{
    struct rig_bind r = bind_rig(t, false);
    const char *take = "{'name':'n','rule':{'kind':'sliding','limit':1,'window_ms':60000}}";

    CHECK_OK(bind_call(&r, "limit.take", take));
    CHECK_STR("true", bind_member(&r, "allowed"));
    CHECK_OK(hf_bind_call(r.s, r.bind, HF_STR("limit.refund"),
                          hf_scope_format(r.s,
                                          "{\"name\":\"n\",\"rule\":{\"kind\":\"sliding\","
                                          "\"limit\":1,\"window_ms\":60000},\"verdict\":%.*s}",
                                          HF_FMT(r.result)),
                          &r.result));
    CHECK_OK(bind_call(&r, "limit.take", take));
    CHECK_STR("true", bind_member(&r, "allowed"));
    CHECK_OK(bind_call(&r, "limit.take", take));
    CHECK_STR("false", bind_member(&r, "allowed"));
    CHECK_OK(bind_call(&r, "limit.peek", take));
    CHECK_STR("false", bind_member(&r, "allowed"));
    CHECK_BIND(&r, "{}", "limit.clear", "{'name':'n'}");
    CHECK_BIND_REFUSES(&r,
                       "limit.take: \"rule.kind\": expected one of \"attempts\", \"fixed\", "
                       "\"sliding\", \"rate\", got \"slide\"",
                       "limit.take", "{'name':'n','rule':{'kind':'slide','limit':1}}");
    CHECK_BIND_REFUSES(&r, "limit.take: \"rule.limit\" is missing", "limit.take",
                       "{'name':'n','rule':{}}");
    bind_rig_close(&r);
}

/* ---- the outbox ----------------------------------------------------------------------------- */

TEST(bind_outbox, emits_and_looks)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_OK(bind_call(&r, "outbox.open", "{'buckets':4,'history_s':60}"));
    CHECK_BIND(&r, "{'ids':['e1','e2']}", "outbox.emit",
               "{'events':[{'id':'e1','type':'a','key':'k','payload':'\\u00e4\\u0000','headers':{"
               "'h':{'S':'v'}},'time_us':1767225600000000},{'id':'e2','type':'b','payload':{"
               "'base64':'AAH/'},'urgent':true}]}");
    CHECK_OK(bind_call(&r, "outbox.get", "{'id':'e1'}"));
    CHECK(strstr(r.result.ptr, "\"payload\":\"\xc3\xa4\\u0000\"") != NULL);
    CHECK_STR("pending", bind_member(&r, "state"));
    CHECK_OK(bind_call(&r, "outbox.pending", "{'type':'b'}"));
    CHECK(strstr(r.result.ptr, "\"payload\":{\"base64\":\"AAH/\"}") != NULL);
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("2", bind_member(&r, "pending"));
    CHECK_OK(bind_call(&r, "outbox.stats", "{'type':'a'}"));
    CHECK_STR("1", bind_member(&r, "pending"));
    CHECK_BIND(&r, "{'events':[]}", "outbox.failed", "{}");
    CHECK_BIND(&r, "{'events':[]}", "outbox.history", "{}");
    CHECK_STATUS(HF_DUPLICATE, bind_call(&r, "outbox.emit", "{'events':[{'id':'e1','type':'a'}]}"));
    CHECK_BIND_REFUSES(&r, "outbox.emit: \"events[1].type\" is missing", "outbox.emit",
                       "{'events':[{'type':'a'},{'id':'x'}]}");
    CHECK_BIND_REFUSES(&r, "outbox.emit: \"events\": expected a list, got {}", "outbox.emit",
                       "{'events':{}}");
    CHECK_BIND(&r, "{'done':1}", "outbox.discard", "{'ids':['e2']}");
    CHECK_BIND(&r, "{'done':0}", "outbox.retry_all", "{}");
    CHECK_BIND(&r, "{'done':0}", "outbox.discard_all", "{'type':'a'}");
    CHECK_BIND(&r, "{'done':0}", "outbox.replay", "{}");
    CHECK_BIND(&r, "{'done':0}", "outbox.cleanup", "{'before_us':1}");
    CHECK_BIND(&r, "{}", "outbox.wake", "{}");
    CHECK_BIND(&r, "{'paused':false,'since_us':0}", "outbox.paused", "{}");
    CHECK_BIND(&r, "{}", "outbox.pause", "{'why':'a repair'}");
    CHECK_BIND(&r, "{'paused':true,'since_us':1767225600000000,'why':'a repair'}", "outbox.paused",
               "{}");
    CHECK_BIND(&r, "{}", "outbox.resume", "{}");
    CHECK_BIND(&r, "{'relays':[],'buckets':[]}", "outbox.relays", "{}");
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "outbox.retry", "{'ids':['no']}"));
    bind_rig_close(&r);
}

/* ---- the event store ------------------------------------------------------------------------ */

TEST(bind_events, appends_with_what_belongs_to_it_and_is_reset)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_OK(
        bind_call(&r, "CreateTable",
                  "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{"
                  "'AttributeName':'k','AttributeType':'S'}],'KeySchema':[{'AttributeName':"
                  "'k','KeyType':'HASH'}]}"));
    CHECK_OK(bind_call(&r, "events.append",
                       "{'domain':'d','id':'1','events':[{'id':'a','type':'t'}],'with':[{'Put':{"
                       "'TableName':'tab','Item':{'k':{'S':'1'}},'ConditionExpression':"
                       "'attribute_not_exists(k)'}}]}"));
    CHECK_STATUS(HF_TX_CANCELED,
                 bind_call(&r, "events.append",
                           "{'domain':'d','id':'1','events':[{'type':'u'}],'with':[{'Put':{"
                           "'TableName':'tab','Item':{'k':{'S':'1'}},'ConditionExpression':"
                           "'attribute_not_exists(k)'}}]}"));
    CHECK_OK(bind_call(&r, "events.stream", "{'domain':'d','id':'1'}"));
    CHECK_STR("1", bind_member(&r, "version"));
    CHECK_STATUS(HF_SERIALIZATION,
                 bind_call(&r, "events.append",
                           "{'domain':'d','id':'1','events':[{'type':'u'}],'with':7}"));
    CHECK_STATUS(HF_INVALID,
                 bind_call(&r, "events.append_actions",
                           "{'domain':'d','id':'1','events':[{'type':'u'}],'with':[]}"));
    CHECK_BIND(&r, "{}", "events.reset", "{}");
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "events.get", "{'id':'a'}"));
    CHECK_OK(bind_call(&r, "events.append",
                       "{'domain':'d','id':'1','expect':'none','events':[{'id':'a','type':'t'}]}"));
    bind_rig_close(&r);
}

TEST(bind_events, large_payloads_go_where_it_was_opened_with)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_STATUS(HF_INVALID, bind_call(&r, "events.open", "{'blobs':'nowhere:x'}"));
    CHECK_BIND(&r, "{}", "events.open", "{'blobs':'memory:','blob_bytes':100}");
    CHECK_OK(bind_call(&r, "events.append",
                       "{'domain':'d','events':[{'type':'t','payload':'01234567890123456789012345"
                       "67890123456789012345678901234567890123456789012345678901234567890123456789"
                       "0123456789'}]}"));
    CHECK_OK(bind_call(&r, "events.read", "{'domain':'d','no_payload':true}"));
    CHECK_INT(64, bind_member(&r, "blob").len);
    CHECK_OK(bind_call(&r, "events.read", "{'domain':'d'}"));
    CHECK(hf_str_equal(HF_STR("0123456789"), hf_str_of(bind_member(&r, "payload").ptr, 10)));
    bind_rig_close(&r);
}

TEST(bind_events, appends_and_reads)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_OK(bind_call(&r, "events.append",
                       "{'domain':'order','id':'7','expect':'none','events':[{'id':'a','type':"
                       "'placed','payload':'{}'},{'id':'b','type':'paid','causation':'a',"
                       "'correlation':'a'}]}"));
    CHECK_STR("2", bind_member(&r, "last"));
    CHECK_STATUS(HF_CONDITION,
                 bind_call(&r, "events.append",
                           "{'domain':'order','id':'7','expect':'none','events':[{'type':'x'}]}"));
    CHECK_OK(bind_call(&r, "events.append",
                       "{'domain':'order','id':'7','expect':'version','version':2,'events':[{"
                       "'type':'x'}]}"));
    CHECK_BIND_REFUSES(&r, "\"version\" is for \"expect\":\"version\"", "events.append",
                       "{'domain':'order','version':2,'events':[{'type':'x'}]}");
    CHECK_OK(bind_call(&r, "events.append",
                       "{'appends':[{'domain':'x','id':'1','events':[{'type':'t'}]},{'domain':'x',"
                       "'id':'2','events':[{'type':'t'}]}]}"));
    CHECK(strstr(r.result.ptr, "\"streams\":[{\"first\":1,") != NULL);
    CHECK_OK(bind_call(&r, "events.read", "{'domain':'order','id':'7','limit':1}"));
    CHECK(strstr(r.result.ptr, "\"domain\":\"order\",\"stream\":\"7\",\"version\":1") != NULL);
    CHECK_STR("2", bind_member(&r, "next"));
    CHECK_OK(bind_call(&r, "events.get", "{'id':'b'}"));
    CHECK_STR("paid", bind_member(&r, "type"));
    CHECK_OK(bind_call(&r, "events.caused_by", "{'id':'a'}"));
    CHECK_STR("b", bind_member(&r, "id"));
    CHECK_OK(bind_call(&r, "events.correlated", "{'id':'a'}"));
    CHECK_OK(bind_call(&r, "events.tree", "{'id':'a'}"));
    CHECK_BIND_REFUSES(&r, "events.tree: \"depth_max\" is at most 1000", "events.tree",
                       "{'id':'a','depth_max':1001}");
    CHECK_OK(bind_call(&r, "events.tree", "{'id':'a'}"));
    CHECK(strstr(r.result.ptr, "\"children\":[{\"event\":{\"id\":\"b\"") != NULL);
    test_advance_ms(t, 1000);
    CHECK_OK(bind_call(&r, "events.all", "{'domain':'x'}"));
    CHECK(strstr(r.result.ptr, "\"domain\":\"x\",\"stream\":\"1\"") != NULL);
    CHECK(bind_member(&r, "next").len == 26);
    CHECK_OK(bind_call(&r, "events.streams", "{}"));
    CHECK(strstr(r.result.ptr, "\"whole\":true") != NULL);
    CHECK_OK(bind_call(&r, "events.streams", "{'limit':1}"));
    CHECK(strstr(r.result.ptr, "\"whole\":false") != NULL);
    CHECK_BIND(&r, "{'streams':3,'events':5,'bad_version':0}", "events.verify", "{}");
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "events.snapshot", "{'domain':'order','id':'7'}"));
    CHECK_BIND(&r, "{'saved':true}", "events.save_snapshot",
               "{'domain':'order','id':'7','version':2,'state':{'n':{'N':'2'}}}");
    CHECK_BIND(&r, "{'saved':false}", "events.save_snapshot",
               "{'domain':'order','id':'7','version':1,'state':{'n':{'N':'1'}}}");
    CHECK_OK(bind_call(&r, "events.snapshot", "{'domain':'order','id':'7'}"));
    CHECK_STR("2", bind_member(&r, "version"));
    CHECK(strstr(r.result.ptr, "\"state\":{\"n\":{\"N\":\"2\"}}"));
    CHECK_BIND(&r, "{}", "events.truncate", "{'domain':'order','id':'7','before':2}");
    CHECK_BIND(&r, "{}", "events.limit_stream", "{'domain':'order','id':'7','max_count':2}");
    CHECK_BIND(&r, "{}", "events.archive", "{'domain':'x','id':'1'}");
    CHECK_BIND(&r, "{}", "events.unarchive", "{'domain':'x','id':'1'}");
    CHECK_BIND(&r, "{}", "events.tombstone", "{'domain':'x','id':'2'}");
    CHECK_STATUS(HF_DELETED, bind_call(&r, "events.read", "{'domain':'x','id':'2'}"));
    CHECK_BIND(&r, "{'subscriptions':[]}", "events.subscriptions", "{}");
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "events.subscription", "{'name':'m'}"));
    CHECK_BIND(&r, "{'events':[]}", "events.parked", "{'name':'m'}");
    bind_rig_close(&r);
}

/* Options are for the first who opens a table; a table that was opened stays as it is. */
TEST(bind_open, takes_options_for_a_table)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND(&r, "{}", "lock.open", "{'table':'locks2','hash_attribute':'lock','forget_s':60}");
    CHECK_OK(bind_call(&r, "lock.try", "{'table':'locks2','name':'a'}"));
    CHECK_OK(bind_call(&r, "GetItem", "{'TableName':'locks2','Key':{'lock':{'S':'a'}}}"));
    CHECK(strstr(r.result.ptr, "\"lock\":{\"S\":\"a\"}") != NULL);
    CHECK_BIND(&r, "{}", "once.open", "{'table':'once2','sort_attribute':'what'}");
    CHECK_OK(bind_call(&r, "once.mark_done", "{'table':'once2','user':'u','key':'k'}"));
    CHECK_OK(bind_call(&r, "GetItem",
                       "{'TableName':'once2','Key':{'user':{'S':'u'},'what':{'S':'k'}}}"));
    CHECK_BIND(&r, "{}", "limit.open", "{'hash_attribute':'limit'}");
    CHECK_BIND(&r, "{}", "limit.open", "{'hash_attribute':'limit','table':'limits'}");
    CHECK_BIND(&r, "{}", "limit.open", "{}"); /* as it is */
    CHECK_STATUS(HF_INVALID, bind_call(&r, "limit.open", "{'hash_attribute':'other'}"));
    CHECK(strstr(r.result.ptr, "table \\\"limits\\\" is open already, with other options") != NULL);
    CHECK_OK(bind_call(&r, "limit.take", "{'name':'n','rule':{'limit':1,'window_ms':1}}"));
    CHECK_OK(bind_call(&r, "GetItem", "{'TableName':'limits','Key':{'limit':{'S':'n'}}}"));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "kv.open", "{'table':'limits'}"));
    bind_rig_close(&r);
}

/* What comes after another method has used the table would otherwise be forgotten. */
TEST(bind_open, refuses_options_that_come_too_late)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'type':'a'}]}"));
    CHECK_BIND(&r, "{}", "outbox.open", "{}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "outbox.open", "{'history_s':60}"));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "outbox.open", "{'blobs':'memory:'}"));
    CHECK_BIND(&r, "{}", "outbox.open", "{'table':'other','history_s':60,'stream':false}");
    CHECK_BIND(&r, "{}", "outbox.open", "{'table':'other','history_s':60}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "outbox.open", "{'table':'other','history_s':61}"));

    CHECK_BIND(&r, "{}", "kv.open", "{'table':'keys1','partitioned':true}");
    CHECK_BIND(&r, "{}", "kv.open", "{'table':'keys1','partitioned':true}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "kv.open",
                                       "{'table':'keys1','partitioned':true,'consistent':true}"));
    CHECK_BIND(&r, "{}", "counter.open", "{'table':'counts','partitioned':true,'writers':2}");
    CHECK_BIND(&r, "{}", "counter.open", "{'table':'counts','partitioned':true,'writers':2}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "counter.open",
                                       "{'table':'counts','partitioned':true,'writers':3}"));
    bind_rig_close(&r);
}

TEST(bind_patterns, are_found_by_the_marks_of_their_tables)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND(&r, "{'tables':[]}", "patterns.list", "{}");
    CHECK_OK(bind_call(&r, "counter.add", "{'id':'a','by':1}"));
    CHECK_OK(bind_call(&r, "kv.set", "{'id':'a','value':{'S':'v'}}"));
    CHECK_OK(bind_call(&r, "limit.take", "{'name':'n','rule':{'limit':1,'window_ms':1}}"));
    CHECK_OK(bind_call(&r, "outbox.emit", "{'table':'box','events':[{'type':'t'}]}"));
    CHECK_OK(bind_call(&r, "events.append", "{'domain':'d','events':[{'type':'t'}]}"));
    CHECK_OK(bind_call(&r, "records.open", "{}"));
    CHECK_OK(bind_call(&r, "kv.set", "{'partition':'p','id':'a','value':{'S':'v'}}"));
    CHECK_OK(bind_call(&r, "CreateTable",
                       "{'TableName':'numbers','BillingMode':'PAY_PER_REQUEST',"
                       "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'N'}],"
                       "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}]}"));
    CHECK_OK(bind_call(&r, "patterns.list", "{}"));
    CHECK(strstr(r.result.ptr, "{\"table\":\"Records\",\"kinds\":[{\"kind\":\"records\"") != NULL);
    CHECK(strstr(r.result.ptr, "{\"table\":\"box\",\"kinds\":[{\"kind\":\"outbox\"") != NULL);
    CHECK(strstr(r.result.ptr, "{\"table\":\"events\",\"kinds\":[{\"kind\":\"events\"") != NULL);
    CHECK(strstr(r.result.ptr,
                 "{\"table\":\"keys\",\"kinds\":[{\"kind\":\"counters\",\"format\":1},"
                 "{\"kind\":\"values\",\"format\":1}]") != NULL);
    CHECK(strstr(r.result.ptr, "{\"table\":\"limits\"") != NULL);
    CHECK(strstr(r.result.ptr, "{\"table\":\"partitioned_keys\"") != NULL);
    CHECK(strstr(r.result.ptr, "numbers") == NULL);
    bind_rig_close(&r);
}

/* ---- records, blobs, tables ----------------------------------------------------------------- */

TEST(bind_records, are_put_listed_and_marked)
{
    struct rig_bind r = bind_rig(t, false);
    const char *key = "{'account':'a','run_time':'1'}";

    CHECK_BIND(&r, "{}", "records.put",
               "{'record':{'AccountId':{'S':'a'},'RunTime':{'S':'1'},'n':{'N':'1'}}}");
    CHECK_STATUS(
        HF_DUPLICATE,
        bind_call(&r, "records.put",
                  "{'record':{'AccountId':{'S':'a'},'RunTime':{'S':'1'}},'only_new':true}"));
    CHECK_OK(bind_call(&r, "records.list", "{'state':'unprocessed'}"));
    CHECK_STR("1", bind_member(&r, "run_time"));
    CHECK_OK(bind_call(&r, "records.list", "{'account':'a'}"));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "records.list", "{}"));
    CHECK_BIND(&r, "{'count':1}", "records.count", "{'state':'unprocessed'}");
    CHECK_BIND(&r, "{}", "records.mark", key);
    CHECK_OK(bind_call(&r, "records.get", key));
    CHECK_STR("processed", bind_member(&r, "state"));
    CHECK_BIND(&r, "{}", "records.reset", key);
    CHECK_BIND(&r, "{'count':0}", "records.retry_failed", "{}");
    CHECK_BIND(&r, "{'count':0}", "records.adopt", "{}");
    CHECK_BIND(&r, "{}", "records.delete", key);
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "records.get", key));
    bind_rig_close(&r);
}

TEST(bind_blob, is_put_and_found_by_its_digest)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND(&r, "{'digest':'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'}",
               "blob.put", "{'store':'memory:','bytes':'abc'}");
    CHECK_BIND(&r, "{'bytes':'abc'}", "blob.get",
               "{'store':'memory:','digest':"
               "'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'}");
    CHECK_BIND(&r, "{'size':3}", "blob.has",
               "{'store':'memory:','digest':"
               "'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "blob.get", "{'digest':'x'}"));
    bind_rig_close(&r);
}

TEST(bind_table, is_ensured_once)
{
    struct rig_bind r = bind_rig(t, false);
    const char *table = "{'table':{'TableName':'things','BillingMode':'PAY_PER_REQUEST',"
                        "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'S'}],"
                        "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}]}}";

    CHECK_BIND(&r, "{}", "table.ensure", table);
    CHECK_BIND(&r, "{}", "table.ensure", table);
    CHECK_BIND(&r, "{'TableNames':['things']}", "ListTables", "{}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "table.ensure", "{'table':{}}"));
    bind_rig_close(&r);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(bind_all, any_failed_allocation_of_a_method_is_an_error_with_nothing_lost)
{
    static const char *const calls[][2] = {
        {"bind.methods", "{}"},
        {"PutItem", "{'TableName':'keys','Item':{'key':{'S':'a.b'}}}"},
        {"kv.set", "{'id':'k','value':{'L':[{'S':'\\u00e4'}]}}"},
        {"kv.list", "{'all_spaces':true}"},
        {"set.add", "{'id':'s','elements':[{'S':'a'},{'S':'b'}]}"},
        {"counter.add", "{'id':'c','by':1}"},
        {"counter.list", "{}"},
        {"limit.take", "{'name':'l','rule':{'limit':1000000,'window_ms':100000}}"},
        {"outbox.emit", "{'events':[{'type':'t','payload':{'base64':'AAH/'}}]}"},
        {"outbox.emit_actions", "{'events':[{'type':'t'},{'type':'u','headers':{'a':{'N':'1'}}}]}"},
        {"outbox.pending", "{}"},
        {"events.append", "{'domain':'d','id':'1','events':[{'type':'t','payload':'x\\ty'}]}"},
        {"events.append_actions", "{'appends':[{'domain':'d','id':'2','events':[{'type':'t'}]}]}"},
        {"events.append",
         "{'domain':'d','id':'3','events':[{'type':'t'}],'with':[{'Put':{'TableName':'keys','Item':{"
         "'key':{'S':'with'}}}}]}"},
        {"events.save_snapshot", "{'domain':'d','id':'1','version':1,'state':{'n':{'N':'1'}}}"},
        {"events.snapshot", "{'domain':'d','id':'1'}"},
        {"ListTables", "{'deadline_ms':60000,'cancel':7}"},
        {"events.read", "{'domain':'d','id':'1'}"},
        {"events.all", "{}"},
        {"events.streams", "{}"},
        {"events.subscriptions", "{}"},
        {"records.put", "{'record':{'AccountId':{'S':'a'},'RunTime':{'S':'1'}}}"},
        {"records.list", "{'account':'a'}"},
        {"session.list", "{}"},
        {"session.next", "{}"},
        {"session.wait", "{}"},
        {"session.done", "{'token':1,'error':{'message':'m'},'failures':[{'index':1}]}"}};

    /* The database has the system's memory: what it keeps is not a leak of the round. */
    struct rig_bind r = bind_rig_real(t, "memory:");

    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        (void)bind_call(&r, calls[i][0], calls[i][1]);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(test_env(t));
            struct hf_bind *bind = NULL;
            struct hf_str result = {0};
            enum hf_status status = s ? hf_bind_open(s, r.db, NULL, &bind) : HF_NOMEM;

            if (status == HF_OK)
                status = hf_bind_call(s, bind, hf_str_from(calls[i][0]), bind_json(&r, calls[i][1]),
                                      &result);
            ALLOC_SWEEP_STOP(t);
            CHECK(status != HF_NOMEM || t->alloc_failed);
            CHECK(status != HF_OK || result.ptr);
            if (!t->alloc_failed)
                CHECK(status == HF_OK || !strcmp(calls[i][0], "session.done"));
            hf_bind_close(bind);
            hf_scope_free(s);
        }
    }
    bind_rig_close(&r);
}
