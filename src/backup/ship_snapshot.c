/*
 * backup/ship_snapshot.c: snapshots, and removing what is old.
 *
 * A snapshot is a walk over everything the store has, as of one change, which is durable before the
 * walk begins. A step of it is one part, so that segments go on being shipped in between. It counts
 * once the manifest lists it; parts of one that never came to that are removed later.
 *
 * What a restore within the window needs: the newest snapshot that is as old as the window, or the
 * oldest there is, and everything behind it. The rest is removed: first from the manifest, then from
 * the place, so a crash in between leaves objects that nobody needs, and no list of what is not
 * there.
 */
#include "backup/private.h"

#include "base/kill.h"

/* ---- taking one ------------------------------------------------------------------------------ */

static void note_snapshot(struct hf__shipper *sh)
{
    const struct manifest *m = &sh->manifest;
    size_t len = manifest_snapshots(m);

    pthread_mutex_lock(&sh->lock);
    sh->status.snapshotting = sh->snapshot.from != NULL;
    sh->status.snapshots = 0;
    sh->status.oldest_us = len ? manifest_snapshot(m, 0)->time_us : 0;
    sh->status.snapshot_us = len ? manifest_snapshot(m, len - 1)->time_us : 0;
    if (!sh->wants_snapshot) /* the one that this epoch needs is there */
        sh->status.snapshots = len;
    pthread_cond_broadcast(&sh->done);
    pthread_mutex_unlock(&sh->lock);
}

void hf__ship_snapshot_drop(struct hf__shipper *sh)
{
    struct ship_snapshot *p = &sh->snapshot;

    hf__store_iter_close(p->iter);
    hf__store_snapshot_close(sh->store, p->from);
    hf__buf_free(&p->part);
    *p = (struct ship_snapshot){.part = {.env = &sh->env}};
}

static enum hf_status snapshot_begin(struct hf_scope *s, struct hf__shipper *sh)
{
    static const uint8_t first_key[1] = {0};
    const struct store_range all = {.lower = {first_key, sizeof(first_key)}};
    struct ship_snapshot *p = &sh->snapshot;
    uint64_t ticket;

    TRY(hf__store_snapshot_at(s, sh->store, &p->from, &ticket));
    TRY(hf__store_sync(s, sh->store, ticket));
    hf__ship_mark(sh); /* so that what it has is not newer than its time */
    pthread_mutex_lock(&sh->lock);
    p->is = (struct backup_snapshot){.epoch = sh->manifest.epoch,
                                     .seq = sh->manifest.tail.seq,
                                     .last = ticket,
                                     .time_us = sh->marked.time_us};
    pthread_mutex_unlock(&sh->lock);
    if (p->is.time_us < sh->manifest.to_us)
        p->is.time_us = sh->manifest.to_us;
    return hf__store_iter_open(s, sh->store, p->from, &all, &p->iter);
}

/* The next part, made of what the walk has next. */
static enum hf_status part_make(struct hf_scope *s, struct hf__shipper *sh)
{
    struct ship_snapshot *p = &sh->snapshot;
    struct form_head head = {.kind = FORM_SNAPSHOT,
                             .id = sh->manifest.id,
                             .epoch = p->is.epoch,
                             .seq = p->is.seq,
                             .part = p->is.parts,
                             .last = p->is.last,
                             .to_us = p->is.time_us};
    enum hf_status status = HF_OK;

    memcpy(head.before, p->is.hash, FORM_HASH);
    hf__form_begin(&p->part);
    while (status == HF_OK && !p->ended && p->part.len < SHIP_PART) {
        struct hf_bytes key, value;
        bool found = false;

        status = hf__store_iter_next(s, p->iter, &found, &key, &value);
        p->ended = status == HF_OK && !found;
        if (status == HF_OK && found) {
            hf__form_put_entry(&p->part, key, value);
            p->is.entries++;
        }
    }
    if (status == HF_OK)
        status = hf__form_end(s, &sh->form, &head, &p->part, p->part_hash);
    return status;
}

static enum hf_status part_put(struct hf_scope *s, struct hf__shipper *sh)
{
    struct ship_snapshot *p = &sh->snapshot;
    const struct form_head head = {.kind = FORM_SNAPSHOT,
                                   .epoch = p->is.epoch,
                                   .seq = p->is.seq,
                                   .part = p->is.parts,
                                   .last = p->is.last};
    char name[FORM_NAME];

    hf__form_name(&head, name);
    TRY(hf__ship_put(s, sh, hf_str_from(name), hf_bytes_of(p->part.ptr, p->part.len), false, NULL));
    hf__kill_point("snapshot_part");
    p->is.parts++;
    p->is.bytes += p->part.len;
    memcpy(p->is.hash, p->part_hash, FORM_HASH);
    p->part.len = 0;
    return HF_OK;
}

