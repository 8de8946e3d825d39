/*
 * store/record.h: the changes of a batch, in the two forms in which a store on disk keeps them: as
 * a record of the journal, and as entries of a map.
 */
#ifndef HF_STORE_RECORD_H
#define HF_STORE_RECORD_H

#include "store/map.h"

#include "base/buf.h"

enum { CHANGES_INLINE = 16 };

/* As in a record, where an insert is a put like others. */
enum change_kind { CHANGE_DELETE = 0, CHANGE_PUT = 1, CHANGE_INSERT };

struct changes {
    struct hf_scope *s;
    const struct hf_env *env; /* of the entries */
    size_t record_len;        /* size of the record of all changes */
    struct map_entry **entries;
    size_t len, cap;
    struct map_entry *few[CHANGES_INLINE];
};

void hf__changes_init(struct changes *changes, struct hf_scope *s, const struct hf_env *env);

/* Free the entries. A caller that handed them on sets `len` to 0 before. */
void hf__changes_drop(struct changes *changes);

/* ---- making a record ------------------------------------------------------------------------ */

/* The value is head and body. HF_NOMEM */
enum hf_status hf__changes_add(struct changes *changes, enum change_kind kind, struct hf_bytes key,
                               struct hf_bytes head, struct hf_bytes body);

/* Write all of them as the record of that number, of record_len bytes. */
void hf__changes_write(const struct changes *changes, uint64_t number, uint8_t *to);

/* ---- reading one ---------------------------------------------------------------------------- */

/* Called with each change of a record: kinds are CHANGE_DELETE and CHANGE_PUT. */
typedef enum hf_status record_change_fn(struct hf_scope *s, enum change_kind kind,
                                        struct hf_bytes key, struct hf_bytes value, void *user);

/* Walk over a record, of which nothing is copied. *number is that of the record; *good: it is valid,
 * which is known at its end only. Fails as `fn` does. */
enum hf_status hf__changes_walk(struct hf_scope *s, struct hf_bytes record, record_change_fn *fn,
                                void *user, uint64_t *number, bool *good);

/* Read a record: its changes as entries, and its number. *good: it is valid. HF_NOMEM. */
enum hf_status hf__changes_read(struct changes *changes, struct hf_bytes record, uint64_t *number,
                                bool *good);

#endif
