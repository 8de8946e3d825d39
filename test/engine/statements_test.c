/*
 * engine/statements_test.c: what conformance files cannot say of statements: typed calls, tokens of
 * pages that were tampered with or come from elsewhere, two calls at once.
 */
#include <pthread.h>

#include "base/base64.h"
#include "world.h"

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'sk','AttributeType':'N'}],'KeySchema':[{'AttributeName':'pk','KeyType':"    \
    "'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],'BillingMode':'PAY_PER_REQUEST'}"

static enum hf_status run(struct world *w, const char *text, const struct hf_value *parameters,
                          size_t len, struct hf_execute_statement_result *result)
{
    const struct hf_execute_statement request = {.statement = hf_str_from(text),
                                                 .parameters = parameters,
                                                 .parameters_len = len};

    return hf_execute_statement(w->scope, w->db, &request, result);
}

static struct world open_with_items(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);

    world_ok(&w, "CreateTable", TABLE);
    for (int i = 0; i < 5; i++) {
        struct hf_value parameters[] = {
            hf_value_make(w.scope, (struct hf_attr)HF_S("", HF_STR("a"))),
            hf_value_make(w.scope, (struct hf_attr)HF_N("", i)),
        };

        CHECK_OK(run(&w, "INSERT INTO tab VALUE {'pk': ?, 'sk': ?}", parameters, 2, NULL));
    }
    return w;
}

TEST(statements, typed_calls)
{
    struct world w = open_with_items(t, "memory:");
    struct hf_value parameter = hf_value_make(w.scope, (struct hf_attr)HF_N("", 3));
    struct hf_value absent = {NULL, 0};
    struct hf_execute_statement_result result;
    int64_t sk;

    CHECK_OK(run(&w, "SELECT sk FROM tab WHERE pk = 'a' AND sk = ?", &parameter, 1, &result));
    CHECK_INT(1, result.items_len);
    CHECK(hf_value_i64(hf_item_get(result.items[0], HF_STR("sk")), &sk));
    CHECK_INT(3, sk);
    CHECK_STATUS(HF_DUPLICATE,
                 run(&w, "INSERT INTO tab VALUE {'pk': 'a', 'sk': ?}", &parameter, 1, &result));
    CHECK_INT(0, result.items_len);
    CHECK_STATUS(HF_INVALID, run(&w, "SELECT * FROM tab WHERE sk = ?", &absent, 1, NULL));
    CHECK_STATUS(HF_INVALID, hf_execute_statement(w.scope, w.db, NULL, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_batch_execute_statement(w.scope, w.db, &(struct hf_batch_execute_statement){0},
                                            NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_execute_transaction(w.scope, w.db, &(struct hf_execute_transaction){0}, NULL));
    world_close(&w);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static const char query[] = "SELECT sk FROM tab WHERE pk = 'a'";

static struct hf_str first_page(struct world *w)
{
    const struct hf_execute_statement request = {.statement = hf_str_from(query), .limit = 2};
    struct hf_execute_statement_result result;

    CHECK_OK(hf_execute_statement(w->scope, w->db, &request, &result));
    CHECK_INT(2, result.items_len);
    CHECK(result.next_token.len > 0);
    return result.next_token;
}

static enum hf_status go_on(struct world *w, struct hf_str token, size_t *len)
{
    const struct hf_execute_statement request = {.statement = hf_str_from(query),
                                                 .next_token = token};
    struct hf_execute_statement_result result;
    enum hf_status status = hf_execute_statement(w->scope, w->db, &request, &result);

    *len = result.items_len;
    return status;
}

TEST(statements, a_token_outlives_a_restart)
{
    struct world w = open_with_items(t, "disk:");
    char kept[1024];
    struct hf_str token = first_page(&w);
    size_t len;

    CHECK(token.len < sizeof(kept));
    memcpy(kept, token.ptr, token.len);
    token.ptr = kept;
    world_reopen(&w);
    CHECK_OK(go_on(&w, token, &len));
    CHECK_INT(3, len);
    world_close(&w);
}

TEST(statements, no_bit_of_a_token_can_be_changed)
{
    struct world w = open_with_items(t, "memory:");
    struct hf_str token = first_page(&w);
    uint8_t bytes[1024];
    char text[2048];
    size_t len;
    size_t items;

    CHECK_INT(BASE64_OK, hf__base64_decode(token, bytes, &len));
    CHECK(len < sizeof(bytes));
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_STATUS(HF_INVALID,
                     go_on(&w, hf_str_of(text, hf__base64_encode(hf_bytes_of(bytes, len), text)),
                           &items));
        CHECK_STR("Invalid NextToken", hf_scope_error(w.scope)->message);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++)
        CHECK_STATUS(HF_INVALID,
                     go_on(&w, hf_str_of(text, hf__base64_encode(hf_bytes_of(bytes, cut), text)),
                           &items));
    CHECK_OK(go_on(&w, token, &items));
    CHECK_INT(3, items);
    world_close(&w);
}

TEST(statements, a_token_of_another_database_is_none)
{
    struct world w = open_with_items(t, "memory:");
    struct hf_str token = first_page(&w);
    struct world other = open_with_items(t, "memory:");
    size_t len;

    CHECK_STATUS(HF_INVALID, go_on(&other, token, &len));
    CHECK_STR("Invalid NextToken", hf_scope_error(other.scope)->message);
    world_close(&other);
    world_close(&w);
}

/* Whoever asks for a next page wants to read. No token is one of a write. */
TEST(statements, a_write_has_no_next_page)
{
    static const char *const writes[] = {
        "DELETE FROM tab WHERE pk = 'a' AND sk = 1",
        "UPDATE tab SET v = 7 WHERE pk = 'a' AND sk = 1",
        "INSERT INTO tab VALUE {'pk': 'new', 'sk': 1}",
    };
    struct world w = open_with_items(t, "memory:");
    struct hf_str tokens[] = {first_page(&w), HF_STR("AAAA"), HF_STR("x")};
    struct hf_execute_statement_result result;
    struct hf_execute_statement all = {.statement = HF_STR("SELECT * FROM tab")};
    size_t before;

    CHECK_OK(hf_execute_statement(w.scope, w.db, &all, &result));
    before = result.items_len;
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        for (size_t j = 0; j < ARRAY_LEN(tokens); j++) {
            const struct hf_execute_statement request = {.statement = hf_str_from(writes[i]),
                                                         .next_token = tokens[j]};

            CHECK_STATUS(HF_INVALID, hf_execute_statement(w.scope, w.db, &request, &result));
            CHECK_STR("NextToken does not match request", hf_scope_error(w.scope)->message);
        }
    }
    CHECK_OK(hf_execute_statement(w.scope, w.db, &all, &result));
    CHECK_INT(before, result.items_len);
    for (size_t i = 0; i < result.items_len; i++)
        CHECK(!hf_item_get(result.items[i], HF_STR("v")).ptr);
    world_close(&w);
}

/* A page that ended at an item goes on behind it, though the item is gone. */
TEST(statements, a_page_goes_on_behind_an_item_that_was_deleted)
{
    struct world w = open_with_items(t, "memory:");
    struct hf_str token = first_page(&w);
    size_t len;

    CHECK_OK(run(&w, "DELETE FROM tab WHERE pk = 'a' AND sk = 1", NULL, 0, NULL));
    CHECK_OK(go_on(&w, token, &len));
    CHECK_INT(3, len);
    world_close(&w);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

struct counting {
    struct hf_db *db;
    int wins;
};

/* INSERT lets one of many win; UPDATE adds up what all of them add. */
static void *count(void *user)
{
    struct counting *c = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < ROUNDS && s; i++) {
        struct hf_value number = hf_value_make(s, (struct hf_attr)HF_N("", 1000 + i));
        const struct hf_execute_statement insert = {
            .statement = HF_STR("INSERT INTO tab VALUE {'pk': 'race', 'sk': ?}"),
            .parameters = &number,
            .parameters_len = 1};
        const struct hf_transact_statement add[] = {
            {.statement = HF_STR("UPDATE tab SET n = n + 1 WHERE pk = 'sum' AND sk = 0")},
            {.statement = HF_STR("EXISTS(SELECT * FROM tab WHERE pk = 'a' AND sk = 0 AND n IS "
                                 "MISSING)")},
        };
        const struct hf_execute_transaction transaction = {.statements = add, .statements_len = 2};

        c->wins += hf_execute_statement(s, c->db, &insert, NULL) == HF_OK;
        if (hf_execute_transaction(s, c->db, &transaction, NULL) != HF_OK)
            c->wins = -1000000;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(statements, one_of_many_inserts_and_all_add)
{
    struct world w = open_with_items(t, "memory:");
    struct counting counting[THREADS];
    pthread_t threads[THREADS];
    struct hf_execute_statement_result result;
    int64_t n = 0;
    int wins = 0;

    CHECK_OK(run(&w, "INSERT INTO tab VALUE {'pk': 'sum', 'sk': 0, 'n': 0}", NULL, 0, NULL));
    for (int i = 0; i < THREADS; i++) {
        counting[i] = (struct counting){.db = w.db};
        CHECK_INT(0, pthread_create(&threads[i], NULL, count, &counting[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(0, pthread_join(threads[i], NULL));
        wins += counting[i].wins;
    }
    CHECK_INT(ROUNDS, wins);
    CHECK_OK(run(&w, "SELECT n FROM tab WHERE pk = 'sum' AND sk = 0", NULL, 0, &result));
    CHECK(hf_value_i64(hf_item_get(result.items[0], HF_STR("n")), &n));
    CHECK_INT(THREADS * ROUNDS, n);
    world_close(&w);
}
