/*
 * test/coord/sim.c: actors on stacks of their own, a virtual clock, and bad luck by seed.
 *
 *  (1) One thread; whoever runs is `current`. An actor gives way in wait_us() and nowhere else, and
 *      whoever is to wake first goes on next, so a seed gives one history.
 *  (2) A call happens at one instant of true time, between a request that travels and an answer
 *      that travels. What travels when its sender gives up or dies may still arrive: a ghost.
 *  (3) All memory of an actor hangs on its list, so a death frees all of it, whatever it was doing.
 */
#include "sim.h"

#include <holdfast/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/buf.h"
#include "db/db.h"
#include "wire/wire.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(WITH_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(WITH_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

enum {
    ACTORS_MAX = 16,
    GHOSTS_MAX = 64,
    STACK_BYTES = 512 * 1024,
    QUICK_US = 5000,
    HISTORY_MAX_S = 3600
};

struct block {
    struct block *next, *prev;
    size_t size;
    size_t pad;
};

enum fate { WAITING, ENDED, DYING };

struct inside {
    struct actor actor; /* first */
    struct hf_db db;    /* its way to the database; knows the actor by its own address */
    actor_fn *run;
    enum fate fate;
    int64_t wake_us;
    int64_t born_us;
    int64_t elapsed_base_us;
    int64_t skew_us;
    int64_t ppm;
    struct block blocks; /* head of a ring */
    ucontext_t context;
    void *stack;
#if defined(WITH_TSAN)
    void *fiber;
#endif
};

struct ghost {
    int64_t at_us;
    enum hf_op op;
    char *json;
    size_t json_len;
};

struct sim {
    struct test *t;
    uint64_t seed;
    uint64_t state;
    struct sim_luck luck;
    struct hf_db *db;
    struct hf_scope *scope;   /* for the history */
    struct hf_scope *ghostly; /* for ghosts */
    int64_t now_us;
    struct inside *actors[ACTORS_MAX];
    size_t actors_len;
    struct ghost ghosts[GHOSTS_MAX];
    size_t ghosts_len;
    struct inside *current;
    ucontext_t back;
#if defined(WITH_ASAN)
    const void *main_stack;
    size_t main_stack_size;
    void *fake;
#endif
#if defined(WITH_TSAN)
    void *fiber;
#endif
    bool traced;
    uint64_t writes;
    uint64_t watched; /* of these */
    watch_fn *watch;
    void *watch_user;
    const char *failure;
    const char *file;
    int line;
};

/* ---- luck ----------------------------------------------------------------------------------- */

static uint64_t draw(struct sim *sim)
{
    uint64_t z = sim->state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t sim_random_below(struct sim *sim, uint64_t bound)
{
    return bound ? draw(sim) % bound : 0;
}

static bool strikes(struct sim *sim, uint32_t per_mille)
{
    return per_mille && sim_random_below(sim, 1000) < per_mille;
}

/* From -most to most. */
static int64_t around_zero(struct sim *sim, int64_t most)
{
    return (int64_t)sim_random_below(sim, (uint64_t)most * 2 + 1) - most;
}

/* ---- hosts: clocks, memory, randomness ------------------------------------------------------ */

static int64_t host_elapsed(void *user)
{
    struct inside *a = user;
    int64_t age = a->actor.sim->now_us - a->born_us;

    return a->elapsed_base_us + age + age / 1000000 * a->ppm + age % 1000000 * a->ppm / 1000000;
}

static int64_t host_wall(void *user)
{
    struct inside *a = user;

    return 1767225600000000 + a->actor.sim->now_us + a->skew_us;
}

static void host_random(void *bytes, size_t len, void *user)
{
    struct inside *a = user;
    uint8_t *to = bytes;

    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t)draw(a->actor.sim);
}

static void *host_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct inside *a = user;
    struct block *old = ptr ? (struct block *)ptr - 1 : NULL, *block = NULL;

    if (new_size) {
        block = malloc(sizeof(*block) + new_size);
        if (!block)
            abort();
        *block = (struct block){.next = a->blocks.next, .prev = &a->blocks, .size = new_size};
        block->next->prev = block;
        a->blocks.next = block;
        if (old)
            memcpy(block + 1, old + 1, old_size < new_size ? old_size : new_size);
    }
    if (old) {
        if (old->size != old_size)
            abort(); /* whoever frees has to know the size */
        old->prev->next = old->next;
        old->next->prev = old->prev;
        free(old);
    }
    return block ? block + 1 : NULL;
}

