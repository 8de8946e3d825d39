/*
 * engine/layout.h: keys in the store.
 *
 * By their first byte:
 *
 *     0x00 name                                    settings of the database itself
 *     0x01 table name                              a table: JSON of struct table_record
 *     0x02 u32be stream id                         a stream: JSON of struct stream_record
 *     0x03 space, u32be id                         everything under that prefix is to be erased
 *     0x04 u32be backup id                         a backup: JSON of struct backup_record
 *     0x10 u32be table id, hash part, range part   an item: u32le size, then the flat item
 *     0x11 u32be index id, index key parts, table key parts        an index entry: likewise
 *     0x12 u32be copy id, hash part, range part    an item in a backup: as the item was
 *     0x20 u32be stream id, u16be shard, u64be sequence            a stream record
 *     0x30 u32be ttl id, u64be expiry, table key parts             an expiry entry: empty
 *     0x40 token                                   a transaction's token: u64be time, digest,
 *                                                  u32be size for each action; those of
 *                                                  ExecuteTransaction behind 0xFF
 *     0x41 u64be time, token                       the same by age: empty
 *
 * (key parts: model/key.h). Ids are never reused.
 */
#ifndef HF_ENGINE_LAYOUT_H
#define HF_ENGINE_LAYOUT_H

#include "base/buf.h"

enum {
    SPACE_SETTING = 0x00,
    SPACE_TABLE = 0x01,
    SPACE_STREAM = 0x02,
    SPACE_ERASE = 0x03,
    SPACE_BACKUP = 0x04,
    SPACE_ITEM = 0x10,
    SPACE_INDEX = 0x11,
    SPACE_COPY = 0x12,
    SPACE_RECORD = 0x20,
    SPACE_EXPIRY = 0x30,
    SPACE_TOKEN = 0x40,
    SPACE_TOKEN_AGE = 0x41
};

enum {
    ROW_HEAD = 4,  /* u32le size in front of a stored item */
    PREFIX_LEN = 5 /* space and id in front of item and index keys */
};

/* Space and id: what all keys of a table's items (or an index's entries) begin with. */
void hf__stored_key_prefix(struct hf__buf *buf, uint8_t space, uint32_t id);

#endif
