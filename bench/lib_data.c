/*
 * bench/lib_data.c: making and loading the table of lib_data.h, and the operations on it.
 */
#include "lib_data.h"

#include "lib_table.h"

#include <pthread.h>
#include <time.h>

enum { LOADERS = 2, KEY_TEXT = 9, NAME_BYTES = 20, MAIL_BYTES = 28, TAG_BYTES = 8, TAGS = 3 };

static const struct hf_str table_name = HF_STR_INIT(BENCH_TABLE);
static const struct hf_str index_name = HF_STR_INIT(BENCH_INDEX);

/* ---- items ----------------------------------------------------------------------------------- */

/* 'p' and eight digits, without printf, which would be a good part of a Get. */
static struct hf_str numbered(char *to, char letter, uint64_t number)
{
    to[0] = letter;
    for (int i = KEY_TEXT - 1; i > 0; i--) {
        to[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return hf_str_of(to, KEY_TEXT);
}

static uint64_t partition_of(const struct bench_data *data, uint64_t number)
{
    return data->one_partition ? 0 : number / PARTITION_ITEMS;
}

static uint64_t place_of(const struct bench_data *data, uint64_t number)
{
    return data->one_partition ? number : number % PARTITION_ITEMS;
}

static struct hf_item key_of(struct hf_scope *s, const struct bench_data *data, uint64_t number)
{
    char text[KEY_TEXT];

    return HF_ITEM(s, HF_S("pk", numbered(text, 'p', partition_of(data, number))),
                   HF_N("sk", place_of(data, number)));
}

static struct hf_str cut(const struct bench_data *data, struct bench_dice *dice, size_t len)
{
    return hf_str_of(data->text + bench_below(dice, TEXT_BYTES - len), len);
}

static uint64_t owners_of(const struct bench_data *data)
{
    return data->items / PARTITION_ITEMS + 1;
}

static struct hf_item item_of(struct hf_scope *s, const struct bench_data *data,
                              struct bench_dice *dice, uint64_t number)
{
    char pk[KEY_TEXT], owner[KEY_TEXT];
    struct hf_str tags[TAGS];

    for (size_t i = 0; i < TAGS; i++)
        tags[i] = cut(data, dice, TAG_BYTES + i); /* of different lengths, so never the same */
    return HF_ITEM(s, HF_S("pk", numbered(pk, 'p', partition_of(data, number))),
                   HF_N("sk", place_of(data, number)),
                   HF_S("owner", numbered(owner, 'o', bench_below(dice, owners_of(data)))),
                   HF_N("created", 1700000000 + bench_below(dice, 100000000)),
                   HF_S("name", cut(data, dice, NAME_BYTES)),
                   HF_S("email", cut(data, dice, MAIL_BYTES)), HF_BOOL("active", number % 2),
                   HF_N("score", bench_below(dice, 10000)), HF_N("visits", 0),
                   HF_SS("tags", tags, TAGS), HF_S("body", cut(data, dice, data->body_bytes)));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

struct bench_data *bench_data_new(uint64_t items, bool indexed, bool one_partition)
{
    struct bench_data *data = calloc(1, sizeof(*data));
    struct hf_scope *s = hf_scope_new(NULL);
    struct bench_dice dice = {.state = 1};

    if (!data || !s)
        bench_die("out of memory");
    data->items = items;
    data->indexed = indexed;
    data->one_partition = one_partition;
    data->query_items = QUERY_ITEMS;
    data->step = 1000003;
    while (common_divisor(data->step, items) != 1)
        data->step++;
    for (size_t i = 0; i < TEXT_BYTES; i++)
        data->text[i] = (char)('a' + bench_below(&dice, 26));
    data->body_bytes = 1;
    data->body_bytes += ITEM_BYTES - hf_item_size(item_of(s, data, &dice, 1));
    hf_scope_free(s);
    return data;
}

void bench_data_free(struct bench_data *data)
{
    hf_db_close(data->db);
    free(data);
}

void bench_create_table(struct bench_data *data)
{
    struct hf_scope *s = hf_scope_new(NULL);

    if (!s || bench_table_make(s, data->db, data->indexed) != HF_OK)
        bench_die("CreateTable: %s", s ? hf_scope_error_text(s) : "out of memory");
    hf_scope_free(s);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* A random item among those that were loaded. */
static uint64_t pick(const struct bench_data *data, struct bench_dice *dice)
{
    return bench_below(dice, data->loaded) * data->step % data->items;
}

enum hf_status bench_op_get(struct bench_worker *w)
{
    const struct bench_data *data = w->user;
    const struct hf_get_item request = {.table = table_name,
                                        .key = key_of(w->s, data, pick(data, &w->dice))};
    struct hf_get_item_result result;
    enum hf_status status;

    bench_begin(w);
    status = hf_get_item(w->s, data->db, &request, &result);
    bench_end(w);
    w->items++;
    return status == HF_OK && !result.item.ptr
               ? hf__fail(w->s, HF_INTERNAL, "an item that was loaded is not there")
               : status;
}

enum hf_status bench_op_put(struct bench_worker *w)
{
    const struct bench_data *data = w->user;
    const struct hf_put_item request = {.table = table_name,
                                        .item =
                                            item_of(w->s, data, &w->dice, pick(data, &w->dice))};
    enum hf_status status;

    bench_begin(w);
    status = hf_put_item(w->s, data->db, &request, NULL);
    bench_end(w);
    w->items++;
    return status;
}

static struct hf_update_item update_of(struct bench_worker *w, uint64_t number)
{
    return (struct hf_update_item){.table = table_name,
                                   .key = key_of(w->s, w->user, number),
                                   .update = HF_STR("ADD visits :one"),
                                   .values = HF_ITEM(w->s, HF_N(":one", 1))};
}

enum hf_status bench_op_update(struct bench_worker *w)
{
    const struct bench_data *data = w->user;
    const struct hf_update_item request = update_of(w, pick(data, &w->dice));
    enum hf_status status;

    bench_begin(w);
    status = hf_update_item(w->s, data->db, &request, NULL);
    bench_end(w);
    w->items++;
    return status;
}

/* From a place where there are enough items behind it; in the index, from an owner's first. */
static struct hf_query query_of(struct bench_worker *w, const struct bench_data *data)
{
    uint64_t size = data->one_partition ? data->items : PARTITION_ITEMS;
    uint64_t from = bench_below(&w->dice, size - data->query_items + 1);
    uint64_t owner = bench_below(&w->dice, owners_of(data));
    char text[KEY_TEXT];

    if (data->indexed)
        return (struct hf_query){.table = table_name,
                                 .index = index_name,
                                 .key_condition = HF_STR("#owner = :owner"),
                                 .names = HF_ITEM(w->s, HF_S("#owner", HF_STR("owner"))),
                                 .values =
                                     HF_ITEM(w->s, HF_S(":owner", numbered(text, 'o', owner))),
                                 .limit = (int64_t)data->query_items};
    return (struct hf_query){
        .table = table_name,
        .key_condition = HF_STR("pk = :pk AND sk >= :from"),
        .values =
            HF_ITEM(w->s,
                    HF_S(":pk", numbered(text, 'p', partition_of(data, pick(data, &w->dice)))),
                    HF_N(":from", from)),
        .limit = (int64_t)data->query_items};
}

enum hf_status bench_op_query(struct bench_worker *w)
{
    const struct bench_data *data = w->user;
    const struct hf_query request = query_of(w, data);
    struct hf_query_result result;
    enum hf_status status;

    bench_begin(w);
    status = hf_query(w->s, data->db, &request, &result);
    bench_end(w);
    w->items += result.items_len;
    return status;
}

/* `count` different items: neighbours in the order of loading are far apart in that of keys. */
static void pick_many(const struct bench_data *data, struct bench_dice *dice, uint64_t *numbers,
                      size_t count)
{
    uint64_t first = bench_below(dice, data->loaded);

    for (size_t i = 0; i < count; i++)
        numbers[i] = (first + i) % data->loaded * data->step % data->items;
}

enum hf_status bench_op_transact(struct bench_worker *w)
{
    const struct bench_data *data = w->user;
    uint64_t numbers[4];

    pick_many(data, &w->dice, numbers, 4);

    const struct hf_put_item first = {.table = table_name,
                                      .item = item_of(w->s, data, &w->dice, numbers[0])};
    const struct hf_put_item second = {.table = table_name,
                                       .item = item_of(w->s, data, &w->dice, numbers[1])};
    const struct hf_update_item update = update_of(w, numbers[2]);
    const struct hf_condition_check check = {.table = table_name,
                                             .key = key_of(w->s, data, numbers[3]),
                                             .condition = HF_STR("attribute_exists(pk)")};
    const struct hf_transact_write actions[] = {{.put = &first},
                                                {.put = &second},
                                                {.update = &update},
                                                {.check = &check}};
    const struct hf_transact_write_items request = {.actions = actions, .actions_len = 4};
    enum hf_status status;

    bench_begin(w);
    status = hf_transact_write_items(w->s, data->db, &request, NULL);
    bench_end(w);
    w->items += 4;
    return status;
}

static enum hf_status batch(struct bench_worker *w, const struct bench_data *data,
                            const uint64_t *numbers, size_t count)
{
    struct hf_put_request puts[BATCH_ITEMS];
    struct hf_write_request writes[BATCH_ITEMS];
    const struct hf_table_writes table = {table_name, writes, count};
    const struct hf_batch_write_item request = {.tables = &table, .tables_len = 1};
    struct hf_batch_write_item_result result;
    enum hf_status status;

    for (size_t i = 0; i < count; i++) {
        puts[i].item = item_of(w->s, data, &w->dice, numbers[i]);
        writes[i] = (struct hf_write_request){.put = &puts[i]};
    }
    bench_begin(w);
    status = hf_batch_write_item(w->s, data->db, &request, &result);
    bench_end(w);
    w->items += count;
    return status == HF_OK && result.unprocessed_len
               ? hf__fail(w->s, HF_INTERNAL, "a batch was left unprocessed")
               : status;
}

enum hf_status bench_op_batch(struct bench_worker *w)
{
    uint64_t numbers[BATCH_ITEMS];

    pick_many(w->user, &w->dice, numbers, BATCH_ITEMS);
    return batch(w, w->user, numbers, BATCH_ITEMS);
}

/* ---- loading --------------------------------------------------------------------------------- */

struct loading {
    struct bench_data *data;
    atomic_uint_fast64_t next;  /* the first item that nobody took */
    atomic_uint_fast64_t seeds; /* given out */
    atomic_int running;
    int64_t until_ns;
};

static void *loader(void *user)
{
    struct loading *loading = user;
    struct bench_data *data = loading->data;
    struct bench_worker w = {.s = hf_scope_new(&bench_env),
                             .user = data,
                             .dice = {.state = 77 + atomic_fetch_add(&loading->seeds, 1)}};

    if (!w.s)
        bench_die("out of memory");
    while (bench_now_ns() < loading->until_ns) {
        uint64_t first = atomic_fetch_add(&loading->next, BATCH_ITEMS);
        uint64_t numbers[BATCH_ITEMS];
        size_t count = 0;

        for (; count < BATCH_ITEMS && first + count < data->items; count++)
            numbers[count] = (first + count) * data->step % data->items;
        if (count == 0)
            break;
        hf_scope_reset(w.s);
        if (batch(&w, data, numbers, count) != HF_OK)
            bench_die("loading: %s", hf_scope_error_text(w.s));
    }
    hf_scope_free(w.s);
    atomic_fetch_sub(&loading->running, 1);
    return NULL;
}

struct bench_load bench_load(struct bench_data *data, double max_seconds)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t begin = bench_now_ns();
    struct loading loading = {.data = data, .until_ns = begin + (int64_t)(max_seconds * 1e9)};
    struct bench_load load = {.seconds = 0};
    pthread_t threads[LOADERS];
    uint64_t taken;

    atomic_store(&loading.running, LOADERS);
    for (int i = 0; i < LOADERS; i++)
        if (pthread_create(&threads[i], NULL, loader, &loading))
            bench_die("cannot start a thread");
    while (atomic_load(&loading.running)) {
        uint64_t anon = bench_memory_now().anon;

        load.peak_anon = anon > load.peak_anon ? anon : load.peak_anon;
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < LOADERS; i++)
        pthread_join(threads[i], NULL);
    load.seconds = (double)(bench_now_ns() - begin) / 1e9;
    taken = atomic_load(&loading.next); /* what was taken was written, also at the deadline */
    data->loaded = taken < data->items ? taken : data->items;
    return load;
}