/* All parts are there: list it. */
static enum hf_status snapshot_end(struct hf_scope *s, struct hf__shipper *sh)
{
    struct manifest *m = &sh->manifest;
    size_t len = m->snapshots.len;
    enum hf_status status;

    hf__buf_put(&m->snapshots, &sh->snapshot.is, sizeof(sh->snapshot.is));
    if (m->snapshots.failed) {
        m->snapshots.failed = false;
        return hf__fail_nomem(s);
    }
    hf__kill_point("before_snapshot_listed");
    status = hf__ship_manifest(s, sh);
    if (status != HF_OK) { /* it is listed when this is tried again; if it is listed already, too */
        m->snapshots.len = len;
        return status;
    }
    hf__kill_point("after_snapshot_listed");
    hf__ship_snapshot_drop(sh);
    sh->wants_snapshot = false;
    return hf__ship_trim(s, sh);
}

enum hf_status hf__ship_snapshot_step(struct hf_scope *s, struct hf__shipper *sh)
{
    struct ship_snapshot *p = &sh->snapshot;
    enum hf_status status = HF_OK;

    if (!p->iter) {
        hf__ship_snapshot_drop(sh);
        status = snapshot_begin(s, sh);
        sh->wants_snapshot |= status != HF_OK;
    }
    if (status == HF_OK && !p->part.len && !p->ended)
        status = part_make(s, sh);
    if (status != HF_OK) { /* from the store: begin anew */
        hf__ship_snapshot_drop(sh);
        note_snapshot(sh);
        return status;
    }
    if (p->part.len)
        status = part_put(s, sh);
    if (status != HF_OK) {
        if (sh->backoff_ms >= SHIP_BACKOFF_MAX_MS) /* what it holds in memory grows meanwhile */
            hf__ship_snapshot_drop(sh);
        return status;
    }
    if (p->ended)
        status = snapshot_end(s, sh);
    note_snapshot(sh);
    return status;
}

/* ---- removing what is old -------------------------------------------------------------------- */

/* How many of the snapshots no restore needs. */
static size_t snapshots_over(struct hf__shipper *sh)
{
    const struct manifest *m = &sh->manifest;
    int64_t oldest_us = hf__env_wall_us(&sh->env) - (int64_t)sh->o.retain_ms * 1000;
    size_t over = 0;

    for (size_t i = 0; i < manifest_snapshots(m); i++)
        if (manifest_snapshot(m, i)->time_us <= oldest_us)
            over = i;
    return over;
}

static void cut_front(struct hf__buf *list, size_t bytes)
{
    memmove(list->ptr, list->ptr + bytes, list->len - bytes);
    list->len -= bytes;
}

/* Take it from the manifest. True: something was. */
static bool lists_trim(struct hf__shipper *sh)
{
    struct manifest *m = &sh->manifest;
    size_t over = snapshots_over(sh), epochs = 0;

    if (!over)
        return false;
    cut_front(&m->snapshots, over * sizeof(struct backup_snapshot));
    m->floor = manifest_snapshot(m, 0)->seq;
    while (epochs + 1 < manifest_epochs(m) &&
           manifest_epoch(m, epochs)->epoch < manifest_snapshot(m, 0)->epoch)
        epochs++;
    cut_front(&m->epochs, epochs * sizeof(struct backup_epoch));
    return true;
}

enum hf_status hf__ship_trim(struct hf_scope *s, struct hf__shipper *sh)
{
    struct chain chain;
    enum hf_status status;

    if (lists_trim(sh)) {
        hf__kill_point("before_trim");
        TRY(hf__ship_manifest(s, sh));
    }
    TRY(hf__chain_load(s, sh->objects, &sh->form, CHAIN_OLD, &chain));
    status =
        chain.found && chain.manifest.epoch == sh->manifest.epoch ? HF_OK : hf__ship_lost(s, sh);
    for (size_t i = 0; status == HF_OK && i < chain_len(&chain.others); i++) {
        struct hf__mark mark = hf__scope_mark(s);
        char name[FORM_NAME];

        hf__form_name(&chain_at(&chain.others, i)->head, name);
        status = hf__objects_remove(s, sh->objects, hf_str_from(name));
        hf__kill_point("trimmed");
        if (status == HF_OK) /* there may be many */
            status = hf__ship_changes(s, sh, false);
        if (!sh->attached)
            break;
        hf__scope_rewind(s, mark);
    }
    hf__chain_free(&chain);
    return status;
}
