/*
 * engine/hostile_test.c: no request reaches an assert, whatever is in it.
 *
 * The requests of ../hostile/requests.txt succeed. Each becomes a struct, and by the tables of
 * fields every member of it, present or not, gets one hostile value after the other: empty, absent,
 * at its limit and one past it, 64 KiB, a megabyte, with a NUL, numbers of 38 and 39 digits and of
 * all bits, members that no enum has, values of every type, lists of none and of thousands. Many of
 * these no wire could carry; a program can.
 *
 * Each call ends with HF_OK or with an error of the caller's, which has a sentence; never with one
 * of the database's. The same struct is written as JSON, as a client does, and read again. In the
 * end the database is sound. The sanitizers see the rest.
 */
#include "help.h"

#include "base/buf.h"
#include "ops/fields.h"
#include "wire/wire.h"

enum { MARKS_MAX = 8, LARGE = 1 << 20, REBUILDS_MAX = 30, WRONG_MAX = 20 };

static char large[LARGE + 1]; /* 'a' */

struct mark {
    char name[4];
    char value[512];
};

struct hostile {
    struct test *t;
    struct world w;
    struct hf_scope *lines; /* the file */
    struct hf_scope *spare; /* the hostile value of one call */
    struct hf_scope *call;  /* what one call makes */
    struct mark marks[MARKS_MAX];
    size_t marks_len;
    const struct op *op;
    struct hf_str line;
    uint8_t *request;
    uint8_t *response;
    size_t calls, fine, wrong, rebuilds;
};

/* ---- the file ------------------------------------------------------------------------------- */

static struct hf_str read_requests(struct hf_scope *s)
{
    FILE *file = fopen(HOSTILE_REQUESTS, "r");
    struct hf__buf buf = {.scope = s};
    uint8_t *to;
    size_t got;

    CHECK(file);
    do {
        to = hf__buf_reserve(&buf, 65536);
        CHECK(to);
        got = fread(to, 1, 65536, file);
        buf.len += got;
    } while (got);
    fclose(file);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

/* The body with what the marks stand for. */
static struct hf_str fill_in(const struct hostile *h, struct hf_scope *s, struct hf_str body)
{
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < body.len; i++) {
        const struct mark *found = NULL;

        for (size_t m = 0; m < h->marks_len && body.ptr[i] == '$'; m++)
            if (i + 1 < body.len && h->marks[m].name[1] == body.ptr[i + 1])
                found = &h->marks[m];
        if (found)
            hf__buf_put_str(&buf, hf_str_from(found->value));
        else
            hf__buf_put_byte(&buf, (uint8_t)body.ptr[i]);
        i += found != NULL;
    }
    CHECK(hf__buf_reserve(&buf, 1));
    return hf_str_of((const char *)buf.ptr, buf.len);
}

/* "+ OPERATION BODY [MARK MEMBER]" */
static void set_up(struct hostile *h, struct hf_str line)
{
    struct hf_str body = line, answer, name, rest;
    const char *end;
    char operation[64];

    name = str_cut(&body, ' ');
    snprintf(operation, sizeof(operation), "%.*s", HF_FMT(name));
    for (end = body.ptr + body.len; end[-1] != '}'; end--)
        ;
    rest = hf_str_of(end, (size_t)(body.ptr + body.len - end));
    body.len = (size_t)(end - body.ptr);
    if (world_exchange(&h->w, operation, fill_in(h, h->w.scope, body), &answer) != HF_OK)
        fail_msg("%.*s: %.*s", HF_FMT(line), HF_FMT(answer));
    if (rest.len > 4) {
        struct mark *mark = &h->marks[h->marks_len++];
        char member[32];
        struct hf_str value;

        assert_true(h->marks_len <= MARKS_MAX);
        snprintf(mark->name, sizeof(mark->name), "%.2s", rest.ptr + 1);
        snprintf(member, sizeof(member), "%.*s", (int)rest.len - 4, rest.ptr + 4);
        value = next_text(&answer, member);
        if (!value.len || value.len >= sizeof(mark->value))
            fail_msg("%.*s has no %s: %.*s", HF_FMT(line), member, HF_FMT(answer));
        snprintf(mark->value, sizeof(mark->value), "%.*s", HF_FMT(value));
    }
}

