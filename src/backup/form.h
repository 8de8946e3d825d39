/*
 * backup/form.h: how a backup lies in its place: names of objects, their envelope, what is in them.
 *
 *     holdfast-backup                       "holdfast backup format 1\n"
 *     manifest/EPOCH                        who ships, what there is: one for each epoch, replaced
 *     log/EPOCH-SEQ-LAST-TIME               a segment: changes up to LAST, as they were until TIME
 *     snapshot/EPOCH-SEQ-LAST-PART          a part of a snapshot: everything as of change LAST
 *
 * Numbers in names are hexadecimal, of fixed width. An object but the first is
 *
 *      0  8    "hfbackup"
 *      8  u8   version, 1
 *      9  u8   kind: enum form_kind
 *     10  u8   1: the payload is encrypted
 *     11  5    0
 *     16  u64  id of the database
 *     24  u64  epoch
 *     32  u64  seq: of a segment, its place in the chain; of a snapshot, the segment before it; of a
 *              manifest 0
 *     40  u64  part, of a snapshot, from 0 on
 *     48  u64  first change of a segment
 *     56  u64  last change of a segment or snapshot
 *     64  i64  time until which the segment before it was whole
 *     72  i64  time until which this one is whole, or of which the snapshot or manifest is
 *     80  32   SHA-256 of the object before it: at its end, or as the manifest says
 *    112  u64  bytes of the payload, with its tag
 *    120  12   nonce of the encryption; or 0
 *    132  u32  0
 *    136  u64  XXH3 of the record of the last change, of a segment; proves what the journal has
 *    144       payload; encrypted, it ends with a tag of 16 bytes, which covers these 144, too
 *         32   SHA-256 of all before it
 *
 * All numbers are little-endian, times are microseconds since 1970.
 *
 * The payload of a segment is a list of
 *
 *     u8 1, i64 time, u64 change       the changes that follow, up to that one, became durable by
 *                                      that time, and not before the time of the mark before it
 *     u8 2, u64 change, u32 length, record as the journal has it
 *
 * of a snapshot part: u32 and u32 length, key, value, in the order of keys. That of a manifest is in
 * manifest.h.
 */
#ifndef HF_BACKUP_FORM_H
#define HF_BACKUP_FORM_H

#include "base/buf.h"
#include "blob/objects.h"
#include "blob/seal.h"
#include "http/sign.h"

enum form_kind { FORM_MANIFEST = 1, FORM_LOG = 2, FORM_SNAPSHOT = 3 };

enum {
    FORM_HEAD = 144,
    FORM_HASH = 32,
    FORM_NAME = 96,          /* bytes that a name takes, with its NUL */
    FORM_MARK = 1 + 2 * 8,   /* bytes of a mark */
    FORM_CHANGE = 1 + 8 + 4, /* bytes before a record */
    FORM_ENTRY = 8           /* bytes before a key */
};

#define FORM_FORMAT_NAME "holdfast-backup"
#define FORM_FORMAT_TEXT "holdfast backup format 1\n"

_Static_assert((int)FORM_HASH == (int)SIGN_HASH, "SHA-256");

struct form_head {
    enum form_kind kind;
    bool sealed;
    uint64_t id;
    uint64_t epoch;
    uint64_t seq;
    uint64_t part;
    uint64_t first;
    uint64_t last;
    int64_t from_us;
    int64_t to_us;
    uint8_t before[FORM_HASH];
    uint64_t check;
};

/* ---- names ---------------------------------------------------------------------------------- */

void hf__form_name(const struct form_head *head, char name[FORM_NAME]);

/* Kind, epoch, seq, part, last and to_us of a name, as far as it has them. False: it is no name of
 * ours. */
bool hf__form_name_read(struct hf_str name, struct form_head *head);

/* ---- objects -------------------------------------------------------------------------------- */

/* What makes and reads objects; one thread at a time uses it. */
struct form {
    struct hf_env env;
    struct signer *signer;
    const struct hf__seal *seal; /* NULL: nothing is encrypted */
};

/* Begin an object: room for the head. Then append the payload, and end it. */
void hf__form_begin(struct hf__buf *object);

/* Finish the object: encrypted, if there is a seal, and with its hashes. HF_NOMEM. */
enum hf_status hf__form_end(struct hf_scope *s, const struct form *form, struct form_head *head,
                            struct hf__buf *object, uint8_t hash[FORM_HASH]);

/*
 * Check an object and read it. The payload is where it was, decrypted in place. `name` is what it
 * was found under.
 *
 * HF_CORRUPT  it is damaged, or has another name; the message has the name
 * HF_DENIED   it is encrypted and there is no key, or another one
 * HF_FORMAT   a newer version made it
 */
enum hf_status hf__form_read(struct hf_scope *s, const struct form *form, struct hf_str name,
                             struct hf_bytes object, struct form_head *head,
                             struct hf_bytes *payload, uint8_t hash[FORM_HASH]);

/* ---- payloads ------------------------------------------------------------------------------- */

void hf__form_put_mark(struct hf__buf *object, int64_t time_us, uint64_t change);
void hf__form_put_change(struct hf__buf *object, uint64_t change, struct hf_bytes record);
void hf__form_put_entry(struct hf__buf *object, struct hf_bytes key, struct hf_bytes value);

/* A mark, or a change: record.ptr is NULL in a mark. */
struct form_step {
    bool is_mark;
    int64_t time_us;
    uint64_t change;
    struct hf_bytes record;
};

/* The next of a segment. False: that was all, or *good is false: it is invalid. */
bool hf__form_step(struct hf_bytes *payload, struct form_step *step, bool *good);
bool hf__form_entry(struct hf_bytes *payload, struct hf_bytes *key, struct hf_bytes *value,
                    bool *good);

#endif
