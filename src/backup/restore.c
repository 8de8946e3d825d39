/*
 * backup/restore.c: a backup made into a database again, and verified.
 *
 * A restore to a moment is the newest snapshot that is not newer, and the changes behind it up to
 * the first mark that is later. They go into a new store, PATH.restoring, which becomes PATH by a
 * rename when it is complete, verified, closed and durable.
 *
 * Verifying is the same walk, over all that counts, without a store.
 *
 * What always holds:
 *
 *  (1) An object is used only after its hash and its place in the chain were checked.
 *  (2) No restore goes across the beginning of an epoch that is not joined.
 *  (3) PATH is there only when it is whole.
 */
#include <holdfast/backup.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backup/chain.h"
#include "base/kill.h"
#include "store/store.h"

enum {
    BATCH_BYTES = 1024 * 1024, /* of what is restored, until it is written */
    TIME_TEXT = 40
};

struct hf_backup {
    struct hf_env env;
    struct hf_scope *memory; /* of the manifest */
    struct hf__objects *objects;
    struct hf__seal *seal;
    struct form form;
    struct chain chain;
};

/* Bytes of all objects that count. */
static uint64_t backup_bytes(const struct hf_backup *backup)
{
    const struct chain *chain = &backup->chain;
    uint64_t bytes = 0;

    for (size_t i = 0; i < chain_len(&chain->logs); i++)
        bytes += chain_at(&chain->logs, i)->size;
    for (size_t i = 0; i < chain_len(&chain->snapshots); i++)
        bytes += chain_at(&chain->snapshots, i)->size;
    return bytes;
}

/* ---- times ---------------------------------------------------------------------------------- */

static const char *time_text(struct hf_scope *s, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    char text[TIME_TEXT] = "";
    const char *said;

    if (gmtime_r(&seconds, &parts))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    said = hf_scope_format(s, "%s.%06dZ", text, (int)(us % 1000000)).ptr;
    return said ? said : "?";
}

/* Until when the segments before a place in the chain are whole, as their names say. */
static int64_t whole_until(const struct chain *chain, uint64_t seq, int64_t at_least_us)
{
    int64_t until = at_least_us;

    for (size_t i = 0; i < chain_len(&chain->logs); i++) {
        const struct form_head *head = &chain_at(&chain->logs, i)->head;

        if (head->seq < seq && head->to_us > until)
            until = head->to_us;
    }
    return until;
}

/* The last moment that a snapshot and what is behind it can make. */
static int64_t newest_from(const struct chain *chain, const struct backup_snapshot *snapshot)
{
    const struct backup_epoch *ends = hf__chain_break_behind(&chain->manifest, snapshot->epoch);
    int64_t newest = hf__chain_newest(chain);

    if (ends)
        return whole_until(chain, ends->first_seq, snapshot->time_us);
    return newest > snapshot->time_us ? newest : snapshot->time_us;
}

static int64_t newest_of(const struct chain *chain)
{
    size_t len = manifest_snapshots(&chain->manifest);

    return len ? newest_from(chain, manifest_snapshot(&chain->manifest, len - 1)) : 0;
}

/* ---- reading what there is ------------------------------------------------------------------- */

struct reading {
    struct hf_backup *backup;
    struct hf_scope *room;    /* of one object */
    struct hf__store *store;  /* NULL: it is only verified */
    struct store_batch batch; /* points into `room` */
    struct hf_backup_report *report;
    hf_backup_progress_fn *progress;
    void *user;
    uint64_t bytes_total;
};

static enum hf_status report_bytes(struct hf_scope *s, struct reading *r, uint64_t bytes)
{
    r->report->objects++;
    r->report->bytes += bytes;
    TRY(hf__scope_alive(s));
    return r->progress ? r->progress(s, r->report->bytes, r->bytes_total, r->user) : HF_OK;
}

/* Copy an error from the scope of an object. */
static enum hf_status hand_on(struct hf_scope *s, const struct hf_scope *room)
{
    const struct hf_error *error = hf_scope_error(room);
    enum hf_status status = hf__fail(s, error->status, "%.*s", HF_FMT(error->message));

    hf__scope_error_edit(s)->may_retry = error->may_retry;
    return status;
}

static void room_reset(struct hf_scope *s, struct reading *r)
{
    hf_scope_reset(r->room);
    hf__scope_follow(r->room, s);
    r->batch = (struct store_batch){.ops = {.scope = r->room}};
}

