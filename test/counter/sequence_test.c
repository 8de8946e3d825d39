/* counter/sequence_test.c: (n) is an invariant of counter/sequence.c. */
#include <holdfast/counter.h>

#include <pthread.h>

#include "db/db.h"
#include "kit.h"

static struct hf_counters *open_counters(struct kit *k)
{
    struct hf_counters *c;

    CHECK_OK(
        hf_counters_open(k->scope, k->db, HF_OPTIONS(hf_counters_options, .table = k->table), &c));
    return c;
}

static struct hf_sequence *open_sequence(struct kit *k, struct hf_counters *c, uint32_t block,
                                         int64_t last)
{
    struct hf_sequence *q;

    CHECK_OK(hf_sequence_open(k->scope, c, hf_counter_named(HF_STR("n")),
                              HF_OPTIONS(hf_sequence_options, .block = block, .last = last), &q));
    return q;
}

static int64_t next(struct kit *k, struct hf_sequence *q)
{
    int64_t number;

    CHECK_OK(hf_sequence_next(k->scope, q, &number));
    return number;
}

static int64_t value_of(struct kit *k, struct hf_counters *c)
{
    int64_t value;

    CHECK_OK(hf_counter_get(k->scope, c, hf_counter_named(HF_STR("n")), &value));
    return value;
}

/* ---- blocks --------------------------------------------------------------------------------- */

KIT_TEST(sequence, numbers_from_one_on)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 10, 0);

    hf_scope_count_capacity(k->scope, true);
    for (int i = 1; i <= 100; i++)
        CHECK_INT(i, next(k, q));
    CHECK_INT(10, hf_scope_capacity(k->scope).calls);
    CHECK_OK(hf_sequence_close(k->scope, q));
    q = open_sequence(k, c, 1, 0);
    CHECK_INT(101, next(k, q));
    CHECK_INT(102, next(k, q));
    CHECK_INT(102, value_of(k, c));
    CHECK_OK(hf_sequence_close(k->scope, q));
    CHECK_OK(hf_sequence_close(k->scope, NULL));
    hf_counters_close(c);
}

KIT_TEST(sequence, blocks_do_not_overlap)
{
    struct hf_counters *c = open_counters(k), *d = open_counters(k);
    struct hf_sequence *ann = open_sequence(k, c, 3, 0), *ben = open_sequence(k, d, 5, 0);
    bool seen[61] = {false};
    int64_t first;

    for (int i = 0; i < 20; i++) {
        int64_t number = next(k, i % 2 ? ann : ben);

        CHECK(number >= 1 && number <= 60 && !seen[number]);
        seen[number] = true;
        if (i % 7 == 0) {
            CHECK_OK(hf_sequence_take(k->scope, ann, 2, &first));
            CHECK(!seen[first] && !seen[first + 1]);
            seen[first] = seen[first + 1] = true;
        }
    }
    CHECK_OK(hf_sequence_close(k->scope, ann));
    CHECK_OK(hf_sequence_close(k->scope, ben));
    hf_counters_close(c);
    hf_counters_close(d);
}

/* (1): lost answers make no gap and no number twice; only doubt that stays makes a gap. */
KIT_TEST(sequence, lost_answers)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 2, 0);
    int64_t number;

    for (int i = 1; i <= 20; i++) {
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 3);
        CHECK_INT(i, next(k, q));
    }
    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER, .count = 1},
                                               {.kind = HF_FAULT_THROTTLE}},
                           2));
    CHECK(hf_sequence_next(k->scope, q, &number) != HF_OK);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    CHECK_INT(23, next(k, q));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
}

/* (1): what is left goes back, if it can. */
KIT_TEST(sequence, the_rest_goes_back)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *ann = open_sequence(k, c, 10, 0), *ben = open_sequence(k, c, 10, 0);

    CHECK_INT(1, next(k, ann));
    CHECK_INT(2, next(k, ann));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 2);
    CHECK_OK(hf_sequence_close(k->scope, ann));
    CHECK_INT(2, value_of(k, c));
    CHECK_INT(3, next(k, ben));
    ann = open_sequence(k, c, 10, 0);
    CHECK_INT(13, next(k, ann));
    CHECK_OK(hf_sequence_close(k->scope, ben)); /* 4 to 12 are lost: ann has gone on */
    CHECK_INT(22, value_of(k, c));
    CHECK_OK(hf_sequence_close(NULL, ann)); /* without a scope nothing goes back */
    CHECK_INT(22, value_of(k, c));
    hf_counters_close(c);
}

