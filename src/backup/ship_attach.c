/*
 * backup/ship_attach.c: beginning an epoch: finding out what the place has, and whether the journal
 * goes on where that ends.
 *
 * It does if the directory is the one that began the newest epoch, and not a copy of it: the token of
 * that epoch is in its file "backup". And if the change that the chain ends with is the one that the
 * journal has under that number: after a loss of power without syncs it may not be; or if that one
 * is not in the journal any more, but the one behind it is the next. Otherwise the epoch is not
 * joined, and begins with what is durable now and a snapshot.
 *
 *     DIRECTORY/backup    "holdfast backup EPOCH TOKEN\n": written when the epoch has begun
 *
 * A crash between the manifest and that file costs a snapshot, and nothing else.
 */
#include "backup/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/kill.h"

enum { NOTE_MAX = 128, MODE_FILE = 0600 };

/* ---- the file of the directory --------------------------------------------------------------- */

static void note_text(const struct manifest *m, char text[NOTE_MAX])
{
    int len = snprintf(text, NOTE_MAX, "holdfast backup %08llx ", (unsigned long long)m->epoch);

    for (size_t i = 0; i < MANIFEST_TOKEN; i++)
        len += snprintf(text + len, NOTE_MAX - (size_t)len, "%02x", m->token[i]);
    snprintf(text + len, NOTE_MAX - (size_t)len, "\n");
}

/* Is this the directory that began the epoch? */
static bool note_matches(struct hf_scope *s, struct hf__shipper *sh, const struct manifest *m)
{
    struct hf_str path = hf_scope_format(s, "%.*s/backup", HF_FMT(sh->directory));
    char text[NOTE_MAX], there[NOTE_MAX] = "";
    int fd = path.ptr ? open(path.ptr, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return false;
    if (read(fd, there, sizeof(there) - 1) < 0)
        there[0] = '\0';
    close(fd);
    note_text(m, text);
    return str_is(hf_str_from(text), there);
}

static bool sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);

    if (fd >= 0)
        close(fd);
    return done;
}

static enum hf_status note_write(struct hf_scope *s, struct hf__shipper *sh)
{
    struct hf_str path = hf_scope_format(s, "%.*s/backup", HF_FMT(sh->directory));
    struct hf_str aside = hf_scope_format(s, "%.*s/backup.new", HF_FMT(sh->directory));
    char text[NOTE_MAX], room[NOTE_MAX];
    bool done;
    int fd;