/* Write what was collected. */
static enum hf_status batch_write(struct reading *r)
{
    uint64_t ticket;

    if (r->store && r->batch.count)
        TRY(hf__store_write(r->room, r->store, &r->batch, &ticket));
    r->batch = (struct store_batch){.ops = {.scope = r->room}};
    return HF_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static enum hf_status fail_at(struct hf_scope *s, const struct form_head *head, const char *what)
{
    char name[FORM_NAME];

    hf__form_name(head, name);
    return hf__fail(s, HF_CORRUPT, "%s is damaged: %s", name, what);
}

static enum hf_status take_entries(struct reading *r, const struct form_head *head,
                                   struct hf_bytes payload, struct hf__buf *last)
{
    struct hf_bytes key, value;
    bool good;

    while (hf__form_entry(&payload, &key, &value, &good)) {
        if (bytes_compare(last->ptr, last->len, key.ptr, key.len) >= 0)
            return fail_at(r->room, head, "its keys are not in their order");
        last->len = 0;
        hf__buf_put(last, key.ptr, key.len);
        r->report->entries++;
        if (r->store)
            hf__batch_put_parts(&r->batch, key, hf_bytes_of(NULL, 0), value, true);
        if (r->batch.bytes >= BATCH_BYTES)
            TRY(batch_write(r));
    }
    if (last->failed)
        return hf__fail_nomem(r->room);
    return good ? batch_write(r) : fail_at(r->room, head, "an entry is cut short");
}

static enum hf_status read_part(struct reading *r, const struct backup_snapshot *is, uint64_t part,
                                uint8_t hash[FORM_HASH], struct hf__buf *last, uint64_t *bytes)
{
    const struct chain *chain = &r->backup->chain;
    const struct chain_object object = {.head = {.kind = FORM_SNAPSHOT,
                                                 .epoch = is->epoch,
                                                 .seq = is->seq,
                                                 .last = is->last,
                                                 .part = part},
                                        .size = is->bytes / is->parts};
    uint8_t before[FORM_HASH];
    struct form_head head;
    struct hf_bytes payload;

    memcpy(before, hash, FORM_HASH);
    TRY(hf__chain_get(r->room, chain->objects, chain->form, &object, &head, &payload, hash));
    if (head.id != chain->manifest.id || head.to_us != is->time_us ||
        memcmp(before, head.before, FORM_HASH) != 0)
        return fail_at(r->room, &head, "it is the part of another snapshot");
    *bytes = payload.len + FORM_HEAD + FORM_HASH + (head.sealed ? SEAL_TAG : 0);
    return take_entries(r, &head, payload, last);
}

static enum hf_status read_snapshot(struct hf_scope *s, struct reading *r,
                                    const struct backup_snapshot *is)
{
    struct hf__buf last = {.env = &r->backup->env};
    uint64_t entries = r->report->entries, all = 0;
    uint8_t hash[FORM_HASH] = {0};
    enum hf_status status = HF_OK;

    for (uint64_t part = 0; status == HF_OK && part < is->parts; part++) {
        uint64_t bytes = 0;

        room_reset(s, r);
        status = read_part(r, is, part, hash, &last, &bytes);
        all += bytes;
        if (status != HF_OK)
            status = hand_on(s, r->room);
        else
            status = report_bytes(s, r, bytes);
    }
    hf__buf_free(&last);
    TRY(status);
    if (memcmp(hash, is->hash, FORM_HASH) != 0 || r->report->entries - entries != is->entries ||
        all != is->bytes)
        return hf__fail(s, HF_CORRUPT,
                        "the snapshot of change %llu is not the one that the manifest has",
                        (unsigned long long)is->last);
    return HF_OK;
}

/* ---- segments ------------------------------------------------------------------------------- */

/* Where a walk over changes is. */
struct applying {
    uint64_t next;  /* the change that has to come next */
    uint64_t above; /* changes up to this one are in the snapshot */
    int64_t at_us;  /* the moment that is wanted */
    int64_t mark_us;
    uint64_t marked; /* the changes up to here belong to the newest mark */
    bool done;       /* a mark was later */
};

static enum hf_status take_step(struct reading *r, const struct form_head *head,
                                const struct form_step *step, struct applying *a)
{
    if (step->is_mark) {
        if (step->time_us < a->mark_us || step->change < a->next)
            return fail_at(r->room, head, "a mark is not in its order");
        a->done = step->time_us > a->at_us;
        a->mark_us = step->time_us;
        a->marked = step->change;
        return HF_OK;
    }
    if (step->change != a->next || step->change > a->marked)
        return fail_at(r->room, head, "a change is not in its order");
    a->next++;
    r->report->changes++;
    if (step->change <= a->above) /* but it has to be valid */
        return r->store ? HF_OK
                        : hf__batch_add_change(r->room, &r->batch, step->change, step->record);
    TRY(hf__batch_add_change(r->room, &r->batch, step->change, step->record));
    return r->batch.bytes >= BATCH_BYTES ? batch_write(r) : HF_OK;
}

static enum hf_status take_segment(struct reading *r, const struct form_head *head,
                                   struct hf_bytes payload, struct applying *a)
{
    struct form_step step;
    bool good = true;

