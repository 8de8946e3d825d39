/*
 * kv/kv_item.c: how keys and values are stored, and the requests that change them. Nothing is
 * sent here.
 *
 *     key             S  "SPACE.ID"; of partitioned tables instead
 *     partition       S  the partition, as it is
 *     sort            S  "SPACE.ID"
 *     data               the value; absent: the key was deleted, and is remembered
 *     version         S  the id of the write that made this item, and those of writes before it,
 *                        the newest first, in short: "ID,ID,.ID"; with a dot the one that made it
 *                        where there was nothing, which itself has "ID,."
 *     expires         N  time to live, in seconds since 1970
 *     space           S  "SPACE.", of a value in a table with the index of namespaces (kv_table.c)
 *
 *  (1) In front of the first dot of a stored key is the namespace, whose own dots are escaped;
 *      behind it is the id, as it is. So no two keys are stored as the same, ids sort as they are,
 *      and those with a common prefix are stored with a common prefix.
 *  (2) No two writes have the same version, and no version comes back. So a write that is
 *      conditional on a version is done once at most, and never when anybody else was faster.
 *  (3) A write that replaces what was seen names what that was in its version, and what was before:
 *      KV_PAST_MAX of them, among which the first is never dropped. A write that looked at nothing
 *      has its own id alone.
 *  (4) By that, it is known what became of a write whose answer was lost: if our id is in the
 *      version that is there it was done; if what we had seen is in it, and right after it somebody
 *      else, ours was not done and can never be done any more.
 *  (5) The index "spaces" has the keys of all values by namespace: (space, key), and no other
 *      attribute, so replacing a value does not change it. The mark of the table says whether
 *      values have to have a `space` and whether all have it (kv_table.c). What remembers a deleted
 *      key is not in it.
 *
 * Items that other programs wrote have no version. They are replaced on the condition that they
 * have none and that the value is the same.
 */
#include "kv/kv.h"

/* ---- keys ----------------------------------------------------------------------------------- */

/* (1) */
struct hf_str hf__kv_join(struct hf_scope *s, struct hf_str space, struct hf_str id)
{
    struct hf_str escaped = hf__pattern_key(s, &space, 1);
    size_t len = escaped.len + 1 + id.len;
    char *text = hf_scope_alloc(s, len + 1);

    if (!text || !escaped.ptr)
        return hf_str_of(NULL, 0);
    if (escaped.len)
        memcpy(text, escaped.ptr, escaped.len);
    text[escaped.len] = '.';
    if (id.len)
        memcpy(text + escaped.len + 1, id.ptr, id.len);
    text[len] = '\0';
    return hf_str_of(text, len);
}

struct hf_str hf__kv_head(struct hf_str joined)
{
    const char *dot = memchr(joined.ptr, '.', joined.len);

    assert(dot);
    return hf_str_of(joined.ptr, (size_t)(dot - joined.ptr) + 1);
}

static enum hf_status bad_key(struct hf_scope *s, const struct hf_kv *kv, struct hf_kv_key key,
                              const char *why)
{
    return hf_scope_fail(s, HF_INVALID, "key \"%.*s\" of table %.*s: %s", KV_FMT(key),
                         HF_FMT(kv->table), why);
}

enum hf_status hf__kv_place(struct hf_scope *s, const struct hf_kv *kv, struct hf_kv_key key,
                            struct kv_place *place)
{
    /* It is the range key of the table, or of its index. */
    int max = kv->sort.ptr || kv->spaced ? HF_KV_SORT_MAX : HF_KV_KEY_MAX;
    struct hf_str joined;

    if (key.id.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a key of table %.*s has no id", HF_FMT(kv->table));
    if (!kv->sort.ptr && key.partition.ptr)
        return bad_key(s, kv, key, "it has a partition, and the table has none");
    if (kv->sort.ptr && key.partition.len == 0)
        return bad_key(s, kv, key, "it has no partition");
    if (!key.space.ptr)
        key.space = kv->space;
    joined = hf__kv_join(s, key.space, key.id);
    if (!joined.ptr)
        return hf_scope_built(s);
    if (joined.len > (size_t)max)
        return hf_scope_fail_limit(
            s, HF_INVALID,
            max == HF_KV_SORT_MAX ? HF_ERROR_LIMIT(HF_KV_SORT_MAX, joined.len)
                                  : HF_ERROR_LIMIT(HF_KV_KEY_MAX, joined.len),
            "key \"%.*s\" of table %.*s: it has %zu bytes with its namespace, "
            "more than %d",
            KV_FMT(key), HF_FMT(kv->table), joined.len, max);
    if (key.partition.len > HF_KV_KEY_MAX)
        return hf_scope_fail_limit(
            s, HF_INVALID, HF_ERROR_LIMIT(HF_KV_KEY_MAX, key.partition.len),
            "key \"%.*s\" of table %.*s: its partition has %zu bytes, more than "
            "%d",
            KV_FMT(key), HF_FMT(kv->table), key.partition.len, HF_KV_KEY_MAX);
    *place = (struct kv_place){.key = key, .hash = joined};
    if (kv->sort.ptr) {
        place->hash = key.partition;
        place->sort = joined;
    }
    return HF_OK;
}

enum hf_status hf__kv_key_of(struct hf_scope *s, const struct hf_kv *kv, struct hf_item item,
                             struct hf_kv_key *key)
{
    struct hf_str hash = hf_value_str(hf_item_get(item, kv->hash));
    struct hf_str joined = kv->sort.ptr ? hf_value_str(hf_item_get(item, kv->sort)) : hash;
    const char *dot = joined.len ? memchr(joined.ptr, '.', joined.len) : NULL;
    size_t space_len = dot ? (size_t)(dot - joined.ptr) : 0;

