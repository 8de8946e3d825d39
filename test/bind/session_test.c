/*
 * bind/session_test.c: sessions on the system's clocks: locks, attempts, leaders, relays,
 * subscriptions, groups, records, streams; their deliveries, done, failed and taken back; the end of
 * a bind and of a process with deliveries under way.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "help.h"

#define WAIT "'wait_ms':60000"

/* A call with one number, in place of %llu. */
__attribute__((format(printf, 3, 0))) static enum hf_status
call_number(struct rig_bind *r, const char *method, const char *json, unsigned long long number)
{
    char text[600];

    snprintf(text, sizeof(text), json, number);
    return bind_call(r, method, text);
}

static unsigned long long number_of(struct rig_bind *r, const char *name)
{
    struct hf_str text = bind_member(r, name);

    CHECK(text.ptr != NULL);
    return strtoull(text.ptr, NULL, 10);
}

/* Repeat a call until that member of its result is that text. */
static void call_until(struct rig_bind *r, const char *method, const char *json,
                       unsigned long long number, const char *name, const char *text)
{
    for (int i = 0; i < 60000; i++) {
        CHECK_OK(call_number(r, method, json, number));
        if (hf_str_equal(bind_member(r, name), hf_str_from(text)))
            return;
        hf_scope_reset(r->s);
        usleep(1000);
    }
    CHECK_STR(text, bind_member(r, name));
}

/* The token of the next delivery of any session; notices are passed over. */
static unsigned long long next_token(struct rig_bind *r)
{
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(bind_call(r, "session.next", "{" WAIT "}"));
        if (bind_member(r, "token").ptr)
            return number_of(r, "token");
    }
    test_check(false, "there is a delivery", __FILE__, __LINE__);
    return 0;
}

/* Wait for a notice of that type. */
static void next_notice(struct rig_bind *r, const char *type)
{
    struct hf_str text = hf_scope_format(r->s, "\"type\":\"%s\"", type);

    for (int i = 0; i < 1000; i++) {
        CHECK_OK(bind_call(r, "session.next", "{" WAIT "}"));
        if (strstr(r->result.ptr, text.ptr))
            return;
    }
    test_check(false, "there is such a notice", __FILE__, __LINE__);
}

/* ---- locks, attempts, leaders --------------------------------------------------------------- */

TEST(bind_session, a_lock_is_held_guards_and_is_lost_with_a_notice)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session;

    CHECK_OK(
        bind_call(&r, "lock.acquire", "{'name':'job','heartbeat_ms':20,'data':{'n':{'N':'1'}}}"));
    session = number_of(&r, "session");
    CHECK(number_of(&r, "fence") > 0);
    CHECK_STATUS(HF_LOCKED, bind_call(&r, "lock.try", "{'name':'job'}"));
    CHECK_STATUS(HF_TIMEOUT, bind_call(&r, "lock.acquire", "{'name':'job','deadline_ms':30}"));
    CHECK_OK(call_number(&r, "lock.state", "{'session':%llu}", session));
    CHECK_STR("held", bind_member(&r, "state"));
    CHECK_OK(call_number(&r, "lock.guard_actions", "{'session':%llu}", session));
    CHECK(strstr(r.result.ptr, "{\"actions\":[{\"ConditionCheck\":{") == r.result.ptr);
    CHECK_OK(call_number(&r, "lock.extend", "{'session':%llu}", session));
    CHECK_OK(call_number(&r, "lock.touch", "{'session':%llu}", session));
    CHECK_OK(call_number(&r, "lock.set_data", "{'session':%llu,'data':{'n':{'N':'2'}}}", session));
    CHECK_OK(bind_call(&r, "session.list", "{}"));
    CHECK_STR("lock", bind_member(&r, "kind"));
    CHECK_BIND(&r, "{'deliveries':[],'notices':[]}", "session.next", "{}");
    CHECK_STATUS(HF_INVALID, call_number(&r, "once.finish", "{'session':%llu}", session));
    CHECK_OK(bind_call(&r, "lock.break", "{'name':'job'}"));
    next_notice(&r, "lost");
    CHECK(strstr(r.result.ptr, "\"why\":\"stolen\"") != NULL);
    CHECK_STATUS(HF_LOST, call_number(&r, "lock.release", "{'session':%llu}", session));
    CHECK_STATUS(HF_NOT_FOUND, call_number(&r, "lock.release", "{'session':%llu}", session));
    CHECK_OK(bind_call(&r, "lock.try", "{'name':'job'}"));
    CHECK_OK(
        call_number(&r, "lock.release", "{'session':%llu,'data':{}}", number_of(&r, "session")));
    CHECK_OK(bind_call(&r, "lock.try", "{'name':'job'}")); /* released by the end of the bind */
    bind_rig_close(&r);
}