KIT_TEST(sequence, an_end)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 4, 10);
    int64_t number;

    for (int i = 1; i <= 9; i++)
        CHECK_INT(i, next(k, q));
    CHECK_STATUS(HF_LIMIT, hf_sequence_take(k->scope, q, 1, &number)); /* 10 is in our block */
    CHECK_INT(10, next(k, q));
    CHECK_STATUS(HF_LIMIT, hf_sequence_next(k->scope, q, &number));
    CHECK_ERROR(HF_LIMIT, "sequence n is at 10 and ends at 10", k->scope);
    CHECK_OK(hf_sequence_close(k->scope, q));
    q = open_sequence(k, c, 0, 12);
    CHECK_STATUS(HF_LIMIT, hf_sequence_take(k->scope, q, 3, &number));
    CHECK_OK(hf_sequence_take(k->scope, q, 2, &number));
    CHECK_INT(11, number);
    CHECK_OK(hf_sequence_close(k->scope, q));
    CHECK_OK(hf_counter_set(k->scope, c, hf_counter_named(HF_STR("n")), INT64_MAX - 1, NULL));
    q = open_sequence(k, c, 0, 0);
    CHECK_INT(INT64_MAX, next(k, q));
    CHECK_STATUS(HF_LIMIT, hf_sequence_next(k->scope, q, &number));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
}

KIT_TEST(sequence, what_cannot_be)
{
    struct hf_counters *c = open_counters(k), *hot, *plain;
    struct hf_counter_key key = hf_counter_named(HF_STR("n"));
    struct hf_sequence *q;
    struct hf_transact_write action;
    int64_t number;

    CHECK_OK(hf_counters_open(k->scope, k->db,
                              HF_OPTIONS(hf_counters_options, .table = k->table, .shards = 2),
                              &hot));
    CHECK_OK(hf_counters_open(k->scope, k->db,
                              HF_OPTIONS(hf_counters_options, .table = k->table, .plain = true),
                              &plain));
    CHECK_STATUS(HF_INVALID, hf_sequence_open(k->scope, hot, key, NULL, &q));
    CHECK_ERROR(HF_INVALID, "sequence n: its counters have shards", k->scope);
    CHECK_STATUS(HF_INVALID, hf_sequence_open(k->scope, plain, key, NULL, &q));
    CHECK_STATUS(HF_INVALID, hf_sequence_open(k->scope, c, hf_counter_named(HF_STR("")), NULL, &q));
    CHECK_STATUS(HF_INVALID, hf_sequence_open(k->scope, c, key,
                                              HF_OPTIONS(hf_sequence_options,
                                                         .block = HF_SEQUENCE_BLOCK_MAX + 1u),
                                              &q));
    CHECK(!q);
    q = open_sequence(k, c, HF_SEQUENCE_BLOCK_MAX, 0);
    CHECK_INT(1, next(k, q));
    CHECK_STATUS(HF_INVALID, hf_sequence_take(k->scope, q, 0, &number));
    CHECK_STATUS(HF_INVALID, hf_sequence_take_tx(k->scope, q, 0, &number, &action));
    CHECK_OK(hf_sequence_close(k->scope, q));
    CHECK_INT(1, value_of(k, c));
    hf_counters_close(c);
    hf_counters_close(hot);
    hf_counters_close(plain);
}

/* (3): threads of one process share a block. */
struct taker {
    struct hf_sequence *q;
    struct hf_scope *s;
    int64_t numbers[500];
    bool failed;
};

