/* client/credentials_threads_test.c: many threads, one refresher; failing allocations; (n) is an
 * invariant of credentials.c. */
#include "help.h"

#include <unistd.h>

enum { THREADS = 12 };

/* A container's endpoint that numbers its keys, and can be made slow or bad. */
struct source_mock {
    struct aws *a;
    struct mock mock;
    atomic_int given;
    atomic_int delay_ms;
    atomic_bool held; /* no answer comes until it is not */
    atomic_int status;
    atomic_int life_s;
};

static void numbered(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    struct source_mock *mock = user;
    char key[32];

    (void)request;
    for (int ms = 0; ms < 60000 && atomic_load(&mock->held); ms++)
        usleep(1000);
    answer->delay_ms = atomic_load(&mock->delay_ms);
    answer->status = atomic_load(&mock->status);
    if (answer->status)
        return;
    snprintf(key, sizeof(key), "AKID%d", atomic_fetch_add(&mock->given, 1) + 1);
    snprintf(answer->room, sizeof(answer->room), "%s",
             keys_json(key, "Token", aws_time(mock->a, atomic_load(&mock->life_s))));
}

static void source_open(struct test *t, struct aws *a, struct source_mock *mock)
{
    aws_open(t, a);
    memset(mock, 0, sizeof(*mock));
    mock->a = a;
    atomic_store(&mock->life_s, 3600);
    mock_open(&mock->mock, numbered, mock);
    aws_set(a, "AWS_CONTAINER_CREDENTIALS_FULL_URI", mock->mock.url);
    aws_start(a, NULL);
}

static void source_close(struct source_mock *mock)
{
    aws_close(mock->a);
    mock_close(&mock->mock);
}

struct asker {
    struct aws *a;
    pthread_t thread;
    uint32_t timeout_ms;
    enum hf_status status;
    bool may_retry;
    atomic_bool ended;
    char key[64];
    _Atomic(struct hf_scope *) scope;
};

static void *ask(void *user)
{
    struct asker *asker = user;
    struct hf_scope *s = hf_scope_new(&asker->a->env);

    hf_scope_timeout_ms(s, asker->timeout_ms);
    atomic_store(&asker->scope, s);
    asker->status = aws_get_in(asker->a, s, asker->key);
    asker->may_retry = hf_scope_error(s)->may_retry;
    atomic_store(&asker->scope, NULL);
    hf_scope_free(s);
    atomic_store(&asker->ended, true);
    return NULL;
}

static void ask_start(struct asker *asker, struct aws *a)
{
    asker->a = a;
    CHECK_INT(0, pthread_create(&asker->thread, NULL, ask, asker));
}

/* Wait for a thread to ask the source, so that it is the one who refreshes, however slow this machine. */
static void is_asked(struct source_mock *mock)
{
    while (atomic_load(&mock->mock.requests) == 0)
        usleep(1000);
}

static void ask_all(struct aws *a, struct asker *askers, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ask_start(&askers[i], a);
    for (size_t i = 0; i < len; i++)
        pthread_join(askers[i].thread, NULL);
}

static int ended_count(const struct asker *askers, size_t len)
{
    int count = 0;

    for (size_t i = 0; i < len; i++)
        count += atomic_load(&askers[i].ended);
    return count;
}

TEST(threads, that_have_no_keys_wait_for_one_that_fetches_them) /* (1) */
{
    struct asker askers[THREADS] = {{.timeout_ms = 0}};
    struct aws a;
    struct source_mock mock;

    source_open(t, &a, &mock);
    atomic_store(&mock.delay_ms, 200);
    ask_all(&a, askers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(askers[i].status);
        CHECK_STR("AKID1", hf_str_from(askers[i].key));
    }
    CHECK_INT(1, atomic_load(&mock.mock.requests));
    source_close(&mock);
}

