/*
 * test/install/consumer/engine.cc: somebody else's program in C++11: a database in memory, an item
 * of all ten types through the macros, and back. Prints the version it was linked with.
 */
#include <holdfast/engine.h>

#include <cstdio>

static int complain(struct hf_scope *s)
{
    std::fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

int main()
{
    struct hf_scope *s = hf_scope_new(nullptr);
    struct hf_engine_options options = hf_engine_options();
    struct hf_db *db;

    options.size = sizeof(options);
    options.no_upkeep_thread = true;
    if (hf_open(s, HF_STR("memory:"), &options, &db) != HF_OK)
        return complain(s);

    const struct hf_attribute_definition attributes[] = {{HF_STR("id"), HF_SCALAR_S}};
    const struct hf_key_element key[] = {{HF_STR("id"), HF_KEY_HASH}};
    struct hf_create_table create = {};
    create.table = HF_STR("things");
    create.attributes = attributes;
    create.attributes_len = 1;
    create.key_schema = key;
    create.key_schema_len = 1;
    create.billing = HF_BILLING_PAY_PER_REQUEST;
    if (hf_create_table(s, db, &create, nullptr) != HF_OK)
        return complain(s);

    const struct hf_str strings[] = {HF_STR("b"), HF_STR("a")};
    const struct hf_str numbers[] = {HF_STR("2"), HF_STR("1.50")};
    const struct hf_str name = hf_str_from("run");
    struct hf_put_item put = {};
    put.table = HF_STR("things");
    put.item = HF_ITEM(s, HF_S("id", HF_STR("one")), HF_N("n", -7), HF_NUM("x", HF_STR("1e3")),
                       HF_F("f", 9.99), hf_attr_of_str(name, HF_STR("late")),
                       HF_B("b", hf_bytes_of("\0\1", 2)), HF_BOOL("t", true), HF_NULL("z"),
                       HF_M("m", HF_ITEM(s, HF_N("in", 1))),
                       HF_L("l", HF_LIST(s, HF_S("", HF_STR("e")), HF_N("", 4))),
                       HF_SS("ss", strings, 2), HF_NS("ns", numbers, 2), HF_BS("bs", strings, 2));
    if (hf_put_item(s, db, &put, nullptr) != HF_OK)
        return complain(s);

    struct hf_get_item get = {};
    struct hf_get_item_result got;
    get.table = HF_STR("things");
    get.key = HF_ITEM(s, HF_S("id", HF_STR("one")));
    if (hf_get_item(s, db, &get, &got) != HF_OK)
        return complain(s);
    const struct hf_str expected = HF_STR(
        "{\"b\":{\"B\":\"AAE=\"},\"bs\":{\"BS\":[\"YQ==\",\"Yg==\"]},\"f\":{\"N\":\"9.99\"},\"id\":{\"S\":\"one\"},"
        "\"l\":{\"L\":[{\"S\":\"e\"},{\"N\":\"4\"}]},\"m\":{\"M\":{\"in\":{\"N\":\"1\"}}},"
        "\"n\":{\"N\":\"-7\"},\"ns\":{\"NS\":[\"1.5\",\"2\"]},\"run\":{\"S\":\"late\"},\"ss\":{\"SS\":[\"a\",\"b\"]},"
        "\"t\":{\"BOOL\":true},\"x\":{\"N\":\"1000\"},\"z\":{\"NULL\":true}}");
    if (!hf_str_equal(expected, hf_item_to_json(s, got.item))) {
        std::fprintf(stderr, "%s\n", hf_item_to_json(s, got.item).ptr);
        return 1;
    }
    hf_db_close(db);
    hf_scope_free(s);
    std::printf("holdfast %s\n", hf_version());
    return 0;
}
