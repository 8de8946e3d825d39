/*
 * backup/chain.c: finding out what a backup has, see chain.h.
 *
 * A segment counts if its epoch is the one that the manifest has for its place in the chain. Others
 * were written by a process after another one had begun an epoch: what they have was never part of
 * the chain.
 */
#include "backup/chain.h"

#include <stdlib.h>

enum { BLOCK_BITS = 12 }; /* of numbers of segments, which are listed together */

_Static_assert(BLOCK_BITS % 4 == 0, "whole digits");

/* ---- lists ---------------------------------------------------------------------------------- */

struct newest {
    struct chain *chain;
    struct chain_object object;
};

static enum hf_status take_manifest(struct hf_scope *s, struct hf_str name, uint64_t size,
                                    void *user)
{
    struct newest *newest = user;
    struct form_head head;

    (void)s;
    if (!hf__form_name_read(name, &head) || head.kind != FORM_MANIFEST)
        return HF_OK;
    newest->chain->manifests++;
    if (head.epoch >= newest->object.head.epoch)
        newest->object = (struct chain_object){head, size};
    return HF_OK;
}

static bool is_listed(const struct manifest *m, const struct form_head *head)
{
    for (size_t i = 0; i < manifest_snapshots(m); i++) {
        const struct backup_snapshot *p = manifest_snapshot(m, i);

        if (p->epoch == head->epoch && p->seq == head->seq && p->last == head->last &&
            head->part < p->parts)
            return true;
    }
    return false;
}

static bool object_counts(const struct manifest *m, const struct form_head *head)
{
    const struct backup_epoch *epoch;

    if (head->kind == FORM_SNAPSHOT)
        return is_listed(m, head);
    if (head->kind == FORM_MANIFEST)
        return head->epoch == m->epoch;
    epoch = hf__chain_epoch_of(m, head->seq);
    return epoch && epoch->epoch == head->epoch && head->seq > m->floor;
}

static enum hf_status take_object(struct hf_scope *s, struct hf_str name, uint64_t size, void *user)
{
    struct chain *chain = user;
    struct chain_object object = {.size = size};
    struct hf__buf *to = &chain->others;

    if (!hf__form_name_read(name, &object.head))
        return HF_OK;
    if (chain->lists == CHAIN_OLD && object.head.kind == FORM_LOG &&
        object_counts(&chain->manifest, &object.head)) {
        chain->is_past = hf__objects_are_ordered(chain->objects); /* the others are newer */
        return chain->is_past ? hf__fail(s, HF_CANCELED, "all that is old was listed") : HF_OK;
    }
    if (object_counts(&chain->manifest, &object.head))
        to = object.head.kind == FORM_LOG        ? &chain->logs
             : object.head.kind == FORM_SNAPSHOT ? &chain->snapshots
                                                 : NULL;
    if (to)
        hf__buf_put(to, &object, sizeof(object));
    return HF_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct form_head *x = &((const struct chain_object *)a)->head;
    const struct form_head *y = &((const struct chain_object *)b)->head;

    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* Segments that may be there behind those that the manifest has. It is written so often that they
 * are in the block of numbers of the last one, or in the next. */
static enum hf_status list_newest(struct hf_scope *s, struct chain *chain)
{
    for (uint64_t i = 0; i < 2; i++) {
        struct form_head head = {.kind = FORM_LOG,
                                 .epoch = chain->manifest.epoch,
                                 .seq = chain->manifest.tail.seq + (i << BLOCK_BITS)};
        char name[FORM_NAME];

        hf__form_name(&head, name);
        name[sizeof("log/00000000-000000000000") - 1 - BLOCK_BITS / 4] = '\0';
        TRY(hf__objects_list(s, chain->objects, name, take_object, chain));
    }
    return HF_OK;
}

/* All that counts, and what nobody needs any more; or only that. */
static enum hf_status list_all(struct hf_scope *s, struct chain *chain)
{
    static const char *const prefixes[] = {"log/", "snapshot/", "manifest/"};

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        enum hf_status status =
            hf__objects_list(s, chain->objects, prefixes[i], take_object, chain);

        if (chain->is_past) { /* take_object() has ended it */
            chain->is_past = false;
            hf__scope_error_clear(s);
            continue;
        }
        TRY(status);
    }
    return HF_OK;
}

static enum hf_status list_objects(struct hf_scope *s, struct chain *chain)
{
    struct hf__buf *lists[] = {&chain->logs, &chain->snapshots, &chain->others};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        *lists[i] = (struct hf__buf){.env = hf__scope_env(s)};
    if (chain->lists == CHAIN_NEWEST)
        TRY(list_newest(s, chain));
    else
        TRY(list_all(s, chain));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (lists[i]->failed)
            return hf__fail_nomem(s);
        if (lists[i]->len)
            qsort(lists[i]->ptr, chain_len(lists[i]), sizeof(struct chain_object), by_place);
    }
    return HF_OK;
}