/* A new database with the tables of the file. */
static void build(struct hostile *h)
{
    struct hf_str rest = read_requests(h->lines), line;

    h->w = world_open(h->t, "memory:");
    h->marks_len = 0;
    while (rest.len) {
        line = str_cut(&rest, '\n');
        if (str_after(line, HF_STR("+ "), &line))
            set_up(h, line);
    }
    (void)upkeep(&h->w); /* backups and indexes are made there */
}

static void rebuild(struct hostile *h)
{
    world_close(&h->w);
    build(h);
}

/* ---- one call ------------------------------------------------------------------------------- */

/* As a client would send it. */
static void check_written(struct hostile *h)
{
    struct hf__buf buf = {.scope = h->call};
    uint8_t *again = hf__scope_array(h->call, 1, h->op->request->size);

    hf__wire_write(&buf, h->op->request, h->request);
    if (!buf.failed)
        (void)hf__wire_read(h->call, h->op->request, hf_str_of((const char *)buf.ptr, buf.len),
                            again);
}

static void drop_table(struct hostile *h, struct hf_str name)
{
    struct hf_update_table open = {.table = name, .deletion_protection = HF_NO};
    struct hf_delete_table drop = {.table = name};

    (void)upkeep(&h->w); /* which ends a restore */
    CHECK_OK(hf_update_table(h->call, h->w.db, &open, NULL));
    CHECK_OK(hf_delete_table(h->call, h->w.db, &drop, NULL));
}

/* Let the next call find what this one found. */
static void undo(struct hostile *h)
{
    struct hf_str name;

    if (h->op->op == HF_OP_CREATE_TABLE || h->op->op == HF_OP_RESTORE_TABLE_FROM_BACKUP) {
        name = h->op->op == HF_OP_CREATE_TABLE
                   ? ((struct hf_create_table *)(void *)h->request)->table
                   : ((struct hf_restore_table_from_backup *)(void *)h->request)->table;
        drop_table(h, hf_scope_copy(h->spare, name));
    } else if ((h->op->op == HF_OP_UPDATE_TABLE || h->op->op == HF_OP_DELETE_TABLE) &&
               h->rebuilds++ < REBUILDS_MAX) {
        rebuild(h);
    }
}

/* All that is wrong is reported, as one run takes a while. */
static void wrong(struct hostile *h, const struct field *field, const char *what, const char *why,
                  struct hf_str answer)
{
    if (h->wrong++ < WRONG_MAX)
        print_message("%.*s: %s is %s: %s: %.*s\n", HF_FMT(h->line),
                      field->name ? field->name : "it", what, why,
                      answer.len < 300 ? (int)answer.len : 300, answer.ptr);
}

static void try_it(struct hostile *h, const struct field *field, const char *what)
{
    struct hf__buf buf = {.scope = h->call};
    enum hf_status status = hf_db_call(h->call, h->w.db, h->op->op, h->request, h->response);
    const struct hf_error *error = hf_scope_error(h->call);

    h->calls++;
    h->fine += status == HF_OK;
    if (status == HF_OK) {
        hf__wire_write(&buf, h->op->response, h->response);
        if (buf.failed || !hf__wire_json_valid(hf_str_of((const char *)buf.ptr, buf.len)))
            wrong(h, field, what, "no JSON", hf_str_of((const char *)buf.ptr, buf.len));
        undo(h);
    } else if (strstr(hf__wire_type(status), "InternalServerError") || !error->message.len ||
               error->may_have_happened) {
        wrong(h, field, what, hf_status_name(status), error->message);
    }
    hf_scope_reset(h->call);
    check_written(h);
    hf_scope_reset(h->call);
    hf_scope_reset(h->spare);
}

/* ---- hostile values ------------------------------------------------------------------------- */

static const size_t lengths[] = {0,    1,    2,     3,     36,    37,     128,    129,
                                 255,  256,  257,   512,   1024,  1025,   2048,   2049,
                                 4096, 4097, 65535, 65536, 65537, 409600, 409601, LARGE};