TEST(threads, go_on_with_valid_keys_while_one_refreshes)
{
    struct asker askers[THREADS] = {{.timeout_ms = 0}};
    struct aws a;
    struct source_mock mock;
    int refreshed = 0;

    source_open(t, &a, &mock);
    CHECK_STR("AKID1", aws_key(&a));
    aws_advance_s(&a, 3600 - 290);
    atomic_store(&mock.held, true);
    for (int i = 0; i < THREADS; i++)
        ask_start(&askers[i], &a);
    while (ended_count(askers, THREADS) <
           THREADS - 1) /* all but who refreshes, without its answer */
        usleep(1000);
    atomic_store(&mock.held, false);
    for (int i = 0; i < THREADS; i++)
        pthread_join(askers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        bool is_new = strcmp(askers[i].key, "AKID2") == 0;

        CHECK_OK(askers[i].status);
        CHECK(is_new || strcmp(askers[i].key, "AKID1") == 0);
        refreshed += is_new;
    }
    CHECK_INT(1, refreshed);
    CHECK_INT(2, atomic_load(&mock.mock.requests));
    source_close(&mock);
}

TEST(threads, wait_in_the_last_minute)
{
    struct asker askers[THREADS] = {{.timeout_ms = 0}};
    struct aws a;
    struct source_mock mock;

    source_open(t, &a, &mock);
    CHECK_STR("AKID1", aws_key(&a));
    aws_advance_s(&a, 3600 - 50);
    atomic_store(&mock.delay_ms, 200);
    ask_all(&a, askers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(askers[i].status);
        CHECK_STR("AKID2", hf_str_from(askers[i].key));
    }
    source_close(&mock);
}

TEST(threads, that_waited_for_a_failure_fail_with_it)
{
    struct asker askers[THREADS] = {{.timeout_ms = 0}};
    struct aws a;
    struct source_mock mock;

    source_open(t, &a, &mock);
    atomic_store(&mock.delay_ms, 100);
    atomic_store(&mock.status, 500);
    ask_all(&a, askers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK_STATUS(HF_IO, askers[i].status);
        CHECK(askers[i].may_retry);
    }
    /* One had three attempts; a straggler may have started over. */
    CHECK(atomic_load(&mock.mock.requests) <= 6);
    /* While the old ones are valid, nobody fails. */
    atomic_store(&mock.status, 0);
    CHECK_STR("AKID1", aws_key(&a));
    aws_advance_s(&a, 3600 - 50);
    atomic_store(&mock.status, 500);
    ask_all(&a, askers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(askers[i].status);
        CHECK_STR("AKID1", hf_str_from(askers[i].key));
    }
    source_close(&mock);
}

TEST(threads, wait_no_longer_than_their_own_scope_allows) /* (2) (4) */
{
    struct asker slow = {.timeout_ms = 0}, hasty = {.timeout_ms = 150},
                 canceled = {.timeout_ms = 0};
    struct aws a;
    struct source_mock mock;

    source_open(t, &a, &mock);
    atomic_store(&mock.held, true);
    ask_start(&slow, &a);
    is_asked(&mock);
    ask_start(&hasty, &a);
    ask_start(&canceled, &a);
    while (!atomic_load(&canceled.scope))
        usleep(1000);
    usleep(100 * 1000); /* it waits now */
    hf_scope_cancel(atomic_load(&canceled.scope));
    pthread_join(canceled.thread, NULL);
    pthread_join(hasty.thread, NULL); /* both without an answer */
    atomic_store(&mock.held, false);
    pthread_join(slow.thread, NULL);
    CHECK_STATUS(HF_TIMEOUT, hasty.status);
    CHECK_STATUS(HF_CANCELED, canceled.status);
    CHECK_OK(slow.status);
    CHECK_INT(1, atomic_load(&mock.mock.requests));
    source_close(&mock);
}

/* (4): the refresher's own haste is not an answer for who waits. */
TEST(threads, take_over_from_a_refresher_that_has_no_time)
{
    struct asker hasty = {.timeout_ms = 300}, patient = {.timeout_ms = 0};
    struct aws a;
    struct source_mock mock;

    source_open(t, &a, &mock);
    atomic_store(&mock.held, true);
    ask_start(&hasty, &a);
    is_asked(&mock);
    ask_start(&patient, &a);
    pthread_join(hasty.thread, NULL);
    atomic_store(&mock.held, false);
    pthread_join(patient.thread, NULL);
    CHECK_STATUS(HF_TIMEOUT, hasty.status);
    CHECK_OK(patient.status);
    source_close(&mock);
}