TEST(bind_session, an_attempt_is_finished_by_itself_and_in_a_transaction)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session;
    struct hf_str actions;

    CHECK_OK(bind_call(&r, "once.begin", "{'user':'u','key':'k'}"));
    CHECK_STR("true", bind_member(&r, "begun"));
    session = number_of(&r, "session");
    CHECK_STATUS(HF_LOCKED, bind_call(&r, "once.try", "{'user':'u','key':'k'}"));
    CHECK_OK(call_number(&r, "once.renew", "{'session':%llu}", session));
    CHECK_OK(call_number(&r, "once.touch", "{'session':%llu}", session));
    CHECK_OK(call_number(&r, "once.state", "{'session':%llu}", session));
    CHECK_STR("false", bind_member(&r, "lost"));
    CHECK_OK(call_number(&r, "once.finish", "{'session':%llu,'result':{'n':{'N':'7'}}}", session));
    CHECK_OK(bind_call(&r, "once.begin", "{'user':'u','key':'k'}"));
    CHECK_STR("false", bind_member(&r, "begun"));
    CHECK(strstr(r.result.ptr, "\"result\":{\"n\":{\"N\":\"7\"}}") != NULL);

    CHECK_OK(bind_call(&r, "once.try", "{'user':'u','key':'l'}"));
    session = number_of(&r, "session");
    CHECK_OK(call_number(&r, "once.finish_actions", "{'session':%llu}", session));
    actions = hf_scope_format(r.s, "{\"TransactItems\":%.*s",
                              (int)(r.result.len - strlen("{\"actions\":")),
                              r.result.ptr + strlen("{\"actions\":"));
    CHECK_OK(hf_bind_call(r.s, r.bind, HF_STR("TransactWriteItems"), actions, &r.result));
    CHECK_OK(call_number(&r, "once.committed", "{'session':%llu}", session));
    CHECK_OK(bind_call(&r, "once.get", "{'user':'u','key':'l'}"));
    CHECK_STR("done", bind_member(&r, "state"));

    CHECK_OK(bind_call(&r, "once.try", "{'user':'u','key':'m'}"));
    CHECK_OK(call_number(&r, "once.fail", "{'session':%llu}", number_of(&r, "session")));
    CHECK_OK(bind_call(&r, "once.get", "{'user':'u','key':'m'}"));
    CHECK_STR("failed", bind_member(&r, "state"));
    CHECK_OK(bind_call(&r, "once.try", "{'user':'u','key':'o','heartbeat_ms':20}"));
    session = number_of(&r, "session");
    CHECK_OK(bind_call(&r, "once.clear", "{'user':'u','key':'o'}"));
    next_notice(&r, "lost");
    CHECK(number_of(&r, "session") == session);
    CHECK_STATUS(HF_LOST, call_number(&r, "once.finish", "{'session':%llu}", session));

    CHECK_OK(bind_call(&r, "once.try", "{'user':'u','key':'n'}"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu}", number_of(&r, "session")));
    CHECK_OK(bind_call(&r, "once.get", "{'user':'u','key':'n'}"));
    CHECK(!hf_str_equal(HF_STR("running"), bind_member(&r, "state")));
    bind_rig_close(&r);
}