static struct hf_str text_number(struct hostile *h, const struct field *field, size_t number,
                                 struct hf_str was, bool *more)
{
    static const char odd[] = "\0a\0\x01\x7F\xFF\xFE\xC3(\xED\xA0\x80\"\\{}[]'%s%n";
    struct hf_str texts[] = {
        hf_str_of(odd, 1),
        hf_str_of(odd, 3),
        hf_str_of(odd, sizeof(odd) - 1),
        hf_str_of(odd + 5, 2),
        HF_STR("$"),
        HF_STR("\xF0\x9F\x98\x80"),
        hf_scope_format(h->spare, "%.*s%c", HF_FMT(was), 'x'),
        hf_str_of(was.len ? was.ptr : "", was.len ? was.len - 1 : 0),
        hf_str_of(hf_scope_format(h->spare, "%.*s%c", HF_FMT(was), 'x').ptr, was.len),
    };
    int64_t limits[] = {field->min - 1,        field->min,         field->max,
                        field->max + 1,        field->element_min, field->element_max,
                        field->element_max + 1};

    *more = true;
    if (was.len) { /* a NUL behind it, and one in it */
        ((char *)(uintptr_t)texts[6].ptr)[was.len] = '\0';
        ((char *)(uintptr_t)texts[8].ptr)[was.len / 2] = '\0';
    }
    if (number < ARRAY_LEN(texts))
        return texts[number];
    number -= ARRAY_LEN(texts);
    if (number < ARRAY_LEN(limits))
        return hf_str_of(large, limits[number] > 0 && limits[number] <= LARGE
                                    ? (size_t)limits[number]
                                    : 0);
    number -= ARRAY_LEN(limits);
    if (number < ARRAY_LEN(lengths))
        return hf_str_of(large, lengths[number]);
    *more = false;
    return hf_str_of(NULL, 0); /* absent */
}

static struct hf_value nested(struct hf_scope *s, int depth, bool maps)
{
    struct hf_value value =
        hf_value_make(s, (struct hf_attr){.type = HF_TYPE_S, .text = HF_STR("x")});

    for (int i = 0; i < depth; i++) {
        struct hf_attr attr = {.name = HF_STR("n"), .value = value};

        value = maps ? hf_item_value(hf_item_make(s, &attr, 1)) : hf_list_make(s, &attr, 1);
    }
    return value;
}

/* Hostile attribute value `number`; *more is false when it is the last. */
static struct hf_value value_number(struct hostile *h, size_t number, bool *more)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "1",
        "12345678901234567890123456789012345678",
        "123456789012345678901234567890123456789",
        "-99999999999999999999999999999999999999e87",
        "9.9999999999999999999999999999999999999E+125",
        "1e126",
        "1e-130",
        "1e-131",
        "1e2147483648",
        "0e99999999999999999999",
        "NaN",
        "Infinity",
        "",
        "0x10",
        "1 ",
    };
    static const enum hf_type types[] = {HF_TYPE_S, HF_TYPE_B};
    static const int depths[] = {1, 30, 31, 32, 33, 60, 300};
    struct hf_str twice[] = {HF_STR("1"), HF_STR("1"), HF_STR("")};
    struct hf_attr others[] = {
        {.type = HF_TYPE_BOOL, .number = 1},
        {.type = HF_TYPE_BOOL, .number = 7},
        {.type = HF_TYPE_NULL},
        {.type = HF_TYPE_SS, .list = twice, .list_len = 1},
        {.type = HF_TYPE_NS, .list = twice, .list_len = 1},
        {.type = HF_TYPE_BS, .list = twice, .list_len = 1},
        {.type = HF_TYPE_SS, .list = twice, .list_len = 2},
        {.type = HF_TYPE_NS, .list = twice, .list_len = 3},
        {.type = HF_TYPE_BS, .list = twice, .list_len = 0},
        {.type = HF_TYPE_SS, .list = twice + 2, .list_len = 1},
        {.type = (enum hf_type)99},
        {.type = (enum hf_type) - 1},
    };

    *more = true;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct hf_attr attr = {.type = types[i]};

        if (number < ARRAY_LEN(lengths)) {
            attr.text = hf_str_of(large, lengths[number]);
            return hf_value_make(h->spare, attr);
        }
        number -= ARRAY_LEN(lengths);
    }
    if (number < ARRAY_LEN(numbers))
        return hf_value_make(h->spare, (struct hf_attr){.type = HF_TYPE_N,
                                                        .text = hf_str_from(numbers[number])});
    number -= ARRAY_LEN(numbers);
    if (number < ARRAY_LEN(others))
        return hf_value_make(h->spare, others[number]);
    number -= ARRAY_LEN(others);
    if (number < 2 * ARRAY_LEN(depths))
        return nested(h->spare, depths[number / 2], number % 2);
    *more = false;
    return (struct hf_value){0};
}

