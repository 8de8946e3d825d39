/*
 * wire/round_trip_test.c: for every operation, structs filled at random by their tables are written
 * and read back, and must be equal; so a kind that one walker forgets cannot go unnoticed.
 */
#include "wire/private.h"

#include "test.h"

struct filler {
    struct test *t;
    struct hf_scope *s;
    bool odd_texts; /* escapes and non-ASCII too */
};

static size_t below(struct filler *f, size_t bound)
{
    return (size_t)test_random_below(f->t, bound);
}

/* ---- filling -------------------------------------------------------------------------------- */

static struct hf_str random_text(struct filler *f)
{
    static const char *const pieces[] = {"a",    "B7",     "xyz", " ",        "\"",
                                         "\\",   "\n",     "/",   "\xC3\xA9", "\xE2\x82\xAC",
                                         "\x01", "\x7F{}", ",",   ":",        "\xF0\x9F\x98\x80"};
    struct hf__buf buf = {.scope = f->s};
    size_t count = below(f, 12) == 0 ? below(f, 60) : below(f, 6);

    hf__buf_put(&buf, "k", below(f, 2));
    for (size_t i = 0; i < count; i++)
        hf__buf_put_str(&buf, hf_str_from(pieces[below(f, f->odd_texts ? 15 : 3)]));
    if (f->odd_texts && below(f, 10) == 0)
        hf__buf_put_byte(&buf, '\0');
    CHECK(hf__buf_reserve(&buf, 1));
    return hf_str_of((const char *)buf.ptr, buf.len);
}

static struct hf_str random_number(struct filler *f)
{
    int exponent = (int)below(f, 160) - 80;

    if (below(f, 2))
        return hf_scope_format(f->s, "%d", (int)below(f, 2000) - 1000);
    return hf_scope_format(f->s, "%s%llu.%llue%d", below(f, 2) ? "-" : "",
                           (unsigned long long)test_random(f->t) % 1000000000,
                           (unsigned long long)test_random(f->t) % 1000000000, exponent);
}

static struct hf_value random_value(struct filler *f, int depth);

static struct hf_item random_item(struct filler *f, int depth)
{
    struct hf_item item = hf_item_make(f->s, NULL, 0);
    size_t count = below(f, 5);

    for (size_t i = 0; i < count; i++) {
        struct hf_attr attr = {.name = random_text(f), .value = random_value(f, depth + 1)};

        if (attr.name.len > 0)
            item = hf_item_with(f->s, item, &attr, 1);
    }
    return item;
}

static struct hf_value random_list(struct filler *f, int depth)
{
    struct hf_attr attrs[4];
    size_t count = below(f, 5);

    for (size_t i = 0; i < count; i++)
        attrs[i] = (struct hf_attr){.value = random_value(f, depth + 1)};
    return hf_list_make(f->s, attrs, count);
}

static struct hf_value random_set(struct filler *f, enum hf_type type)
{
    struct hf_str list[4];
    size_t count = 1 + below(f, 4);

    /* The builder drops what comes twice. */
    for (size_t i = 0; i < count; i++)
        list[i] = type == HF_TYPE_NS ? random_number(f) : random_text(f);
    return hf_value_make(f->s, (struct hf_attr){.type = type, .list = list, .list_len = count});
}

static struct hf_value random_value(struct filler *f, int depth)
{
    enum hf_type type = (enum hf_type)(1 + below(f, 10));
    struct hf_attr attr = {.type = type, .number = (int64_t)below(f, 2)};

    if (depth > 4 && (type == HF_TYPE_L || type == HF_TYPE_M))
        attr.type = type = HF_TYPE_BOOL;
    switch (type) {
    case HF_TYPE_M:
        return hf_item_value(random_item(f, depth));
    case HF_TYPE_L:
        return random_list(f, depth);
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return random_set(f, type);
    case HF_TYPE_S:
    case HF_TYPE_B:
        attr.text = random_text(f);
        break;
    case HF_TYPE_N:
        attr.text = random_number(f);
        break;
    default:
        break;
    }
    return hf_value_make(f->s, attr);
}

static struct hf_item random_names(struct filler *f)
{
    struct hf_item item = hf_item_make(f->s, NULL, 0);
    size_t count = below(f, 4);

    for (size_t i = 0; i < count; i++) {
        struct hf_attr attr = {.name = random_text(f), .type = HF_TYPE_S, .text = random_text(f)};

        item = hf_item_with(f->s, item, &attr, 1);
    }
    return item;
}

static double random_double(struct filler *f)
{
    return below(f, 3) ? (double)below(f, 1000) / 2 : (double)below(f, 1000000) / 1000;
}