    *key = (struct hf_kv_key){0};
    if (!dot || space_len + 1 == joined.len)
        return hf_scope_fail(s, HF_CORRUPT, "\"%.*s\" has no namespace, or no id", HF_FMT(joined));
    TRY(hf__pattern_key_parts(s, hf_str_of(joined.ptr, space_len), &key->space, 1));
    if (kv->sort.ptr)
        key->partition = hash;
    key->id = hf_str_of(dot + 1, joined.len - space_len - 1);
    return HF_OK;
}

struct hf_item hf__kv_item_key(struct hf_scope *s, const struct hf_kv *kv, struct hf_str hash,
                               struct hf_str sort)
{
    const struct hf_attr attrs[] = {{.name = kv->hash, .type = HF_TYPE_S, .text = hash},
                                    {.name = kv->sort, .type = HF_TYPE_S, .text = sort}};

    return hf_item_make(s, attrs, kv->sort.ptr ? 2 : 1);
}

/* ---- reading -------------------------------------------------------------------------------- */

enum hf_status hf__kv_view(struct hf_scope *s, const struct hf_kv *kv, struct hf_item item,
                           struct kv_view *view)
{
    struct hf_value version = hf_item_get(item, kv->version);
    struct hf_value expires = hf_item_get(item, kv->expires);

    *view = (struct kv_view){.there = item.ptr != NULL};
    if (!item.ptr)
        return HF_OK;
    view->value = hf_item_get(item, kv->data);
    view->version = hf_value_str(version);
    if (hf_value_type(view->value) == HF_TYPE_NULL)
        view->blob = hf_value_str(hf_item_get(item, HF_STR(KV_BLOB)));
    if ((version.ptr && !view->version.ptr) ||
        (expires.ptr && !hf_value_i64(expires, &view->expires_s))) {
        struct hf_value at = hf_item_get(item, kv->sort.ptr ? kv->sort : kv->hash);

        return hf_scope_fail(s, HF_CORRUPT,
                             "item \"%.*s\" of table %.*s was not written by holdfast: its %s is "
                             "invalid",
                             HF_FMT(hf_value_str(at)), HF_FMT(kv->table),
                             version.ptr && !view->version.ptr ? "version" : "time to live");
    }
    view->live = view->value.ptr &&
                 (!expires.ptr || view->expires_s > hf__env_wall_ms(hf_scope_env(s)) / 1000);
    return HF_OK;
}

struct hf_kv_entry hf__kv_entry(struct hf_kv_key key, const struct kv_view *view)
{
    struct hf_kv_entry entry = {.key = key};

    if (view->live) {
        entry.value = view->value;
        entry.version = view->version;
        entry.expires_s = view->expires_s;
    }
    return entry;
}

int64_t hf__kv_expires_s(const struct hf_env *env, uint32_t ttl_s)
{
    return ttl_s ? (hf__env_wall_ms(env) + 999) / 1000 + ttl_s : 0;
}

/* ---- versions ------------------------------------------------------------------------------- */

static struct hf_str in_short(struct hf_str id)
{
    return id.len > KV_PAST_ID_LEN ? hf_str_of(id.ptr, KV_PAST_ID_LEN) : id;
}

/* The next id of a version, which is shortened by it; absent at its end. */
static struct hf_str next_id(struct hf_str *version)
{
    struct hf_str id = *version;
    const char *comma;

    if (version->len == 0)
        return hf_str_of(NULL, 0);
    comma = memchr(version->ptr, ',', version->len);
    if (comma)
        id.len = (size_t)(comma - version->ptr);
    *version = comma ? hf_str_of(comma + 1, version->len - id.len - 1) : hf_str_of(NULL, 0);
    return id;
}

/* What is known of the writes that led to a version. */
struct lineage {
    struct hf_str ids[KV_PAST_MAX + 1]; /* the newest first, in short */
    size_t len;
    bool rooted; /* the last of them made it where there was nothing */
};

static struct lineage lineage_of(struct hf_str version)
{
    struct lineage line = {.len = 0};
    struct hf_str id;