/* (3) */
TEST(threads, spend_half_of_their_time_on_a_refresh_that_can_wait)
{
    struct asker asker = {.timeout_ms = 6000};
    struct aws a;
    struct source_mock mock;
    int64_t began, took_ms;

    source_open(t, &a, &mock);
    CHECK_STR("AKID1", aws_key(&a));
    aws_advance_s(&a, 3600 - 290);
    atomic_store(&mock.delay_ms, 9000);
    began = real_ms();
    ask_all(&a, &asker, 1);
    took_ms = real_ms() - began;
    CHECK_OK(asker.status);
    CHECK_STR("AKID1", hf_str_from(asker.key));
    CHECK(took_ms >= 2750 && took_ms < 5900);
    source_close(&mock);
}

/* Time goes on, keys expire, the source is bad now and then: nobody ever gets keys that have
 * expired, and nobody gets none while there are valid ones. */
struct runner {
    struct aws *a;
    struct source_mock *mock;
    pthread_t thread;
    atomic_bool *stop;
    atomic_int got;
    int none;
    int stale;
};

static void *run(void *user)
{
    struct runner *runner = user;
    struct hf_scope *s = hf_scope_new(&runner->a->env);

    while (!atomic_load(runner->stop)) {
        char key[64];
        int before = atomic_load(&runner->mock->given);

        hf_scope_reset(s);
        if (aws_get_in(runner->a, s, key) != HF_OK) {
            runner->none++;
            continue;
        }
        atomic_fetch_add(&runner->got, 1);
        /* With a life of 400 s and steps of 50 s, keys are at most four renewals behind. */
        if (strtol(key + 4, NULL, 10) + 4 < before)
            runner->stale++;
        if (atomic_load(&runner->got) % 64 == 0)
            hf__credentials_refused(runner->a->credentials, hf_str_from(key));
    }
    hf_scope_free(s);
    return NULL;
}

/* Each has got keys once more, unless it does not get any at all. */
static void runners_go_on(struct runner *runners, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        int before = atomic_load(&runners[i].got);

        for (int ms = 0; ms < 10000 && atomic_load(&runners[i].got) == before; ms++)
            usleep(1000);
    }
}

TEST(threads, outlive_keys_that_expire_as_they_run)
{
    struct runner runners[6];
    struct aws a;
    struct source_mock mock;
    atomic_bool stop = false;
    int got = 0;

    source_open(t, &a, &mock);
    atomic_store(&mock.life_s, 400);
    CHECK_STR("AKID1", aws_key(&a));
    for (size_t i = 0; i < ARRAY_LEN(runners); i++) {
        runners[i] = (struct runner){.a = &a, .mock = &mock, .stop = &stop};
        CHECK_INT(0, pthread_create(&runners[i].thread, NULL, run, &runners[i]));
    }
    for (int i = 0; i < 40; i++) {
        usleep(15 * 1000);
        aws_advance_s(&a, 50);
        runners_go_on(runners, ARRAY_LEN(runners));
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < ARRAY_LEN(runners); i++) {
        pthread_join(runners[i].thread, NULL);
        CHECK_INT(0, runners[i].none);
        CHECK_INT(0, runners[i].stale);
        got += atomic_load(&runners[i].got);
    }
    CHECK(got > 100);
    CHECK(atomic_load(&mock.given) >= 8);
    source_close(&mock);
}

/* ---- memory --------------------------------------------------------------------------------- */

#define SWEEP_ROLE "role_arn = arn:aws:iam::210987654321:role/"

static void sts_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    (void)request;
    sts_xml(answer->room, sizeof(answer->room), "AssumeRole", "AKIDROLE", aws_time(user, 3600));
}

static void metadata_answers(void *user, const struct mock_request *request,
                             struct mock_answer *answer)
{
    if (strcmp(request->method, "PUT") == 0)
        answer->body = "token";
    else if (request->target[strlen(request->target) - 1] == '/')
        answer->body = "role";
    else
        snprintf(answer->room, sizeof(answer->room), "%s",
                 keys_json("AKIDMETA", "Token", aws_time(user, 3600)));
}

static void sso_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    struct aws *a = user;

    (void)request;
    snprintf(answer->room, sizeof(answer->room),
             "{\"roleCredentials\":{\"accessKeyId\":\"AKIDSSO\",\"secretAccessKey\":\"HUSH\","
             "\"sessionToken\":\"HUSH\",\"expiration\":%lld}}",
             (long long)atomic_load(&a->wall_us) / 1000 + 3600 * 1000);
}

