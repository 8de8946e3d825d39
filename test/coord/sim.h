/*
 * test/coord/sim.h: histories of a pattern under bad luck, thousands a second.
 *
 * Actors are programs as users write them: they call, block, sleep. All run in one thread, each on
 * a stack of its own; whoever waits lets another go on, and the virtual clock jumps to whoever is
 * next. Each actor is a process on a host of its own: it has its own clocks (which differ in what
 * they show and a little in how fast they run), its own memory, and its own way to the database, on
 * which requests and answers take time, get lost, are done late or twice. It may be paused for long
 * at any call or sleep, or die there, and then it starts again.
 *
 * Everything is drawn from a seed. sim_each() runs many, prints the one that failed, and with
 * HF_SIM_SEED=n runs that one alone, with HF_SIM_TRACE=1 with all that the database is asked for;
 * HF_SIM_SEEDS=n runs that many, HF_TEST_TIMES=n so many times as many.
 *
 *     static void worker(struct actor *a) { ... SIM_CHECK(a, fence > model->last); ... }
 *
 *     static void history(struct sim *sim, void *user)
 *     {
 *         sim_start(sim, "ann", worker, &model);
 *         sim_start(sim, "ben", worker, &model);
 *         sim_run(sim);
 *     }
 */
#ifndef HF_TEST_PATTERNS_SIM_H
#define HF_TEST_PATTERNS_SIM_H

#include <holdfast/db.h>
#include <holdfast/scope.h>

#include "test.h"

struct sim;

/* How bad the luck is: each of a thousand calls. */
struct sim_luck {
    uint32_t lost_requests; /* not done, but who knows */
    uint32_t lost_answers;  /* done, but who knows */
    uint32_t twice;         /* done, and done again; the second answer arrives */
    uint32_t later_again;   /* done, and done once more some time later */
    uint32_t refused;       /* throttled: certainly not done */
    uint32_t slow;          /* takes up to slow_ms instead of up to 5 ms */
    uint32_t pauses;        /* of each thousand calls and sleeps: for up to pause_ms */
    uint32_t deaths;        /* of each thousand calls and sleeps: ends here, starts again later */
    uint32_t slow_ms;
    uint32_t pause_ms;
    uint32_t wall_skew_ms; /* wall clocks differ by up to so much */
    uint32_t drift_ppm;    /* elapsed clocks run faster or slower by up to so much */
};

struct actor {
    struct sim *sim;
    const char *name;
    int life; /* how often it has died */
    void *user;
    struct hf_db *db;   /* its way to the database */
    struct hf_env env;  /* its host */
    struct hf_scope *s; /* in that env */
};

typedef void actor_fn(struct actor *a);
typedef void history_fn(struct sim *sim, void *user);

/* Do all the usual histories run, and not some, as asked for, or few, for a sanitizer that is slow?
 * Then it can be asked for how often something was seen. */
bool sim_is_whole(void);

/* Run `history` for many seeds on one memory database. */
void sim_each(struct test *t, uint32_t seeds, const struct sim_luck *luck, history_fn *history,
              void *user);

/* An actor that begins at once, or soon. */
void sim_start(struct sim *sim, const char *name, actor_fn *run, void *user);

/* Call this after every step; with what is wrong it returns, the history has failed. */
typedef const char *watch_fn(struct sim *sim, void *user);
void sim_watch(struct sim *sim, watch_fn *watch, void *user);

/* Until every actor has ended. A history that takes longer than an hour of its time has failed. */
void sim_run(struct sim *sim);

/* From here on no more bad luck. */
void sim_calm(struct sim *sim);

uint64_t sim_seed(const struct sim *sim);
uint64_t sim_random_below(struct sim *sim, uint64_t bound);
uint64_t sim_writes(const struct sim *sim); /* how many the database was asked for so far */
bool sim_failed(const struct sim *sim);
int64_t sim_now_us(const struct sim *sim); /* true time, which no actor can see */
struct hf_db *sim_db(struct sim *sim);     /* the database without bad luck */
struct hf_scope *sim_scope(struct sim *sim);

/* The actor with that number, in the order of sim_start(); NULL: there is none. */
struct actor *sim_actor(struct sim *sim, size_t number);

/* Sleep on the actor's own clock. */
void actor_sleep_ms(struct actor *a, uint32_t ms);

/* The actor dies here, whatever the luck, and starts again some time later. */
_Noreturn void actor_die(struct actor *a);

/* The history fails, and ends; the actor does not return from it. */
#define SIM_CHECK(a, condition)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            actor_fail((a), #condition, __FILE__, __LINE__);                                       \
    } while (0)
_Noreturn void actor_fail(struct actor *a, const char *what, const char *file, int line);

#endif
