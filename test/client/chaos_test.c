/*
 * client/chaos_test.c: every operation through every fault, and the truth read from the engine
 * behind the server. (N1)
 *
 * A call through the client ends in one of three ways, and none of them may be a lie:
 *
 *  (1) HF_OK: the effect is there, once; of a read, the answer is the engine's own.
 *  (2) failed, and may_have_happened is false: the effect is not there, and will not come.
 *  (3) failed, and may_have_happened: the effect is there once, or not at all.
 *
 * Further:
 *
 *  (4) no more attempts than allowed, and no connection more than that;
 *  (5) it ends by its deadline, give or take 100 ms;
 *  (6) when trying again is safe and the fault passes before the attempts are used up, it succeeds;
 *  (7) when all that went wrong was throttling, nothing happened and the client says so;
 *  (8) the client is as good as new afterwards: its next call succeeds;
 *  (9) an answer that unpacks to more than any answer has is not asked for again.
 *
 * Faults come to the first attempt, to the first two, to all, and to the first with throttling for
 * ever after, which must not make the client forget what may have happened. Half of the calls go
 * over a new connection, half over one that was used before.
 *
 * HF_CHAOS_CASES=n runs so many random mixtures of faults after that, HF_CHAOS_ONLY=text just the
 * cases with that in their name.
 */
#include <holdfast/client.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "ops/fields.h"
#include "requests.h"
#include "rig.h"
#include "wire/wire.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

enum {
    PATIENCE = SANITIZED ? 4 : 1, /* times that are the times below */
    STRIDE = SANITIZED ? 6 : 1,   /* one plan in so many is played */
    WORKERS = 24,
    RANDOM_CASES = 600,
    CASES_PER_RIG = 150, /* then a new engine, so that lists of tables stay short */
    LONG_TEXT = 200000,
    DEADLINE_MS = 600,
    ATTEMPT_MS = 100,
    LATE_MS = 160, /* when the client has lost patience */
    SLACK_MS = 100,
    ATTEMPTS = 3,
    SHOWN_MAX = 20
};

struct spec {
    const char *name, *operation, *setup_operation, *setup, *request;
    const char *probe_operation, *probe, *before, *after;
};

static const struct spec specs[] = {
#define CASE(name, ...) {#name, __VA_ARGS__},
#include "chaos.def"
#undef CASE
};

enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

/* ---- one case -------------------------------------------------------------------------------- */

enum position { FIRST, FIRST_TWO, ALL, THEN_THROTTLED, POSITIONS };

struct plan {
    const struct spec *spec;
    struct chaos_script script;
    bool warm;         /* the connection was used before */
    unsigned patience; /* times that are ATTEMPT_MS, DEADLINE_MS and SLACK_MS */
    long fail_in;      /* the allocation of the call that fails; 0: none */
};

struct worker {
    pthread_t thread;
    struct crew *crew;
    struct rig rig;
    struct hf_scope *s;  /* the client's side */
    struct hf_env env;   /* of the client and its calls */
    atomic_long fail_in; /* its allocation that fails, counted down during a call; 0: none */
    unsigned tables;
    char table[32];
    struct hf_str stream, shard, iterator, backup;
    char *long_text;
    /* of the case: */
    const struct plan *plan;
    const struct op *op;
    struct hf_str expected; /* what the engine answers; of writes absent */
    enum hf_status expected_status;
    bool unstable; /* it never answers the same twice */
    enum hf_status status;
    bool may_have_happened;
    bool starved; /* an allocation failed */
    struct hf_str answer;
    int64_t took_ms, late_ms;
    struct chaos_count count;
    char why[512];
};

struct crew {
    struct worker workers[WORKERS];
    uint64_t seed;
    size_t plans; /* systematic ones, then random ones */
    size_t total;
    const char *only;
    atomic_size_t next;
    atomic_size_t ran, again;
    atomic_size_t outcomes[3]; /* done, not done, may have been done */
    pthread_mutex_t bomb;      /* held by who unpacks one: it takes a whole processor */
    pthread_mutex_t mutex;     /* guards failed and what is printed */
    unsigned failed;
};

