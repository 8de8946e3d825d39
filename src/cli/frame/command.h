/*
 * cli/frame/command.h: a command as a table and a body. What all commands do around their work is done
 * here: read the arguments, open the database and what the noun keeps in it, show the error or the
 * end of the list, close.
 *
 *     static enum hf_status counter_delete(struct command_ctx *c)
 *     {
 *         const struct settings *settings = c->settings;
 *
 *         if (c->place)
 *             TRY(hf_counter_delete(c->scope, c->place, key_of(settings, c->operands[0])));
 *         return COMMAND_JSON(c, hf__rows_text("id", hf_str_from(c->operands[0])));
 *     }
 *
 *     COMMAND_OF(counter_delete, counter_delete, COMMAND_SETTINGS(struct settings), .min = 1,
 *                .max = 1, .place = &counters_place, .table = COMMAND_LOOKS);
 *
 * A body returns the status of what it called, and the frame shows the error of the scope. Errors of
 * its own it shows by hf__command_fail(). How the program ends then is in `ends`.
 */
#ifndef HF_CLI_FRAME_COMMAND_H
#define HF_CLI_FRAME_COMMAND_H

#include "cli/frame/output/rows.h"

#include <holdfast/blob.h>

struct guard;

/* What a command does when its table does not exist, because nothing was stored yet. A table that
 * was named (--table) must always exist. */
enum command_table {
    COMMAND_NEEDS, /* it fails, and says which command creates the table */
    COMMAND_LOOKS, /* it prints an empty `list`; without one its body runs, and `place` is NULL */
    COMMAND_EMPTY, /* it works on an empty table in memory */
    COMMAND_MAKES  /* it creates the table, and the directory of the database */
};

/* A command as it runs. */
struct command_ctx {
    struct cli *cli;
    struct hf_scope *scope; /* the command's; has the deadline of --timeout when all is open */
    const char *name;       /* "kv get" */
    const struct command *command;
    const struct options_table *table;
    void *settings;                     /* what was parsed, in the scope */
    struct database_settings *database; /* in `settings`; NULL: without a database */
    struct options options;
    const char *const *operands;
    size_t operands_len;
    struct guard *guard;        /* NULL: signals end the program */
    struct database_wait *wait; /* for a directory that another process has open; NULL: not */
    bool without_db;            /* `check` has found that the database is not needed */
    struct hf_db *db;
    struct hf_blobs *blobs; /* NULL: none was opened */
    void *place;            /* what the noun keeps in the database; NULL: nothing was stored yet */
    bool makes;             /* may create a missing directory or table */
    bool empty;             /* `db` is in memory, as nothing was stored yet */
    struct rows *rows;      /* of commands with a list */
    bool listing;           /* rows have begun, and are to be ended */
    struct hf_str next;     /* where a list continues, for --json */
    struct hf_str config_error; /* with `reports_config`: what is wrong with the config file */
    int ends;                   /* how the program ends; not CLI_OK: all was shown */
};

/* What the commands of a noun work on. */
struct command_place {
    /* Open c->place in c->db. With c->makes the table is made when it is missing. */
    enum hf_status (*open)(struct command_ctx *c);
    void (*close)(void *place);
    const char *maker; /* the command that makes the table, for the error; NULL: none is named */
};

struct command {
    size_t settings_size; /* COMMAND_SETTINGS() */
    size_t min, max;      /* of operands */
    bool has_database;
    const struct command_place *place; /* NULL: the database alone */
    enum command_table table;
    const char *list;    /* with COMMAND_LOOKS: which list is empty then; NULL: the body runs */
    bool guarded;        /* a signal cancels the scope, and the program ends in order */
    bool ends_by_signal; /* a signal is no failure: exit code 0 */
    bool reports_signal; /* the canceled call is an error that is shown, as any other */
    bool reports_config; /* a bad config file does not end it: its body reports config_error */

