/*
 * cli/frame/output/rows.h: what a command prints: one thing, or a list of such, each with the same fields.
 *
 *     struct rows rows = hf__rows_begin(cli, &settings.database, "locks");
 *     hf__rows_add(&rows, fields, fields_len);
 *     ...
 *     return hf__rows_end(&rows, CLI_OK);
 *
 * A list is a table on a terminal, and elsewhere a line per row with tabs between its fields. With
 * --json it is {"locks":[...]}, with --jsonl an object per line.
 */
#ifndef HF_CLI_FRAME_ROWS_H
#define HF_CLI_FRAME_ROWS_H

#include "cli/frame/cli.h"
#include "cli/frame/database.h"

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
    bool sparse; /* on a terminal: no column where it is absent, 0 or false in all rows */
    bool cut;    /* on a terminal that is too narrow for all columns: may be shortened */
};

struct rows {
    struct cli *cli;
    const struct database_settings *settings;
    const char *list;
    size_t count;
    /* on a terminal, rows_screen.c: rows that wait until it is known how wide their columns are */
    struct hf_scope *scope; /* of their texts; NULL: there was none yet */
    struct hf_str held[ROWS_HELD_MAX][ROWS_FIELDS_MAX];
    size_t held_len;
    struct rows_field columns[ROWS_FIELDS_MAX]; /* of the last row */
    size_t columns_len;
    size_t widths[ROWS_FIELDS_MAX]; /* of the heading that was printed last */
    bool headed;
};

/* `list` is the name of the list in JSON. hf__rows_end() has to follow. */
void hf__rows_begin(struct rows *rows, struct cli *cli, const struct database_settings *settings,
                    const char *list);

/* One row. Nothing of it is needed after the call but the names of its fields. */
void hf__rows_add(struct rows *rows, const struct rows_field *fields, size_t len);

/* All is written; returns how to end. With --json, `next` (may be absent) is where to go on. */
int hf__rows_end(struct rows *rows, struct hf_str next, int ends);

/*
 * How a command ends that could not open what it lists: with an empty list when *ends is
 * DATABASE_ABSENT, for nothing was stored yet; otherwise as `ends` says.
 */
int hf__rows_none(struct cli *cli, const struct database_settings *settings, const char *list,
                  int ends);

/* One thing: an object, or a line per field. Returns how to end. */
int hf__rows_one(struct cli *cli, const struct database_settings *settings,
                 const struct rows_field *fields, size_t len);

/* Fields. Texts that have to be made are made in cli->scope. */
struct rows_field hf__rows_text(const char *name, struct hf_str text);
struct rows_field hf__rows_number(struct cli *cli, const char *name, uint64_t number);
struct rows_field hf__rows_signed(struct cli *cli, const char *name, int64_t number);
struct rows_field hf__rows_bool(const char *name, bool truth);
/* An array of objects as JSON, in the scope; `fields` fills those of one and returns how many. */
typedef size_t rows_fields_fn(struct cli *cli, const void *all, size_t at,
                              struct rows_field *fields);
struct rows_field hf__rows_array(struct cli *cli, const char *name, const void *all, size_t len,
                                 rows_fields_fn *fields);
/* In pipes and JSON by UTC; for people local, with the offset. 0: absent. */
struct rows_field hf__rows_time(struct cli *cli, const char *name, int64_t us);
/* Milliseconds, of one thing. `name` ends with _ms; people get a time such as 14m 59s and a name
   without that end. */
struct rows_field hf__rows_ms(struct cli *cli, const char *name, int64_t ms);

/* 300ms, 8s, 14m 59s, 2h 5m, 3d 4h: seconds are rounded up. */
struct hf_str hf__rows_duration(struct hf_scope *s, uint64_t ms);

/* Only for programs: no column, and no line. */
bool hf__rows_is_hidden(const struct rows_field *field);

/* ---- text, rows_text.c ---------------------------------------------------------------------- */

/* Text for a terminal or a line: control characters as \n, \t, \\ and \x1b. */
void hf__rows_print(FILE *out, struct hf_str text);

/* How many columns that takes. */
size_t hf__rows_width(struct hf_str text);

/* The same in `width` columns at most, with ... for what is left out. Returns how many it took. */
size_t hf__rows_print_cut(FILE *out, struct hf_str text, size_t width);

/* ---- tables, rows_screen.c ------------------------------------------------------------------ */

/* Keep a row. False: there is no memory for it. */
bool hf__rows_screen_add(struct rows *rows, const struct rows_field *fields, size_t len);

/* Print those that were kept. */
void hf__rows_screen_print(struct rows *rows);

#endif