static void plan_name(const struct plan *plan, char *name, size_t size)
{
    size_t at = (size_t)snprintf(name, size, "%s", plan->spec->name);

    for (size_t i = 0; i < plan->script.len && at < size; i++)
        at += (size_t)snprintf(name + at, size - at, "/%s", chaos_name(plan->script.faults[i]));
    if (at < size)
        snprintf(name + at, size - at, "%s%s", plan->script.for_ever ? "..." : "",
                 plan->warm ? " warm" : " cold");
}

/* The nth plan; the systematic ones come first. */
static struct plan plan_of(const struct crew *crew, size_t nth)
{
    struct plan plan = {.patience = PATIENCE};
    uint64_t dice = crew->seed + nth * UINT64_C(0x9e3779b97f4a7c15);

    dice = (dice ^ dice >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    dice ^= dice >> 29;
    plan.script = (struct chaos_script){.seed = dice, .ms = LATE_MS * PATIENCE};
    plan.warm = dice & 1;
    if (nth < crew->plans) /* neighbours have different faults, as some cost more than others */
        nth = nth * 7919 % crew->plans;
    if (nth >= crew->plans) {
        plan.spec = &specs[dice / 2 % SPECS];
        plan.script.len = 1 + dice / 256 % 4;
        plan.script.for_ever = dice / 1024 % 4 == 0;
        for (size_t i = 0; i < plan.script.len; i++)
            plan.script.faults[i] = (enum chaos_fault)((dice >> (16 + 8 * i)) % CHAOS_FAULTS);
        return plan;
    }
    plan.spec = &specs[nth / POSITIONS / CHAOS_FAULTS];
    plan.script.len = nth % POSITIONS == FIRST || nth % POSITIONS == ALL ? 1 : 2;
    plan.script.for_ever = nth % POSITIONS == ALL || nth % POSITIONS == THEN_THROTTLED;
    plan.script.faults[0] = (enum chaos_fault)(nth / POSITIONS % CHAOS_FAULTS);
    plan.script.faults[1] =
        nth % POSITIONS == THEN_THROTTLED ? CHAOS_SAY_THROTTLED : plan.script.faults[0];
    return plan;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A text of chaos.def with its marks filled in, in the worker's scope. */
static struct hf_str fill(struct worker *w, const char *text)
{
    struct hf__buf buf = {.scope = w->s};

    for (; *text; text++) {
        if (*text != '$') {
            hf__buf_put_byte(&buf, (uint8_t)(*text == '\'' ? '"' : *text == '`' ? '\'' : *text));
            continue;
        }
        switch (*++text) {
        case 'T':
            hf__buf_format(&buf, "%s", w->table);
            break;
        case 'A':
            hf__buf_format(&buf, "arn:aws:dynamodb:us-east-1:123456789012:table/%s", w->table);
            break;
        case 'S':
            hf__buf_put_str(&buf, w->stream);
            break;
        case 'H':
            hf__buf_put_str(&buf, w->shard);
            break;
        case 'I':
            hf__buf_put_str(&buf, w->iterator);
            break;
        case 'B':
            hf__buf_put_str(&buf, w->backup);
            break;
        case 'L':
            hf__buf_put(&buf, w->long_text, LONG_TEXT);
            break;
        default:
            abort(); /* a mark that nobody knows */
        }
    }
    hf__buf_put_byte(&buf, 0);
    MUST(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len - 1);
}

/* A string member of an answer, copied. */
static struct hf_str member(struct worker *w, struct hf_str answer, const char *name)
{
    char mark[64];
    const char *from, *to;

    snprintf(mark, sizeof(mark), "\"%s\":\"", name);
    from = memmem(answer.ptr, answer.len, mark, strlen(mark));
    MUST(from != NULL);
    from += strlen(mark);
    to = memchr(from, '"', (size_t)(answer.ptr + answer.len - from));
    MUST(to != NULL);
    return hf_scope_copy(w->s, hf_str_of(from, (size_t)(to - from)));
}

/* The engine's own answer, which lives until the next one. */
static struct hf_str truth(struct worker *w, const char *operation, const char *json,
                           enum hf_status *status)
{
    struct hf_str answer;

    hf_scope_reset(w->rig.truth.scope);
    *status = world_exchange(&w->rig.truth, operation, fill(w, json), &answer);
    return answer;
}

static struct hf_str must(struct worker *w, const char *operation, const char *json)
{
    enum hf_status status;
    struct hf_str answer = truth(w, operation, json, &status);

    if (status != HF_OK) {
        fprintf(stderr, "%s %s: %.*s\n", operation, json, HF_FMT(answer));
        abort();
    }
    return answer;
}

/* ---- memory of the client's side ------------------------------------------------------------- */

static void *client_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct worker *w = user;
    void *moved;

    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (atomic_load(&w->fail_in) > 0 && atomic_fetch_sub(&w->fail_in, 1) == 1)
        return NULL;
    moved = realloc(ptr, new_size);
    MUST(moved != NULL);
    return moved;
}

static void begin_worker(struct worker *w)
{
    w->env = (struct hf_env){.size = sizeof(w->env), .user = w, .alloc = client_alloc};
    w->s = hf_scope_new(NULL);
    w->long_text = malloc(LONG_TEXT);
    MUST(w->s && w->long_text);
    for (size_t i = 0; i < LONG_TEXT; i++)
        w->long_text[i] = (char)('a' + i * i % 23);
    rig_open(&w->rig);
    rig_do(&w->rig, "CreateTable",
           "{'TableName':'known','BillingMode':'PAY_PER_REQUEST',"
           "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
           "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}]}");
    rig_do(&w->rig, "PutItem", "{'TableName':'known','Item':{'pk':{'S':'k'}}}");
}

static void end_worker(struct worker *w)
{
    rig_close(&w->rig);
    hf_scope_free(w->s);
    free(w->long_text);
}

/* ---- before and after the call --------------------------------------------------------------- */

static void prepare(struct worker *w)
{
    const struct spec *spec = w->plan->spec;
    bool reads = !spec->probe, refused = spec->probe && strcmp(spec->before, spec->after) == 0;

    hf_scope_reset(w->s);
    snprintf(w->table, sizeof(w->table), "tab%u", w->tables++);
    w->op = hf__op_of_name(OP_DYNAMODB, hf_str_from(spec->operation));
    if (!w->op)
        w->op = hf__op_of_name(OP_STREAMS, hf_str_from(spec->operation));
    MUST(w->op != NULL);
    w->stream = member(w,
                       must(w, "CreateTable",
                            "{'TableName':'$T','BillingMode':'PAY_PER_REQUEST',"
                            "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
                            "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"
                            "'StreamSpecification':{'StreamEnabled':true,"
                            "'StreamViewType':'NEW_AND_OLD_IMAGES'}}"),
                       "LatestStreamArn");
    must(w, "PutItem", "{'TableName':'$T','Item':{'pk':{'S':'a'},'n':{'N':'5'}}}");
    must(w, "PutItem", "{'TableName':'$T','Item':{'pk':{'S':'b'}}}");
    if (w->op->service == OP_STREAMS) {
        w->shard = member(w, must(w, "DescribeStream", "{'StreamArn':'$S'}"), "ShardId");
        w->iterator = member(w,
                             must(w, "GetShardIterator",
                                  "{'StreamArn':'$S','ShardId':'$H',"
                                  "'ShardIteratorType':'TRIM_HORIZON'}"),
                             "ShardIterator");
    }
    if (spec->setup) {
        struct hf_str answer = must(w, spec->setup_operation, spec->setup);

        if (strcmp(spec->setup_operation, "CreateBackup") == 0)
            w->backup = member(w, answer, "BackupArn");
        MUST(hf_engine_upkeep(w->rig.truth.scope, w->rig.truth.db, NULL) == HF_OK);
    }
    w->expected = (struct hf_str){NULL, 0};
    w->expected_status = HF_OK;
    if (reads || refused) {
        enum hf_status second;

        w->expected =
            hf_scope_copy(w->s, truth(w, spec->operation, spec->request, &w->expected_status));
        w->unstable = w->op->op == HF_OP_DESCRIBE_ENDPOINTS || /* it says who was asked */
                      w->op->op == HF_OP_GET_SHARD_ITERATOR || /* and these the microsecond */
                      w->op->op == HF_OP_GET_RECORDS ||
                      !hf_str_equal(w->expected, truth(w, spec->operation, spec->request, &second));
    }
}

enum state { BEFORE, AFTER, NEITHER };

static enum state state_of(struct worker *w, struct hf_str *seen)
{
    const struct spec *spec = w->plan->spec;
    enum hf_status status;