static void *take_numbers(void *user)
{
    struct taker *taker = user;

    for (size_t i = 0; i < 500 && !taker->failed; i++)
        taker->failed = hf_sequence_next(taker->s, taker->q, &taker->numbers[i]) != HF_OK;
    return NULL;
}

KIT_TEST(sequence, threads_share_it)
{
    enum { TAKERS = 8 };
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 7, 0);
    static struct taker takers[TAKERS];
    static bool seen[TAKERS * 500 + 1];
    pthread_t threads[TAKERS];

    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.q = q, .s = hf_scope_new(NULL)};
        pthread_create(&threads[i], NULL, take_numbers, &takers[i]);
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < TAKERS; i++) {
        CHECK(!takers[i].failed);
        for (size_t n = 0; n < 500; n++) {
            CHECK(takers[i].numbers[n] >= 1 && takers[i].numbers[n] <= TAKERS * 500);
            CHECK(!seen[takers[i].numbers[n]]);
            CHECK(n == 0 || takers[i].numbers[n] > takers[i].numbers[n - 1]);
            seen[takers[i].numbers[n]] = true;
        }
        hf_scope_free(takers[i].s);
    }
    CHECK_OK(hf_sequence_close(k->scope, q));
    CHECK_INT(TAKERS * 500, value_of(k, c));
    hf_counters_close(c);
}

/* ---- transactions --------------------------------------------------------------------------- */

struct old;

/* Write invoices with the numbers from `first` on. */
struct invoices {
    struct kit *k;
    size_t count;
    int calls;
    struct hf_sequence *rival; /* takes a number while we are at it, that often */
    int rivals;
    bool impossible;
    struct old *before_send; /* from now on others come by */
};

static void arm(struct old *old);

static enum hf_status write_invoices(struct hf_scope *s, int64_t first,
                                     struct hf_transact_write *actions, size_t cap, size_t *len,
                                     void *user)
{
    struct invoices *in = user;
    struct hf_put_item *puts = hf_scope_alloc(s, in->count * sizeof(*puts) + 1);

    in->calls++;
    CHECK(cap == 99);
    if (in->before_send)
        arm(in->before_send);
    if (in->rivals-- > 0) {
        struct hf_scope *other = hf_scope_new(NULL);
        int64_t number;

        CHECK_OK(hf_sequence_take(other, in->rival, 1, &number));
        CHECK_INT(first, number);
        hf_scope_free(other);
    }
    for (size_t i = 0; i < in->count; i++) {
        struct hf_str key = hf_scope_format(s, "invoice-%lld", (long long)first + (long long)i);

        puts[i] =
            (struct hf_put_item){.table = in->k->table,
                                 .item = HF_ITEM(s, HF_S("key", key)),
                                 .condition = in->impossible ? HF_STR("attribute_exists(#key)")
                                                             : HF_STR("attribute_not_exists(#key)"),
                                 .names = HF_ITEM(s, HF_S("#key", HF_STR("key")))};
        actions[i].put = &puts[i];
    }
    *len = in->count;
    return HF_OK;
}

static bool has_invoice(struct kit *k, int64_t number)
{
    struct hf_str key = hf_scope_format(k->scope, "invoice-%lld", (long long)number);
    struct hf_get_item read = {.table = k->table,
                               .key = HF_ITEM(k->scope, HF_S("key", key)),
                               .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(k->scope, k->db, &read, &got));
    return got.item.ptr != NULL;
}