/* ---- members -------------------------------------------------------------------------------- */

static void break_struct(struct hostile *h, const struct fields *fields, uint8_t *base);
static void break_field(struct hostile *h, const struct field *field, uint8_t *base);

static void break_str(struct hostile *h, const struct field *field, struct hf_str *at)
{
    struct hf_str was = *at;
    bool more = true;

    for (size_t i = 0; more; i++) {
        *at = text_number(h, field, i, was, &more);
        try_it(h, field, "a text");
    }
    *at = was;
}

static void break_int(struct hostile *h, const struct field *field, int64_t *at)
{
    const int64_t numbers[] = {0,
                               HF_ZERO,
                               1,
                               -1,
                               2,
                               field->min - 1,
                               field->min,
                               field->max,
                               field->max + 1,
                               INT32_MAX,
                               (int64_t)INT32_MAX + 1,
                               (int64_t)UINT32_MAX + 1,
                               INT64_MAX,
                               INT64_MAX - 1,
                               INT64_MIN,
                               INT64_MIN + 1,
                               INT64_MIN + 2};
    int64_t was = *at;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        *at = numbers[i];
        try_it(h, field, "a number");
    }
    *at = was;
}

static void break_enum(struct hostile *h, const struct field *field, int *at)
{
    int members = field->members ? (int)field->members->len : 2, was = *at;

    for (int i = -2; i <= members + 2; i++) {
        *at = i;
        try_it(h, field, "an enum");
    }
    *at = INT32_MAX;
    try_it(h, field, "an enum");
    *at = INT32_MIN;
    try_it(h, field, "an enum");
    *at = was;
}

static void break_value(struct hostile *h, const struct field *field, struct hf_value *at)
{
    struct hf_value was = *at;
    bool more = true;

    for (size_t i = 0; more; i++) {
        *at = value_number(h, i, &more);
        try_it(h, field, "a value");
    }
    *at = was;
}

/* The item with attribute `which` under another name, or gone. */
static struct hf_item without(struct hf_scope *s, struct hf_item item, size_t which,
                              struct hf_str name, struct hf_value value)
{
    struct hf_attr attrs[32];
    struct hf_item_walk walk = {0};
    size_t count = 0;

    for (size_t i = 0; hf_item_next(item, &walk) && count < ARRAY_LEN(attrs); i++) {
        attrs[count] = (struct hf_attr){.name = walk.name, .value = walk.value};
        if (i == which && !name.ptr)
            continue;
        if (i == which)
            attrs[count].name = name;
        if (i == which && value.ptr)
            attrs[count].value = value;
        count++;
    }
    return hf_item_make(s, attrs, count);
}

static void break_attribute(struct hostile *h, const struct field *field, struct hf_item *at,
                            struct hf_item was, size_t which, struct hf_str name)
{
    bool more = true;

    for (size_t i = 0; more; i++) {
        struct hf_value value = value_number(h, i, &more);

        *at = without(h->spare, was, which, name, value);
        try_it(h, field, "an attribute");
    }
    more = true;
    for (size_t i = 0; more; i++) {
        struct hf_str other = text_number(h, field, i, name, &more);

        *at = without(h->spare, was, which, other, (struct hf_value){0});
        try_it(h, field, "the name of an attribute");
    }
}

