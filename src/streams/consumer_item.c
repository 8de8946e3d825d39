/*
 * streams/consumer_item.c: the item of a shard: its key, requests for it, which are built apart from being
 * sent, and reading it. Its layout is in consumer_lease.c.
 */
#include "streams/consumer_item.h"

#include "coord/placeholders.h"

static const char *const place_names[] = {"horizon", "time", "at", "after"};
_Static_assert(ARRAY_LEN(place_names) == PLACE_AFTER + 1, "every place has a name");
/* ---- requests ------------------------------------------------------------------------------- */

struct hf_str hf__shard_item_sk(struct hf_scope *s, const struct hf_consumer *c,
                                struct hf_str shard)
{
    return PATTERN_KEY(s, text_str(&c->arn), shard);
}

struct hf_item hf__shard_item_key(struct hf_scope *s, const struct hf_consumer *c, struct hf_str sk)
{
    return HF_ITEM(s, HF_S("pk", c->pk), HF_S("sk", sk));
}

/* "#name" stands for `name`: all that the expression has. */
static void names_in(struct holders *h, struct hf_str expression)
{
    for (size_t i = 0; i < expression.len; i++) {
        size_t end = i + 1;
        bool known = false;
        struct hf_str word;

        if (expression.ptr[i] != '#')
            continue;
        while (end < expression.len && (expression.ptr[end] == '_' ||
                                        (expression.ptr[end] >= 'a' && expression.ptr[end] <= 'z')))
            end++;
        word = hf_str_of(expression.ptr + i, end - i);
        for (size_t j = 0; j < h->names_len; j++)
            known = known || hf_str_equal(h->names[j].name, word);
        if (!known)
            holders_name(h, word, hf_str_of(word.ptr + 1, word.len - 1));
    }
}

struct hf_update_item hf__shard_item_update(struct holders *h, const struct hf_consumer *c,
                                            struct hf_str sk, struct hf_str update,
                                            const char *condition)
{
    names_in(h, update);
    names_in(h, hf_str_from(condition));
    return (struct hf_update_item){
        .table = c->o.table,
        .key = hf__shard_item_key(h->s, c, sk),
        .update = update,
        .condition = hf_str_from(condition),
        .names = hf_item_make(h->s, h->names, h->names_len),
        .values = hf_item_make(h->s, h->values, h->values_len),
        .returns = HF_RETURN_ALL_NEW,
    };
}

enum hf_status hf__shard_item_send(struct hf_scope *s, struct hf_consumer *c,
                                   const struct hf_update_item *update,
                                   struct shard_lease_view *view)
{
    struct hf_item item;
    enum hf_status status;

    *view = (struct shard_lease_view){.done = false};
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &(struct hf_transact_write){.update = update}, update->key,
                               &item);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    if (item.ptr && hf__shard_lease_view(s, item, view) != HF_OK)
        return hf_scope_error(s)->status;
    return status;
}

/* Where a shard is, as it is written: what the update sets. The values are added. */
const char *hf__shard_item_place(struct holders *h, const struct shard *shard)
{
    VALUE(h, HF_S(":place", hf_str_from(place_names[shard->place])));
    switch (shard->place) {
    case PLACE_HORIZON:
        break;
    case PLACE_TIME:
        VALUE(h, HF_N(":from_us", shard->from_us));
        return "#place = :place, #from_us = :from_us";
    case PLACE_AT:
    case PLACE_AFTER:
        VALUE(h, HF_S(":sequence", hf_scope_copy(h->s, text_str(&shard->sequence))));
        return "#place = :place, #sequence = :sequence";
    }
    return "#place = :place";
}

int64_t hf__shard_item_expires_s(const struct hf_consumer *c)
{
    return hf__env_wall_ms(&c->env) / 1000 + CONSUMER_KEEP_S;
}

/* ---- as it is ------------------------------------------------------------------------------- */

static uint64_t number_in(struct hf_item item, const char *name)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(item, hf_str_from(name)), &number);
    return number > 0 ? (uint64_t)number : 0;
}

static struct hf_str text_in(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_from(name)));
}

enum hf_status hf__shard_lease_view(struct hf_scope *s, struct hf_item item,
                                    struct shard_lease_view *view)
{
    struct hf_str place = text_in(item, "place");
    struct hf_str parts[2];

    *view = (struct shard_lease_view){
        .sk = text_in(item, "sk"),
        .holder = text_in(item, "owner"),
        .opener = text_in(item, "opener"),
        .wanted = text_in(item, "wanted"),
        .fence = number_in(item, "fence"),
        .beat = number_in(item, "beat"),
        .lease_ms = (uint32_t)number_in(item, "lease_ms"),
        .done = hf_value_true(hf_item_get(item, HF_STR("done"))),
        .sequence = text_in(item, "sequence"),
        .from_us = (int64_t)number_in(item, "from_us"),
    };
    if (hf_str_equal(view->sk, HF_STR("head"))) {
        view->is_head = true;
        view->head = (struct head){.arn = text_in(item, "stream"),
                                   .start = (enum hf_start)number_in(item, "start"),
                                   .since_us = (int64_t)number_in(item, "since_us"),
                                   .shard = text_in(item, "shard"),
                                   .number = text_in(item, "number")};
        return HF_OK;
    }
    TRY(hf__pattern_key_parts(s, view->sk, parts, 2));
    view->arn = parts[0];
    view->shard = parts[1];
    for (size_t i = 0; i < ARRAY_LEN(place_names); i++)
        if (hf_str_equal(place, hf_str_from(place_names[i])))
            view->place = (enum place)i;
    if (view->place >= PLACE_AT && !view->sequence.len)
        return hf_scope_fail(s, HF_CORRUPT, "the position of shard %.*s has no sequence number",
                             HF_FMT(view->shard));
    return HF_OK;
}