    a->next = head->first;
    a->marked = 0;
    while (!a->done && hf__form_step(&payload, &step, &good))
        TRY(take_step(r, head, &step, a));
    if (!good || (!a->done && a->next != head->last + 1))
        return fail_at(r->room, head, "its changes are not what its head says");
    if (!r->store) {
        r->batch = (struct store_batch){.ops = {.scope = r->room}};
        return HF_OK;
    }
    return batch_write(r);
}

/* One segment. *found is false at the end. */
static enum hf_status read_segment(struct hf_scope *s, struct reading *r, struct chain_walk *walk,
                                   struct applying *a, bool *found)
{
    size_t at = walk->next;
    struct form_head head;
    struct hf_bytes payload;
    enum hf_status status;

    room_reset(s, r);
    status = hf__walk_next(r->room, walk, found, &head, &payload);
    if (status == HF_OK && *found)
        status = take_segment(r, &head, payload, a);
    if (status != HF_OK)
        return hand_on(s, r->room);
    return *found ? report_bytes(s, r, chain_at(&walk->chain->logs, at)->size) : HF_OK;
}

/* Changes behind a snapshot, up to a moment. */
static enum hf_status apply_changes(struct hf_scope *s, struct reading *r,
                                    const struct backup_snapshot *is, int64_t at_us)
{
    const struct chain *chain = &r->backup->chain;
    const struct backup_epoch *ends = hf__chain_break_behind(&chain->manifest, is->epoch);
    struct applying a = {.above = is->last, .at_us = at_us};
    struct chain_walk walk;
    bool found = true;

    hf__walk_begin(chain, is->seq, is->last, &walk);
    while (found && !a.done && !(ends && walk.at.seq + 1 >= ends->first_seq)) /* (2) */
        TRY(read_segment(s, r, &walk, &a, &found));
    return HF_OK;
}

/* ---- verifying ------------------------------------------------------------------------------ */

struct verifying {
    struct hf_scope *s;
    const struct hf_backup_verify_options *o;
    struct hf_backup_report *report;
    struct hf_str first; /* what is damaged first */
};

/* Note a damage. Anything else ends the verification. */
static enum hf_status note_damage(struct verifying *v, enum hf_status status)
{
    struct hf_str text;

    if (status != HF_CORRUPT)
        return status;
    text = hf_scope_copy(v->s, hf_scope_error(v->s)->message);
    if (!text.ptr)
        return hf__fail_nomem(v->s);
    if (!v->report->damages++)
        v->first = text;
    if (v->o->damage)
        v->o->damage(text, v->o->user);
    hf__scope_error_clear(v->s);
    return HF_OK;
}

/* Go on behind a segment that is damaged or missing. False: there is none. */
static bool walk_skip(struct chain_walk *walk)
{
    const struct hf__buf *logs = &walk->chain->logs;
    uint64_t seq = walk->at.seq;

    if (walk->next < chain_len(logs) && chain_at(logs, walk->next)->head.seq == seq + 1)
        walk->next++; /* that one */
    while (walk->next < chain_len(logs) && chain_at(logs, walk->next)->head.seq <= seq + 1)
        walk->next++;
    if (walk->next == chain_len(logs))
        return false;
    walk->at.seq = chain_at(logs, walk->next)->head.seq - 1;
    walk->at.last = UINT64_MAX - 1; /* nobody knows */
    walk->known = false;
    return true;
}

/* All segments that a restore from the oldest snapshot on may need. */
static enum hf_status verify_segments(struct hf_scope *s, struct reading *r, struct verifying *v)
{
    const struct chain *chain = &r->backup->chain;
    struct applying a = {.at_us = INT64_MAX, .above = UINT64_MAX};
    struct chain_walk walk;
    bool found = true;