    while (!line.rooted && line.len <= KV_PAST_MAX && (id = next_id(&version)).ptr) {
        line.rooted = id.len && id.ptr[0] == '.';
        id = line.rooted ? hf_str_of(id.ptr + 1, id.len - 1) : id;
        if (id.len)
            line.ids[line.len++] = in_short(id);
    }
    assert(line.len <= ARRAY_LEN(line.ids));
    return line;
}

/* Where in it the write of a version is; SIZE_MAX: it is not. */
static size_t lineage_find(const struct lineage *line, struct hf_str version)
{
    struct hf_str id = in_short(next_id(&version));

    for (size_t i = 0; i < line->len; i++)
        if (id.ptr && hf_str_equal(line->ids[i], id))
            return i;
    return SIZE_MAX;
}

/* May some have been dropped between the first of all and the one after it? */
static bool has_gap(const struct lineage *line)
{
    return line->rooted && line->len > KV_PAST_MAX;
}

/* (3) */
struct hf_str hf__kv_version(struct hf_scope *s, const struct kv_base *base, struct hf_str id)
{
    struct lineage line = lineage_of(base->seen.version);
    char text[(KV_PAST_MAX + 1) * (KV_PAST_ID_LEN + 2)];
    size_t at = 0;

    if (base->kind == KV_BASE_SEEN && !base->seen.there)
        return hf__pattern_join(s, id, HF_STR(",."));
    if (line.len > KV_PAST_MAX) /* one makes room for another, and it is not the first of all */
        line.ids[line.len - 1 - line.rooted] = line.ids[line.len - 1];
    line.len = line.len > KV_PAST_MAX ? KV_PAST_MAX : line.len;
    assert(line.len <= KV_PAST_MAX && "(3)");
    for (size_t i = 0; i < line.len; i++) {
        text[at++] = ',';
        if (line.rooted && i == line.len - 1)
            text[at++] = '.';
        memcpy(text + at, line.ids[i].ptr, line.ids[i].len);
        at += line.ids[i].len;
    }
    assert(at <= sizeof(text));
    return hf__pattern_join(s, id, hf_str_of(text, at));
}

/* (4) */
enum kv_verdict hf__kv_judge_write(const struct kv_base *base, struct hf_str version,
                                   const struct kv_view *now, bool remembered)
{
    struct lineage line = lineage_of(now->version);
    size_t at;

    assert(version.len > 0);
    if (lineage_find(&line, version) != SIZE_MAX)
        return KV_DONE;
    if (base->kind == KV_BASE_SEEN && !base->seen.there)
        return remembered && line.rooted ? KV_NOT_DONE : KV_UNKNOWN;
    /* What came right after it has to be known. */
    at = lineage_find(&line, base->seen.version);
    return at == SIZE_MAX || (at == line.len - 1 && has_gap(&line)) ? KV_UNKNOWN : KV_NOT_DONE;
}

enum kv_verdict hf__kv_judge_removal(const struct kv_base *base, const struct kv_view *now)
{
    struct lineage line = lineage_of(now->version);