/* Fail each allocation in turn: keys or HF_NOMEM come out, never anything else, and nothing leaks.
 * A scope takes its memory in large pieces, so some of the first is used up beforehand, each time
 * another amount: then other places are the ones that need the next piece.
 * Keys that can be replaced are asked for a second time. How many allocations there were. */
static int sweep_from(struct aws *a, size_t used)
{
    struct test *t = a->t;
    int rounds = 0;

    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&a->env);
        struct config *config = NULL;
        struct transport *transport = NULL;
        struct credentials *credentials = NULL;
        struct credentials_options options = {.region = HF_STR("eu-central-1")};
        struct sign_credentials now = {.access_key = {NULL, 0}};
        struct hf_str account;
        enum hf_status status = HF_NOMEM;

        rounds++;
        if (s && hf_scope_alloc(s, used))
            status = hf__config_load(s, &a->env, hf_str_of(NULL, 0), false, &config);
        if (status == HF_OK)
            status = hf__transport_open(s, &(struct transport_options){.env = &a->env}, &transport);
        options.config = config;
        options.transport = transport;
        if (status == HF_OK)
            status = hf__credentials_open(s, &options, &credentials);
        if (status == HF_OK)
            status = hf__credentials_get(s, credentials, &now, &account);
        if (status == HF_OK && hf__credentials_refused(credentials, now.access_key))
            status = hf__credentials_get(s, credentials, &now, &account);
        ALLOC_SWEEP_STOP(t);
        if (status != HF_OK && status != HF_NOMEM)
            print_error("%s\n", hf_scope_error_text(s));
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        CHECK(status != HF_OK || now.access_key.len > 3);
        hf__credentials_close(credentials);
        hf__transport_close(transport);
        hf__config_free(config);
        hf_scope_free(s);
    }
    return rounds;
}

static void sweep(struct aws *a)
{
    for (size_t used = 0; used < 8000; used += 1061)
        CHECK(sweep_from(a, used) > 10);
}

TEST(credentials, any_allocation_may_fail)
{
    struct aws a;
    struct mock sts, sso, metadata;
    char text[1024];

    aws_open(t, &a);
    mock_open(&sts, sts_answers, &a);
    mock_open(&sso, sso_answers, &a);
    mock_open(&metadata, metadata_answers, &a);
    aws_set(&a, "AWS_ENDPOINT_URL_STS", sts.url);

    aws_file(&a, "config",
             "[default]\n" SWEEP_ROLE "one\nsource_profile = two\n"
             "[profile two]\n" SWEEP_ROLE "two\nsource_profile = base\n"
             "[profile base]\ncredential_process = echo {\\\"Version\\\":1,"
             "\\\"AccessKeyId\\\":\\\"AKID\\\",\\\"SecretAccessKey\\\":\\\"HUSH\\\"}\n");
    sweep(&a);

    snprintf(text, sizeof(text),
             "{\"accessToken\":{\"accessKeyId\":\"AKIDLOGIN\",\"secretAccessKey\":\"HUSH\","
             "\"expiresAt\":\"%s\"}}",
             aws_time(&a, 900));
    aws_file(&a, "cache/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881.json",
             text); /* sha256 of "x" */
    snprintf(text, sizeof(text), "%s/.aws/cache", a.home);
    aws_set(&a, "AWS_LOGIN_CACHE_DIRECTORY", text);
    aws_file(&a, "config", "[default]\nlogin_session = x\n");
    sweep(&a);

    snprintf(text, sizeof(text), "{\"accessToken\":\"HUSH\",\"expiresAt\":\"%s\"}",
             aws_time(&a, 900));
    aws_file(&a, "sso/cache/11f6ad8ec52a2984abaafd7c3b516503785c2072.json", text); /* sha1 of "x" */
    aws_set(&a, "AWS_ENDPOINT_URL_SSO", sso.url);
    aws_file(&a, "config",
             "[default]\nsso_session = x\nsso_account_id = 1\nsso_role_name = r\n"
             "[sso-session x]\nsso_start_url = u\nsso_region = eu-west-1\n");
    sweep(&a);

    aws_file(&a, "config", "");
    aws_set(&a, "AWS_EC2_METADATA_DISABLED", NULL);
    aws_set(&a, "AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url);
    sweep(&a);
    aws_close(&a);
    mock_close(&metadata);
    mock_close(&sso);
    mock_close(&sts);
}