    hf__walk_begin(chain, chain->manifest.floor, UINT64_MAX - 1, &walk);
    while (found) {
        enum hf_status status = read_segment(s, r, &walk, &a, &found);

        if (status != HF_CORRUPT) {
            TRY(status);
            continue;
        }
        TRY(note_damage(v, status));
        a = (struct applying){.at_us = INT64_MAX, .above = UINT64_MAX};
        found = walk_skip(&walk);
    }
    return HF_OK;
}

enum hf_status hf_backup_verify(struct hf_scope *s, struct hf_backup *backup,
                                const struct hf_backup_verify_options *options,
                                struct hf_backup_report *report)
{
    struct hf_backup_verify_options o = {.size = sizeof(o)};
    struct hf_backup_report mine = {0};
    struct reading r = {.backup = backup, .report = &mine};
    struct verifying v = {.s = s, .o = &o, .report = &mine};
    const struct manifest *m = &backup->chain.manifest;
    enum hf_status status = HF_OK;

    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    TRY(hf__scope_alive(s));
    r.progress = o.progress;
    r.user = o.user;
    r.bytes_total = backup_bytes(backup);
    r.room = hf_scope_new(&backup->env);
    if (!r.room)
        return hf__fail_nomem(s);
    for (size_t i = 0; status == HF_OK && i < manifest_snapshots(m); i++)
        status = note_damage(&v, read_snapshot(s, &r, manifest_snapshot(m, i)));
    if (status == HF_OK)
        status = verify_segments(s, &r, &v);
    hf_scope_free(r.room);
    if (report)
        *report = mine;
    TRY(status);
    if (!mine.damages)
        return HF_OK;
    return hf__fail(s, HF_CORRUPT, "%.*s", HF_FMT(v.first));
}

/* ---- restoring ------------------------------------------------------------------------------ */

static enum hf_status fail_errno(struct hf_scope *s, const char *what, const char *path)
{
    int error = errno;
    char room[128];

    return hf__fail(s, error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO, "cannot %s %s: %s",
                    what, path, strerror_r(error, room, sizeof(room)));
}

/* Remove what a killed restore left: a store, with files in folders of one level. */
static enum hf_status remove_left(struct hf_scope *s, int in, const char *name, const char *path)
{
    int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    enum hf_status status = HF_OK;
    struct dirent *entry;

    if (!listing) {
        if (fd >= 0)
            close(fd);
        return errno == ENOENT ? HF_OK : fail_errno(s, "remove", path);
    }
    while (status == HF_OK && (entry = readdir(listing))) {
        if (str_is(hf_str_from(entry->d_name), ".") || str_is(hf_str_from(entry->d_name), ".."))
            continue;
        if (unlinkat(fd, entry->d_name, 0) && (errno == EISDIR || errno == EPERM))
            status = remove_left(s, fd, entry->d_name, path);
    }
    closedir(listing);
    if (status == HF_OK && unlinkat(in, name, AT_REMOVEDIR))
        status = fail_errno(s, "remove", path);
    return status;
}

/* The newest snapshot that is not newer than the moment. */
static enum hf_status snapshot_choose(struct hf_scope *s, const struct chain *chain, int64_t at_us,
                                      const struct backup_snapshot **chosen)
{
    const struct manifest *m = &chain->manifest;
    int64_t newest = newest_of(chain), until;
    size_t len = manifest_snapshots(m), i = len;

    if (!len)
        return hf__fail(s, HF_NOT_FOUND,
                        "the backup has no snapshot yet, so nothing can be restored from it");
    while (i > 0 && manifest_snapshot(m, i - 1)->time_us > at_us)
        i--;
    if (!i || at_us > newest)
        return hf__fail(s, HF_NOT_FOUND, "the backup has moments from %s to %s, not %s",
                        time_text(s, manifest_snapshot(m, 0)->time_us), time_text(s, newest),
                        time_text(s, at_us));
    *chosen = manifest_snapshot(m, i - 1);
    until = newest_from(chain, *chosen);
    if (at_us <= until)
        return HF_OK;
    assert(i < len); /* otherwise `until` is the newest */
    return hf__fail(s, HF_NOT_FOUND, "nothing was shipped between %s and %s: choose one of them",
                    time_text(s, until), time_text(s, manifest_snapshot(m, i)->time_us));
}

/* Fill the new store. */
static enum hf_status store_fill(struct hf_scope *s, struct reading *r, const char *path,
                                 const struct backup_snapshot *is, int64_t at_us)
{
    const struct store_options options = {.sync = STORE_SYNC_NONE};
    enum hf_status status;

    TRY(hf__store_open_disk(s, &r->backup->env, hf_str_from(path), &options, &r->store));
    status = read_snapshot(s, r, is);
    if (status == HF_OK)
        status = apply_changes(s, r, is, at_us);
    if (status == HF_OK) {
        uint64_t last = hf__store_written(r->store);

        status = hf__store_sync(s, r->store, last);
    }
    hf__kill_point("before_restored");
    hf__store_close(r->store);
    return status;
}

/* Is it whole, and durable? A close reports nothing. */
static enum hf_status check_closed(struct hf_scope *s, struct reading *r, const char *path)
{
    const struct store_options options = {.sync = STORE_SYNC_NONE, .read_only = true};
    struct hf__store *store;