/* (2): no gap, whatever gets lost. */
KIT_TEST(sequence, a_number_is_given_out_by_what_uses_it)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 1, 99);
    struct invoices in = {.k = k, .count = 1};
    int64_t first;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) { /* no number is used up */
        CHECK_STATUS(HF_UNSUPPORTED,
                     hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
        CHECK_INT(0, in.calls);
        CHECK_INT(0, value_of(k, c));
        CHECK_OK(hf_sequence_close(k->scope, q));
        hf_counters_close(c);
        return;
    }
    for (int i = 1; i <= 80; i++) {
        struct hf_fault faults[] = {
            {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("TransactWriteItems"), .count = 1},
            {.kind = HF_FAULT_LOST_REQUEST, .operation = HF_STR("TransactWriteItems"), .count = 1},
            {.kind = HF_FAULT_CONFLICT, .operation = HF_STR("TransactWriteItems"), .count = 1}};

        CHECK_OK(hf_faulty_set(k->scope, k->db, faults, (size_t)i % 4));
        CHECK_OK(hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
        CHECK_INT(i, first);
        CHECK(has_invoice(k, i));
        CHECK(!has_invoice(k, i + 1));
    }
    in.count = 12;
    CHECK_OK(hf_sequence_commit(k->scope, q, 12, write_invoices, &in, &first));
    CHECK_INT(81, first);
    CHECK(has_invoice(k, 92));
    CHECK_INT(92, value_of(k, c));
    in.impossible = true; /* a condition of the caller's: no number is used up */
    CHECK_STATUS(HF_TX_CANCELED,
                 hf_sequence_commit(k->scope, q, 12 - 5, write_invoices, &in, &first));
    CHECK_INT(13, hf_scope_error(k->scope)->reasons_len);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[0].code);
    CHECK_STR("None", hf_scope_error(k->scope)->reasons[12].code);
    CHECK_INT(92, value_of(k, c));
    CHECK_STATUS(HF_LIMIT, hf_sequence_commit(k->scope, q, 8, write_invoices, &in, &first));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
}

KIT_TEST_TX(sequence, who_is_slower_gets_the_next_number)
{
    struct hf_counters *c = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 1, 0);
    struct invoices in = {.k = k, .count = 1, .rival = q, .rivals = 3};
    struct hf_transact_write actions[1];
    struct hf_transact_write_items request = {.actions = actions, .actions_len = 1};
    int64_t first;

    CHECK_OK(hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
    CHECK_INT(4, first);
    CHECK_INT(4, in.calls);
    CHECK(!has_invoice(k, 3));
    CHECK(has_invoice(k, 4));
    in.rivals = INT32_MAX;
    hf_scope_timeout_ms(k->scope, 1000);
    CHECK_STATUS(HF_TIMEOUT, hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
    hf_scope_timeout_ms(k->scope, 0);
    /* by hand */
    CHECK_OK(hf_sequence_take_tx(k->scope, q, 2, &first, &actions[0]));
    CHECK_INT(value_of(k, c) + 1, first);
    CHECK_OK(hf_transact_write_items(k->scope, k->db, &request, NULL));
    CHECK_INT(first + 1, value_of(k, c));
    CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(k->scope, k->db, &request, NULL));
    /* (4): not even when the counter has come back to what it was */
    CHECK_OK(hf_counter_set(k->scope, c, hf_counter_named(HF_STR("n")), first - 1, NULL));
    CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(k->scope, k->db, &request, NULL));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
}

/* ---- a database of old ---------------------------------------------------------------------- */

/* One that knows no tokens, and does not return items with refusals. */
struct old {
    struct hf_db db;
    struct hf_db *inner;
    const char *armed;          /* what arm() sets the next one to */
    const char *before;         /* before the next call of this operation */
    struct hf_counters *others; /* so many others come by, here */
    int others_len;
};

static void come_by(struct old *old, struct hf_scope *s)
{
    old->before = NULL;
    for (int i = 0; i < old->others_len; i++)
        CHECK_OK(hf_counter_add_once(s, old->others, hf_counter_named(HF_STR("n")),
                                     hf_scope_format(s, "other-%d", i), 1, NULL, NULL, NULL));
}

static enum hf_status old_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                               const void *request, void *response)
{
    struct old *old = (struct old *)(void *)db;

    if (old->before && hf_str_equal(hf_op_name(op), hf_str_from(old->before)))
        come_by(old, s);
    if (op == HF_OP_UPDATE_ITEM) {
        struct hf_update_item update = *(const struct hf_update_item *)request;

        update.returns_on_failure = 0;
        return hf_db_call(s, old->inner, op, &update, response);
    }
    if (op == HF_OP_TRANSACT_WRITE_ITEMS) {
        struct hf_transact_write_items all = *(const struct hf_transact_write_items *)request;
        struct hf_transact_write *actions = hf_scope_alloc(s, all.actions_len * sizeof(*actions));

        memcpy(actions, all.actions, all.actions_len * sizeof(*actions));
        for (size_t i = 0; i < all.actions_len; i++)
            if (actions[i].update) {
                struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));