static void break_item(struct hostile *h, const struct field *field, struct hf_item *at)
{
    struct hf_item was = *at;
    struct hf_item_walk walk = {0};
    struct hf_attr more = HF_S("another", HF_STR("one"));

    for (size_t i = 0; hf_item_next(was, &walk); i++)
        break_attribute(h, field, at, was, i, walk.name);
    *at = (struct hf_item){0};
    try_it(h, field, "absent");
    *at = hf_item_make(h->spare, NULL, 0);
    try_it(h, field, "empty");
    *at = hf_item_with(h->spare, was, &more, 1);
    try_it(h, field, "larger");
    *at = was;
}

static void break_pointer(struct hostile *h, const struct field *field, uint8_t *base)
{
    uint8_t *was, *made = hf__scope_array(h->lines, 1, field->sub->size), *none = NULL;

    CHECK(made);
    memcpy(&was, base + field->at, sizeof(was));
    memcpy(base + field->at, &none, sizeof(none));
    try_it(h, field, "absent");
    memcpy(base + field->at, &made, sizeof(made));
    try_it(h, field, "empty");
    if (was)
        memcpy(made, was, field->sub->size);
    break_struct(h, field->sub, made);
    memcpy(base + field->at, &was, sizeof(was));
}

static void break_element(struct hostile *h, const struct field *field, uint8_t *element)
{
    switch (field->kind) {
    case FIELD_STRS:
        break_str(h, field, (struct hf_str *)(void *)element);
        break;
    case FIELD_ITEMS:
        break_item(h, field, (struct hf_item *)(void *)element);
        break;
    case FIELD_VALUES:
        break_value(h, field, (struct hf_value *)(void *)element);
        break;
    case FIELD_MAP:
        break_str(h, field, (struct hf_str *)(void *)element);
        break_struct(h, field->sub, element);
        break;
    case FIELD_STRUCTS:
        break_struct(h, field->sub, element);
        break;
    default:
        break;
    }
}

/* Lists of no, one, many and very many elements, all of them the first one or all empty. */
static void break_list(struct hostile *h, const struct field *field, uint8_t *base)
{
    const size_t counts[] = {
        0,   1,    2,    (size_t)field->max, (size_t)field->max + 1, 25, 26, 100, 101, 50,
        300, 1000, 20000};
    size_t size = field_element_size(field), was_len;
    uint8_t *was, *list = hf__scope_array(h->lines, 20001, size), *none = NULL;

    CHECK(list);
    memcpy(&was, base + field->at, sizeof(was));
    memcpy(&was_len, base + field->count_at, sizeof(was_len));
    memcpy(base + field->at, &list, sizeof(list));
    for (int filled = 0; filled < 2; filled++) {
        for (size_t i = 0; filled && was_len && i < 20001; i++)
            memcpy(list + i * size, was, size);
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            if (counts[i] > 20001)
                continue;
            memcpy(base + field->count_at, &counts[i], sizeof(counts[i]));
            try_it(h, field, "a list");
        }
    }
    if (was_len)
        memcpy(list, was, was_len * size);
    was_len += was_len == 0;
    memcpy(base + field->count_at, &was_len, sizeof(was_len));
    for (size_t i = 0; i < was_len; i++)
        break_element(h, field, list + i * size);
    was_len = 0;
    memcpy(base + field->at, &none, sizeof(none));
    memcpy(base + field->count_at, &was_len, sizeof(was_len));
    try_it(h, field, "absent");
    memcpy(base + field->at, &was, sizeof(was));
}

static void break_double(struct hostile *h, const struct field *field, double *at)
{
    const double numbers[] = {0, -1, 1e308, -1e308, 1e-308, 0.0 / 0.0, 1.0 / 0.0, -1.0 / 0.0};
    double was = *at;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        *at = numbers[i];
        try_it(h, field, "a fraction");
    }
    *at = was;
}