void hf__chain_free(struct chain *chain)
{
    hf__buf_free(&chain->logs);
    hf__buf_free(&chain->snapshots);
    hf__buf_free(&chain->others);
}

/* ---- the manifest --------------------------------------------------------------------------- */

static enum hf_status stop_at_any(struct hf_scope *s, struct hf_str name, uint64_t size, void *user)
{
    struct form_head head;

    (void)size;
    (void)user;
    if (!hf__form_name_read(name, &head))
        return HF_OK;
    return hf__fail(s, HF_CORRUPT, "the manifest is missing, and %.*s is there", HF_FMT(name));
}

/* Nothing is there, or the manifest is missing. */
static enum hf_status check_empty(struct hf_scope *s, struct hf__objects *objects)
{
    TRY(hf__objects_list(s, objects, "log/", stop_at_any, NULL));
    return hf__objects_list(s, objects, "snapshot/", stop_at_any, NULL);
}

static enum hf_status check_format(struct hf_scope *s, struct hf__objects *objects, bool *there)
{
    struct hf_bytes text;
    enum hf_status status = hf__objects_get(s, objects, HF_STR(FORM_FORMAT_NAME), 0, &text);

    *there = status == HF_OK;
    if (status == HF_NOT_FOUND) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    TRY(status);
    if (hf_str_equal(hf_str_of((const char *)text.ptr, text.len), HF_STR(FORM_FORMAT_TEXT)))
        return HF_OK;
    if (text.len > sizeof("holdfast backup format ") - 1 &&
        memcmp(text.ptr, "holdfast backup format ", sizeof("holdfast backup format ") - 1) == 0 &&
        text.ptr[text.len - 1] == '\n')
        return hf__fail(s, HF_FORMAT, "%s in %.*s says that a newer version made the backup",
                        FORM_FORMAT_NAME, HF_FMT(hf__objects_url(objects)));
    return hf__fail(s, HF_CORRUPT, "%s in %.*s is damaged", FORM_FORMAT_NAME,
                    HF_FMT(hf__objects_url(objects)));
}

enum hf_status hf__chain_load(struct hf_scope *s, struct hf__objects *objects,
                              const struct form *form, enum chain_lists lists, struct chain *chain)
{
    struct newest newest = {.chain = chain};
    char name[FORM_NAME];
    struct hf_bytes object;
    bool format;

    *chain = (struct chain){.objects = objects, .form = form, .lists = lists};
    TRY(check_format(s, objects, &format));
    TRY(hf__objects_list(s, objects, "manifest/", take_manifest, &newest));
    if (!newest.object.head.epoch)
        return check_empty(s, objects);
    if (!format)
        return hf__fail(s, HF_CORRUPT, "%s is missing in %.*s", FORM_FORMAT_NAME,
                        HF_FMT(hf__objects_url(objects)));
    hf__form_name(&newest.object.head, name);
    TRY(hf__objects_get(s, objects, hf_str_from(name), newest.object.size, &object));
    TRY(hf__chain_manifest_read(s, form, hf_str_from(name), object, &chain->manifest));
    chain->found = true;
    if (lists != CHAIN_NO_LISTS) {
        enum hf_status status = list_objects(s, chain);

        if (status != HF_OK)
            hf__chain_free(chain);
        return status;
    }
    return HF_OK;
}

enum hf_status hf__chain_get(struct hf_scope *s, struct hf__objects *objects,
                             const struct form *form, const struct chain_object *object,
                             struct form_head *head, struct hf_bytes *payload,
                             uint8_t hash[FORM_HASH])
{
    char name[FORM_NAME];
    struct hf_bytes bytes;
    enum hf_status status;

    hf__form_name(&object->head, name);
    status = hf__objects_get(s, objects, hf_str_from(name), object->size, &bytes);
    if (status == HF_NOT_FOUND)
        return hf__fail(s, HF_CORRUPT, "%s is missing", name);
    TRY(status);
    return hf__form_read(s, form, hf_str_from(name), bytes, head, payload, hash);
}

/* ---- segments ------------------------------------------------------------------------------- */

void hf__walk_begin(const struct chain *chain, uint64_t seq, uint64_t last, struct chain_walk *walk)
{
    *walk = (struct chain_walk){.chain = chain, .at = {.seq = seq, .last = last}};
    while (walk->next < chain_len(&chain->logs) &&
           chain_at(&chain->logs, walk->next)->head.seq <= seq)
        walk->next++;
}

/* What must be there is missing. */
static enum hf_status fail_missing(struct hf_scope *s, const struct chain_walk *walk)
{
    const struct chain *chain = walk->chain;
    const struct backup_epoch *epoch = hf__chain_epoch_of(&chain->manifest, walk->at.seq + 1);

