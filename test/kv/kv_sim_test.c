/*
 * kv/kv_sim_test.c: one key under bad luck, by seed, and a judge of its history.
 *
 * A few hosts set, change, add to, remove from, delete and read the same key, whose value is a set
 * of numbers, while requests and answers get lost, come late or twice, and hosts pause and die.
 * What each of them was told, and when it asked and was told, is a history. It has to be
 * linearizable: there is an order of all operations in which each comes between its asking and its
 * being told, and in which each tells what one host alone would be told. What may have happened
 * happens in that order at any time from its asking on, or not at all; what certainly has not, does
 * not.
 *
 * A state is the set as bits, and whether there is one. Every operation that adds adds a number of
 * its own.
 */
#include <holdfast/set.h>

#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#include "coord/pattern.h"

enum { HOSTS = 3, OPS_EACH = 5, OPS_MAX = 30, VISITED = 1 << 16 };
#define THERE (UINT64_C(1) << 40)

enum kind { GET = 1, SET, SET_IF_ABSENT, SWAP, DELETE, ADD, REMOVE };
enum told { OK = 1, REFUSED, DOUBTFUL, NOTHING /* and nothing happened */ };

struct op {
    enum kind kind;
    enum told told;
    int64_t from_us, to_us;
    uint64_t bit;      /* that it adds, or removes */
    uint64_t expected; /* of a swap */
    uint64_t state;    /* what it was told is there, or was: GET, DELETE, REFUSED */
    bool found, removed;
    size_t len; /* of the set after ADD and REMOVE */
};

struct history {
    struct op ops[OPS_MAX];
    size_t len;
    int64_t started[HOSTS]; /* operations, over all lives */
    uint64_t hosts;         /* how many were started */
    uint64_t counts[8][8];  /* over all histories: kind and told */
    uint64_t undecided;
    uint64_t *visited; /* what was tried in this history: ops done, and the state then */
    size_t visited_len;
};

/* ---- the judge ------------------------------------------------------------------------------ */

static size_t bits(uint64_t state)
{
    return (size_t)__builtin_popcountll(state & (THERE - 1));
}

/* Can this operation come now? Then *state is what comes of it. */
static bool comes(const struct op *op, uint64_t *state)
{
    bool there = *state & THERE, has = *state & op->bit;
    bool sure = op->told != DOUBTFUL;

    switch (op->kind) {
    case GET:
        return *state == op->state;
    case SET:
        *state = THERE | op->bit;
        return true;
    case SET_IF_ABSENT:
    case SWAP:
        if (op->told == REFUSED)
            return *state == op->state && (op->kind == SWAP || there);
        if (op->kind == SWAP ? *state != op->expected : there)
            return false;
        *state = THERE | op->bit;
        return true;
    case DELETE:
        if (sure && *state != op->state)
            return false;
        *state = 0;
        return true;
    case ADD:
        if (sure && (there != op->found || bits(*state) + 1 != op->len))
            return false;
        *state |= THERE | op->bit;
        return true;
    case REMOVE:
        if (sure && (there != op->found || has != op->removed || bits(*state) - has != op->len))
            return false;
        *state &= ~op->bit;
        return true;
    }
    return false;
}

/* Was this tried before? */
static bool visited(struct history *h, uint64_t done, uint64_t state)
{
    uint64_t key = (done * 0x9E3779B97F4A7C15u) ^ (state * 0xBF58476D1CE4E5B9u);
    size_t at;

    key = (key ^ (key >> 29)) * 0x94D049BB133111EBu | 1;
    for (at = key >> 48; h->visited[at % VISITED]; at++)
        if (h->visited[at % VISITED] == key)
            return true;
    h->visited[at % VISITED] = key;
    h->visited_len++;
    return false;
}