TEST(bind_session, a_leader_is_told_that_it_leads)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session;

    CHECK_OK(bind_call(&r, "leader.open", "{'name':'n'}"));
    session = number_of(&r, "session");
    next_notice(&r, "elected");
    CHECK_OK(call_number(&r, "leader.state", "{'session':%llu}", session));
    CHECK_STR("true", bind_member(&r, "leads"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu}", session));
    bind_rig_close(&r);
}

/* ---- relays --------------------------------------------------------------------------------- */

TEST(bind_session, a_relay_hands_over_and_notes_what_became_of_it)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session, token;

    CHECK_OK(bind_call(&r, "outbox.emit",
                       "{'events':[{'id':'e1','type':'a','key':'k','payload':'one'},{'id':'e2',"
                       "'type':'a','key':'k','payload':'two'}]}"));
    CHECK_OK(bind_call(&r, "relay.start", "{'max_attempts':2,'backoff_ms':1,'poll_ms':20}"));
    session = number_of(&r, "session");
    token = next_token(&r);
    CHECK_STR("one", bind_member(&r, "payload"));
    CHECK_STR("outbox", bind_member(&r, "kind"));
    CHECK_BIND(&r, "{'sessions':[]}", "session.wait", "{}"); /* the next of the key waits */
    CHECK_OK(bind_call(&r, "outbox.relays", "{}"));
    CHECK(strstr(r.result.ptr, "\"lease_ms\":20000,\"stopped\":false}],\"buckets\":[{\"bucket\":0,"
                               "\"relay\":\"") != NULL);
    CHECK_OK(bind_call(&r, "session.next", "{'again':true}")); /* whoever has lost it */
    CHECK(number_of(&r, "token") == token);
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", token));
    CHECK_STATUS(HF_LOST, call_number(&r, "session.done", "{'token':%llu}", token));
    CHECK_OK(bind_call(&r, "session.wait", "{" WAIT "}"));
    CHECK(strstr(r.result.ptr, "{\"sessions\":[") == r.result.ptr && r.result.len > 15);
    token = next_token(&r);
    CHECK_STR("two", bind_member(&r, "payload"));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu,'error':{'message':'no'}}", token));
    token = next_token(&r); /* again */
    CHECK_STR("1", bind_member(&r, "attempts"));
    CHECK_OK(call_number(&r, "session.done",
                         "{'token':%llu,'error':{'message':'never \\u0000','permanent':true}}",
                         token));
    next_notice(&r, "given_up");
    CHECK(strstr(r.result.ptr, "\"id\":\"e2\"") != NULL);
    call_until(&r, "outbox.failed", "{'limit':%llu}", 10, "id", "e2");
    CHECK(strstr(r.result.ptr, "\"error_text\":\"never") != NULL);
    call_until(&r, "relay.metrics", "{'session':%llu}", session, "given_up", "1");
    CHECK_OK(call_number(&r, "relay.pause", "{'session':%llu}", session));
    CHECK_BIND(&r, "{'done':1}", "outbox.retry", "{'ids':['e2']}");
    CHECK_OK(call_number(&r, "relay.resume", "{'session':%llu}", session));
    token = next_token(&r);
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu,'failures':[]}", token));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}", session));
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("0", bind_member(&r, "pending"));
    CHECK_STATUS(HF_NOT_FOUND, call_number(&r, "session.next", "{'session':%llu}", session));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "relay.start", "{'sink':'nothing:'}"));
    bind_rig_close(&r);
}

