/*
 * bench/lib_request.c: building requests once, and then only changing their digits.
 *
 * A request is written as text in which every byte that will change is a mark, a control character
 * that says of which kind. Marks are then found and noted as slots. All slots have a fixed width,
 * so Content-Length never changes.
 *
 *  (1) Every item of a request begins with the mark of its partition, and later marks are of the
 *      same item: that is how a slot knows its item.
 *  (2) The signature is of the right form and wrong: development servers do not look at it.
 */
#include "lib_request.h"

#include <time.h>

/* The kinds of marks; digits but for the last, which is letters. */
enum mark {
    MARK_PARTITION = 1,
    MARK_PLACE,
    MARK_OWNER,
    MARK_RANDOM,
    MARK_TEXT,
    MARK_END,
};

enum { KEY_DIGITS = 8, PLACE_DIGITS = 4, BODY_BYTES = 865 /* makes 1 KiB as DynamoDB counts */ };

struct request_slot {
    size_t offset;
    size_t len;
    size_t item; /* which of the numbers */
    enum mark mark;
};

/* ---- parts of bodies ------------------------------------------------------------------------- */

static void put_marks(FILE *f, enum mark mark, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fputc((int)mark, f);
}

static void put_keys(FILE *f)
{
    fputs("\"pk\":{\"S\":\"p", f);
    put_marks(f, MARK_PARTITION, KEY_DIGITS);
    fputs("\"},\"sk\":{\"N\":\"1", f);
    put_marks(f, MARK_PLACE, PLACE_DIGITS);
    fputs("\"}", f);
}

static void put_item(FILE *f)
{
    fputc('{', f);
    put_keys(f);
    fputs(",\"owner\":{\"S\":\"o", f);
    put_marks(f, MARK_OWNER, KEY_DIGITS);
    fputs("\"},\"created\":{\"N\":\"17", f);
    put_marks(f, MARK_RANDOM, KEY_DIGITS);
    fputs("\"},\"name\":{\"S\":\"Augusta Ada Lovelace\"},"
          "\"email\":{\"S\":\"ada.lovelace+42@example.test\"},"
          "\"active\":{\"BOOL\":true},\"score\":{\"N\":\"7351\"},\"visits\":{\"N\":\"0\"},"
          "\"tags\":{\"SS\":[\"analytic\",\"difference\",\"numbers\"]},\"body\":{\"S\":\"",
          f);
    put_marks(f, MARK_TEXT, BODY_BYTES);
    fputs("\"}}", f);
}

static void put_table(FILE *f, const char *table)
{
    fprintf(f, "\"TableName\":\"%s\"", table);
}

static void body_put(FILE *f, const char *table)
{
    fputc('{', f);
    put_table(f, table);
    fputs(",\"Item\":", f);
    put_item(f);
    fputc('}', f);
}

static void put_key(FILE *f, const char *table)
{
    put_table(f, table);
    fputs(",\"Key\":{", f);
    put_keys(f);
    fputc('}', f);
}

static void body_get(FILE *f, const char *table)
{
    fputc('{', f);
    put_key(f, table);
    fputc('}', f);
}

static void put_update(FILE *f, const char *table)
{
    put_key(f, table);
    fputs(",\"UpdateExpression\":\"ADD visits :one\","
          "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}",
          f);
}

static void body_update(FILE *f, const char *table)
{
    fputc('{', f);
    put_update(f, table);
    fputc('}', f);
}

static void body_query(FILE *f, const char *table)
{
    fputc('{', f);
    put_table(f, table);
    fprintf(f,
            ",\"Limit\":%d,\"KeyConditionExpression\":\"pk = :pk\","
            "\"ExpressionAttributeValues\":{\":pk\":{\"S\":\"p",
            REQUEST_PARTITION);
    put_marks(f, MARK_PARTITION, KEY_DIGITS);
    fputs("\"}}}", f);
}

static void body_query_index(FILE *f, const char *table)
{
    fputc('{', f);
    put_table(f, table);
    fprintf(f,
            ",\"IndexName\":\"by-owner\",\"Limit\":%d,\"KeyConditionExpression\":\"#o = :o\","
            "\"ExpressionAttributeNames\":{\"#o\":\"owner\"},"
            "\"ExpressionAttributeValues\":{\":o\":{\"S\":\"o",
            REQUEST_PARTITION);
    put_marks(f, MARK_OWNER, KEY_DIGITS);
    fputs("\"}}}", f);
}