static int64_t random_int(struct filler *f, const struct field *field)
{
    if (below(f, 4) == 0)
        return field->rules & FIELD_ALWAYS ? 0 : HF_ZERO;
    return (int64_t)(test_random(f->t) >> (1 + below(f, 62))) * (below(f, 2) ? 1 : -1);
}

static void fill_struct(struct filler *f, const struct fields *fields, uint8_t *out);
static void fill_field(struct filler *f, const struct field *field, uint8_t *out);

static size_t element_size(const struct field *field)
{
    switch (field->kind) {
    case FIELD_STRS:
        return sizeof(struct hf_str);
    case FIELD_DOUBLES:
        return sizeof(double);
    case FIELD_ITEMS:
    case FIELD_VALUES:
        return sizeof(struct hf_item);
    default:
        return field->sub->size;
    }
}

static void fill_entry(struct filler *f, const struct field *field, size_t number, uint8_t *entry)
{
    const struct fields *sub = field->sub;
    struct hf_str text = random_text(f);
    struct hf_str key = hf_scope_format(f->s, "%zu%.*s", number, HF_FMT(text));

    if (sub->len == 1 && !sub->list[0].name)
        fill_field(f, &sub->list[0], entry);
    else
        fill_struct(f, sub, entry);
    memcpy(entry, &key, sizeof(key));
}

static void fill_list(struct filler *f, const struct field *field, uint8_t *out)
{
    size_t size = element_size(field);
    size_t count = below(f, 8) ? below(f, 4) : below(f, 12);
    uint8_t *list = hf__scope_array(f->s, count ? count : 1, size);

    CHECK(list);
    for (size_t i = 0; i < count; i++) {
        uint8_t *element = list + i * size;

        switch (field->kind) {
        case FIELD_STRS:
            *(struct hf_str *)(void *)element = random_text(f);
            break;
        case FIELD_DOUBLES:
            *(double *)(void *)element = random_double(f);
            break;
        case FIELD_ITEMS:
            *(struct hf_item *)(void *)element = random_item(f, 1);
            break;
        case FIELD_VALUES:
            *(struct hf_value *)(void *)element = random_value(f, 1);
            break;
        case FIELD_MAP:
            fill_entry(f, field, i, element);
            break;
        default:
            fill_struct(f, field->sub, element);
            break;
        }
    }
    memcpy(out + field->at, &list, sizeof(list));
    memcpy(out + field->count_at, &count, sizeof(count));
}

static void fill_field(struct filler *f, const struct field *field, uint8_t *out)
{
    void *at = out + field->at;
    uint8_t *made;

    switch (field->kind) {
    case FIELD_STR:
        *(struct hf_str *)at = random_text(f);
        break;
    case FIELD_INT:
        *(int64_t *)at = random_int(f, field);
        break;
    case FIELD_DOUBLE:
        *(double *)at = random_double(f);
        break;
    case FIELD_FLAG:
        *(enum hf_flag *)at = (enum hf_flag)(1 + below(f, 2));
        break;
    case FIELD_ENUM:
        *(int *)at = (int)(1 + below(f, field->members->len));
        break;
    case FIELD_TIME:
        *(int64_t *)at =
            (int64_t)(test_random(f->t) >> (1 + below(f, 62))) * (below(f, 9) ? 1 : -1);
        break;
    case FIELD_ITEM:
        *(struct hf_item *)at = random_item(f, 1);
        break;
    case FIELD_NAMES:
        *(struct hf_item *)at = random_names(f);
        break;
    case FIELD_VALUE:
        *(struct hf_value *)at = random_value(f, 1);
        break;
    case FIELD_STRUCT:
        made = hf__scope_array(f->s, 1, field->sub->size);
        CHECK(made);
        fill_struct(f, field->sub, made);
        memcpy(at, &made, sizeof(made));
        break;
    default:
        fill_list(f, field, out);
        break;
    }
}

