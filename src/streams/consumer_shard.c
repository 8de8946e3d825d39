/*
 * streams/consumer_shard.c: which shards there are, which of them come first, and who has which.
 *
 * A look asks the database for the shards of the stream, all pages of them, and the table of
 * positions for what all consumers of the name have. Then it takes the shards that are available:
 * those that nobody has, or whose owner was silent for a lease by our own clock. One thread does
 * all of this; the workers only read.
 *
 * What always holds:
 *
 *  (1) A shard is not begun before its parent was read to its end, is gone, or is none of ours.
 *  (2) From where a shard is read that nobody has begun is decided once. With a name it is written
 *      before anybody reads, so that a restart decides the same.
 *  (3) A shard counts as gone when the database says so of that very shard. That a list does not
 *      have it proves nothing: a page may begin behind a shard that has just been trimmed.
 *  (4) A stream is left for the one that followed it when each of its shards is done.
 *
 * LATEST is two things: an iterator that is asked for when the name begins, and in the table the
 * time of day at which it did, should that iterator get lost before anything was read by it.
 *
 * Consumers share by asking: a consumer that has at least two shards less than another asks that
 * one for a shard, and gets it after the batch, with its position. So nothing comes twice because a
 * consumer was added.
 */
#include <holdfast/pages.h>

#include "base/assert_held.h"
#include "streams/consumer.h"

/* ---- the list ------------------------------------------------------------------------------- */

bool hf__text_set(const struct hf_env *env, struct text *text, struct hf_str to)
{
    if (to.len + 1 > text->size) {
        size_t size = to.len + 1 < 64 ? 64 : to.len + 1;
        char *ptr = hf__env_zalloc(env, size);

        if (!ptr)
            return false;
        hf__env_free(env, text->ptr, text->size);
        text->ptr = ptr;
        text->size = size;
    }
    if (to.len)
        memcpy(text->ptr, to.ptr, to.len);
    text->ptr[to.len] = '\0';
    text->len = to.len;
    assert(text->len < text->size);
    return true;
}

void hf__text_free(const struct hf_env *env, struct text *text)
{
    hf__env_free(env, text->ptr, text->size);
    *text = (struct text){.len = 0};
}

static void shard_free(struct hf_consumer *c, struct shard *shard)
{
    assert(!shard->owned && !shard->busy && !shard->beating);
    hf__text_free(&c->env, &shard->id);
    hf__text_free(&c->env, &shard->parent);
    hf__text_free(&c->env, &shard->sequence);
    hf__text_free(&c->env, &shard->iterator);
    hf__env_free(&c->env, shard, sizeof(*shard));
}

void hf__shards_free(struct hf_consumer *c)
{
    while (c->shards) {
        struct shard *shard = c->shards;

        c->shards = shard->next;
        shard_free(c, shard);
    }
}

static struct shard *shard_find(const struct hf_consumer *c, struct hf_str id)
{
    for (struct shard *shard = c->shards; shard; shard = shard->next)
        if (hf_str_equal(text_str(&shard->id), id))
            return shard;
    return NULL;
}

static enum hf_status no_memory(struct hf_scope *s)
{
    return hf_scope_fail(s, HF_NOMEM, "no memory for a shard");
}

/* The shard of that id, made when it is not there. With the mutex. NULL: no memory. */
static struct shard *find_or_add(struct hf_consumer *c, struct hf_str id)
{
    struct shard *shard = shard_find(c, id), **last = &c->shards;

    ASSERT_HELD(&c->mutex);
    if (shard)
        return shard;
    shard = hf__env_zalloc(&c->env, sizeof(*shard));
    if (!shard)
        return NULL;
    if (!hf__text_set(&c->env, &shard->id, id)) {
        shard_free(c, shard);
        return NULL;
    }
    while (*last)
        last = &(*last)->next;
    *last = shard;
    return shard;
}

/* Those that are done and not listed any more. With the mutex. */
static void forget_old(struct hf_consumer *c)
{
    ASSERT_HELD(&c->mutex);
    for (struct shard **link = &c->shards; *link;) {
        struct shard *shard = *link;

        if ((!shard->done && !shard->ignored) || shard->owned || shard->busy || shard->beating ||
            shard->listed == c->looks) {
            link = &shard->next;
            continue;
        }
        *link = shard->next;
        shard_free(c, shard);
    }
}