    /* Check the arguments before anything is opened; NULL: the parser has checked them all. */
    enum hf_status (*check)(struct command_ctx *c);
    /* The work. */
    enum hf_status (*body)(struct command_ctx *c);
    const void *data; /* for a body that several commands have */
    /* The database could not be opened, which was shown: may change `ends`. NULL: nothing. */
    void (*unopened)(struct command_ctx *c);
    /* Close what `check` has opened, whatever came of it. NULL: nothing. */
    void (*end)(struct command_ctx *c);
    /* In place of all that: a command with a frame of its own. */
    int (*run)(struct cli *cli, size_t args_len, const char *const *args);
};

#define COMMAND_MANY SIZE_MAX /* operands */

/* For settings whose first member is `struct database_settings database`. */
#define COMMAND_SETTINGS(type) COMMAND_SETTINGS_IF(type, offsetof(type, database) == 0)
#define COMMAND_SETTINGS_IF(type, fits)                                                            \
    .settings_size = sizeof(type) + 0 * sizeof(char[(fits) ? 1 : -1]), .has_database = true

/* Run it; `args` is what is behind its name. Returns how the program ends. */
int hf__command_run(struct cli *cli, const struct command *command,
                    const struct options_table *table, size_t args_len, const char *const *args);

/* The operand at `at`, or absent. */
struct hf_str hf__command_operand(const struct command_ctx *c, size_t at);

/* Show an error of the command's own. Returns a failed status, for the body to return. */
enum hf_status hf__command_fail(struct command_ctx *c, int ends, const char *format, ...)
    HF_PRINTF(3, 4);

/* The same for an error that was already shown. */
enum hf_status hf__command_shown(struct command_ctx *c, int ends);

/* hf__command_fail() for a required option: "missing option --from". */
enum hf_status hf__command_missing(struct command_ctx *c, const char *option);

/* Show the error of the scope now, when more has to be printed behind it. */
void hf__command_failed(struct command_ctx *c);

/* End with this code, without an error. */
enum hf_status hf__command_end(struct command_ctx *c, int ends);

/* For a command with --wait, in its check: how long to wait for a directory, and then for what is in
 * it. The second takes the status of the call that waited: if another held it all the time, the
 * command ends with `busy_code`, and shows the error unless --quiet. */
void hf__command_wait(struct command_ctx *c, struct database_wait *wait, uint64_t wait_ms,
                      uint64_t busy_code);
enum hf_status hf__command_waited(struct command_ctx *c, enum hf_status status);

/* Open the blob store at `url`, or none when that is absent; the frame closes it. It is made when the
 * command may make things. */
enum hf_status hf__command_open_blobs(struct command_ctx *c, struct hf_str url);

/* Begin the list that JSON calls `list`; the frame ends it. */
struct rows *hf__command_rows(struct command_ctx *c, const char *list);

/* One thing: an object, or a line per field. The second: only with --json. */
enum hf_status hf__command_print(struct command_ctx *c, const struct rows_field *fields,
                                 size_t len);
enum hf_status hf__command_print_json(struct command_ctx *c, const struct rows_field *fields,
                                      size_t len);

/* One number, which says how many were done. */
enum hf_status hf__command_count(struct command_ctx *c, const char *name, uint64_t count);

#define COMMAND_FIELDS(...)                                                                        \
    (const struct rows_field[]){__VA_ARGS__},                                                      \
        sizeof((const struct rows_field[]){__VA_ARGS__}) / sizeof(struct rows_field)
#define COMMAND_PRINT(c, ...) hf__command_print((c), COMMAND_FIELDS(__VA_ARGS__))
#define COMMAND_JSON(c, ...) hf__command_print_json((c), COMMAND_FIELDS(__VA_ARGS__))
#define COMMAND_ROW(rows, ...) hf__rows_add((rows), COMMAND_FIELDS(__VA_ARGS__))

#endif