    *seen = truth(w, spec->probe_operation, spec->probe, &status);
    if (occurrences(*seen, spec->before) == 1)
        return BEFORE;
    return occurrences(*seen, spec->after) == 1 ? AFTER : NEITHER;
}

/* ---- the call -------------------------------------------------------------------------------- */

static struct hf_db *connect_client(struct worker *w, uint32_t attempt_ms)
{
    struct hf_client_options options = {.size = sizeof(options),
                                        .env = &w->env,
                                        .region = HF_STR("us-east-1"),
                                        .credentials = {.access_key = HF_STR("key"),
                                                        .secret_key = HF_STR("secret")},
                                        .proxy = HF_STR("none"),
                                        .no_aws_config = true,
                                        .attempt_ms = attempt_ms,
                                        .retry = {.max_attempts = ATTEMPTS,
                                                  .backoff_ms = 2,
                                                  .throttle_ms = 4,
                                                  .backoff_max_ms = 30}};
    struct hf_db *db;

    if (hf_connect(w->s, rig_url(&w->rig, w->s), &options, &db) != HF_OK) {
        fprintf(stderr, "cannot connect: %s\n", hf_scope_error_text(w->s));
        abort();
    }
    return db;
}

/* A call that has nothing to do with the case, and has to go well. */
static bool known_is_there(struct worker *w, struct hf_db *db)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_get_item get = {.table = HF_STR("known")};
    struct hf_get_item_result got;
    bool good;