TEST(bind_session, of_a_batch_single_events_can_fail)
{
    struct rig_bind r = bind_rig_real(t, "memory:");

    CHECK_OK(bind_call(&r, "outbox.open", "{'buckets':1}"));
    CHECK_OK(bind_call(&r, "outbox.emit",
                       "{'events':[{'id':'e1','type':'a','key':'j'},{'id':'e2','type':'a','key':"
                       "'k'}]}"));
    CHECK_OK(bind_call(&r, "relay.start", "{'batch_max':10,'workers':1,'poll_ms':20}"));
    CHECK_OK(call_number(&r, "session.done",
                         "{'token':%llu,'failures':[{'index':0,'message':'m','permanent':true}]}",
                         next_token(&r)));
    next_notice(&r, "given_up");
    call_until(&r, "outbox.stats", "{'limit':%llu}", 100, "failed", "1");
    bind_rig_close(&r);
}

TEST(bind_session, what_there_was_no_memory_to_hand_over_is_handed_over_later)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long token = 0;

    enum { PAYLOAD = 100000 }; /* so that each buffer on the way takes memory of its own */
    char *payload = hf_scope_alloc(r.s, PAYLOAD + 1);

    memset(payload, 'x', PAYLOAD);
    payload[PAYLOAD] = '\0';
    CHECK_OK(hf_bind_call(r.s, r.bind, HF_STR("outbox.emit"),
                          hf_scope_format(r.s, "{\"events\":[{\"type\":\"a\",\"payload\":\"%s\"}]}",
                                          payload),
                          &r.result));
    CHECK_OK(bind_call(&r, "relay.start", "{'poll_ms':20}"));
    CHECK_OK(bind_call(&r, "session.wait", "{" WAIT "}"));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_str result = {0};
        enum hf_status status = HF_NOMEM;

        if (s)
            status =
                hf_bind_call(s, r.bind, HF_STR("session.next"), HF_STR("{\"limit\":5}"), &result);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        if (status == HF_OK) {
            CHECK(strstr(result.ptr, "\"token\":") != NULL);
            token = strtoull(strstr(result.ptr, "\"token\":") + 8, NULL, 10);
        }
        hf_scope_free(s);
    }
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", token));
    bind_rig_close(&r);
}

/* What is under way when a bind ends, or its timeout has passed, comes again. */
TEST(bind_session, a_delivery_that_is_not_done_is_taken_back_and_comes_again)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long token;

    CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'id':'e1','type':'a'}]}"));
    CHECK_OK(bind_call(&r, "relay.start", "{'timeout_ms':50,'backoff_ms':1,'poll_ms':20}"));
    token = next_token(&r);
    CHECK(next_token(&r) != token); /* after its timeout */
    CHECK_STATUS(HF_LOST, call_number(&r, "session.done", "{'token':%llu}", token));
    bind_rig_reopen(&r);
    CHECK_OK(bind_call(&r, "relay.start", "{'poll_ms':20}"));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", next_token(&r)));
    CHECK_OK(bind_call(&r, "session.list", "{}"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}",
                         number_of(&r, "session")));
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("0", bind_member(&r, "pending"));
    bind_rig_close(&r);
}

/* It is the handler that hangs, not the way to it: others are delivered meanwhile. */
TEST(bind_session, what_hangs_at_every_attempt_is_given_up_and_others_go_on)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    bool given_up = false;

    CHECK_OK(bind_call(&r, "relay.start",
                       "{'timeout_ms':100,'max_attempts':2,'backoff_ms':1,'poll_ms':20,"
                       "'breaker_ms':20,'workers':2}"));
    CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'id':'hangs','type':'a','key':'j'}]}"));
    for (int i = 0; i < 100 && !given_up; i++) {
        CHECK_OK(bind_call(&r, "session.next", "{" WAIT "}"));
        given_up = strstr(r.result.ptr, "\"type\":\"given_up\"") != NULL;
    }
    CHECK(given_up);
    CHECK(strstr(r.result.ptr, "did not end in time") != NULL);
    call_until(&r, "outbox.failed", "{'limit':%llu}", 10, "id", "hangs");
    CHECK_STR("2", bind_member(&r, "attempts"));
    CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'id':'other','type':'a','key':'k'}]}"));
    (void)next_token(&r);
    CHECK_STR("other", bind_member(&r, "id"));
    bind_rig_close(&r);
}

