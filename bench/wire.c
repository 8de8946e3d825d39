/*
 * bench/wire.c: what it costs to read a request from JSON and to write an answer as JSON.
 *
 *     bench_wire [ROUNDS]
 *
 * The request is a PutItem of some 600 bytes with eleven attributes, the answer a Query of a
 * thousand items, 1.2 MB. Each figure is the best of ROUNDS (default 7), for other programs can
 * only make it worse. For instructions, which no other program changes:
 *
 *     valgrind --tool=callgrind --toggle-collect=hf__wire_read build/release/bench/bench_wire 1
 */
#include "lib.h"

#include "ops/fields.h"
#include "wire/wire.h"

enum {
    ROUNDS = 200,
    READS = 1000, /* in a round, which is short: some escape all other programs */
    WRITES = 2,
    ITEMS = 1000
};

static const char plain_body[] =
    "{\"TableName\":\"orders\",\"Item\":{"
    "\"pk\":{\"S\":\"customer#000000004711\"},\"sk\":{\"S\":\"order#2026-11-02T10:11:12.123Z\"},"
    "\"status\":{\"S\":\"PENDING\"},\"total\":{\"N\":\"129.95\"},\"count\":{\"N\":\"3\"},"
    "\"paid\":{\"BOOL\":false},\"email\":{\"S\":\"someone.with.a.name@example.com\"},"
    "\"tags\":{\"SS\":[\"blue\",\"green\",\"yellow\"]},"
    "\"created\":{\"N\":\"1700000000123\"},\"version\":{\"N\":\"17\"},"
    "\"note\":{\"S\":\"Please leave it at the door; the bell does not work. "
    "If there is nobody, the neighbours on the second floor take parcels until eight in the "
    "evening, and on Saturdays until noon.\"}},"
    "\"ConditionExpression\":\"attribute_not_exists(pk)\",\"ReturnValues\":\"NONE\"}";

static const char nested_body[] =
    "{\"TableName\":\"orders\",\"Item\":{"
    "\"pk\":{\"S\":\"customer#000000004711\"},\"sk\":{\"S\":\"order#2026-11-02T10:11:12.123Z\"},"
    "\"status\":{\"S\":\"PENDING\"},\"total\":{\"N\":\"129.95\"},\"count\":{\"N\":\"3\"},"
    "\"paid\":{\"BOOL\":false},\"email\":{\"S\":\"someone.with.a.name@example.com\"},"
    "\"tags\":{\"SS\":[\"blue\",\"green\",\"yellow\"]},"
    "\"address\":{\"M\":{\"street\":{\"S\":\"12 Long Street\"},\"city\":{\"S\":\"Z\\u00fcrich\"},"
    "\"zip\":{\"N\":\"8001\"}}},"
    "\"lines\":{\"L\":[{\"M\":{\"sku\":{\"S\":\"A-1\"},\"n\":{\"N\":\"1\"}}},"
    "{\"M\":{\"sku\":{\"S\":\"B-22\"},\"n\":{\"N\":\"2\"}}}]},"
    "\"note\":{\"S\":\"Please leave it at the door; the bell does not work.\"}},"
    "\"ConditionExpression\":\"attribute_not_exists(pk)\",\"ReturnValues\":\"NONE\"}";

static double read_ns(struct hf_scope *s, const struct fields *fields, struct hf_str body)
{
    int64_t begin = bench_now_ns();

    for (size_t i = 0; i < READS; i++) {
        struct hf_put_item request = {.table = {NULL, 0}};

        hf_scope_reset(s);
        if (hf__wire_read(s, fields, body, &request) != HF_OK)
            bench_die("read: %s", hf_scope_error_text(s));
    }
    return (double)(bench_now_ns() - begin) / READS;
}

static struct hf_item order(struct hf_scope *s, int64_t number)
{
    struct hf_str tags[] = {HF_STR("blue"), HF_STR("green"), HF_STR("yellow")};
    struct hf_str text = HF_STR("The quick brown fox jumps over the lazy dog and then some more.");

    return HF_ITEM(s, HF_S("pk", HF_STR("customer#000000004711")), HF_N("sk", number),
                   HF_S("status", HF_STR("PENDING")), HF_N("total", 12995), HF_BOOL("paid", true),
                   HF_S("email", HF_STR("someone.with.a.name@example.com")),
                   HF_SS("tags", tags, ARRAY_LEN(tags)), HF_S("a", text), HF_S("b", text),
                   HF_S("c", text), HF_S("d", text), HF_S("e", text), HF_S("f", text),
                   HF_S("g", text), HF_S("h", text), HF_S("i", text), HF_S("note", text),
                   HF_N("created", 1700000000 + number), HF_N("count", 3));
}

static double write_ns(struct hf__buf *buf, const struct fields *fields,
                       const struct hf_query_result *result)
{
    int64_t begin = bench_now_ns();

    for (size_t i = 0; i < WRITES; i++) {
        buf->len = 0;
        hf__wire_write(buf, fields, result);
        if (buf->failed)
            bench_die("write: out of memory");
    }
    return (double)(bench_now_ns() - begin) / WRITES;
}

static void keep_best(double *best, double ns)
{
    if (ns < *best)
        *best = ns;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    const struct fields *put = hf__op(HF_OP_PUT_ITEM)->request;
    const struct fields *query = hf__op(HF_OP_QUERY)->response;
    const struct hf_str bodies[] = {hf_str_of(plain_body, sizeof(plain_body) - 1),
                                    hf_str_of(nested_body, sizeof(nested_body) - 1)};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_scope *kept = hf_scope_new(NULL);
    struct hf_query_result result = {.items_len = ITEMS, .count = ITEMS, .scanned_count = ITEMS};
    struct hf__buf buf = {.scope = kept};
    double read[] = {1e12, 1e12};
    double write = 1e12;
    struct hf_item *items;

    if (!s || !kept || !(items = hf__scope_array(kept, ITEMS, sizeof(*items))))
        bench_die("out of memory");
    for (int64_t i = 0; i < ITEMS; i++)
        items[i] = order(kept, i);
    result.items = items;
    for (long i = 0; i < rounds; i++) {
        keep_best(&read[0], read_ns(s, put, bodies[0]));
        keep_best(&read[1], read_ns(s, put, bodies[1]));
        keep_best(&write, write_ns(&buf, query, &result));
    }
    printf("read a PutItem of %zu bytes, plain: %.0f ns\n", bodies[0].len, read[0]);
    printf("read a PutItem of %zu bytes, nested: %.0f ns\n", bodies[1].len, read[1]);
    printf("write a Query answer of %zu bytes: %.0f us, %.2f GB/s\n", buf.len, write / 1e3,
           (double)buf.len / write);
    hf_scope_free(kept);
    hf_scope_free(s);
    return 0;
}
