/*
 * wire/checks.c: the table of fields of a check.
 */
#include "wire/checks.h"

#include "ops/table.h"

ENUM(states, "[none, running, sound, damaged, failed]", "none", "running", "sound", "damaged",
     "failed");

#define T wire_check
static const struct field check_list[] = {
    ENUMERATED("state", state, states),
    INT("check", number, LONG_ALWAYS),
    INT("keys", keys, LONG_ALWAYS),
    INT("bytes", bytes, LONG_ALWAYS),
    INT("about_bytes", about_bytes, LONG_ALWAYS),
    INT("tables", tables, LONG_ALWAYS),
    INT("items", items, LONG_ALWAYS),
    INT("index_entries", index_entries, LONG_ALWAYS),
    INT("stream_records", stream_records, LONG_ALWAYS),
    INT("expiry_entries", expiry_entries, LONG_ALWAYS),
    INT("tokens", tokens, LONG_ALWAYS),
    INT("backups", backups, LONG_ALWAYS),
    INT("backup_items", backup_items, LONG_ALWAYS),
    INT("problems", problems, LONG_ALWAYS),
    STR("problem", problem),
};
const struct fields hf__wire_check = {"Check", check_list, ARRAY_LEN(check_list),
                                      sizeof(struct wire_check)};
#undef T
