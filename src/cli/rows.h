/*
 * cli/rows.h: what a command prints: one thing, or a list of such, each with the same fields.
 *
 *     struct rows rows = hf__rows_begin(cli, &settings.database, "locks");
 *     hf__rows_add(&rows, fields, fields_len);
 *     ...
 *     return hf__rows_end(&rows, CLI_OK);
 *
 * A list is a table on a terminal, and elsewhere a line per row with tabs between its fields. With
 * --json it is {"locks":[...]}, with --jsonl an object per line.
 */
#ifndef HF_CLI_ROWS_H
#define HF_CLI_ROWS_H

#include "cli/cli.h"
#include "cli/database.h"

enum { ROWS_FIELDS_MAX = 16, ROWS_HELD_MAX = 200 };

enum rows_kind {
    ROWS_TEXT, /* a string, or null when it is absent */
    ROWS_RAW,  /* the text is JSON: a number, a list, true */
    ROWS_JSON, /* the same, and only shown as JSON */
    ROWS_WHOLE /* the text is the JSON of all of it, in place of an object of the other fields */
};

struct rows_field {
    const char *name;
    struct hf_str text;
    enum rows_kind kind;
};

struct rows {
    struct cli *cli;
    const struct database_settings *settings;
    const char *list;
    size_t count;
    /* on a terminal: rows that wait until it is known how wide their columns are; none: no text of
       a row is needed any more */
    struct hf_str held[ROWS_HELD_MAX][ROWS_FIELDS_MAX];
    size_t held_len;
    size_t widths[ROWS_FIELDS_MAX];
    const char *names[ROWS_FIELDS_MAX];
    size_t columns;
    bool headed;
};

/* `list` is the name of the list in JSON. */
void hf__rows_begin(struct rows *rows, struct cli *cli, const struct database_settings *settings,
                    const char *list);

/* One row. Its texts have to live until the end of the rows when they are for a terminal. */
void hf__rows_add(struct rows *rows, const struct rows_field *fields, size_t len);

/* Are texts needed for longer than the call of hf__rows_add()? */
bool hf__rows_holds(const struct rows *rows);

/* All is written; returns how to end. With --json, `next` (may be absent) is where to go on. */
int hf__rows_end(struct rows *rows, struct hf_str next, int ends);

/* One thing: an object, or a line per field. Returns how to end. */
int hf__rows_one(struct cli *cli, const struct database_settings *settings,
                 const struct rows_field *fields, size_t len);

/* Fields. Texts that have to be made are made in cli->scope. */
struct rows_field hf__rows_text(const char *name, struct hf_str text);
struct rows_field hf__rows_number(struct cli *cli, const char *name, uint64_t number);
struct rows_field hf__rows_signed(struct cli *cli, const char *name, int64_t number);
struct rows_field hf__rows_bool(const char *name, bool truth);
struct rows_field hf__rows_time(struct cli *cli, const char *name, int64_t us); /* 0: absent */

/* Text for a terminal or a line: control characters as \n, \t, \\ and \x1b. */
void hf__rows_print(FILE *out, struct hf_str text);

#endif