static void break_field(struct hostile *h, const struct field *field, uint8_t *base)
{
    void *at = base + field->at;
    size_t count = 0;

    switch (field->kind) {
    case FIELD_STR:
        break_str(h, field, at);
        break;
    case FIELD_INT:
    case FIELD_TIME:
        break_int(h, field, at);
        break;
    case FIELD_DOUBLE:
        break_double(h, field, at);
        break;
    case FIELD_FLAG:
    case FIELD_ENUM:
        break_enum(h, field, at);
        break;
    case FIELD_ITEM:
    case FIELD_NAMES:
        break_item(h, field, at);
        break;
    case FIELD_VALUE:
        break_value(h, field, at);
        break;
    case FIELD_STRUCT:
        break_pointer(h, field, base);
        break;
    default:
        memcpy(&count, base + field->count_at, sizeof(count));
        break_list(h, field, base);
        memcpy(base + field->count_at, &count, sizeof(count));
        break;
    }
}

static void break_struct(struct hostile *h, const struct fields *fields, uint8_t *base)
{
    for (size_t i = 0; i < fields->len; i++)
        break_field(h, &fields->list[i], base);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static const struct op *named(struct hf_str name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, name);

    return op ? op : hf__op_of_name(OP_STREAMS, name);
}

/* "[- ]OPERATION BODY": break each member of it. */
static void break_line(struct hostile *h, struct hf_str line)
{
    struct hf_str body = line, text;
    bool refused = str_after(body, HF_STR("- "), &body);
    enum hf_status status;

    h->line = hf_str_of(line.ptr, line.len < 100 ? line.len : 100);
    h->op = named(str_cut(&body, ' '));
    CHECK(h->op);
    build(h);
    text = fill_in(h, h->lines, body); /* lives as long as the request */
    h->request = hf__scope_array(h->lines, 1, h->op->request->size);
    h->response = hf__scope_array(h->lines, 1, h->op->response->size);
    CHECK(h->request && h->response);
    CHECK_OK(hf__wire_read(h->lines, h->op->request, text, h->request));
    status = hf_db_call(h->call, h->w.db, h->op->op, h->request, h->response);
    if ((status == HF_OK) == refused)
        fail_msg("%.*s: %s", HF_FMT(line), hf_scope_error_text(h->call));
    if (status == HF_OK)
        undo(h);
    h->rebuilds = 0;
    break_struct(h, h->op->request, h->request);
    world_close(&h->w);
    hf_scope_reset(h->lines);
}

/* Part `part` of `parts` of the file, so that several cores can share it. */
static void break_all(struct test *t, size_t part, size_t parts)
{
    struct hostile h = {.t = t,
                        .spare = hf_scope_new(test_env(t)),
                        .call = hf_scope_new(test_env(t)),
                        .lines = hf_scope_new(test_env(t))};
    struct hf_scope *file = hf_scope_new(test_env(t));
    struct hf_str rest = read_requests(file), line;

    memset(large, 'a', sizeof(large));
    for (size_t i = 0; rest.len;) {
        line = str_cut(&rest, '\n');
        if (line.len && line.ptr[0] != '#' && line.ptr[0] != '+' && i++ % parts == part)
            break_line(&h, line);
    }
    print_message("%zu calls, %zu of them fine\n", h.calls, h.fine);
    CHECK_INT(0, h.wrong);
    CHECK(h.calls > 1000 && h.fine > 0 && h.fine < h.calls);
    hf_scope_free(file);
    hf_scope_free(h.lines);
    hf_scope_free(h.call);
    hf_scope_free(h.spare);
}

TEST(hostile, no_member_of_a_request_reaches_an_assert_1)
{
    break_all(t, 0, 2);
}

TEST(hostile, no_member_of_a_request_reaches_an_assert_2)
{
    break_all(t, 1, 2);
}

/* ---- keys at their limits ------------------------------------------------------------------- */

#define START "The provided starting key is invalid: One or more parameter values were invalid: "
#define HASH_LONG START "Size of hashkey has exceeded the maximum size limit of2048 bytes"
#define RANGE_LONG                                                                                 \
    START "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"