    TRY(hf__store_open_disk(s, &r->backup->env, hf_str_from(path), &options, &store));
    hf__store_close(store);
    return HF_OK;
}

static enum hf_status directory_place(struct hf_scope *s, const char *aside, const char *path)
{
    struct hf_str above = hf_scope_format(s, "%s/..", path);
    int fd;

    if (!above.ptr)
        return hf__fail_nomem(s);
    if (rename(aside, path))
        return fail_errno(s, "create", path);
    fd = open(above.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) && errno != EINVAL)) {
        enum hf_status status = fail_errno(s, "sync", above.ptr);

        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    return HF_OK;
}

static enum hf_status restore_to(struct hf_scope *s, struct reading *r, const char *path,
                                 const struct backup_snapshot *is, int64_t at_us)
{
    const char *aside = hf_scope_format(s, "%s.restoring", path).ptr;
    struct stat info;

    if (!aside)
        return hf__fail_nomem(s);
    if (lstat(path, &info) == 0)
        return hf__fail(s, HF_IN_USE, "%s is there already; restore to a new directory", path);
    TRY(remove_left(s, AT_FDCWD, aside, aside));
    TRY(store_fill(s, r, aside, is, at_us));
    TRY(check_closed(s, r, aside));
    return directory_place(s, aside, path);
}

/* Bytes that a restore reads, roughly: by the names. */
static uint64_t bytes_needed(const struct chain *chain, const struct backup_snapshot *is,
                             int64_t at_us)
{
    uint64_t bytes = is->bytes;
    int64_t before = 0;

    for (size_t i = 0; i < chain_len(&chain->logs); i++) {
        const struct chain_object *object = chain_at(&chain->logs, i);

        if (object->head.seq > is->seq && before <= at_us)
            bytes += object->size;
        before = object->head.to_us;
    }
    return bytes;
}