static bool is_linear(struct history *h, uint64_t done, uint64_t state)
{
    int64_t first_to_us = INT64_MAX;
    bool open = false;

    if (h->visited_len > VISITED / 2) {
        h->undecided++;
        return true;
    }
    if (visited(h, done, state))
        return false;
    for (size_t i = 0; i < h->len; i++)
        if (!(done >> i & 1) && h->ops[i].told != DOUBTFUL && h->ops[i].told != NOTHING) {
            open = true;
            if (h->ops[i].to_us < first_to_us)
                first_to_us = h->ops[i].to_us;
        }
    if (!open)
        return true;
    for (size_t i = 0; i < h->len; i++) {
        uint64_t next = state;

        if ((done >> i & 1) || h->ops[i].told == NOTHING || h->ops[i].from_us > first_to_us)
            continue;
        if (comes(&h->ops[i], &next) && is_linear(h, done | UINT64_C(1) << i, next))
            return true;
    }
    return false;
}

static void print_history(const struct history *h)
{
    static const char *const kinds[] = {"?",    "get",    "set", "absent",
                                        "swap", "delete", "add", "remove"};
    static const char *const tolds[] = {"?", "ok", "refused", "doubtful", "nothing"};

    for (size_t i = 0; i < h->len; i++) {
        const struct op *op = &h->ops[i];

        print_error("%2zu %-7s %-9s %8lld-%-8lld bit %llx expected %llx state %llx%s%s len %zu\n",
                    i, kinds[op->kind], tolds[op->told], (long long)op->from_us,
                    (long long)op->to_us, (unsigned long long)op->bit,
                    (unsigned long long)op->expected, (unsigned long long)op->state,
                    op->found ? " found" : "", op->removed ? " removed" : "", op->len);
    }
}

/* ---- the hosts ------------------------------------------------------------------------------ */

#define KEY hf_kv_id(HF_STR("the key"))

static struct hf_value number(struct hf_scope *s, uint64_t bit)
{
    return hf_value_make(s, (struct hf_attr)HF_N("", bit));
}

static struct hf_value set_of(struct hf_scope *s, uint64_t bit)
{
    return HF_LIST(s, HF_N("", bit));
}

static uint64_t state_of(struct hf_scope *s, const struct hf_kv_entry *entry)
{
    uint64_t state = entry->value.ptr ? THERE : 0;

    for (size_t i = 0; i < hf_value_count(entry->value); i++) {
        int64_t bit = 0;

        if (!hf_value_i64(hf_value_at(s, entry->value, i), &bit) || (state & (uint64_t)bit))
            return UINT64_MAX; /* no element comes twice */
        state |= (uint64_t)bit;
    }
    return state;
}

static enum told told_of(struct hf_scope *s, enum hf_status status)
{
    if (status == HF_OK)
        return OK;
    if (hf_scope_error(s)->may_have_happened)
        return DOUBTFUL;
    return status == HF_CONDITION ? REFUSED : NOTHING;
}

static void do_op(struct actor *a, struct hf_kv *kv, struct op *op, struct hf_str version)
{
    struct hf_kv_set_options set = {.size = sizeof(set)};
    struct hf_set_options two = {.size = sizeof(two)};
    struct hf_value element = number(a->s, op->bit);
    struct hf_kv_entry entry = {.key = KEY};
    struct hf_set_change change = {0};
    enum hf_status status = HF_OK;

    switch (op->kind) {
    case GET:
        status = hf_kv_get(a->s, kv, KEY, NULL, &entry);
        break;
    case SWAP:
        set.if_version = version;
        status = hf_kv_set(a->s, kv, KEY, set_of(a->s, op->bit), &set, &entry);
        break;
    case SET_IF_ABSENT:
        set.if_absent = true;
        status = hf_kv_set(a->s, kv, KEY, set_of(a->s, op->bit), &set, &entry);
        break;
    case SET:
        status = hf_kv_set(a->s, kv, KEY, set_of(a->s, op->bit), NULL, &entry);
        break;
    case DELETE:
        status = hf_kv_delete(a->s, kv, KEY, NULL, &entry);
        break;
    case ADD:
        status = hf_set_add(a->s, kv, KEY, &element, 1, &two, &change);
        break;
    case REMOVE:
        status = hf_set_remove(a->s, kv, KEY, &element, 1, &two, &change);
        break;
    }
    op->told = told_of(a->s, status);
    op->state = state_of(a->s, &entry);
    op->found = change.found;
    op->removed = change.removed;
    op->len = change.len;
    SIM_CHECK(a, op->state != UINT64_MAX);
    if (op->told == NOTHING || op->told == DOUBTFUL) {
        SIM_CHECK(a, status == HF_IO || status == HF_TIMEOUT || status == HF_THROTTLED ||
                         status == HF_TX_CONFLICT);
    }
}

