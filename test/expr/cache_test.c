/* expr/cache_test.c: (n) is an invariant of expr/cache.c. */
#include "expr/cache.h"

#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#define TEXT HF_STR("a = :v AND begins_with(b, :w)")

TEST(cache, a_text_is_compiled_once)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__expr_cache *cache = hf__expr_cache_new(test_env(t));
    const struct expr *first;
    const struct expr *again;
    size_t allocs;

    CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION, TEXT, &first));
    allocs = t->allocs;
    CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION, TEXT, &again));
    CHECK(first == again);
    CHECK_INT(allocs, t->allocs);
    CHECK_OK(hf__expr_cached(s, cache, EXPR_FILTER, TEXT, &again));
    CHECK(first != again); /* errors name the kind */
    hf_scope_free(s);
    hf__expr_cache_free(cache);
}

/* The program outlives the scope in which it was asked for. */
TEST(cache, a_program_outlives_its_first_request)
{
    struct hf__expr_cache *cache = hf__expr_cache_new(test_env(t));

    for (int round = 0; round < 3; round++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        char text[] = "a = :v";
        struct expr_params params;
        const struct expr *program;
        struct expr_bound *bound;

        CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION, hf_str_from(text), &program));
        memset(text, 'x', sizeof(text) - 1); /* the request's own text is gone */
        CHECK_OK(
            hf__expr_params(s, (struct hf_item){NULL, 0}, HF_ITEM(s, HF_N(":v", round)), &params));
        CHECK_OK(hf__expr_bind(s, program, &params, &bound));
        CHECK(hf__expr_match(bound, HF_ITEM(s, HF_N("a", round))));
        CHECK(!hf__expr_match(bound, HF_ITEM(s, HF_N("a", 7))));
        hf_scope_free(s);
    }
    hf__expr_cache_free(cache);
}

/* (3): and its error is the request's. */
TEST(cache, faulty_texts_are_not_kept)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__expr_cache *cache = hf__expr_cache_new(test_env(t));
    const struct expr *program;
    size_t live = t->live_count;

    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(HF_INVALID, hf__expr_cached(s, cache, EXPR_UPDATE, HF_STR(""), &program));
        CHECK_ERROR(HF_INVALID, "Invalid UpdateExpression: The expression can not be empty;", s);
    }
    CHECK(t->live_count <= live + 1); /* the scope's chunk */
    hf_scope_free(s);
    hf__expr_cache_free(cache);
}

/* (1) */
TEST(cache, a_full_cache_keeps_what_it_has_and_still_serves)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__expr_cache *cache = hf__expr_cache_new(test_env(t));
    const struct expr *first;
    const struct expr *program;
    size_t live;

    CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION, TEXT, &first));
    for (int i = 0; i < 6000; i++) {
        hf_scope_reset(s);
        CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION,
                                 hf_scope_format(s, "attribute_exists(a%d)", i), &program));
    }
    live = t->live_count;
    for (int i = 6000; i < 7000; i++) {
        hf_scope_reset(s);
        CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION,
                                 hf_scope_format(s, "attribute_exists(a%d)", i), &program));
    }
    CHECK_INT(live, t->live_count);
    CHECK_OK(hf__expr_cached(s, cache, EXPR_CONDITION, TEXT, &program));
    CHECK(first == program);
    hf_scope_free(s);
    hf__expr_cache_free(cache);
}

/* Without memory for an entry the program is the caller's own. */
TEST(cache, any_allocation_may_fail)
{
    for (int64_t nth = 1;; nth++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf__expr_cache *cache = hf__expr_cache_new(test_env(t));
        const struct expr *program;
        int64_t before = (int64_t)t->allocs;
        enum hf_status status;

        CHECK(s && cache && hf_scope_alloc(s, 1));
        before = (int64_t)t->allocs;
        t->fail_at = before + nth;
        status = hf__expr_cached(s, cache, EXPR_CONDITION, TEXT, &program);
        t->fail_at = 0;
        CHECK_STATUS(HF_OK, status); /* the scope has room of its own */
        hf_scope_free(s);
        hf__expr_cache_free(cache);
        if ((int64_t)t->allocs < before + nth)
            break;
    }
    t->fail_at = (int64_t)t->allocs + 1;
    CHECK(!hf__expr_cache_new(test_env(t)));
    t->fail_at = 0;
    hf__expr_cache_free(NULL);
}

TEST(cache, without_a_cache_the_scope_holds_the_program)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct expr *first;
    const struct expr *again;

    CHECK_OK(hf__expr_cached(s, NULL, EXPR_CONDITION, TEXT, &first));
    CHECK_OK(hf__expr_cached(s, NULL, EXPR_CONDITION, TEXT, &again));
    CHECK(first != again);
    hf_scope_free(s);
}

/* (2): all threads end up with the same programs. The test's env is for one thread: none here. */
enum { THREADS = 4, TEXTS = 64, ROUNDS = 20 };

struct racer {
    struct hf__expr_cache *cache;
    const struct expr *programs[TEXTS];
    atomic_int failed;
};

static void *race(void *user)
{
    struct racer *racer = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TEXTS; i++) {
            const struct expr *program;

            hf_scope_reset(s);
            if (hf__expr_cached(s, racer->cache, EXPR_CONDITION, hf_scope_format(s, "a%d = :v", i),
                                &program) != HF_OK ||
                (racer->programs[i] && racer->programs[i] != program))
                atomic_store(&racer->failed, 1);
            racer->programs[i] = program;
        }
    }
    hf_scope_free(s);
    return NULL;
}

TEST(cache, threads_share_it)
{
    struct hf__expr_cache *cache = hf__expr_cache_new(NULL);
    struct racer racers[THREADS] = {{.cache = NULL}};
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        racers[i].cache = cache;
        CHECK_INT(0, pthread_create(&threads[i], NULL, race, &racers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(0, atomic_load(&racers[i].failed));
        CHECK(memcmp(racers[0].programs, racers[i].programs, sizeof(racers[0].programs)) == 0);
    }
    hf__expr_cache_free(cache);
}
