/* lock/election_test.c: (n) is an invariant of lock/election.c. */
#include <holdfast/engine.h>
#include <holdfast/lock.h>

#include <stdatomic.h>

#include "kit.h"
#include "steps.h"

struct candidate {
    struct hf_lock_table *locks;
    struct hf_election *election;
    _Atomic uint64_t term; /* in which it leads; 0: it does not */
    _Atomic uint64_t last;
    atomic_int elected, deposed, wrong;
    enum hf_lock_state why;
};

static void on_elected(struct hf_election *e, uint64_t term, void *user)
{
    struct candidate *c = user;

    if (c->term || term <= c->last || !hf_election_lock(e)) /* (1) */
        c->wrong++;
    c->term = c->last = term;
    c->elected++;
}

static void on_deposed(struct hf_election *e, uint64_t term, enum hf_lock_state why, void *user)
{
    struct candidate *c = user;

    if (c->term != term || !hf_election_lock(e)) /* (1) (2) */
        c->wrong++;
    c->term = 0;
    c->why = why;
    c->deposed++;
}

static void stand(struct hf_scope *s, struct hf_db *db, struct hf_str table, const char *name,
                  bool threads, uint32_t lease_ms, struct candidate *c)
{
    struct hf_item data = HF_ITEM(s, HF_S("address", hf_str_from(name)));

    memset(c, 0, sizeof(*c));
    CHECK_OK(hf_lock_table_open(s, db,
                                HF_OPTIONS(hf_lock_table_options, .table = table,
                                           .owner = hf_str_from(name), .no_threads = !threads),
                                &c->locks));
    CHECK_OK(hf_election_open(s, c->locks, HF_STR("leader"),
                              HF_OPTIONS(hf_election_options, .lease_ms = lease_ms, .poll_ms = 100,
                                         .data = data, .elected = on_elected, .deposed = on_deposed,
                                         .user = c),
                              &c->election));
}

static void withdraw(struct candidate *c)
{
    hf_election_close(c->election);
    hf_lock_table_close(c->locks);
    CHECK_INT(0, c->wrong);
}

KIT_TEST(election, the_first_leads_until_it_is_silent)
{
    struct candidate ann, ben;
    struct hf_lock_info info;
    uint64_t term;

    stand(k->scope, k->db, k->table, "ann", false, 1000, &ann);
    stand(k->scope, k->db, k->table, "ben", false, 1000, &ben);
    CHECK(!hf_election_leads(ann.election, &term));
    for (int i = 0; i < 100; i++) {
        CHECK(locks_step(ann.locks) <= 250);
        CHECK(locks_step(ben.locks) <= 100);
        test_advance_ms(k->t, 50);
        CHECK(hf_election_leads(ann.election, &term));
        CHECK(!hf_election_leads(ben.election, NULL));
    }
    CHECK(ann.term == term);
    CHECK_OK(hf_lock_inspect(k->scope, ben.locks, HF_STR("leader"), &info));
    CHECK_STR("ann", hf_value_str(hf_item_get(info.data, HF_STR("address"))));
    for (int i = 0; i < 24; i++) { /* ann stops; never do two believe to lead */
        locks_step(ben.locks);
        test_advance_ms(k->t, 50);
        CHECK(!hf_election_leads(ann.election, NULL) || !hf_election_leads(ben.election, NULL));
    }
    CHECK(hf_election_leads(ben.election, NULL));
    CHECK(ben.term > term);
    CHECK_INT(0, ann.deposed);
    locks_step(ann.locks); /* ann goes on, and learns it */
    CHECK_INT(1, ann.deposed);
    CHECK_INT(HF_LOCK_EXPIRED, ann.why);
    CHECK_INT(1, ann.elected);
    hf_election_close(ben.election); /* resigns: no lease has to end */
    test_advance_ms(k->t, 100);
    locks_step(ann.locks);
    CHECK(ann.term > ben.last);
    CHECK_OK(hf_lock_break(k->scope, ann.locks, HF_STR("leader"), hf_str_of(NULL, 0), NULL));
    test_advance_ms(k->t, 250);
    locks_step(ann.locks);
    locks_step(ann.locks);
    CHECK_INT(2, ann.deposed);
    CHECK_INT(HF_LOCK_STOLEN, ann.why);
    CHECK_INT(3, ann.elected);
    hf_lock_table_close(ben.locks);
    withdraw(&ann);
}

KIT_TEST(election, what_cannot_be)
{
    struct hf_lock_table *locks;
    struct hf_election *election;

    CHECK_OK(
        hf_lock_table_open(k->scope, k->db,
                           HF_OPTIONS(hf_lock_table_options, .table = k->table, .no_threads = true),
                           &locks));
    CHECK_STATUS(HF_INVALID, hf_election_open(k->scope, locks, HF_STR(""), NULL, &election));
    CHECK_STATUS(HF_INVALID,
                 hf_election_open(k->scope, locks, HF_STR("e"),
                                  HF_OPTIONS(hf_election_options, .heartbeat_ms = 10001),
                                  &election));
    CHECK(!election);
    hf_election_close(NULL);
    hf_lock_table_close(locks);
}

/* On its own threads and by the system's clocks: one leads, closes, and the other follows. */
TEST(election, threads_elect_too)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct candidate c[3];
    struct hf_db *db;
    uint64_t last = 0;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                     &db));
    for (int i = 0; i < 3; i++)
        stand(s, db, HF_STR("locks"), "someone", true, 2000, &c[i]);
    for (int gone = 0; gone < 3; gone++) {
        struct candidate *leader = NULL;

        for (int tries = 0; tries < 10000 && !leader; tries++) {
            for (int i = 0; i < 3; i++)
                if (c[i].election && hf_election_leads(c[i].election, NULL) && c[i].term)
                    leader = &c[i];
            CHECK_OK(hf_scope_sleep_ms(s, 1));
        }
        CHECK(leader);
        CHECK(leader->term > last);
        last = leader->term;
        withdraw(leader);
        leader->election = NULL;
    }
    hf_db_close(db);
    hf_scope_free(s);
}