    if (!path.ptr || !aside.ptr)
        return hf__fail_nomem(s);
    note_text(&sh->manifest, text);
    fd = open(aside.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (done && rename(aside.ptr, path.ptr) == 0 && sync_directory(sh->directory.ptr))
        return HF_OK;
    return hf__fail(s, HF_IO, "cannot write %s: %s", path.ptr,
                    strerror_r(errno, room, sizeof(room)));
}

/* ---- continuity ----------------------------------------------------------------------------- */

static enum hf_status take_check(struct hf_scope *s, uint64_t ticket, struct hf_bytes record,
                                 void *user)
{
    (void)s;
    (void)ticket;
    *(uint64_t *)user = XXH3_64bits(record.ptr, record.len);
    return HF_OK;
}

static enum hf_status look_only(struct hf_scope *s, uint64_t ticket, struct hf_bytes record,
                                void *user)
{
    (void)s;
    (void)ticket;
    (void)record;
    (void)user;
    return HF_OK;
}

/* Does the journal have the changes behind `last`, and none in between is missing? */
static enum hf_status has_next(struct hf_scope *s, struct hf__shipper *sh, uint64_t last,
                               uint64_t durable, bool *has)
{
    struct store_changes next = {.after = last};
    enum hf_status status = HF_OK;

    if (last < durable)
        status = hf__store_changes(s, sh->store, &next, last + 1, 1, look_only, NULL);
    *has = status == HF_OK;
    if (status != HF_NOT_FOUND)
        return status;
    hf__scope_error_clear(s);
    return HF_OK;
}

/* Does the journal go on where the chain ends? */
static enum hf_status goes_on(struct hf_scope *s, struct hf__shipper *sh,
                              const struct backup_tail *tail, uint64_t durable, bool *joined)
{
    uint64_t last = tail->last;
    struct store_changes before = {.after = last ? last - 1 : 0};
    uint64_t check = 0;
    enum hf_status status;

    *joined = false;
    if (last > durable)
        return HF_OK; /* it has changes that are not here */
    TRY(has_next(s, sh, last, durable, joined));
    if (!*joined || !last || !tail->check)
        return HF_OK;
    status = hf__store_changes(s, sh->store, &before, last, 1, take_check, &check);
    if (status == HF_NOT_FOUND) { /* it is in tables */
        hf__scope_error_clear(s);
        return HF_OK;
    }
    *joined = check == tail->check;
    return status;
}

/* ---- the epoch ------------------------------------------------------------------------------ */

/* Take over the lists of the manifest before. */
static bool lists_take(struct hf__shipper *sh, const struct manifest *before)
{
    struct manifest *m = &sh->manifest;

    m->epochs.len = m->snapshots.len = 0;
    hf__buf_put(&m->epochs, before->epochs.ptr, before->epochs.len);
    hf__buf_put(&m->snapshots, before->snapshots.ptr, before->snapshots.len);
    return !m->epochs.failed && !m->snapshots.failed;
}

static enum hf_status epoch_begin(struct hf_scope *s, struct hf__shipper *sh,
                                  const struct chain *chain, const struct backup_tail *tail,
                                  bool joined, uint64_t base)
{
    struct manifest *m = &sh->manifest;
    const struct manifest *before = &chain->manifest;
    struct backup_epoch epoch = {.epoch = before->epoch + 1,
                                 .first_seq = tail->seq + 1,
                                 .base = base,
                                 .time_us = hf__env_wall_us(&sh->env),
                                 .joined = joined};

    if (epoch.time_us < tail->to_us)
        epoch.time_us = tail->to_us;
    if (joined)
        memcpy(epoch.before, tail->hash, FORM_HASH);
    else
        hf__env_random(&sh->env, epoch.before, FORM_HASH);
    if (!lists_take(sh, before))
        return hf__fail_nomem(s);
    m->id = hf__store_id(sh->store);
    m->epoch = epoch.epoch;
    m->to_us = joined ? tail->to_us : epoch.time_us;
    m->tail = *tail;
    m->tail.last = base;
    memcpy(m->tail.hash, epoch.before, FORM_HASH);
    if (!joined) { /* what the first segment has before it */
        m->tail.to_us = epoch.time_us;
        m->tail.check = 0;
    }
    m->floor = before->floor;
    m->closed = false;
    hf__env_random(&sh->env, m->token, MANIFEST_TOKEN);
    hf__buf_put(&m->epochs, &epoch, sizeof(epoch));
    return m->epochs.failed ? hf__fail_nomem(s) : HF_OK;
}

/* Put the manifest, unless there is one. */
static enum hf_status epoch_put(struct hf_scope *s, struct hf__shipper *sh)
{
    const struct form_head head = {.kind = FORM_MANIFEST, .epoch = sh->manifest.epoch};
    struct hf_bytes object;
    char name[FORM_NAME];
    bool made;