static struct op *begin(struct actor *a, struct history *h, enum kind kind)
{
    struct op *op = &h->ops[h->len];

    *op = (struct op){.kind = kind,
                      .told = DOUBTFUL, /* until it is known: its host may die */
                      .from_us = sim_now_us(a->sim),
                      .to_us = INT64_MAX,
                      .bit = UINT64_C(1) << h->len};
    if (kind == REMOVE)
        op->bit = UINT64_C(1) << sim_random_below(a->sim, h->len);
    h->len++;
    return op;
}

static void host(struct actor *a)
{
    struct history *h = a->user;
    uint64_t seen = 0;
    struct hf_str version = {NULL, 0};
    struct hf_scope *kept = hf_scope_new(&a->env);
    struct hf_kv *kv;

    hf_scope_timeout_ms(a->s, 0);
    while (hf_kv_open(a->s, a->db,
                      HF_OPTIONS(hf_kv_options, .no_create = true, .any_ttl = true,
                                 .consistent = true, .remember = 3),
                      &kv) != HF_OK)
        actor_sleep_ms(a, 10);
    for (int i = 0; i < OPS_EACH && h->len < OPS_MAX - 1; i++) {
        enum kind kind = (enum kind)(1 + sim_random_below(a->sim, 7));
        struct op *op;

        if (kind == SWAP && !version.ptr)
            kind = GET;
        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 30 + (uint32_t)sim_random_below(a->sim, 400));
        op = begin(a, h, kind);
        op->expected = seen;
        do_op(a, kv, op, version);
        op->to_us = op->told == DOUBTFUL ? INT64_MAX : sim_now_us(a->sim);
        if (kind == GET && op->told == OK) {
            struct hf_kv_entry entry;

            /* The version of what was seen: of another read, if nothing changed in between. */
            seen = op->state;
            version = hf_str_of(NULL, 0);
            if (hf_kv_get(a->s, kv, KEY, NULL, &entry) == HF_OK && entry.version.ptr) {
                hf_scope_reset(kept);
                seen = state_of(a->s, &entry);
                version = hf_scope_copy(kept, entry.version);
            }
        }
        if (sim_random_below(a->sim, 2))
            actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 20));
    }
    hf_kv_close(kv);
}

static void play(struct sim *sim, void *user)
{
    static const char *const names[HOSTS] = {"ann", "ben", "cat"};
    struct hf_scope *s = sim_scope(sim);
    struct history *h = user;
    struct hf_kv_entry entry;
    struct op *last;
    struct hf_kv *kv;
    bool linear;

    h->len = h->visited_len = 0;
    memset(h->visited, 0, VISITED * sizeof(*h->visited));
    CHECK_OK(hf_kv_open(s, sim_db(sim),
                        HF_OPTIONS(hf_kv_options, .consistent = true, .remember = 3), &kv));
    for (int i = 0; i < HOSTS; i++)
        sim_start(sim, names[i], host, h);
    sim_run(sim);
    CHECK_OK(hf_kv_get(s, kv, KEY, NULL, &entry));
    last = &h->ops[h->len++];
    *last = (struct op){.kind = GET,
                        .told = OK,
                        .from_us = INT64_MAX - 1,
                        .to_us = INT64_MAX,
                        .state = state_of(s, &entry)};
    hf_kv_close(kv);
    for (size_t i = 0; i < h->len; i++)
        h->counts[h->ops[i].kind][h->ops[i].told]++;
    linear = is_linear(h, 0, 0);
    if (!linear) {
        print_history(h);
        print_error("repeat with HF_SIM_SEED=%llu\n", (unsigned long long)sim_seed(sim));
    }
    CHECK(linear);
}