/* A scan that starts behind a key whose parts have these lengths. */
static struct hf_str start_at(struct world *w, const char *index, size_t pk, size_t l, size_t g)
{
    return callf(w, "Scan",
                 "{'TableName':'tab'%s,'ExclusiveStartKey':{'pk':{'S':'%.*s'},'sk':{'S':'%.*s'}"
                 "%s%.*s%s%s%.*s%s}}",
                 index, (int)pk, large, 1, large, l ? ",'l':{'S':'" : "", (int)l, large,
                 l ? "'}" : "", g ? ",'g':{'S':'" : "", (int)g, large, g ? "'}" : "");
}

static void check_start(struct world *w, const char *message, struct hf_str answer)
{
    if (!message && is_error(answer))
        fail_msg("%.*s", HF_FMT(answer));
    if (message && !strstr(answer.ptr, message))
        fail_msg("expected %s, got %.*s", message, HF_FMT(answer));
    hf_scope_reset(w->scope);
}

TEST(hostile, a_start_key_has_the_size_of_a_key)
{
    static const char by_l[] = ",'IndexName':'byl'", by_g[] = ",'IndexName':'byg'";
    struct world w = world_open(t, "memory:");

    memset(large, 'a', sizeof(large));
    world_ok(&w, "CreateTable",
             "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{"
             "'AttributeName':'pk','AttributeType':'S'},{'AttributeName':'sk','AttributeType':'S'},"
             "{'AttributeName':'l','AttributeType':'S'},{'AttributeName':'g','AttributeType':'S'}],"
             "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':"
             "'RANGE'}],'LocalSecondaryIndexes':[{'IndexName':'byl','KeySchema':[{'AttributeName':"
             "'pk','KeyType':'HASH'},{'AttributeName':'l','KeyType':'RANGE'}],'Projection':{"
             "'ProjectionType':'ALL'}}],'GlobalSecondaryIndexes':[{'IndexName':'byg','KeySchema':[{"
             "'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}]}");
    check_start(&w, NULL, start_at(&w, "", 2048, 0, 0));
    check_start(&w, HASH_LONG, start_at(&w, "", 2049, 0, 0));
    check_start(&w, HASH_LONG, start_at(&w, "", 65535, 0, 0));
    check_start(&w, HASH_LONG, start_at(&w, "", 65536, 0, 0));
    check_start(&w, HASH_LONG, start_at(&w, "", LARGE, 0, 0));
    check_start(&w, NULL, start_at(&w, by_l, 2048, 1024, 0));
    check_start(&w, RANGE_LONG, start_at(&w, by_l, 2048, 1025, 0));
    check_start(&w, HASH_LONG, start_at(&w, by_l, 65536, 1, 0));
    check_start(&w, NULL, start_at(&w, by_g, 2048, 0, 2048));
    check_start(&w, HASH_LONG, start_at(&w, by_g, 1, 0, 2049));
    check_start(&w, HASH_LONG, start_at(&w, by_g, 65536, 0, 1));
    CHECK_FAILS(&w, "ValidationException",
                "The provided starting key is invalid: One or more parameter values are not valid. "
                "The AttributeValue for a key attribute cannot contain an empty string value. Key: "
                "pk",
                "Scan", "{'TableName':'tab','ExclusiveStartKey':{'pk':{'S':''},'sk':{'S':'a'}}}");
    world_close(&w);
}

/* So that an operation that is added later is not forgotten here. */
TEST(hostile, every_operation_has_a_request)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str rest = read_requests(s), line;
    bool seen[HF_OP_COUNT] = {false};

    while (rest.len) {
        line = str_cut(&rest, '\n');
        if (!line.len || line.ptr[0] == '#' || line.ptr[0] == '+')
            continue;
        (void)str_after(line, HF_STR("- "), &line);
        line = str_cut(&line, ' ');
        CHECK(named(line));
        seen[named(line)->op] = true;
    }
    for (int op = 0; op < HF_OP_COUNT; op++)
        if (!seen[op])
            fail_msg("test/hostile/requests.txt has no %.*s", HF_FMT(hf__op((enum hf_op)op)->name));
    hf_scope_free(s);
}