static void fill_struct(struct filler *f, const struct fields *fields, uint8_t *out)
{
    for (size_t i = 0; i < fields->len; i++)
        if (fields->list[i].rules & FIELD_ALWAYS || below(f, 3))
            fill_field(f, &fields->list[i], out);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool same_struct(const struct fields *fields, const uint8_t *a, const uint8_t *b);
static bool same_field(const struct field *field, const uint8_t *a, const uint8_t *b);

static bool same_str(struct hf_str a, struct hf_str b)
{
    return !a.ptr == !b.ptr && hf_str_equal(a, b);
}

static bool same_item(struct hf_item a, struct hf_item b)
{
    return !a.ptr == !b.ptr && hf_item_equal(a, b);
}

static bool same_element(const struct field *field, const uint8_t *a, const uint8_t *b)
{
    const struct fields *sub = field->sub;

    switch (field->kind) {
    case FIELD_STRS:
        return same_str(*(const struct hf_str *)(const void *)a,
                        *(const struct hf_str *)(const void *)b);
    case FIELD_DOUBLES:
        return memcmp(a, b, sizeof(double)) == 0;
    case FIELD_ITEMS:
    case FIELD_VALUES:
        return same_item(*(const struct hf_item *)(const void *)a,
                         *(const struct hf_item *)(const void *)b);
    case FIELD_MAP:
        if (!same_str(*(const struct hf_str *)(const void *)a,
                      *(const struct hf_str *)(const void *)b))
            return false;
        if (sub->len == 1 && !sub->list[0].name)
            return same_field(&sub->list[0], a, b);
        return same_struct(sub, a, b);
    default:
        return same_struct(sub, a, b);
    }
}

static bool same_list(const struct field *field, const uint8_t *a, const uint8_t *b)
{
    size_t count, other_count, size = element_size(field);
    const uint8_t *list, *other;

    memcpy(&list, a + field->at, sizeof(list));
    memcpy(&other, b + field->at, sizeof(other));
    memcpy(&count, a + field->count_at, sizeof(count));
    memcpy(&other_count, b + field->count_at, sizeof(other_count));
    if (!list != !other || count != other_count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!same_element(field, list + i * size, other + i * size))
            return false;
    return true;
}

static bool same_field(const struct field *field, const uint8_t *a, const uint8_t *b)
{
    const void *x = a + field->at, *y = b + field->at;

    switch (field->kind) {
    case FIELD_STR:
        return same_str(*(const struct hf_str *)x, *(const struct hf_str *)y);
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_DOUBLE:
        return memcmp(x, y, sizeof(int64_t)) == 0;
    case FIELD_FLAG:
    case FIELD_ENUM:
        return memcmp(x, y, sizeof(int)) == 0;
    case FIELD_ITEM:
    case FIELD_NAMES:
    case FIELD_VALUE:
        return same_item(*(const struct hf_item *)x, *(const struct hf_item *)y);
    case FIELD_STRUCT: {
        const uint8_t *p, *q;

        memcpy(&p, x, sizeof(p));
        memcpy(&q, y, sizeof(q));
        return p && q ? same_struct(field->sub, p, q) : p == q;
    }
    default:
        return same_list(field, a, b);
    }
}

static bool same_struct(const struct fields *fields, const uint8_t *a, const uint8_t *b)
{
    for (size_t i = 0; i < fields->len; i++)
        if (!same_field(&fields->list[i], a, b))
            return false;
    return true;
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void check_round_trip(struct filler *f, const struct fields *fields)
{
    uint8_t *in = hf__scope_array(f->s, 1, fields->size);
    uint8_t *out = hf__scope_array(f->s, 1, fields->size);
    struct hf__buf buf = {.scope = f->s};
    struct hf__buf again = {.scope = f->s};
    struct hf_str json;

    CHECK(in && out);
    fill_struct(f, fields, in);
    hf__wire_write(&buf, fields, in);
    CHECK(!buf.failed);
    json = hf_str_of((const char *)buf.ptr, buf.len);
    if (!hf__wire_json_valid(json))
        fail_msg("%s is not JSON: %.*s", fields->name, HF_FMT(json));
    CHECK_OK(hf__wire_read(f->s, fields, json, out));
    if (!same_struct(fields, in, out))
        fail_msg("%s changed: %.*s", fields->name, HF_FMT(json));
    hf__wire_write(&again, fields, out);
    CHECK(hf_str_equal(json, hf_str_of((const char *)again.ptr, again.len)));
}

TEST(round_trip, every_request_and_response)
{
    struct filler f = {.t = t, .s = hf_scope_new(test_env(t))};

    for (int round = 0; round < 100; round++) {
        f.odd_texts = round % 2;
        for (int op = 0; op < HF_OP_COUNT; op++) {
            check_round_trip(&f, hf__op((enum hf_op)op)->request);
            check_round_trip(&f, hf__op((enum hf_op)op)->response);
            hf_scope_reset(f.s);
        }
        check_round_trip(&f, &hf__table_description_fields);
    }
    hf_scope_free(f.s);
}

/* A struct in which nothing is there: {} for requests, and what is always there for responses. */
TEST(round_trip, empty_structs)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    uint8_t zero[1024] = {0};
    static const struct {
        enum hf_op op;
        const char *response;
    } cases[] = {
        {HF_OP_PUT_ITEM, "{}"},
        {HF_OP_GET_ITEM, "{}"},
        {HF_OP_TAG_RESOURCE, "{}"},
        {HF_OP_QUERY, "{\"Count\":0,\"ScannedCount\":0}"},
        {HF_OP_LIST_TABLES, "{\"TableNames\":[]}"},
        {HF_OP_BATCH_GET_ITEM, "{\"Responses\":{},\"UnprocessedKeys\":{}}"},
        {HF_OP_BATCH_WRITE_ITEM, "{\"UnprocessedItems\":{}}"},
        {HF_OP_TRANSACT_GET_ITEMS, "{\"Responses\":[]}"},
    };

    for (int op = 0; op < HF_OP_COUNT; op++) {
        struct hf__buf buf = {.scope = s};

        CHECK(hf__op((enum hf_op)op)->request->size <= sizeof(zero));
        hf__wire_write(&buf, hf__op((enum hf_op)op)->request, zero);
        CHECK_STR("{}", hf_str_of((const char *)buf.ptr, buf.len));
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf__buf buf = {.scope = s};

        CHECK(hf__op(cases[i].op)->response->size <= sizeof(zero));
        hf__wire_write(&buf, hf__op(cases[i].op)->response, zero);
        CHECK_STR(cases[i].response, hf_str_of((const char *)buf.ptr, buf.len));
    }
    hf_scope_free(s);
}

TEST(round_trip, a_response_in_full)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    struct hf_item items[] = {HF_ITEM(s, HF_S("id", HF_STR("ann")), HF_N("n", 7))};
    struct hf_capacity_part parts[] = {{.name = HF_STR("by\"x"), .units = 0.5}};
    struct hf_capacity capacity = {.table = HF_STR("T"),
                                   .units = 12.5,
                                   .global_indexes = parts,
                                   .global_indexes_len = 1};
    struct hf_query_result result = {
        .items = items, .items_len = 1, .count = 1, .scanned_count = 3, .capacity = &capacity};

    hf__wire_write(&buf, hf__op(HF_OP_QUERY)->response, &result);
    CHECK_STR("{\"Items\":[{\"id\":{\"S\":\"ann\"},\"n\":{\"N\":\"7\"}}],\"Count\":1,"
              "\"ScannedCount\":3,\"ConsumedCapacity\":{\"TableName\":\"T\",\"CapacityUnits\":12.5,"
              "\"GlobalSecondaryIndexes\":{\"by\\\"x\":{\"CapacityUnits\":0.5}}}}",
              hf_str_of((const char *)buf.ptr, buf.len));
    hf_scope_free(s);
}

