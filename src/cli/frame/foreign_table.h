/*
 * cli/frame/foreign_table.h: a table that another library's programs write, as `events adopt` and
 * `outbox adopt` read it: its database, all of its items, and members of them that are texts.
 */
#ifndef HF_CLI_FRAME_FOREIGN_TABLE_H
#define HF_CLI_FRAME_FOREIGN_TABLE_H

#include "cli/frame/command.h"

struct hf_scan;

/* Where the table is. */
struct foreign_table {
    struct hf_db *db;
    struct hf_db *opened; /* `db`, if it is another database than that of --db */
};

/* The option for it, in settings with `from_url`. */
#define FOREIGN_TABLE_DB                                                                           \
    OPT_TEXT("from-db", "URL", from_url,                                                           \
             "The database of TABLE, if that is another one. Its URL may say more: "               \
             "dynamodb://eu-west-1?profile=work.")

/* In `check`: the first operand is not `table` in the same database, where `what` is made. Databases
 * are opened by the next, as theirs has to be there, and ours may be made. */
enum hf_status hf__foreign_table_check(struct command_ctx *c, struct hf_str url,
                                       struct hf_str table, const char *what);

/* Open the database of the table: that of `url`, or of --db where `url` is absent or the same. */
enum hf_status hf__foreign_table_open(struct command_ctx *c, struct hf_str url,
                                      struct foreign_table *from);
void hf__foreign_table_close(struct command_ctx *c, struct foreign_table *from);

/* Open the database of --db, and the table in it, so that they are made when they are missing. */
enum hf_status hf__foreign_table_target(struct command_ctx *c);

/* Hand each item that `scan` finds to `take`, whose memory in `s` ends with it. Every request has
 * --timeout. */
typedef enum hf_status foreign_item_fn(struct hf_item item, void *user);
enum hf_status hf__foreign_table_scan(struct command_ctx *c, struct hf_db *db,
                                      const struct hf_scan *scan, foreign_item_fn *take,
                                      void *user);

/* *error says that a member is not as expected: "\"NAME\" WHAT". Returns false. */
bool hf__foreign_member_fail(struct hf_scope *s, struct hf_str name, const char *what,
                             struct hf_str *error);

/* A member that is a text; absent or NULL: *text is not changed. False: *error says what it is. */
bool hf__foreign_text(struct hf_scope *s, struct hf_item item, const char *name,
                      struct hf_str *text, struct hf_str *error);

#endif