/* ---- events --------------------------------------------------------------------------------- */

TEST(bind_session, a_subscription_hands_over_in_order_and_parks)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session;

    CHECK_OK(
        bind_call(&r, "events.append",
                  "{'domain':'d','id':'1','events':[{'type':'a'},{'type':'b'},{'type':'c'}]}"));
    CHECK_OK(bind_call(&r, "events.subscribe",
                       "{'name':'mail.er','park':true,'max_attempts':1,'poll_ms':20}"));
    session = number_of(&r, "session");
    for (int i = 0; i < 3; i++) {
        unsigned long long token = next_token(&r);

        CHECK_INT(i + 1, number_of(&r, "version"));
        CHECK_OK(call_number(&r, "session.done",
                             i == 1 ? "{'token':%llu,'error':{'message':'bad'}}" : "{'token':%llu}",
                             token));
    }
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}", session));
    CHECK_OK(bind_call(&r, "events.subscriptions", "{}"));
    CHECK_STR("mail.er", bind_member(&r, "name"));
    CHECK_STR("1", bind_member(&r, "parked"));
    CHECK_OK(bind_call(&r, "events.parked", "{'name':'mail.er'}"));
    CHECK_STR("bad", bind_member(&r, "error_text"));
    CHECK_BIND(&r, "{'done':1}", "events.replay", "{'name':'mail.er'}");
    CHECK_OK(bind_call(&r, "events.subscribe", "{'name':'mail.er','poll_ms':20}"));
    session = number_of(&r, "session");
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", next_token(&r)));
    CHECK_OK(call_number(&r, "events.subscription_metrics", "{'session':%llu}", session));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu}", session));
    CHECK_BIND(&r, "{}", "events.rebuild", "{'name':'mail.er'}");
    CHECK_BIND(&r, "{}", "events.forget", "{'name':'mail.er'}");
    CHECK_BIND(&r, "{'subscriptions':[]}", "events.subscriptions", "{}");
    bind_rig_close(&r);
}

TEST(bind_session, a_consumer_of_a_group_gets_each_event)
{
    struct rig_bind r = bind_rig_real(t, "memory:");

    CHECK_OK(bind_call(&r, "events.append", "{'domain':'d','id':'1','events':[{'type':'a'}]}"));
    CHECK_OK(bind_call(&r, "events.consume", "{'name':'g','poll_ms':20}"));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", next_token(&r)));
    CHECK_OK(bind_call(&r, "session.list", "{}"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}",
                         number_of(&r, "session")));
    bind_rig_close(&r);
}

/* ---- records and streams -------------------------------------------------------------------- */

TEST(bind_session, records_are_processed_and_completed_in_a_transaction)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session, token;
    struct hf_str actions;

    CHECK_OK(
        bind_call(&r, "records.put", "{'record':{'AccountId':{'S':'a'},'RunTime':{'S':'1'}}}"));
    CHECK_OK(bind_call(&r, "records.process", "{'workers':1,'max_retries':1,'backoff_ms':1}"));
    session = number_of(&r, "session");
    token = next_token(&r);
    CHECK_STR("record", bind_member(&r, "kind"));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu,'error':{'message':'later'}}", token));
    token = next_token(&r);
    CHECK_OK(call_number(&r, "records.complete_actions", "{'token':%llu}", token));
    actions = hf_scope_format(r.s, "{\"TransactItems\":%.*s",
                              (int)(r.result.len - strlen("{\"actions\":")),
                              r.result.ptr + strlen("{\"actions\":"));
    CHECK_OK(hf_bind_call(r.s, r.bind, HF_STR("TransactWriteItems"), actions, &r.result));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", token));
    CHECK_STATUS(HF_LOST, call_number(&r, "records.complete_actions", "{'token':%llu}", token));
    next_notice(&r, "ended");
    CHECK(strstr(r.result.ptr, "\"error\"") == NULL);
    CHECK_OK(call_number(&r, "records.progress", "{'session':%llu}", session));
    CHECK_STR("1", bind_member(&r, "completed"));
    CHECK_OK(bind_call(&r, "records.get", "{'account':'a','run_time':'1'}"));
    CHECK_STR("processed", bind_member(&r, "state"));
    bind_rig_close(&r);
}