    TRY(hf__chain_manifest_make(s, &sh->form, &sh->manifest, &object));
    hf__form_name(&head, name);
    hf__kill_point("before_epoch");
    TRY(hf__ship_put(s, sh, hf_str_from(name), object, true, &made));
    hf__kill_point("after_epoch");
    if (!made)
        return hf__fail(s, HF_IO, "another process has begun to ship to %.*s at the same time",
                        HF_FMT(hf__objects_url(sh->objects)));
    sh->manifest_us = hf__env_elapsed_us(&sh->env);
    sh->manifest_dirty = false;
    return note_write(s, sh);
}

/* The chain goes on from here: what is in memory follows it. An epoch that broke the chain may have
 * ended before its snapshot: then one that is joined to it needs that one as well. */
static void follow_chain(struct hf__shipper *sh, uint64_t base)
{
    const struct manifest *m = &sh->manifest;
    size_t snapshots = manifest_snapshots(m);
    bool has_base = hf__chain_has_base(m);

    sh->changes = (struct store_changes){.after = base};
    sh->segment.len = 0;
    sh->wants_snapshot = !has_base;
    pthread_mutex_lock(&sh->lock);
    sh->shipped = base;
    for (size_t i = 0; i < sh->marks_len; i++) {
        struct ship_mark *mark = &sh->marks[(sh->marks_at + i) % SHIP_MARKS_MAX];

        if (mark->time_us <= m->to_us) /* the clock was set back */
            mark->time_us = m->to_us + 1 + (int64_t)i;
    }
    if (sh->marks_len)
        sh->marked.time_us = sh->marks[(sh->marks_at + sh->marks_len - 1) % SHIP_MARKS_MAX].time_us;
    if (sh->marked.time_us < m->to_us)
        sh->marked.time_us = m->to_us;
    sh->status.state = HF_BACKUP_SHIPPING;
    sh->status.epoch = m->epoch;
    sh->status.segments = m->tail.seq;
    sh->status.snapshots = has_base ? snapshots : 0;
    sh->status.newest_us = m->to_us;
    sh->status.oldest_us = snapshots ? manifest_snapshot(m, 0)->time_us : 0;
    sh->status.snapshot_us = snapshots ? manifest_snapshot(m, snapshots - 1)->time_us : 0;
    pthread_mutex_unlock(&sh->lock);
    hf__store_changes_release(sh->store, base);
    sh->attached = true;
    sh->breaks = false;
}

static enum hf_status check_place(struct hf_scope *s, struct hf__shipper *sh,
                                  const struct chain *chain)
{
    if (!chain->found)
        return hf__objects_put(s, sh->objects, HF_STR(FORM_FORMAT_NAME),
                               hf_bytes_of(FORM_FORMAT_TEXT, sizeof(FORM_FORMAT_TEXT) - 1), false,
                               NULL);
    if (chain->manifest.id == hf__store_id(sh->store))
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    "%.*s has the backups of another database (%016llx, this one is %016llx); give "
                    "this one a place of its own",
                    HF_FMT(hf__objects_url(sh->objects)), (unsigned long long)chain->manifest.id,
                    (unsigned long long)hf__store_id(sh->store));
}

/* What the lists are needed for: where the chain really ends. */
static enum hf_status attach_to(struct hf_scope *s, struct hf__shipper *sh,
                                const struct chain *chain)
{
    uint64_t durable = hf__store_durable(sh->store);
    struct backup_tail tail = {.seq = 0};
    bool joined = false;
    uint64_t base = durable;

    TRY(check_place(s, sh, chain));
    if (chain->found)
        TRY(hf__chain_tail(s, chain, &tail));
    if (chain->found && !sh->breaks && note_matches(s, sh, &chain->manifest))
        TRY(goes_on(s, sh, &tail, durable, &joined));
    if (joined)
        base = tail.last;
    TRY(epoch_begin(s, sh, chain, &tail, joined, base));
    TRY(epoch_put(s, sh));
    follow_chain(sh, base);
    if (chain->found && !joined)
        hf__env_log(&sh->env, HF_LOG_WARNING,
                    "backup to %.*s: what is there does not go on with this database's journal: "
                    "shipping begins anew, with a snapshot",
                    HF_FMT(hf__objects_url(sh->objects)));
    return HF_OK;
}

enum hf_status hf__ship_attach(struct hf_scope *s, struct hf__shipper *sh)
{
    struct chain chain;
    enum hf_status status;

    assert(!sh->attached);
    TRY(hf__objects_reach(s, sh->objects, true));
    TRY(hf__objects_clean(s, sh->objects));
    TRY(hf__chain_load(s, sh->objects, &sh->form, CHAIN_NEWEST, &chain));
    status = attach_to(s, sh, &chain);
    hf__chain_free(&chain);
    return status;
}