/* ---- the stream ----------------------------------------------------------------------------- */

enum hf_status hf__consumer_stream(struct hf_scope *s, struct hf_consumer *c, struct hf_str *arn)
{
    struct hf_describe_table_result result;

    *arn = hf_str_of(NULL, 0);
    TRY(hf_describe_table(s, c->db, &(struct hf_describe_table){.table = c->table}, &result));
    if (result.table)
        *arn = result.table->stream_arn;
    return HF_OK;
}

static enum hf_status no_stream(struct hf_scope *s, const struct hf_consumer *c)
{
    return hf_scope_fail(s, HF_INVALID, "table %.*s has no stream", HF_FMT(c->table));
}

static struct hf_str hash_in(const struct hf_key_element *keys, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (keys[i].type == HF_KEY_HASH)
            return keys[i].name;
    return hf_str_of(NULL, 0);
}

/* The name of the hash key, to tell one partition's changes from others'. */
static enum hf_status find_hash(struct hf_scope *s, struct hf_consumer *c)
{
    struct hf_describe_stream_result result;
    struct hf_describe_table_result table;
    struct hf_str name;

    if (!c->o.partition.len || c->hash.len)
        return HF_OK;
    TRY(hf_describe_stream(s, c->db,
                           &(struct hf_describe_stream){.arn = text_str(&c->arn), .limit = 1},
                           &result));
    name = hash_in(result.stream->key_schema, result.stream->key_schema_len);
    if (!name.len) { /* dynoxide's streams do not say */
        TRY(hf_describe_table(s, c->db, &(struct hf_describe_table){.table = c->table}, &table));
        name = hash_in(table.table->key_schema, table.table->key_schema_len);
    }
    return hf__text_set(&c->env, &c->hash, name) ? HF_OK : no_memory(s);
}

static enum hf_status set_head(struct hf_scope *s, struct hf_consumer *c, const struct head *head)
{
    if (!hf__text_set(&c->env, &c->arn, head->arn) ||
        !hf__text_set(&c->env, &c->shard, head->shard) ||
        !hf__text_set(&c->env, &c->number, head->number))
        return no_memory(s);
    c->start = head->start;
    c->since_us = head->since_us;
    c->hash.len = 0;
    c->headed = true;
    return HF_OK;
}

/* Which stream, and from where: as it was decided when the name began, or now. */
static enum hf_status stream_attach(struct hf_scope *s, struct hf_consumer *c)
{
    struct head head = {.start = c->o.start};
    enum hf_status status;
    bool fresh = true;

    if (c->headed)
        return find_hash(s, c);
    status = hf__consumer_stream(s, c, &head.arn);
    if (status == HF_NOT_FOUND && c->arn.len) { /* gone since we were opened; its stream is not */
        head.arn = hf_scope_copy(s, text_str(&c->arn));
        status = hf_scope_built(s);
    }
    TRY(status);
    if (!head.arn.len)
        return no_stream(s, c);
    if (head.start == HF_START_END)
        head.since_us = hf__env_wall_ms(&c->env) / 1000 * 1000000;
    if (head.start == HF_START_TIME)
        head.since_us = c->o.from_us / 1000000 * 1000000;
    if (head.start == HF_START_AFTER) {
        head.shard = c->o.shard;
        head.number = c->o.sequence;
    }
    if (has_name(c))
        TRY(hf__head_begin(s, c, &head, &fresh));
    TRY(set_head(s, c, &head));
    c->fresh = fresh;
    return find_hash(s, c);
}

static bool any_busy(struct hf_consumer *c)
{
    bool busy = false;

    for (struct shard *shard = c->shards; shard; shard = shard->next)
        busy = busy || shard->busy || shard->beating;
    return busy;
}

/* On to another stream: nothing of the one before is ours any more. */
static enum hf_status switch_to(struct hf_scope *s, struct hf_consumer *c, const struct head *head)
{
    bool wait;