    MUST(s != NULL);
    hf_scope_timeout_ms(s, 5000);
    get.key = HF_ITEM(s, HF_S("pk", HF_STR("k")));
    good = hf_get_item(s, db, &get, &got) == HF_OK;
    if (!good)
        snprintf(w->why, sizeof(w->why), "(8) the next call fails: %s", hf_scope_error_text(s));
    else if (!got.item.ptr)
        snprintf(w->why, sizeof(w->why), "(8) the next call got the answer of another");
    good = good && got.item.ptr;
    hf_scope_free(s);
    return good;
}

/* In a scope of its own, which has no memory to begin with. */
static void call(struct worker *w, struct hf_db *db)
{
    struct hf_scope *s = hf_scope_new(&w->env);
    void *request = hf__scope_array(w->s, 1, w->op->request->size);
    void *response = hf__scope_array(w->s, 1, w->op->response->size);
    struct hf_str json = fill(w, w->plan->spec->request);
    struct hf__buf buf = {.scope = w->s};
    int64_t begun, late;

    MUST(s && request && response);
    MUST(hf__wire_read(w->s, w->op->request, json, request) == HF_OK);
    chaos_play(w->rig.chaos, &w->plan->script);
    late = chaos_late_ms();
    begun = chaos_now_ms();
    hf_scope_timeout_ms(s, DEADLINE_MS * w->plan->patience);
    atomic_store(&w->fail_in, w->plan->fail_in);
    w->status = hf_db_call(s, db, w->op->op, request, response);
    w->starved = w->plan->fail_in && atomic_exchange(&w->fail_in, 0) <= 0;
    w->took_ms = chaos_now_ms() - begun;
    w->late_ms = chaos_late_ms() - late;
    w->may_have_happened = hf_scope_error(s)->may_have_happened;
    w->count = chaos_counts(w->rig.chaos);
    if (w->status == HF_OK)
        hf__wire_write(&buf, w->op->response, response);
    else
        hf__wire_write_error(&buf, hf_scope_error(s));
    MUST(!buf.failed);
    w->answer = hf_str_of((const char *)buf.ptr, buf.len);
    hf_scope_free(s);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static bool complain(struct worker *w, const char *format, ...) HF_PRINTF(2, 3);

static bool complain(struct worker *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(w->why, sizeof(w->why), format, args);
    va_end(args);
    return false;
}

/* What the engine said of it, or would have said? */
static bool is_right(const struct worker *w)
{
    if (w->status != w->expected_status)
        return false;
    return !w->expected.ptr || w->unstable || hf_str_equal(w->answer, w->expected);
}

/* (6) Must the call succeed? */
static bool must_succeed(const struct worker *w)
{
    const struct chaos_script *script = &w->plan->script;
    bool repeatable = w->op->repeat != OP_REPEAT_NO;
    size_t bad = 0;

    for (size_t i = 0; i < script->len; i++) {
        enum chaos_outlook outlook = chaos_outlook(script->faults[i]);

        if (outlook == CHAOS_HARMLESS)
            break; /* no attempt comes after this one */
        if (outlook == CHAOS_FINAL || (outlook != CHAOS_UNDONE && !repeatable))
            return false;
        bad++;
    }
    return bad < ATTEMPTS && (bad < script->len || !script->for_ever);
}

static bool just_throttled(const struct chaos_script *script)
{
    for (size_t i = 0; i < script->len; i++)
        if (chaos_outlook(script->faults[i]) != CHAOS_UNDONE)
            return false;
    return script->len > 0;
}

/* What the client says of an answer that is none: it has the status of a request that is wrong, and
 * so have the answers of operations that are always refused. */
static bool is_of_client(const struct worker *w)
{
    static const char own[] = "the service answered with the HTTP status";

    return memmem(w->answer.ptr, w->answer.len, own, sizeof(own) - 1) != NULL;
}

/* (1) (2) (3) */
static bool judge_effect(struct worker *w)
{
    struct hf_str seen = {NULL, 0};
    enum state state;

    if (w->expected.ptr && w->status == w->expected_status && !is_right(w) && !is_of_client(w))
        return complain(w, "(1) not the engine's answer: %.*s", HF_FMT(w->answer));
    if (w->expected.ptr && w->status == HF_OK && w->expected_status != HF_OK)
        return complain(w, "(1) done, although the engine refuses it");
    if (!w->plan->spec->probe)
        return true;
    state = state_of(w, &seen);
    if (state == NEITHER)
        return complain(w, "(3) neither once nor not at all: %.*s", HF_FMT(seen));
    if (strcmp(w->plan->spec->before, w->plan->spec->after) == 0)
        return true;
    if (w->status == HF_OK && state != AFTER)
        return complain(w, "(1) said to be done, and is not");
    if (w->status != HF_OK && !w->may_have_happened && state == AFTER)
        return complain(w, "(2) said not to be done, and is");
    return true;
}

/* (4) (5) (9) */
static bool judge(struct worker *w)
{
    int64_t limit_ms = (DEADLINE_MS + SLACK_MS) * (int64_t)w->plan->patience + w->late_ms;

    if (w->count.requests > ATTEMPTS || w->count.connections > ATTEMPTS)
        return complain(w, "(4) %u requests on %u connections", w->count.requests,
                        w->count.connections);
    if (w->took_ms > limit_ms)
        return complain(w, "(5) took %lld ms", (long long)w->took_ms);
    if (w->plan->script.len && w->plan->script.faults[0] == CHAOS_GZIP_BOMB &&
        (w->status != HF_LIMIT || w->count.requests != 1))
        return complain(w, "(9) not refused for its size");
    return true;
}

/*
 * One round. False: w->why. *unlucky: nothing untrue was said, so it may have been the machine: an
 * attempt that got no processor for a tenth of a second is given up, whatever it was to show.
 */
static bool round_of(struct worker *w, const struct plan *plan, bool *unlucky)
{
    struct hf_db *db;
    bool good;

    w->plan = plan;
    *unlucky = true;
    prepare(w);
    db = connect_client(w, ATTEMPT_MS * plan->patience);
    chaos_play(w->rig.chaos, &(struct chaos_script){.len = 0});
    good = !plan->warm || known_is_there(w, db);
    call(w, db);
    while (chaos_counts(w->rig.chaos).unspoken) /* the next answer could not be told from that */
        sched_yield();
    chaos_play(w->rig.chaos, &(struct chaos_script){.len = 0});
    good = known_is_there(w, db) && good;
    hf_db_close(db);
    if (!chaos_quiet(w->rig.chaos, 30000))
        good = complain(w, "(8) a connection is left");
    if (!judge_effect(w)) { /* (1) (2) (3): no excuse */
        *unlucky = false;
        return false;
    }
    good = good && judge(w);
    if (good && just_throttled(&plan->script) && w->status != HF_OK && w->may_have_happened)
        good = complain(w, "(7) may have happened, although it was only throttled");
    if (good && must_succeed(w) && !is_right(w))
        good = complain(w, "(6) does not succeed");
    return good;
}

/* ---- the crew -------------------------------------------------------------------------------- */

static void report(struct worker *w, const char *name)
{
    struct crew *crew = w->crew;

    pthread_mutex_lock(&crew->mutex);
    if (crew->failed++ < SHOWN_MAX)
        print_error("%s: %s\n    %s%s after %lld ms (%lld of them the machine's), %u requests, "
                    "%u of them whole: %.*s\n",
                    name, w->why, hf_status_name(w->status),
                    w->may_have_happened ? ", may have happened," : "", (long long)w->took_ms,
                    (long long)w->late_ms, w->count.requests, w->count.whole,
                    (int)(w->answer.len < 300 ? w->answer.len : 300), w->answer.ptr);
    pthread_mutex_unlock(&crew->mutex);
}

static void run_plan(struct worker *w, size_t nth)
{
    struct plan plan = plan_of(w->crew, nth);
    bool good, unlucky;
    char name[256];

    plan_name(&plan, name, sizeof(name));
    if (plan.script.faults[0] == CHAOS_GZIP_BOMB && (plan.script.len > 1 || plan.script.for_ever))
        return; /* (9): there is no second attempt, and bombs are dear */
    if (w->crew->only ? !strstr(name, w->crew->only) : (nth + w->crew->seed) % STRIDE != 0)
        return;
    if (strstr(name, "BOMB"))
        pthread_mutex_lock(&w->crew->bomb);
    good = round_of(w, &plan, &unlucky);
    if (strstr(name, "BOMB"))
        pthread_mutex_unlock(&w->crew->bomb);
    for (int turn = 0; !good && unlucky && turn < 3; turn++) {
        atomic_fetch_add(&w->crew->again, 1);
        plan.patience *= 4;
        plan.script.ms *= 4;
        good = round_of(w, &plan, &unlucky);
    }
    if (!good)
        report(w, name);
    atomic_fetch_add(&w->crew->ran, 1);
    atomic_fetch_add(&w->crew->outcomes[w->status == HF_OK ? 0 : 1 + w->may_have_happened], 1);
}

static void *work(void *user)
{
    struct worker *w = user;
    size_t nth, since = 0;

    begin_worker(w);
    while ((nth = atomic_fetch_add(&w->crew->next, 1)) < w->crew->total) {
        run_plan(w, nth);
        if (++since % CASES_PER_RIG == 0) {
            end_worker(w);
            begin_worker(w);
        }
    }
    end_worker(w);
    return NULL;
}

static unsigned run_crew(struct crew *crew)
{
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_mutex_init(&crew->bomb, NULL);
    for (size_t i = 0; i < WORKERS; i++) {
        crew->workers[i].crew = crew;
        MUST(pthread_create(&crew->workers[i].thread, NULL, work, &crew->workers[i]) == 0);
    }
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(crew->workers[i].thread, NULL);
    pthread_mutex_destroy(&crew->mutex);
    pthread_mutex_destroy(&crew->bomb);
    print_message("%zu cases: %zu done, %zu not done, %zu may have been done; %zu had to be run "
                  "again\n",
                  atomic_load(&crew->ran), atomic_load(&crew->outcomes[0]),
                  atomic_load(&crew->outcomes[1]), atomic_load(&crew->outcomes[2]),
                  atomic_load(&crew->again));
    return crew->failed;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* chaos.def: every operation is there, and each probe sees the effect, and that it came twice. */
TEST(chaos, every_operation_has_a_case_whose_probe_works)
{
    static struct worker w;
    bool seen[HF_OP_COUNT] = {false};

    begin_worker(&w);
    for (size_t i = 0; i < SPECS; i++) {
        struct plan plan = {.spec = &specs[i]};
        bool refused = specs[i].probe && strcmp(specs[i].before, specs[i].after) == 0;
        enum hf_status status;
        struct hf_str answer;

        w.plan = &plan;
        prepare(&w);
        seen[w.op->op] = true;
        if (specs[i].probe && state_of(&w, &answer) != BEFORE)
            fail_msg("%s, before: %.*s", specs[i].name, HF_FMT(answer));
        answer = truth(&w, specs[i].operation, specs[i].request, &status);
        if (specs[i].probe && (status != HF_OK) != refused)
            fail_msg("%s: %.*s", specs[i].name, HF_FMT(answer));
        if (specs[i].probe && state_of(&w, &answer) != (refused ? BEFORE : AFTER))
            fail_msg("%s, after: %.*s", specs[i].name, HF_FMT(answer));
    }
    for (enum hf_op op = 0; op < HF_OP_COUNT; op++)
        if (!seen[op])
            fail_msg("no case for %.*s", HF_FMT(hf__op(op)->name));
    end_worker(&w);
}

TEST(chaos, no_fault_makes_the_client_lie)
{
    struct crew *crew = calloc(1, sizeof(*crew));
    const char *cases = getenv("HF_CHAOS_CASES");
    unsigned failed;

    CHECK(crew != NULL);
    crew->seed = test_random(t);
    crew->only = getenv("HF_CHAOS_ONLY");
    crew->plans = (size_t)SPECS * CHAOS_FAULTS * POSITIONS;
    crew->total = crew->plans + (cases ? strtoul(cases, NULL, 10) : test_times(RANDOM_CASES));
    failed = run_crew(crew);
    free(crew);
    if (failed)
        fail_msg("%u cases failed", failed);
}

/* (1) (2) (3) again, when the first allocation of a call fails, the second, and so on. */
TEST(chaos, no_lack_of_memory_makes_the_client_lie)
{
    static struct crew crew;
    static struct worker w;
    size_t starved = 0;

    w.crew = &crew;
    begin_worker(&w);
    for (size_t i = 0; i < (size_t)2 * SPECS; i++) {
        struct plan plan = {.spec = &specs[i / 2], .patience = 8, .warm = i % 2};
        bool unlucky;

        do {
            plan.fail_in++;
            if (!round_of(&w, &plan, &unlucky) && !unlucky)
                fail_msg("%s, allocation %ld: %s", plan.spec->name, plan.fail_in, w.why);
            if (w.status != w.expected_status && (!w.starved || w.status != HF_NOMEM))
                fail_msg("%s, allocation %ld: %s", plan.spec->name, plan.fail_in,
                         hf_status_name(w.status));
            starved += w.starved;
        } while (w.starved);
    }
    CHECK(starved > SPECS);
    end_worker(&w);
}