static void body_transact(FILE *f, const char *table)
{
    fputs("{\"TransactItems\":[", f);
    for (int i = 0; i < 2; i++) {
        fputs("{\"Put\":", f);
        body_put(f, table);
        fputs("},", f);
    }
    fputs("{\"Update\":{", f);
    put_update(f, table);
    fputs("}},{\"ConditionCheck\":{", f);
    put_key(f, table);
    fputs(",\"ConditionExpression\":\"attribute_exists(pk)\"}}]}", f);
}

static void body_batch(FILE *f, const char *table)
{
    fprintf(f, "{\"RequestItems\":{\"%s\":[", table);
    for (int i = 0; i < REQUEST_BATCH; i++) {
        fputs(i ? ",{\"PutRequest\":{\"Item\":" : "{\"PutRequest\":{\"Item\":", f);
        put_item(f);
        fputs("}}", f);
    }
    fputs("]}}", f);
}

/* ---- operations ------------------------------------------------------------------------------ */

struct operation {
    const char *name;
    const char *target;
    const char *table;
    void (*put_body)(FILE *f, const char *table);
    size_t items;
};

static const struct operation operations[] = {
    {"put", "PutItem", "bench", body_put, 1},
    {"get", "GetItem", "bench", body_get, 1},
    {"update-add", "UpdateItem", "bench", body_update, 1},
    {"query50", "Query", "bench", body_query, 1},
    {"transact4", "TransactWriteItems", "bench", body_transact, 4},
    {"batch25", "BatchWriteItem", "bench", body_batch, REQUEST_BATCH},
    {"gsi-put", "PutItem", "bench-gsi", body_put, 1},
    {"gsi-update-add", "UpdateItem", "bench-gsi", body_update, 1},
    {"gsi-query50", "Query", "bench-gsi", body_query_index, 1},
    {"gsi-batch25", "BatchWriteItem", "bench-gsi", body_batch, REQUEST_BATCH},
};

static const struct operation *operation_of(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static bool is_query(const struct operation *op)
{
    return strcmp(op->target, "Query") == 0;
}

static size_t item_bytes(void)
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&bytes, &len);

    if (!f)
        bench_die("out of memory");
    put_item(f);
    fclose(f);
    free(bytes);
    return len;
}