/* A close on a thread of its own. */
struct closer {
    struct hf_bind *bind;
    unsigned long long session;
    int status;
};

static void *close_session(void *user)
{
    struct closer *closer = user;
    char json[80], *answer;
    size_t len;

    snprintf(json, sizeof(json), "{\"session\":%llu,\"drain_ms\":60000}", closer->session);
    closer->status = hf_bind_request(closer->bind, "session.close", strlen("session.close"), json,
                                     strlen(json), &answer, &len);
    hf_bind_free(answer);
    return NULL;
}

TEST(bind_session, a_processor_that_is_closed_waits_for_what_was_handed_over)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    struct closer closer = {.bind = r.bind};
    unsigned long long token;
    pthread_t thread;

    for (int i = 0; i < 2; i++)
        CHECK_OK(call_number(&r, "records.put",
                             "{'record':{'AccountId':{'S':'a%llu'},'RunTime':{'S':'1'}}}",
                             (unsigned)i));
    CHECK_OK(bind_call(&r, "records.process",
                       "{'workers':2,'no_retries':true,'backoff_ms':1,'lease_ms':60000}"));
    closer.session = number_of(&r, "session");
    call_until(&r, "session.list", "{'cancel':%llu}", 9, "waiting", "2");
    token = next_token(&r);
    CHECK_INT(0, pthread_create(&thread, NULL, close_session, &closer));
    call_until(&r, "session.wait", "{'cancel':%llu}", 9, "sessions", "["); /* no more begin */
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", token));
    CHECK_INT(0, pthread_join(thread, NULL));
    CHECK_INT(HF_OK, closer.status);
    CHECK_BIND(&r, "{'count':1}", "records.count", "{'state':'unprocessed'}"); /* given back */
    bind_rig_close(&r);
}

TEST(bind_session, changes_of_a_table_are_consumed)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    unsigned long long session, token;

    CHECK_OK(bind_call(
        &r, "CreateTable",
        "{'TableName':'users','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{"
        "'AttributeName':'id','AttributeType':'S'}],'KeySchema':[{'AttributeName':'id','KeyType':"
        "'HASH'}],'StreamSpecification':{'StreamEnabled':true,'StreamViewType':"
        "'NEW_AND_OLD_IMAGES'}}"));
    CHECK_OK(bind_call(&r, "PutItem", "{'TableName':'users','Item':{'id':{'S':'7'}}}"));
    CHECK_OK(bind_call(&r, "streams.consume", "{'table':'users','name':'c','poll_ms':20}"));
    session = number_of(&r, "session");
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu,'error':{}}", next_token(&r)));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", next_token(&r)));
    CHECK_OK(call_number(&r, "streams.metrics", "{'session':%llu}", session));
    CHECK_STR("1", bind_member(&r, "failures"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}", session));

    /* What was done before the end does not come again; what was not done by then does. */
    CHECK_OK(bind_call(&r, "PutItem", "{'TableName':'users','Item':{'id':{'S':'8'}}}"));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(bind_call(&r, "streams.consume", "{'table':'users','name':'c','poll_ms':20}"));
        session = number_of(&r, "session");
        token = next_token(&r);
        CHECK(strstr(r.result.ptr, "{\"id\":{\"S\":\"8\"}}") != NULL);
        CHECK(strstr(r.result.ptr, "{\"id\":{\"S\":\"7\"}}") == NULL);
        CHECK_STATUS(HF_TIMEOUT,
                     call_number(&r, "session.close", "{'session':%llu,'drain_ms':50}", session));
        CHECK_STATUS(HF_LOST, call_number(&r, "session.done", "{'token':%llu}", token));
    }
    CHECK_STATUS(HF_INVALID, bind_call(&r, "streams.consume", "{'table':'checkpoints'}"));
    bind_rig_close(&r);
}