/* (3) */
static void free_all(struct inside *a)
{
    while (a->blocks.next != &a->blocks) {
        struct block *block = a->blocks.next;

        a->blocks.next = block->next;
        free(block);
    }
    a->blocks.prev = &a->blocks;
}

/* ---- stacks --------------------------------------------------------------------------------- */

static void to_sim(struct inside *a, bool for_good)
{
    struct sim *sim = a->actor.sim;
#if defined(WITH_ASAN)
    void *fake = NULL;

    __sanitizer_start_switch_fiber(for_good ? NULL : &fake, sim->main_stack, sim->main_stack_size);
#endif
#if defined(WITH_TSAN)
    __tsan_switch_to_fiber(sim->fiber, 0);
#endif
    (void)for_good;
    swapcontext(&a->context, &sim->back);
#if defined(WITH_ASAN)
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

static void to_actor(struct sim *sim, struct inside *a)
{
    sim->current = a;
#if defined(WITH_ASAN)
    __sanitizer_start_switch_fiber(&sim->fake, a->stack, STACK_BYTES);
#endif
#if defined(WITH_TSAN)
    __tsan_switch_to_fiber(a->fiber, 0);
#endif
    swapcontext(&sim->back, &a->context);
#if defined(WITH_ASAN)
    __sanitizer_finish_switch_fiber(sim->fake, NULL, NULL);
#endif
    sim->current = NULL;
}

static void life(unsigned high, unsigned low)
{
    struct inside *a = (struct inside *)(uintptr_t)((uint64_t)high << 32 | low);
#if defined(WITH_ASAN)
    __sanitizer_finish_switch_fiber(NULL, &a->actor.sim->main_stack,
                                    &a->actor.sim->main_stack_size);
#endif
    a->run(&a->actor);
    a->fate = ENDED;
    to_sim(a, true);
    abort(); /* nobody wakes who has ended */
}

static void begin(struct inside *a)
{
    struct sim *sim = a->actor.sim;
    uint64_t address = (uint64_t)(uintptr_t)a;

    a->blocks = (struct block){.next = &a->blocks, .prev = &a->blocks};
    a->born_us = sim->now_us;
    a->elapsed_base_us = 1000000 + (int64_t)sim_random_below(sim, 1000000000);
    a->actor.s = hf_scope_new(&a->actor.env);
    a->fate = WAITING;
    getcontext(&a->context);
    a->context.uc_stack.ss_sp = a->stack;
    a->context.uc_stack.ss_size = STACK_BYTES;
    a->context.uc_link = NULL;
    makecontext(&a->context, (void (*)(void))(uintptr_t)life, 2, (unsigned)(address >> 32),
                (unsigned)address);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Would anybody else be next, if this one waits until its time? Then there is no need to switch. */
static bool is_next(const struct sim *sim, const struct inside *a)
{
    for (size_t i = 0; i < sim->actors_len; i++)
        if (sim->actors[i] != a && sim->actors[i]->fate != ENDED &&
            sim->actors[i]->wake_us <= a->wake_us)
            return false;
    for (size_t i = 0; i < sim->ghosts_len; i++)
        if (sim->ghosts[i].at_us <= a->wake_us)
            return false;
    return a->wake_us < (int64_t)HISTORY_MAX_S * 1000000;
}

/* (1) Give way for that long, longer when paused, forever when it dies. */
static void wait_us(struct inside *a, int64_t us)
{
    struct sim *sim = a->actor.sim;

    if (strikes(sim, sim->luck.pauses))
        us += (int64_t)sim_random_below(sim, sim->luck.pause_ms + 1) * 1000;
    if (strikes(sim, sim->luck.deaths))
        a->fate = DYING;
    a->wake_us = sim->now_us + us;
    if (a->fate == WAITING && sim->writes == sim->watched && is_next(sim, a))
        sim->now_us = a->wake_us;
    else
        to_sim(a, false);
}

static void host_sleep(int64_t us, void *user)
{
    struct inside *a = user;

    wait_us(a, us - us * a->ppm / 1000000 + 1);
}

void actor_sleep_ms(struct actor *a, uint32_t ms)
{
    host_sleep((int64_t)ms * 1000, a);
}

static void failed(struct sim *sim, const char *what, const char *file, int line)
{
    if (sim->failure)
        return;
    sim->failure = what;
    sim->file = file;
    sim->line = line;
}

void actor_fail(struct actor *a, const char *what, const char *file, int line)
{
    failed(a->sim, what, file, line);
    for (;;)
        to_sim((struct inside *)(void *)a, false);
}

void actor_die(struct actor *a)
{
    struct inside *inside = (struct inside *)(void *)a;

    inside->fate = DYING;
    inside->wake_us = a->sim->now_us;
    for (;;)
        to_sim(inside, false);
}

/* ---- the way to the database ---------------------------------------------------------------- */

static int64_t travel_us(struct sim *sim)
{
    int64_t most = strikes(sim, sim->luck.slow) ? (int64_t)sim->luck.slow_ms * 1000 : QUICK_US;

    return 1 + (int64_t)sim_random_below(sim, (uint64_t)most);
}

/* (2) The request will be done at `at_us`, whatever becomes of its sender. */
static void haunt(struct sim *sim, enum hf_op op, const void *request, int64_t at_us)
{
    struct hf__buf buf = {.scope = sim->ghostly};
    struct ghost *ghost;

    if (sim->ghosts_len == GHOSTS_MAX)
        return;
    hf_scope_reset(sim->ghostly);
    hf__wire_write(&buf, hf__op(op)->request, request);
    ghost = &sim->ghosts[sim->ghosts_len++];
    *ghost = (struct ghost){.at_us = at_us, .op = op, .json_len = buf.len};
    ghost->json = malloc(buf.len + 1);
    memcpy(ghost->json, buf.ptr, buf.len);
}

/* HF_SIM_TRACE=1: what the database was asked for, when, by whom, and what came of it. */
static void trace(struct sim *sim, const char *who, enum hf_op op, const void *request,
                  enum hf_status status)
{
    struct hf__buf buf = {.scope = sim->ghostly};
    struct hf_scope_mark mark;

    if (!sim->traced)
        return;
    mark = hf_scope_mark(sim->ghostly);
    hf__wire_write(&buf, hf__op(op)->request, request);
    fprintf(stderr, "%10.3f %-5s %.*s %s %.*s\n", (double)sim->now_us / 1000, who,
            HF_FMT(hf__op(op)->name), hf_status_name(status), (int)buf.len, (const char *)buf.ptr);
    hf_scope_rewind(sim->ghostly, mark);
}

static void appear(struct sim *sim, size_t which)
{
    struct ghost ghost = sim->ghosts[which];
    const struct op *op = hf__op(ghost.op);
    void *request;

    sim->ghosts[which] = sim->ghosts[--sim->ghosts_len];
    hf_scope_reset(sim->ghostly);
    request = hf__scope_array(sim->ghostly, 1, op->request->size);
    if (hf__wire_read(sim->ghostly, op->request, hf_str_of(ghost.json, ghost.json_len), request) !=
        HF_OK)
        abort();
    trace(sim, "ghost", ghost.op, request,
          hf_db_call(sim->ghostly, sim->db, ghost.op, request, NULL));
    sim->writes++;
    free(ghost.json);
}

static enum hf_status broken(struct hf_scope *s, enum hf_status status, bool doubtful)
{
    hf__fail(s, status, "bad luck");
    hf__scope_error_edit(s)->may_retry = true;
    hf__scope_error_edit(s)->may_have_happened = doubtful;
    return status;
}

static enum hf_status link_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                const void *request, void *response)
{
    struct inside *a = (struct inside *)(void *)((char *)db - offsetof(struct inside, db));
    struct sim *sim = a->actor.sim;
    bool writes = hf__op(op)->access == OP_WRITE;
    int64_t there_us = travel_us(sim), back_us = travel_us(sim);
    int64_t left_us = hf__scope_left_ms(s, HISTORY_MAX_S * 1000) * 1000;
    enum hf_status status;

    if (strikes(sim, sim->luck.lost_requests)) {
        wait_us(a, there_us + back_us);
        return broken(s, HF_IO, writes);
    }
    if (there_us > left_us) {
        if (writes)
            haunt(sim, op, request, sim->now_us + there_us);
        wait_us(a, left_us);
        return broken(s, HF_TIMEOUT, writes);
    }
    if (writes && strikes(sim, sim->luck.deaths)) { /* the request has left, its sender dies */
        haunt(sim, op, request, sim->now_us + there_us);
        a->fate = DYING;
    }
    wait_us(a, there_us);
    if (strikes(sim, sim->luck.refused)) {
        wait_us(a, back_us);
        return broken(s, HF_THROTTLED, false);
    }
    status = hf_db_call(s, sim->db, op, request, response);
    trace(sim, a->actor.name, op, request, status);
    sim->writes += writes;
    /* What came after its deadline was certainly not done, and is not later either. */
    if (writes && status != HF_TIMEOUT && strikes(sim, sim->luck.later_again))
        haunt(sim, op, request, sim->now_us + travel_us(sim) * 10);
    if (strikes(sim, sim->luck.twice))
        status = hf_db_call(s, sim->db, op, request, response);
    if (there_us + back_us > left_us || strikes(sim, sim->luck.lost_answers)) {
        bool late = there_us + back_us > left_us;

        memset(response, 0, hf__op(op)->response->size);
        wait_us(a, late ? left_us - there_us : back_us);
        return broken(s, late ? HF_TIMEOUT : HF_IO, writes);
    }
    wait_us(a, back_us);
    return status;
}

static void link_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls link_calls = {.call = link_call, .close = link_close};

/* ---- histories ------------------------------------------------------------------------------ */

void sim_start(struct sim *sim, const char *name, actor_fn *run, void *user)
{
    struct inside *a = calloc(1, sizeof(*a));

    if (!a || sim->actors_len == ACTORS_MAX)
        abort();
    sim->actors[sim->actors_len++] = a;
    a->actor.sim = sim;
    a->actor.name = name;
    a->actor.user = user;
    a->actor.db = &a->db;
    a->actor.env = (struct hf_env){.size = sizeof(a->actor.env),
                                   .user = a,
                                   .alloc = host_alloc,
                                   .wall_us = host_wall,
                                   .elapsed_us = host_elapsed,
                                   .random = host_random,
                                   .sleep = host_sleep};
    a->db.calls = &link_calls;
    a->run = run;
    a->skew_us = around_zero(sim, (int64_t)sim->luck.wall_skew_ms * 1000);
    a->ppm = around_zero(sim, sim->luck.drift_ppm);
    a->stack = malloc(STACK_BYTES);
#if defined(WITH_TSAN)
    a->fiber = __tsan_create_fiber(0);
#endif
    a->wake_us = sim->now_us + (int64_t)sim_random_below(sim, QUICK_US);
    begin(a);
}

static void die(struct sim *sim, struct inside *a)
{
    free_all(a);
    a->actor.life++;
    a->wake_us = sim->now_us + (int64_t)sim_random_below(sim, 200000);
    begin(a);
}

/* Who is next: an actor, or a ghost; false when nobody is left. */
static bool step(struct sim *sim)
{
    struct inside *next = NULL;
    size_t ghost = GHOSTS_MAX;

    for (size_t i = 0; i < sim->actors_len; i++)
        if (sim->actors[i]->fate != ENDED && (!next || sim->actors[i]->wake_us < next->wake_us))
            next = sim->actors[i];
    for (size_t i = 0; i < sim->ghosts_len; i++)
        if ((!next || sim->ghosts[i].at_us < next->wake_us) &&
            (ghost == GHOSTS_MAX || sim->ghosts[i].at_us < sim->ghosts[ghost].at_us))
            ghost = i;
    if (ghost != GHOSTS_MAX) {
        if (sim->ghosts[ghost].at_us > sim->now_us)
            sim->now_us = sim->ghosts[ghost].at_us;
        appear(sim, ghost);
        return true;
    }
    if (!next)
        return false;
    if (next->wake_us > sim->now_us)
        sim->now_us = next->wake_us;
    if (next->fate == DYING)
        die(sim, next);
    else
        to_actor(sim, next);
    return true;
}

void sim_watch(struct sim *sim, watch_fn *watch, void *user)
{
    sim->watch = watch;
    sim->watch_user = user;
}

void sim_run(struct sim *sim)
{
    while (!sim->failure && step(sim)) {
        const char *wrong;

        sim->watched = sim->writes;
        wrong = sim->watch ? sim->watch(sim, sim->watch_user) : NULL;

        if (wrong)
            failed(sim, wrong, __FILE__, __LINE__);
        if (sim->now_us > (int64_t)HISTORY_MAX_S * 1000000)
            failed(sim, "the history comes to an end", __FILE__, __LINE__);
    }
}

uint64_t sim_writes(const struct sim *sim)
{
    return sim->writes;
}

bool sim_failed(const struct sim *sim)
{
    return sim->failure != NULL;
}

struct actor *sim_actor(struct sim *sim, size_t number)
{
    return number < sim->actors_len ? &sim->actors[number]->actor : NULL;
}

void sim_calm(struct sim *sim)
{
    sim->luck = (struct sim_luck){.slow_ms = 0};
}

static void bury(struct sim *sim)
{
    for (size_t i = 0; i < sim->actors_len; i++) {
        struct inside *a = sim->actors[i];

        free_all(a);
        free(a->stack);
#if defined(WITH_TSAN)
        __tsan_destroy_fiber(a->fiber);
#endif
        free(a);
    }
    for (size_t i = 0; i < sim->ghosts_len; i++)
        free(sim->ghosts[i].json);
    sim->actors_len = sim->ghosts_len = 0;
}

static struct hf_db *open_memory(struct sim *sim)
{
    struct hf_engine_options options = {.size = sizeof(options),
                                        .env = test_env(sim->t),
                                        .no_upkeep_thread = true};
    struct hf_db *db;

    CHECK_OK(hf_open(sim->scope, HF_STR("memory:"), &options, &db));
    return db;
}

static void run_seed(struct sim *sim, uint64_t seed, const struct sim_luck *luck,
                     history_fn *history, void *user)
{
    sim->seed = sim->state = seed;
    sim->luck = *luck;
    sim->now_us = 0;
    sim->watch = NULL;
    hf_scope_reset(sim->scope);
    sim->db = open_memory(sim);
    history(sim, user);
    bury(sim);
    hf_db_close(sim->db);
    if (sim->failure) {
        print_error("%s: does not hold\nrepeat with HF_SIM_SEED=%llu\n", sim->failure,
                    (unsigned long long)seed);
        _fail(sim->file, sim->line);
    }
}

bool sim_is_whole(void)
{
    return test_times(100) >= 100 && !getenv("HF_SIM_SEED") && !getenv("HF_SIM_SEEDS");
}

void sim_each(struct test *t, uint32_t seeds, const struct sim_luck *luck, history_fn *history,
              void *user)
{
    const char *one = getenv("HF_SIM_SEED"), *many = getenv("HF_SIM_SEEDS");
    struct sim *sim = calloc(1, sizeof(*sim));
    uint64_t first = t->seed % 1000000000;

    if (!sim)
        abort();
    sim->t = t;
    sim->traced = getenv("HF_SIM_TRACE") != NULL;
    sim->scope = hf_scope_new(test_env(t));
    sim->ghostly = hf_scope_new(test_env(t));
#if defined(WITH_TSAN)
    sim->fiber = __tsan_get_current_fiber();
#endif
    seeds = test_times(seeds);
#if defined(WITH_ASAN) /* all of them are played without it */
    if (!getenv("HF_TEST_TIMES"))
        seeds = (seeds + 2) / 3;
#endif
    if (one)
        run_seed(sim, strtoull(one, NULL, 10), luck, history, user);
    for (uint64_t i = 0; !one && i < (many ? strtoull(many, NULL, 10) : seeds); i++)
        run_seed(sim, first + i, luck, history, user);
    hf_scope_free(sim->ghostly);
    hf_scope_free(sim->scope);
    free(sim);
}

uint64_t sim_seed(const struct sim *sim)
{
    return sim->seed;
}

int64_t sim_now_us(const struct sim *sim)
{
    return sim->now_us;
}

struct hf_db *sim_db(struct sim *sim)
{
    return sim->db;
}

struct hf_scope *sim_scope(struct sim *sim)
{
    return sim->scope;
}