                *update = *actions[i].update;
                update->returns_on_failure = 0;
                actions[i].update = update;
            }
        all.actions = actions;
        all.token = hf_str_of(NULL, 0);
        return hf_db_call(s, old->inner, op, &all, response);
    }
    return hf_db_call(s, old->inner, op, request, response);
}

static void arm(struct old *old)
{
    old->before = old->armed;
}

static const struct db_calls old_calls = {.call = old_call};

static struct hf_counters *open_old(struct kit *k, struct old *old, uint32_t requests)
{
    struct hf_counters *c;

    *old = (struct old){.db = {.calls = &old_calls}, .inner = k->db};
    CHECK_OK(
        hf_counters_open(k->scope, &old->db,
                         HF_OPTIONS(hf_counters_options, .table = k->table, .requests = requests),
                         &c));
    return c;
}

/* (2): the mark in the counter tells what no token does. */
KIT_TEST_TX(sequence, numbers_without_tokens)
{
    struct old old;
    struct hf_counters *c = open_old(k, &old, 0);
    struct hf_sequence *q = open_sequence(k, c, 1, 0);
    struct invoices in = {.k = k, .count = 1};
    int64_t first;

    for (int i = 1; i <= 10; i++) {
        kit_fault(k, i % 2 ? HF_FAULT_LOST_ANSWER : HF_FAULT_LOST_REQUEST, "TransactWriteItems", 1);
        CHECK_OK(hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
        CHECK_INT(i, first);
        CHECK(has_invoice(k, i));
    }
    CHECK_INT(10, value_of(k, c));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
}

/* Not done, but who knows; and meanwhile another was faster. */
KIT_TEST_TX(sequence, slower_without_tokens)
{
    struct old old;
    struct hf_counters *c = open_old(k, &old, 0), *others = open_counters(k);
    struct hf_sequence *q = open_sequence(k, c, 1, 0);
    struct invoices in = {.k = k, .count = 1, .before_send = &old};
    int64_t first;

    old.armed = "TransactWriteItems";
    old.others = others;
    old.others_len = 1; /* under the same request id each time, so that it comes by once */
    kit_fault(k, HF_FAULT_LOST_REQUEST, "TransactWriteItems", 1);
    CHECK_OK(hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
    CHECK_INT(2, first);
    CHECK_INT(2, in.calls);
    CHECK(!has_invoice(k, 1));
    CHECK(has_invoice(k, 2));
    CHECK_INT(2, value_of(k, c));
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
    hf_counters_close(others);
}

/* ... unless so many others came in between that it is gone. */
KIT_TEST_TX(sequence, a_forgotten_transaction_is_doubtful)
{
    struct old old;
    struct hf_counters *c = open_old(k, &old, 1), *others;
    struct hf_sequence *q = open_sequence(k, c, 1, 0);
    struct invoices in = {.k = k, .count = 1};
    struct hf_fault fault = {.kind = HF_FAULT_LOST_ANSWER,
                             .operation = HF_STR("TransactWriteItems"),
                             .count = 1};
    int64_t first;

    CHECK_OK(hf_counters_open(k->scope, k->db,
                              HF_OPTIONS(hf_counters_options, .table = k->table, .requests = 1),
                              &others));
    CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
    old.armed = "GetItem"; /* which looks whether it was done */
    old.others = others;
    old.others_len = 5;
    in.before_send = &old;
    CHECK_STATUS(HF_EXPIRED, hf_sequence_commit(k->scope, q, 1, write_invoices, &in, &first));
    CHECK_ERROR(HF_EXPIRED, "sequence n has too many writers to know whether this was done",
                k->scope);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK_INT(0, first);
    CHECK_OK(hf_sequence_close(k->scope, q));
    hf_counters_close(c);
    hf_counters_close(others);
}