static uint64_t count(const struct history *h, enum told told)
{
    uint64_t sum = 0;

    for (int kind = GET; kind <= REMOVE; kind++)
        sum += h->counts[kind][told];
    return sum;
}

static void judge_all(struct test *t, uint32_t seeds, const struct sim_luck *luck,
                      struct history *h)
{
    h->visited = calloc(VISITED, sizeof(*h->visited));
    CHECK(h->visited);
    sim_each(t, seeds, luck, play, h);
    free(h->visited);
    h->visited = NULL;
    CHECK_INT(0, h->undecided);
}

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(kv_sim, linearizable_with_even_luck)
{
    struct history h = {0};

    judge_all(t, 500, &(struct sim_luck){.drift_ppm = 100}, &h);
    for (int kind = GET; kind <= REMOVE; kind++)
        CHECK(h.counts[kind][OK] > 20 || !sim_is_whole());
    CHECK(!sim_is_whole() ||
          (h.counts[SWAP][REFUSED] > 10 && h.counts[SET_IF_ABSENT][REFUSED] > 10));
    CHECK(count(&h, DOUBTFUL) <= h.counts[GET][DOUBTFUL] + count(&h, OK) / 100);
}

/* Lost answers alone: nearly all of it is settled. */
TEST(kv_sim, linearizable_with_lost_answers)
{
    struct history h = {0};

    judge_all(t, 2000, &(struct sim_luck){.lost_requests = 80, .lost_answers = 150, .refused = 30},
              &h);
    CHECK(count(&h, DOUBTFUL) * 10 < count(&h, OK) || !sim_is_whole());
}

/* Everything at once. */
TEST(kv_sim, linearizable_with_bad_luck)
{
    struct sim_luck luck = {.lost_requests = 50,
                            .lost_answers = 80,
                            .twice = 50,
                            .later_again = 80,
                            .refused = 30,
                            .slow = 100,
                            .slow_ms = 300,
                            .pauses = 20,
                            .pause_ms = 1000,
                            .deaths = 10,
                            .drift_ppm = 1000,
                            .wall_skew_ms = 2000};
    struct history h = {0};

    judge_all(t, 5000, &luck, &h);
    CHECK(count(&h, OK) > 10000 || !sim_is_whole());
}

/* The judge sees what is wrong: a value that comes back, an update that is lost. */
TEST(kv_sim, the_judge_is_strict)
{
    struct history h = {.visited = calloc(VISITED, sizeof(uint64_t))};
    const struct op set_1 = {.kind = SET, .told = OK, .from_us = 1, .to_us = 2, .bit = 1};
    const struct op set_2 = {.kind = SET, .told = OK, .from_us = 3, .to_us = 4, .bit = 2};
    const struct op get_1 = {.kind = GET, .told = OK, .from_us = 5, .to_us = 6, .state = THERE | 1};
    const struct op add_4 = {
        .kind = ADD, .told = OK, .from_us = 7, .to_us = 8, .bit = 4, .found = true, .len = 2};

    h.len = 3;
    memcpy(h.ops, (struct op[]){set_1, set_2, get_1}, 3 * sizeof(set_1));
    CHECK(!is_linear(&h, 0, 0));
    memset(h.visited, 0, VISITED * sizeof(*h.visited));
    h.ops[0].told = DOUBTFUL; /* it may come late */
    h.ops[0].to_us = INT64_MAX;
    CHECK(is_linear(&h, 0, 0));
    memset(h.visited, 0, VISITED * sizeof(*h.visited));
    h.ops[0].told = NOTHING;
    CHECK(!is_linear(&h, 0, 0));
    memset(h.visited, 0, VISITED * sizeof(*h.visited));
    memcpy(h.ops, (struct op[]){set_1, add_4, get_1}, 3 * sizeof(set_1));
    h.ops[2].from_us = 9; /* what was added is not there */
    h.ops[2].to_us = 10;
    CHECK(!is_linear(&h, 0, 0));
    free(h.visited);
}