    pthread_mutex_lock(&c->mutex);
    for (struct shard *shard = c->shards; shard; shard = shard->next)
        hf__shard_lease_lost(c, shard);
    wait = any_busy(c); /* somebody still reads; a later look finds him gone */
    if (!wait)
        hf__shards_free(c);
    c->look_now = !wait;
    pthread_mutex_unlock(&c->mutex);
    if (wait)
        return HF_OK;
    c->fresh = false;
    return set_head(s, c, head);
}

/* ---- what there is -------------------------------------------------------------------------- */

static enum hf_status note_shard(struct hf_scope *s, struct hf_consumer *c,
                                 const struct hf_shard *found)
{
    struct shard *shard;
    bool good = false;

    pthread_mutex_lock(&c->mutex);
    shard = find_or_add(c, found->id);
    if (shard && hf__text_set(&c->env, &shard->parent, found->parent)) {
        shard->listed = c->looks;
        good = true;
    }
    pthread_mutex_unlock(&c->mutex);
    return good ? HF_OK : no_memory(s);
}

static enum hf_status list_shards(struct hf_scope *s, struct hf_consumer *c)
{
    struct hf_describe_stream request = {.arn = text_str(&c->arn)};
    struct hf_pages *pages;
    struct hf_shard found;
    enum hf_status status;

    TRY(hf_pages_describe_stream(s, c->db, &request, NULL, &pages));
    while ((status = hf_pages_next_shard(s, pages, &found)) == HF_OK && found.id.ptr) {
        status = note_shard(s, c, &found);
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    if (status == HF_NOT_FOUND) /* with all that was in it; what we knew of is looked after */
        status = hf_scope_ok(s);
    return status;
}

/* What the table says of one shard. */
static enum hf_status note_lease(struct hf_scope *s, struct hf_consumer *c,
                                 const struct shard_lease_view *view)
{
    size_t len = view->wanted.len < PATTERN_ID_LEN ? view->wanted.len : PATTERN_ID_LEN;
    struct shard *shard;
    bool good = true;

    pthread_mutex_lock(&c->mutex);
    shard = shard_find(c, view->shard);
    if (!shard && !view->done) { /* the stream has lost it before anybody was done */
        shard = find_or_add(c, view->shard);
        good = shard != NULL;
    }
    if (shard && !shard->owned) {
        hf__shard_lease_see(c, shard, view);
        shard->begun = view->place == PLACE_AFTER;
        if (!shard->busy && !shard->iterator.len)
            good = hf__text_set(&c->env, &shard->sequence, view->sequence);
    } else if (shard && view->fence == shard->fence && len) {
        memcpy(shard->wanted, view->wanted.ptr, len);
        shard->wanted[len] = '\0';
        if (shard->due_us > hf__env_elapsed_us(&c->env))
            shard->due_us = hf__env_elapsed_us(&c->env);
        hf__pump_wake(c->pump);
    }
    pthread_mutex_unlock(&c->mutex);
    return good ? HF_OK : no_memory(s);
}

static enum hf_status read_leases(struct hf_scope *s, struct hf_consumer *c, bool *moved)
{
    struct hf_query query = hf__shard_lease_query(s, c);
    struct head head = {.since_us = 0};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, c->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct shard_lease_view view;

        status = hf__shard_lease_view(s, item, &view);
        if (status != HF_OK)
            break;
        if (view.is_head) {
            head = view.head;
            head.arn = hf_scope_copy(s, head.arn);
            head.shard = hf_scope_copy(s, head.shard);
            head.number = hf_scope_copy(s, head.number);
        } else if (hf_str_equal(view.arn, text_str(&c->arn))) {
            status = note_lease(s, c, &view);
        }
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    TRY(status);
    TRY(hf_scope_built(s));
    *moved = head.arn.len && !hf_str_equal(head.arn, text_str(&c->arn));
    return *moved ? switch_to(s, c, &head) : HF_OK;
}

/* ---- from where ----------------------------------------------------------------------------- */

/* (2) for a shard that nobody has begun. */
static enum hf_status place_decide(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    const struct shard *parent = shard->parent.len ? shard_find(c, text_str(&shard->parent)) : NULL;
    bool follows = parent && !parent->ignored;
    bool good = true;

    ASSERT_HELD(&c->mutex);
    assert(!shard->decided && !shard->there && !shard->owned && "(2)");
    shard->decided = true;
    shard->place = PLACE_HORIZON;
    if (c->start == HF_START_TIME || (c->start == HF_START_END && !follows)) {
        shard->place = PLACE_TIME;
        shard->from_us = c->since_us;
    }
    if (c->start == HF_START_AFTER) {
        bool it = hf_str_equal(text_str(&shard->id), text_str(&c->shard));

        if (it) {
            shard->place = PLACE_AFTER;
            good = hf__text_set(&c->env, &shard->sequence, text_str(&c->number));
        }
        shard->ignored = !it && !follows;
    }
    return good ? HF_OK : no_memory(s);
}

/* Parents first, as what follows from them. With the mutex. */
static enum hf_status decide_all(struct hf_scope *s, struct hf_consumer *c)
{
    bool more = true;