static size_t answer_bytes(const struct operation *op)
{
    if (is_query(op))
        return REQUEST_PARTITION * (item_bytes() + 1) + sizeof("{\"Count\":50,\"Items\":[]}");
    if (strcmp(op->target, "GetItem") == 0)
        return item_bytes() + sizeof("{\"Item\":}") - 1;
    if (strcmp(op->target, "BatchWriteItem") == 0)
        return sizeof("{\"UnprocessedItems\":{}}") - 1;
    return sizeof("{}") - 1;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void put_head(FILE *f, const struct operation *op, size_t body_len, unsigned port,
                     const char *path)
{
    time_t now = time(NULL);
    struct tm utc;
    char day[16], second[32];

    gmtime_r(&now, &utc);
    strftime(day, sizeof(day), "%Y%m%d", &utc);
    strftime(second, sizeof(second), "%Y%m%dT%H%M%SZ", &utc);
    fprintf(f,
            "POST /%s HTTP/1.1\r\n"
            "Host: 127.0.0.1:%u\r\n"
            "Accept-Encoding: identity\r\n"
            "X-Amz-Target: DynamoDB_20120810.%s\r\n"
            "Content-Type: application/x-amz-json-1.0\r\n"
            "X-Amz-Date: %s\r\n"
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/%s/us-east-1/dynamodb/"
            "aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
            "Signature=d2c1f0a3b495867768594a3b2c1d0e0fd2c1f0a3b495867768594a3b2c1d0e0f\r\n"
            "Content-Length: %zu\r\n\r\n",
            path, port, op->target, second, day, body_len);
}

static bool is_mark(char c)
{
    return c >= MARK_PARTITION && c < MARK_END;
}

static void find_slots(struct request_form *form)
{
    size_t partitions_seen = 0;

    form->slots = calloc(form->items * MARK_END, sizeof(*form->slots));
    if (!form->slots)
        bench_die("out of memory");
    for (size_t at = 0, end; at < form->len; at = end) {
        struct request_slot *slot = &form->slots[form->slots_len];

        for (end = at + 1; end < form->len && form->bytes[end] == form->bytes[at];)
            end++;
        if (!is_mark(form->bytes[at]))
            continue;
        partitions_seen += form->bytes[at] == MARK_PARTITION;
        *slot = (struct request_slot){.offset = at,
                                      .len = end - at,
                                      .item = partitions_seen ? partitions_seen - 1 : 0,
                                      .mark = (enum mark)form->bytes[at]};
        assert(slot->item < form->items);
        form->slots_len++;
    }
}

struct request_form *bench_request_new(const char *name, uint64_t items, unsigned port, bool echo)
{
    const struct operation *op = operation_of(name);
    struct request_form *form;
    struct bench_dice dice = {.state = 1};
    char *body = NULL, path[24] = "";
    size_t body_len = 0;
    FILE *f;

    if (!op)
        return NULL;
    form = calloc(1, sizeof(*form));
    f = open_memstream(&body, &body_len);
    if (!form || !f)
        bench_die("out of memory");
    op->put_body(f, op->table);
    fclose(f);
    form->name = op->name;
    form->items = op->items;
    form->partitions = items / REQUEST_PARTITION;
    form->answer_bytes = answer_bytes(op);
    if (echo)
        snprintf(path, sizeof(path), "%zu", form->answer_bytes);
    f = open_memstream(&form->bytes, &form->len);
    if (!f)
        bench_die("out of memory");
    put_head(f, op, body_len, port, path);
    fwrite(body, 1, body_len, f);
    fclose(f);
    free(body);
    find_slots(form);
    for (size_t i = 0; i < REQUEST_TEXT; i++)
        form->text[i] = (char)('a' + bench_below(&dice, 26));
    return form;
}

void bench_request_free(struct request_form *form)
{
    free(form->slots);
    free(form->bytes);
    free(form);
}

static void put_digits(char *to, size_t len, uint64_t number)
{
    while (len-- > 0) {
        to[len] = (char)('0' + number % 10);
        number /= 10;
    }
}

void bench_request_fill(const struct request_form *form, char *bytes, const uint64_t *numbers,
                        struct bench_dice *dice)
{
    for (size_t i = 0; i < form->slots_len; i++) {
        const struct request_slot *slot = &form->slots[i];
        uint64_t number = numbers[slot->item];
        char *to = bytes + slot->offset;

        switch (slot->mark) {
        case MARK_PARTITION:
            put_digits(to, slot->len, number / REQUEST_PARTITION);
            break;
        case MARK_PLACE:
            put_digits(to, slot->len, number % REQUEST_PARTITION);
            break;
        case MARK_OWNER:
            put_digits(to, slot->len, number % form->partitions);
            break;
        case MARK_RANDOM:
            put_digits(to, slot->len, bench_below(dice, 100000000));
            break;
        case MARK_TEXT:
            memcpy(to, form->text + bench_below(dice, REQUEST_TEXT - slot->len), slot->len);
            break;
        case MARK_END:
            break;
        }
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool contains(const char *body, size_t len, const char *what)
{
    return memmem(body, len, what, strlen(what)) != NULL;
}

bool bench_request_plausible(const struct request_form *form, const uint64_t *numbers,
                             const char *body, size_t len, bool closely)
{
    const struct operation *op = operation_of(form->name);
    char key[32];

    if (len < 2 || body[0] != '{' || len < form->answer_bytes * 9 / 10)
        return false;
    if (strcmp(op->target, "GetItem") == 0) {
        snprintf(key, sizeof(key), "\"p%08llu\"",
                 (unsigned long long)(numbers[0] / REQUEST_PARTITION));
        return contains(body, len, key);
    }
    if (is_query(op))
        return !closely || contains(body, len, "\"Count\":50");
    if (strcmp(op->target, "BatchWriteItem") == 0)
        return contains(body, len, "\"UnprocessedItems\":{}");
    return true;
}
