/*
 * store/journal_tail.c: reading changes from the journal while others write to it, for backups.
 *
 * Only changes up to one that was flushed are read, and what was flushed is written to no more. So
 * a reader needs no lock: it opens the file that a change is in, and checks what it finds as a
 * reader after a crash does (journal_read.c): the checksum, the number of the file and that of the
 * change. A file that was reclaimed meanwhile, and has been used again, does not pass.
 *
 * The change behind the last one of a file is the first one of a later file, and its head says so.
 * Numbers of files may have gaps, as an open after a crash leaves them.
 *
 * What always holds:
 *
 *  (1) Changes are handed out in order, without a gap, each one whole.
 *  (2) No change is handed out that the store could still take back: `upto` is not above what is
 *      safe.
 */
#include "store/journal_form.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/buf.h"

enum { PIECE = 256 * 1024 }; /* bytes that are read at once, unless a record is larger */

struct tail {
    struct hf_scope *s;
    struct journal_files files;
    struct store_changes *changes;
    int fd;
    struct hf__buf piece; /* bytes of the file from `from` on */
    uint64_t from;
};

static enum hf_status fail_gone(struct tail *tail)
{
    return hf__fail(tail->s, HF_NOT_FOUND, "change %llu is not in the journal in %s any more",
                    (unsigned long long)(tail->changes->after + 1), tail->files.path);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int open_number(struct tail *tail, uint64_t number)
{
    char name[JOURNAL_NAME];

    hf__journal_name(number, name);
    return openat(tail->files.dir, name, O_RDONLY | O_CLOEXEC);
}

/* The first change of an open file; 0: it was not begun under this number. */
static uint64_t first_change(struct tail *tail, int fd, uint64_t number)
{
    uint8_t head[JOURNAL_HEAD];

    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, journal_magic, sizeof(journal_magic)) != 0 || load_u64le(head + 8) != number ||
        load_u64le(head + 24) != tail->files.id || load_u64le(head + 40) != XXH3_64bits(head, 40))
        return 0;
    return load_u64le(head + 16);
}

static void file_close(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
    tail->piece.len = 0;
}

/* Open the newest file that begins with the next change or an earlier one. */
static enum hf_status find_file(struct tail *tail)
{
    struct store_changes *changes = tail->changes;

    file_close(tail);
    for (uint64_t number = tail->files.newest; number >= tail->files.oldest && number; number--) {
        int fd = open_number(tail, number);
        uint64_t first = fd < 0 ? 0 : first_change(tail, fd, number);

        if (first && first <= changes->after + 1) {
            tail->fd = fd;
            changes->file = number;
            changes->at = JOURNAL_START;
            return HF_OK;
        }
        if (fd >= 0)
            close(fd);
        else if (errno != ENOENT)
            return hf__fail(tail->s, HF_IO, "Cannot open a file of the journal in %s: error %d",
                            tail->files.path, errno);
    }
    changes->file = 0;
    return fail_gone(tail);
}

/* Open the file where the reader has been. */
static enum hf_status open_again(struct tail *tail)
{
    struct store_changes *changes = tail->changes;

    if (changes->file < tail->files.oldest || changes->file > tail->files.newest)
        return find_file(tail);
    tail->fd = open_number(tail, changes->file);
    return tail->fd < 0 ? find_file(tail) : HF_OK;
}

/* ---- records -------------------------------------------------------------------------------- */

/* `len` bytes of the file from `at` on; NULL: there are fewer, or there is no memory. */
static const uint8_t *piece_look(struct tail *tail, uint64_t at, size_t len)
{
    size_t want = len > PIECE ? len : PIECE;

    if (tail->piece.len && at >= tail->from && at - tail->from <= tail->piece.len &&
        len <= tail->piece.len - (size_t)(at - tail->from))
        return tail->piece.ptr + (at - tail->from);
    tail->piece.len = 0;
    tail->from = at;
    if (!hf__buf_reserve(&tail->piece, want))
        return NULL;
    while (tail->piece.len < want) {
        ssize_t got = pread(tail->fd, tail->piece.ptr + tail->piece.len, want - tail->piece.len,
                            (off_t)(at + tail->piece.len));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        tail->piece.len += (size_t)got;
    }
    return tail->piece.len < len ? NULL : tail->piece.ptr;
}

/* The record of the next change, if it is here. */
static bool next_record(struct tail *tail, struct hf_bytes *record)
{
    const struct store_changes *changes = tail->changes;
    const uint8_t *head = piece_look(tail, changes->at, JOURNAL_RECORD_HEAD);
    size_t size;

    if (!head || journal_segment(head) != (uint32_t)changes->file || journal_len(head) == 0)
        return false;
    size = journal_record_size(journal_len(head));
    head = piece_look(tail, changes->at, size);
    if (!head || journal_hash(head) != XXH3_64bits_withSeed(head + 8, size - 8, changes->file))
        return false;
    *record = hf_bytes_of(head + JOURNAL_RECORD_HEAD, journal_len(head));
    return true;
}

/* Find the record of the next change. */
static enum hf_status seek_record(struct tail *tail, struct hf_bytes *record)
{
    struct store_changes *changes = tail->changes;
    bool searched = false;

    if (tail->fd < 0)
        TRY(open_again(tail));
    for (;;) {
        if (next_record(tail, record)) {
            const uint8_t *head = record->ptr - JOURNAL_RECORD_HEAD;

            if (journal_change(head) == changes->after + 1)
                return HF_OK;
            if (journal_change(head) <= changes->after) { /* on the way from the file's start */
                changes->at += journal_record_size(record->len);
                continue;
            }
        }
        if (tail->piece.failed)
            return hf__fail_nomem(tail->s);
        if (searched)
            return fail_gone(tail);
        searched = true; /* the file has ended, or it is another one by now */
        TRY(find_file(tail));
    }
}

enum hf_status hf__journal_tail(struct hf_scope *s, struct journal *journal,
                                struct store_changes *changes, uint64_t upto, size_t bytes,
                                store_change_fn *fn, void *user)
{
    struct tail tail = {.s = s,
                        .files = hf__journal_files(journal),
                        .changes = changes,
                        .fd = -1,
                        .piece = {.env = hf__scope_env(s)}};
    enum hf_status status = HF_OK;
    size_t done = 0;

    while (status == HF_OK && changes->after < upto && done < bytes) {
        struct hf_bytes record;

        status = seek_record(&tail, &record);
        if (status == HF_OK)
            status = fn(s, changes->after + 1, record, user);
        if (status == HF_OK) {
            changes->after++;
            changes->at += journal_record_size(record.len);
            done += record.len;
        }
    }
    file_close(&tail);
    hf__buf_free(&tail.piece);
    return status;
}