    ASSERT_HELD(&c->mutex);
    while (more) {
        more = false;
        for (struct shard *shard = c->shards; shard; shard = shard->next) {
            const struct shard *parent =
                shard->parent.len ? shard_find(c, text_str(&shard->parent)) : NULL;

            if (shard->decided || (parent && !parent->decided && !shard->there))
                continue;
            more = true;
            if (shard->there)
                shard->decided = true; /* its item says so */
            else
                TRY(place_decide(s, c, shard));
        }
    }
    return HF_OK;
}

static bool has_child(const struct hf_consumer *c, const struct shard *shard)
{
    for (const struct shard *child = c->shards; child; child = child->next)
        if (hf_str_equal(text_str(&child->parent), text_str(&shard->id)))
            return true;
    return false;
}

/*
 * The name begins with LATEST: a shard that has been followed by another is over, the rest is read
 * from now on. Whether a shard is closed is not asked: dynoxide gives open ones an end.
 */
static enum hf_status begin_latest(struct hf_scope *s, struct hf_consumer *c)
{
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        if (shard->decided || has_child(c, shard))
            continue;
        shard->place = PLACE_TIME;
        shard->from_us = c->since_us;
        if (!shard->iterator.len)
            TRY(hf__shard_latest(s, c, shard));
        if (has_name(c))
            TRY(hf__shard_lease_plan(s, c, shard, false));
        shard->decided = true;
    }
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        if (shard->decided)
            continue;
        if (has_name(c))
            TRY(hf__shard_lease_plan(s, c, shard, true));
        shard->decided = shard->done = true;
    }
    return HF_OK;
}

static enum hf_status name_begin(struct hf_scope *s, struct hf_consumer *c)
{
    const struct shard *shard;

    if (c->start == HF_START_END)
        TRY(begin_latest(s, c));
    if (c->start == HF_START_AFTER) {
        shard = shard_find(c, text_str(&c->shard));
        if (!shard)
            return hf_scope_fail(s, HF_NOT_FOUND, "the stream of table %.*s has no shard %.*s",
                                 HF_FMT(c->table), HF_FMT(text_str(&c->shard)));
    }
    c->fresh = false;
    return HF_OK;
}

/* ---- what is gone --------------------------------------------------------------------------- */

static bool held_by_other(const struct hf_consumer *c, const struct shard *shard)
{
    return shard->there && shard->holder[0] &&
           !hf_str_equal(hf_str_from(shard->holder), id_str(&c->id)) &&
           hf__watch_silent_in(shard->seen_us, shard->seen_lease_ms, hf__env_elapsed_us(&c->env)) >
               0;
}

/* (3) */
static enum hf_status is_gone(struct hf_scope *s, struct hf_consumer *c, const struct shard *shard,
                              bool *gone)
{
    struct hf_get_shard_iterator request = {.arn = text_str(&c->arn),
                                            .shard = text_str(&shard->id),
                                            .type = HF_ITERATOR_TRIM_HORIZON};
    struct hf_get_shard_iterator_result result;
    enum hf_status status = hf_get_shard_iterator(s, c->db, &request, &result);

    *gone = status == HF_NOT_FOUND;
    return *gone ? hf_scope_ok(s) : status;
}