/* ---- threads and ends ----------------------------------------------------------------------- */

struct waiter {
    struct hf_bind *bind;
    int status;
};

static void *wait_for_ever(void *user)
{
    struct waiter *waiter = user;
    static const char json[] = "{\"wait_ms\":600000,\"cancel\":7}";
    char *answer;
    size_t len;

    waiter->status =
        hf_bind_request(waiter->bind, "session.next", 12, json, sizeof(json) - 1, &answer, &len);
    hf_bind_free(answer);
    return NULL;
}

TEST(bind_threads, a_call_that_waits_is_canceled_by_its_number)
{
    struct rig_bind r = bind_rig_real(t, "memory:");
    struct waiter waiter = {.bind = r.bind};
    pthread_t thread;

    CHECK_INT(0, pthread_create(&thread, NULL, wait_for_ever, &waiter));
    while (hf_bind_cancel(r.bind, 7) == 0)
        usleep(1000);
    CHECK_INT(0, pthread_join(thread, NULL));
    CHECK_INT(HF_CANCELED, waiter.status);
    bind_rig_close(&r);
}

static void *handle_all(void *user)
{
    struct rig_bind *r = user;
    char *answer, text[64];
    size_t len;

    for (;;) {
        static const char next[] = "{\"wait_ms\":600000,\"limit\":3}";
        int status =
            hf_bind_request(r->bind, "session.next", 12, next, sizeof(next) - 1, &answer, &len);

        if (status != HF_OK) {
            hf_bind_free(answer);
            return NULL; /* canceled by the end of the bind */
        }
        for (const char *at = answer; (at = strstr(at, "\"token\":")) != NULL; at++) {
            char *ignored;

            snprintf(text, sizeof(text), "{\"token\":%llu}", strtoull(at + 8, NULL, 10));
            (void)hf_bind_request(r->bind, "session.done", 12, text, strlen(text), &ignored, &len);
            hf_bind_free(ignored);
        }
        hf_bind_free(answer);
    }
}

TEST(bind_threads, several_threads_handle_and_the_bind_ends_under_them)
{
    enum { HANDLERS = 3, EVENTS = 60 };
    struct rig_bind r = bind_rig_real(t, "memory:");
    pthread_t threads[HANDLERS];

    CHECK_OK(bind_call(&r, "relay.start", "{'workers':4,'batch_max':2,'poll_ms':20}"));
    CHECK_OK(bind_call(&r, "events.subscribe", "{'name':'s','poll_ms':20}"));
    for (int i = 0; i < HANDLERS; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, handle_all, &r));
    for (int i = 0; i < EVENTS; i++) {
        CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'type':'a'}]}"));
        CHECK_OK(bind_call(&r, "events.append", "{'domain':'d','id':'1','events':[{'type':'a'}]}"));
        hf_scope_reset(r.s);
    }
    for (int i = 0; i < 60000; i++) {
        bool done;

        CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
        done = number_of(&r, "pending") == 0;
        CHECK_OK(bind_call(&r, "session.list", "{}"));
        hf_scope_reset(r.s);
        if (done)
            break;
        usleep(1000);
    }
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("0", bind_member(&r, "pending"));
    hf_bind_close(r.bind);
    r.bind = NULL;
    for (int i = 0; i < HANDLERS; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
    bind_rig_close(&r);
}