    if (!now->there)
        return KV_DONE;
    if (lineage_find(&line, base->seen.version) != SIZE_MAX)
        return KV_NOT_DONE;
    /* If the present item was made where nothing was, the one we meant is gone, whoever removed
     * it. */
    return line.rooted && !has_gap(&line) ? KV_DONE : KV_UNKNOWN;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A condition, and what it names. */
struct clause {
    struct hf_str text;
    struct hf_item names;
    struct hf_item values;
};

static struct hf_attr name_attr(const char *placeholder, struct hf_str name)
{
    return (struct hf_attr){.name = hf_str_from(placeholder), .type = HF_TYPE_S, .text = name};
}

static struct clause seen_clause(struct hf_scope *s, const struct hf_kv *kv,
                                 const struct kv_view *seen)
{
    struct hf_attr names[] = {name_attr("#version", kv->version), name_attr("#hash", kv->hash),
                              name_attr("#data", kv->data)};
    struct clause c = {0};

    if (!seen->there) {
        c.text = HF_STR("attribute_not_exists(#hash)");
        c.names = hf_item_make(s, names + 1, 1);
    } else if (seen->version.ptr) {
        c.text = HF_STR("#version = :seen");
        c.names = hf_item_make(s, names, 1);
        c.values = HF_ITEM(s, HF_S(":seen", seen->version));
    } else {
        c.text = seen->value.ptr ? HF_STR("attribute_exists(#hash) AND "
                                          "attribute_not_exists(#version) AND #data = :seen")
                                 : HF_STR("attribute_exists(#hash) AND "
                                          "attribute_not_exists(#version) AND "
                                          "attribute_not_exists(#data)");
        c.names = hf_item_make(s, names, 3);
        if (seen->value.ptr)
            c.values = HF_ITEM(s, HF_V(":seen", seen->value));
    }
    return c;
}

static struct clause clause_of(struct hf_scope *s, const struct hf_kv *kv,
                               const struct kv_base *base)
{
    struct hf_attr names[] = {name_attr("#data", kv->data), name_attr("#expires", kv->expires),
                              name_attr("#version", kv->version)};
    int64_t now_s = hf__env_wall_ms(hf_scope_env(s)) / 1000;
    struct clause c = {0};

    assert(base->kind >= KV_BASE_ANY && base->kind <= KV_BASE_NO_VALUE);
    assert(base->kind != KV_BASE_VERSION || base->seen.version.ptr);
    if (base->kind == KV_BASE_SEEN)
        return seen_clause(s, kv, &base->seen);
    if (base->kind == KV_BASE_VERSION) {
        c.text = HF_STR("#version = :seen AND attribute_exists(#data) AND "
                        "(attribute_not_exists(#expires) OR #expires > :now)");
        c.names = hf_item_make(s, names, 3);
        c.values = HF_ITEM(s, HF_S(":seen", base->seen.version), HF_N(":now", now_s));
    } else if (base->kind == KV_BASE_NO_VALUE) {
        c.text = HF_STR("attribute_not_exists(#data) OR #expires <= :now");
        c.names = hf_item_make(s, names, 2);
        c.values = HF_ITEM(s, HF_N(":now", now_s));
    }
    return c;
}

struct hf_item hf__kv_item(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           const struct kv_content *content)
{
    const struct hf_value value = content->value;
    struct hf_attr attrs[7];
    size_t len = 0;

    assert((value.ptr || !content->blob.len) && "a blob has its place in the value");
    assert((kv->sort.ptr == NULL) == (place->sort.ptr == NULL));
    attrs[len++] = (struct hf_attr){.name = kv->hash, .type = HF_TYPE_S, .text = place->hash};
    attrs[len++] =
        (struct hf_attr){.name = kv->version, .type = HF_TYPE_S, .text = content->version};
    if (kv->sort.ptr)
        attrs[len++] = (struct hf_attr){.name = kv->sort, .type = HF_TYPE_S, .text = place->sort};
    if (value.ptr)
        attrs[len++] = (struct hf_attr){.name = kv->data, .value = value};
    if (value.ptr && kv->spaced) /* (5) */
        attrs[len++] = (struct hf_attr)HF_S(KV_SPACE, hf__kv_head(place->hash));
    if (content->blob.len)
        attrs[len++] = (struct hf_attr)HF_S(KV_BLOB, content->blob);
    if (content->expires_s)
        attrs[len++] =
            (struct hf_attr){.name = kv->expires, .type = HF_TYPE_N, .number = content->expires_s};
    assert(len <= ARRAY_LEN(attrs));
    return hf_item_make(s, attrs, len);
}

enum hf_status hf__kv_item_fits(struct hf_scope *s, struct hf_kv_key key, struct hf_item item)
{
    size_t size;

    TRY(hf_item_check(s, item));
    size = hf_item_size(item);
    if (size > KV_ITEM_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ITEM_SIZE_MAX, size),
                                   "key \"%.*s\": with its value it has %zu bytes, more than %d",
                                   KV_FMT(key), size, KV_ITEM_MAX);
    return HF_OK;
}

void hf__kv_put_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                        const struct kv_base *base, const struct kv_content *content,
                        struct kv_request *request)
{
    struct clause c = clause_of(s, kv, base);

    *request = (struct kv_request){.key = hf__kv_item_key(s, kv, place->hash, place->sort),
                                   .put = {.table = kv->table,
                                           .item = hf__kv_item(s, kv, place, content),
                                           .condition = c.text,
                                           .names = c.names,
                                           .values = c.values}};
}

void hf__kv_delete_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           const struct kv_base *base, struct kv_request *request)
{
    struct clause c = clause_of(s, kv, base);

    *request = (struct kv_request){.key = hf__kv_item_key(s, kv, place->hash, place->sort)};
    request->del = (struct hf_delete_item){.table = kv->table,
                                           .key = request->key,
                                           .condition = c.text,
                                           .names = c.names,
                                           .values = c.values};
}

void hf__kv_check_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                          const struct kv_base *base, struct kv_request *request)
{
    struct clause c = clause_of(s, kv, base);

    *request = (struct kv_request){.key = hf__kv_item_key(s, kv, place->hash, place->sort)};
    request->check = (struct hf_condition_check){.table = kv->table,
                                                 .key = request->key,
                                                 .condition = c.text,
                                                 .names = c.names,
                                                 .values = c.values};
}