static enum hf_status shard_bury(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    bool ours = true, owned;

    pthread_mutex_lock(&c->mutex);
    owned = shard->owned;
    pthread_mutex_unlock(&c->mutex);
    if (has_name(c) && owned) {
        enum hf_status status = hf__shard_lease_finish(s, c, shard);

        if (status == HF_LOST)
            return hf_scope_ok(s);
        TRY(status);
    } else if (has_name(c) && shard->there) {
        TRY(hf__shard_lease_bury(s, c, shard, &ours));
    }
    pthread_mutex_lock(&c->mutex);
    if (shard->owned) {
        shard->owned = false;
        c->metrics.shards--;
    }
    shard->done = true;
    hf__consumer_check(c);
    pthread_mutex_unlock(&c->mutex);
    if (ours)
        hf__consumer_gap(c, text_str(&shard->id),
                         shard->begun ? text_str(&shard->sequence) : hf_str_of(NULL, 0));
    return HF_OK;
}

static enum hf_status bury_gone(struct hf_scope *s, struct hf_consumer *c)
{
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        bool gone = true, leave;

        pthread_mutex_lock(&c->mutex);
        leave = shard->listed == c->looks || shard->done || shard->ignored || shard->busy ||
                held_by_other(c, shard);
        pthread_mutex_unlock(&c->mutex);
        if (leave)
            continue;
        TRY(is_gone(s, c, shard, &gone));
        if (gone)
            TRY(shard_bury(s, c, shard));
        else
            shard->listed = c->looks;
    }
    return HF_OK;
}

/* ---- who has which -------------------------------------------------------------------------- */

/* (1) */
static bool may_begin(const struct hf_consumer *c, const struct shard *shard)
{
    const struct shard *parent = shard->parent.len ? shard_find(c, text_str(&shard->parent)) : NULL;

    return shard->decided && !shard->ignored && !shard->done &&
           (!parent || parent->done || parent->ignored);
}

static enum hf_status shard_take(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    bool taken;

    if (has_name(c))
        return hf__shard_lease_take(s, c, shard, &taken);
    pthread_mutex_lock(&c->mutex);
    assert(!shard->owned && may_begin(c, shard) && "(1)");
    shard->owned = true;
    shard->due_us = hf__env_elapsed_us(&c->env);
    shard->failures = shard->db_failures = shard->empty = 0;
    shard->at_end = false;
    c->metrics.shards++;
    hf__consumer_check(c);
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

static enum hf_status take_all(struct hf_scope *s, struct hf_consumer *c)
{
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        bool want;

        pthread_mutex_lock(&c->mutex);
        want = !shard->owned && !shard->busy && may_begin(c, shard) && !held_by_other(c, shard);
        pthread_mutex_unlock(&c->mutex);
        if (want)
            TRY(shard_take(s, c, shard));
    }
    hf__pump_wake(c->pump); /* for the first; that one wakes others */
    return HF_OK;
}

static uint32_t count_of(const struct hf_consumer *c, const char *holder)
{
    uint32_t count = 0;

    for (const struct shard *shard = c->shards; shard; shard = shard->next)
        if (!shard->owned && !shard->done && held_by_other(c, shard) &&
            strcmp(shard->holder, holder) == 0)
            count++;
    return count;
}

/* The shard to ask for: of who has most, if that is two more than we have. With the mutex. */
static struct shard *find_surplus(struct hf_consumer *c)
{
    struct shard *best = NULL;
    uint32_t mine = c->metrics.shards, most = mine + 1;

    ASSERT_HELD(&c->mutex);
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        uint32_t count;

        if (shard->owned || shard->done || shard->ignored || !held_by_other(c, shard))
            continue;
        if (shard->asked)
            return NULL; /* one after the other */
        count = count_of(c, shard->holder);
        if (count > most) {
            most = count;
            best = shard;
        }
    }
    return best;
}

static enum hf_status shards_balance(struct hf_scope *s, struct hf_consumer *c)
{
    struct shard *shard;