    return hf__fail(s, HF_CORRUPT, "log/%08llx-%012llx-... is missing: the segment behind %llu",
                    (unsigned long long)(epoch ? epoch->epoch : 0),
                    (unsigned long long)walk->at.seq + 1, (unsigned long long)walk->at.seq);
}

/* Does the segment follow on the one before it? */
static enum hf_status check_next(struct hf_scope *s, const struct chain_walk *walk,
                                 const struct form_head *head, struct hf_str name)
{
    const struct chain *chain = walk->chain;
    const struct backup_epoch *epoch = hf__chain_epoch_of(&chain->manifest, head->seq);
    const uint8_t *before = walk->known ? walk->at.hash : NULL;
    uint64_t last = walk->at.last;

    if (!walk->known && head->first && head->first <= last + 1)
        last = head->first - 1; /* a snapshot may have more than the segments before it */
    if (head->id != chain->manifest.id)
        return hf__fail(s, HF_CORRUPT, "%.*s belongs to another database", HF_FMT(name));
    if (epoch && epoch->first_seq == head->seq) {
        before = epoch->before;
        last = epoch->base;
    }
    if (before && memcmp(before, head->before, FORM_HASH) != 0)
        return hf__fail(s, HF_CORRUPT,
                        "%.*s is not the segment that follows: it has the hash of another one "
                        "before it",
                        HF_FMT(name));
    if (head->first != last + 1 || head->last < last || head->to_us < head->from_us)
        return hf__fail(s, HF_CORRUPT, "%.*s does not go on where the segment before it ended",
                        HF_FMT(name));
    return HF_OK;
}

static enum hf_status check_tail(struct hf_scope *s, const struct chain_walk *walk)
{
    const struct manifest *m = &walk->chain->manifest;
    const struct backup_tail *tail = &m->tail;
    bool has_own = tail->seq >= manifest_epoch(m, manifest_epochs(m) - 1)->first_seq;

    if (walk->at.seq < tail->seq)
        return fail_missing(s, walk);
    if (walk->at.seq == tail->seq && walk->known && has_own &&
        memcmp(walk->at.hash, tail->hash, FORM_HASH) != 0)
        return hf__fail(s, HF_CORRUPT, "the segment %llu is not the one that the manifest has",
                        (unsigned long long)tail->seq);
    return HF_OK;
}

enum hf_status hf__walk_next(struct hf_scope *s, struct chain_walk *walk, bool *found,
                             struct form_head *head, struct hf_bytes *payload)
{
    const struct hf__buf *logs = &walk->chain->logs;
    const struct chain_object *object;
    uint8_t hash[FORM_HASH];
    char name[FORM_NAME];

    *found = false;
    if (walk->at.seq == walk->chain->manifest.tail.seq)
        TRY(check_tail(s, walk));
    *found = walk->next < chain_len(logs);
    if (!*found)
        return check_tail(s, walk);
    object = chain_at(logs, walk->next);
    if (object->head.seq != walk->at.seq + 1)
        return fail_missing(s, walk);
    TRY(hf__chain_get(s, walk->chain->objects, walk->chain->form, object, head, payload, hash));
    hf__form_name(&object->head, name);
    TRY(check_next(s, walk, head, hf_str_from(name)));
    walk->next++;
    walk->at = (struct backup_tail){.seq = head->seq,
                                    .to_us = head->to_us,
                                    .last = head->last,
                                    .check = head->check};
    memcpy(walk->at.hash, hash, FORM_HASH);
    walk->known = true;
    if (walk->next < chain_len(logs) && chain_at(logs, walk->next)->head.seq == head->seq)
        return hf__fail(s, HF_CORRUPT, "%s: there are two segments with the number %llu", name,
                        (unsigned long long)head->seq);
    return HF_OK;
}

enum hf_status hf__chain_tail(struct hf_scope *s, const struct chain *chain,
                              struct backup_tail *tail)
{
    struct chain_walk walk;
    bool found = true;

    hf__walk_begin(chain, chain->manifest.tail.seq, chain->manifest.tail.last, &walk);
    walk.at = chain->manifest.tail;
    walk.known = true;
    while (found) {
        struct hf__mark mark = hf__scope_mark(s);
        struct form_head head;
        struct hf_bytes payload;
        enum hf_status status = hf__walk_next(s, &walk, &found, &head, &payload);

        if (status == HF_CORRUPT) { /* it was never said to be there */
            hf__scope_error_clear(s);
            break;
        }
        TRY(status);
        hf__scope_rewind(s, mark);
    }
    *tail = walk.at;
    return HF_OK;
}

int64_t hf__chain_newest(const struct chain *chain)
{
    int64_t newest = chain->manifest.to_us;
    size_t len = chain_len(&chain->logs);

    if (len && chain_at(&chain->logs, len - 1)->head.to_us > newest)
        newest = chain_at(&chain->logs, len - 1)->head.to_us;
    return newest;
}