static void check_time(struct hf_scope *s, int64_t us, const char *json)
{
    struct hf__buf buf = {.scope = s};
    struct hf_table_description description = {.created_us = us};
    struct hf_table_description again = {0};
    struct hf_str text;

    hf__wire_write(&buf, &hf__table_description_fields, &description);
    text = hf_str_of((const char *)buf.ptr, buf.len);
    CHECK_STR(json, text);
    CHECK_OK(hf__wire_read(s, &hf__table_description_fields, text, &again));
    CHECK_INT(us, again.created_us);
}

#define REST ",\"TableSizeBytes\":0,\"ItemCount\":0}"

TEST(round_trip, times_are_seconds)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_time(s, 1767225600123000, "{\"CreationDateTime\":1767225600.123" REST);
    check_time(s, 1767225600000000, "{\"CreationDateTime\":1767225600" REST);
    check_time(s, 1767225600000001, "{\"CreationDateTime\":1767225600.000001" REST);
    check_time(s, -500000, "{\"CreationDateTime\":-0.5" REST);
    check_time(s, INT64_MAX, "{\"CreationDateTime\":9223372036854.775807" REST);
    hf_scope_free(s);
}

/* Writing remembers that memory ran out, and a poisoned item is not written. */
TEST(round_trip, writing_without_memory_fails)
{
    struct filler f = {.t = t, .s = hf_scope_new(test_env(t)), .odd_texts = true};
    struct hf_query_result result = {0};
    const struct fields *fields = hf__op(HF_OP_QUERY)->response;
    int failures = 0;

    fill_struct(&f, fields, (uint8_t *)&result);
    for (int64_t nth = 1;; nth++) {
        struct hf__buf buf = {.env = test_env(t)};
        bool failed;

        t->fail_at = (int64_t)t->allocs + nth;
        hf__wire_write(&buf, fields, &result);
        t->fail_at = 0;
        failed = buf.failed;
        hf__buf_free(&buf);
        if (!failed)
            break;
        failures++;
    }
    CHECK(failures > 0);
    hf_scope_free(f.s);
}

TEST(round_trip, a_poisoned_item_is_not_written)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    struct hf_put_item request = {
        .item = hf__item_poison_new(s, HF_INVALID, HF_STR("bad"), HF_STR("a"))};

    hf__wire_write(&buf, hf__op(HF_OP_PUT_ITEM)->request, &request);
    CHECK(buf.failed);
    hf_scope_free(s);
}