    pthread_mutex_lock(&c->mutex);
    shard = find_surplus(c);
    pthread_mutex_unlock(&c->mutex);
    return shard ? hf__shard_lease_ask(s, c, shard) : HF_OK;
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* It, or what it waits for, is in the hands of another. */
static bool left_to_others(const struct hf_consumer *c, const struct shard *shard)
{
    while (shard && !shard->owned && !shard->done) {
        if (held_by_other(c, shard))
            return true;
        shard = shard->parent.len ? shard_find(c, text_str(&shard->parent)) : NULL;
    }
    return false;
}

bool hf__consumer_at_end(struct hf_consumer *c)
{
    ASSERT_HELD(&c->mutex);
    for (const struct shard *shard = c->shards; shard; shard = shard->next) {
        if (shard->done || shard->ignored || (shard->owned && shard->at_end && !shard->busy))
            continue;
        if (shard->owned || !left_to_others(c, shard))
            return false;
    }
    return true;
}

/* What a stream is called behind its table: a time, so that later ones are greater. */
static struct hf_str label_of(struct hf_str arn)
{
    for (size_t i = arn.len; i > 0; i--)
        if (arn.ptr[i - 1] == '/')
            return hf_str_of(arn.ptr + i, arn.len - i);
    return arn;
}

static int str_compare(struct hf_str a, struct hf_str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* The stream of the table that followed ours; `latest` when there is none between. */
static enum hf_status find_next(struct hf_scope *s, struct hf_consumer *c, struct hf_str latest,
                                struct hf_str *next)
{
    struct hf_list_streams request = {.table = c->table};
    struct hf_str ours = label_of(text_str(&c->arn));
    struct hf_stream_name found;
    struct hf_pages *pages;
    enum hf_status status;

    *next = latest;
    TRY(hf_pages_list_streams(s, c->db, &request, NULL, &pages));
    while ((status = hf_pages_next_stream(s, pages, &found)) == HF_OK && found.arn.ptr) {
        struct hf_str label = label_of(found.arn);

        if (str_compare(label, ours) > 0 && str_compare(label, label_of(*next)) < 0)
            *next = hf_scope_copy(s, found.arn);
        if (!next->ptr)
            break;
    }
    hf_pages_free(pages);
    TRY(status);
    return hf_scope_built(s);
}

/* (4) */
static enum hf_status move_on(struct hf_scope *s, struct hf_consumer *c)
{
    struct head head = {.start = HF_START_FIRST};
    enum hf_status status;
    struct hf_str latest;
    bool over = true;

    pthread_mutex_lock(&c->mutex);
    for (struct shard *shard = c->shards; shard; shard = shard->next)
        over = over && (shard->done || shard->ignored);
    pthread_mutex_unlock(&c->mutex);
    if (!over)
        return HF_OK;
    status = hf__consumer_stream(s, c, &latest);
    if (status == HF_NOT_FOUND && c->o.until_end)
        return hf_scope_ok(s); /* the table is gone, and its stream was read */
    TRY(status);
    if (!latest.len || hf_str_equal(latest, text_str(&c->arn)))
        return HF_OK; /* just enabled, or disabled for now */
    TRY(find_next(s, c, latest, &head.arn));
    if (has_name(c))
        TRY(hf__head_move(s, c, head.arn));
    return switch_to(s, c, &head);
}

/* ---- a look --------------------------------------------------------------------------------- */

static enum hf_status shards_look(struct hf_scope *s, struct hf_consumer *c)
{
    enum hf_status status;
    bool moved = false;

    TRY(stream_attach(s, c));
    pthread_mutex_lock(&c->mutex);
    c->looks++;
    c->look_now = false;
    pthread_mutex_unlock(&c->mutex);
    TRY(list_shards(s, c));
    if (has_name(c))
        TRY(read_leases(s, c, &moved));
    if (moved)
        return HF_OK;
    if (c->fresh)
        TRY(name_begin(s, c));
    pthread_mutex_lock(&c->mutex);
    status = decide_all(s, c);
    pthread_mutex_unlock(&c->mutex);
    TRY(status);
    TRY(bury_gone(s, c));
    TRY(take_all(s, c));
    if (has_name(c))
        TRY(shards_balance(s, c));
    pthread_mutex_lock(&c->mutex);
    forget_old(c);
    pthread_mutex_unlock(&c->mutex);
    return move_on(s, c);
}

enum hf_status hf__consumer_look(struct hf_scope *s, struct hf_consumer *c, bool *ended)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    enum hf_status status = shards_look(s, c);

    *ended = false;
    if (status != HF_OK)
        return status; /* its message is in the scope */
    hf_scope_rewind(s, mark);
    pthread_mutex_lock(&c->mutex);
    *ended = c->o.until_end && !c->look_now && hf__consumer_at_end(c);
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}