enum hf_status hf_backup_restore(struct hf_scope *s, struct hf_backup *backup, struct hf_str path,
                                 const struct hf_backup_restore_options *options,
                                 struct hf_backup_report *report)
{
    struct hf_backup_restore_options o = {.size = sizeof(o)};
    struct hf_backup_report mine = {0};
    struct reading r = {.backup = backup, .report = &mine};
    const struct backup_snapshot *is = NULL;
    struct hf_str whole = hf_scope_copy(s, path); /* with a NUL behind */
    enum hf_status status;

    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    TRY(hf__scope_alive(s));
    while (whole.len > 1 && whole.ptr[whole.len - 1] == '/')
        whole.len--;
    whole = hf_scope_copy(s, whole);
    if (!whole.ptr)
        return hf__fail_nomem(s);
    if (!whole.len || memchr(whole.ptr, '\0', whole.len))
        return hf__fail(s, HF_INVALID, "the path to restore to is empty or has a NUL");
    mine.at_us = o.at_us ? o.at_us : newest_of(&backup->chain);
    TRY(snapshot_choose(s, &backup->chain, mine.at_us, &is));
    r.progress = o.progress;
    r.user = o.user;
    r.bytes_total = bytes_needed(&backup->chain, is, mine.at_us);
    r.room = hf_scope_new(&backup->env);
    status = r.room ? restore_to(s, &r, whole.ptr, is, mine.at_us) : hf__fail_nomem(s);
    hf_scope_free(r.room);
    if (report)
        *report = mine;
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

void hf_backup_close(struct hf_backup *backup)
{
    struct hf_env env;

    if (!backup)
        return;
    env = backup->env;
    hf__chain_free(&backup->chain);
    hf__signer_free(backup->form.signer);
    hf__seal_close(backup->seal);
    hf__objects_close(backup->objects);
    hf_scope_free(backup->memory);
    hf__env_free(&env, backup, sizeof(*backup));
}

static enum hf_status open_inside(struct hf_scope *s, struct hf_backup *backup, struct hf_str from,
                                  const struct hf_backup_open_options *o)
{
    enum hf_status status;

    backup->memory = hf_scope_new(&backup->env);
    if (!backup->memory)
        return hf__fail_nomem(s);
    TRY(hf__objects_open(s, &backup->env, from, o->client, &backup->objects));
    if (o->key_file.len)
        TRY(hf__seal_open(s, &backup->env, o->key_file, &backup->seal));
    TRY(hf__signer_new(s, &backup->env, &backup->form.signer));
    backup->form.env = backup->env;
    backup->form.seal = backup->seal;
    TRY(hf__objects_reach(s, backup->objects, false));
    hf__scope_follow(backup->memory, s);
    status =
        hf__chain_load(backup->memory, backup->objects, &backup->form, CHAIN_ALL, &backup->chain);
    if (status != HF_OK) {
        backup->chain = (struct chain){.found = false};
        return hand_on(s, backup->memory);
    }
    if (!backup->chain.found)
        return hf__fail(s, HF_NOT_FOUND, "there is no backup in %.*s",
                        HF_FMT(hf__objects_url(backup->objects)));
    return HF_OK;
}

enum hf_status hf_backup_open(struct hf_scope *s, struct hf_str from,
                              const struct hf_backup_open_options *options,
                              struct hf_backup **backup)
{
    struct hf_backup_open_options o = {.size = sizeof(o)};
    struct hf_env whole = hf__env_fill(hf__scope_env(s));
    struct hf_backup *made = hf__env_zalloc(&whole, sizeof(*made));
    enum hf_status status;

    *backup = NULL;
    hf__scope_error_clear(s);
    if (!made)
        return hf__fail_nomem(s);
    made->env = whole;
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    status = hf__scope_alive(s);
    if (status == HF_OK)
        status = open_inside(s, made, from, &o);
    if (status != HF_OK) {
        hf_backup_close(made);
        return status;
    }
    *backup = made;
    return HF_OK;
}

void hf_backup_info(const struct hf_backup *backup, struct hf_backup_info *info)
{
    const struct chain *chain = &backup->chain;
    const struct manifest *m = &chain->manifest;
    size_t snapshots = manifest_snapshots(m);

    *info = (struct hf_backup_info){.database = m->id,
                                    .epoch = m->epoch,
                                    .segments = chain_len(&chain->logs),
                                    .snapshots = snapshots,
                                    .objects =
                                        chain_len(&chain->logs) + chain_len(&chain->snapshots) + 1,
                                    .bytes = backup_bytes(backup),
                                    .unneeded = chain_len(&chain->others),
                                    .oldest_us = snapshots ? manifest_snapshot(m, 0)->time_us : 0,
                                    .newest_us = newest_of(chain),
                                    .closed = m->closed,
                                    .encrypted = backup->seal != NULL};
}

enum hf_status hf_backup_snapshots(struct hf_scope *s, const struct hf_backup *backup,
                                   const struct hf_backup_snapshot_info **snapshots, size_t *len)
{
    const struct manifest *m = &backup->chain.manifest;
    struct hf_backup_snapshot_info *list;

    hf__scope_error_clear(s);
    *len = manifest_snapshots(m);
    list = hf__scope_array(s, *len + 1, sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < *len; i++) {
        const struct backup_snapshot *p = manifest_snapshot(m, i);

        list[i] = (struct hf_backup_snapshot_info){.time_us = p->time_us,
                                                   .change = p->last,
                                                   .parts = p->parts,
                                                   .entries = p->entries,
                                                   .bytes = p->bytes};
    }
    *snapshots = list;
    return HF_OK;
}

const char *hf_backup_state_name(enum hf_backup_state state)
{
    static const char *const names[] = {
        [HF_BACKUP_OFF] = "off",           [HF_BACKUP_STARTING] = "starting",
        [HF_BACKUP_SHIPPING] = "shipping", [HF_BACKUP_BEHIND] = "behind",
        [HF_BACKUP_FENCED] = "fenced",     [HF_BACKUP_REFUSED] = "refused"};

    return (unsigned)state < ARRAY_LEN(names) && names[state] ? names[state] : "unknown";
}