/* Two binds are to each other as two processes are: each event is handled, whoever ends. */
TEST(bind_threads, two_binds_share_the_events_and_one_ends_with_some_in_hand)
{
    enum { EVENTS = 80 };
    struct rig_bind a = bind_rig_real(t, "memory:"), b = a;
    pthread_t thread;

    b.s = hf_scope_new(NULL);
    CHECK_OK(hf_bind_open(b.s, b.db, NULL, &b.bind));
    CHECK_OK(bind_call(&a, "lock.try", "{'name':'job'}"));
    CHECK_STATUS(HF_LOCKED, bind_call(&b, "lock.try", "{'name':'job'}"));
    for (int i = 0; i < EVENTS; i++)
        CHECK_OK(bind_call(&a, "outbox.emit", "{'events':[{'type':'a'}]}"));
    CHECK_OK(bind_call(&a, "relay.start", "{'poll_ms':20,'heartbeat_ms':20,'lease_ms':2000}"));
    (void)next_token(&a); /* and it never says what became of it */
    CHECK_OK(bind_call(&b, "relay.start", "{'poll_ms':20,'heartbeat_ms':20,'lease_ms':2000}"));
    CHECK_INT(0, pthread_create(&thread, NULL, handle_all, &b));
    hf_bind_close(a.bind);
    a.bind = NULL;
    CHECK_OK(hf_bind_open(a.s, a.db, NULL, &a.bind));
    call_until(&a, "outbox.stats", "{'limit':%llu}", 1000, "pending", "0");
    CHECK_OK(bind_call(&a, "outbox.failed", "{}"));
    CHECK_STR("{\"events\":[]}", a.result);
    CHECK_OK(bind_call(&b, "lock.try", "{'name':'job'}")); /* the end of a bind releases */
    hf_bind_close(b.bind);
    CHECK_INT(0, pthread_join(thread, NULL));
    hf_scope_free(b.s);
    bind_rig_close(&a);
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Takes a delivery, says so, and never ends it. */
CHILD(bind_handler)
{
    static const char next[] = "{\"wait_ms\":600000}";
    struct hf_bind *bind;
    char *answer;
    size_t len;

    if (hf_bind_open_url(args[0], strlen(args[0]), NULL, 0, &bind, &answer, &len) != HF_OK)
        return 1;
    hf_bind_free(answer);
    if (hf_bind_request(bind, "relay.start", 11, "{}", 2, &answer, &len) != HF_OK)
        return 2;
    hf_bind_free(answer);
    do {
        if (hf_bind_request(bind, "session.next", 12, next, sizeof(next) - 1, &answer, &len) !=
            HF_OK)
            return 3;
    } while (!strstr(answer, "\"token\":"));
    if (write(STDOUT_FILENO, "x", 1) != 1)
        return 4;
    for (;;)
        pause();
}

TEST(bind_kill, what_a_killed_process_had_in_hand_is_delivered_to_the_next)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct rig_bind r;
    struct hf_str url;
    char said;
    pid_t pid;
    int out;

    url = hf_scope_format(s, "embedded:%s/db", test_quick_directory(t));
    r = bind_rig_real(t, url.ptr);
    CHECK_OK(bind_call(&r, "outbox.emit", "{'events':[{'id':'e1','type':'a','payload':'p'}]}"));
    bind_rig_close(&r);
    pid = test_child("bind_handler", (const char *[]){url.ptr, NULL}, &out);
    CHECK_INT(1, read(out, &said, 1));
    kill(pid, SIGKILL);
    CHECK_INT(pid, waitpid(pid, NULL, 0));
    close(out);
    r = bind_rig_real(t, url.ptr);
    CHECK_OK(bind_call(&r, "relay.start", "{}"));
    CHECK_OK(call_number(&r, "session.done", "{'token':%llu}", next_token(&r)));
    CHECK_OK(bind_call(&r, "session.list", "{}"));
    CHECK_OK(call_number(&r, "session.close", "{'session':%llu,'drain_ms':60000}",
                         number_of(&r, "session")));
    CHECK_OK(bind_call(&r, "outbox.stats", "{}"));
    CHECK_STR("0", bind_member(&r, "pending"));
    bind_rig_close(&r);
    hf_scope_free(s);
}
