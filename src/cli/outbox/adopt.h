/*
 * cli/outbox/adopt.h: the parts of `outbox adopt`, which moves the events of another library's table
 * into an outbox. cmd_outbox_adopt.c has the essay.
 */
#ifndef HF_CLI_OUTBOX_ADOPT_H
#define HF_CLI_OUTBOX_ADOPT_H

#include "cli/frame/command.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/text_map.h"
#include "cli/outbox/outbox_line.h"

#include <holdfast/outbox.h>

struct adopt;

/* ---- what is particular to a library, adopt_library.c --------------------------------------- */

/* A row as it was read. */
struct adopt_event {
    struct hf_str hash, sort; /* its key; sort absent: the table has none */
    struct hf_item item;
    struct outbox_line line;
    bool marked; /* by this run, and not moved yet */
};

struct adopt_library {
    enum outbox_line_form form;
    const char *name;
    const char *hash, *sort;   /* attributes of the key; NULL: of any name */
    bool sorts;                /* the key has two attributes */
    bool keyed;                /* it keeps the order of the events of a key */
    const char *state;         /* an attribute without which a row is not one of this library */
    const char *const *guards; /* attributes by which a row that was changed is recognised */
    size_t guards_len;
    const char *mark; /* the attribute that a mark sets, and NULL or the only text it has then */
    const char *mark_text;
    /* The update that marks a row, so that no program of the library takes it. */
    void (*marks)(struct hf_scope *s, const struct adopt_event *event, int64_t now_us,
                  struct hf_update_item *update);
    /* By what its events are ordered: a time, then a text. */
    void (*orders)(const struct adopt_event *event, int64_t *us, struct hf_str *text);
};

/* By the words of --from. */
extern const struct adopt_library hf__adopt_libraries[];

/* Requests on the row of an event; in the scope of the command. */
struct hf_item hf__adopt_key(const struct adopt *a, struct hf_str hash, struct hf_str sort);
/* Delete it, if it is as it was read, or, when it is marked, still marked. */
struct hf_delete_item *hf__adopt_delete(const struct adopt *a, const struct adopt_event *event);
/* Mark it, if it is as it was read. */
struct hf_update_item *hf__adopt_mark(const struct adopt *a, const struct adopt_event *event);
/* Put it back as it was read, if it is still marked. */
struct hf_put_item *hf__adopt_restore(const struct adopt *a, const struct adopt_event *event);

/* ---- the rows of a pass, adopt_rows.c ------------------------------------------------------- */

/* A row that is to be moved, or that is claimed and lets later ones of its key wait. */
struct adopt_row {
    struct hf_str hash, sort, key;
    int64_t order_us;
    struct hf_str order;
    bool claimed;
};

enum adopt_verdict { ADOPT_MOVE, ADOPT_DELIVERED, ADOPT_FAILED, ADOPT_CLAIMED };

/* What is to be done with a row now. */
enum adopt_verdict hf__adopt_judge(const struct adopt *a, const struct outbox_line *line);

/* Read one; *readable false: it was reported. `event` is in the scope of the command. */
enum hf_status hf__adopt_read(struct adopt *a, struct hf_item item, struct adopt_event *event,
                              bool *readable);

/* Report a row that is left alone, once. */
enum hf_status hf__adopt_report(struct adopt *a, struct hf_str hash, struct hf_str sort,
                                const char *why);

/* Read the whole table: a->rows in their order, and the counts of those that stay. */
enum hf_status hf__adopt_rows(struct adopt *a);

/* ---- moving, adopt_move.c ------------------------------------------------------------------- */

enum hf_status hf__adopt_move(struct adopt *a);

/* ---- a run ---------------------------------------------------------------------------------- */

struct adopt {
    struct command_ctx *c;
    struct hf_scope *s; /* of the command */
    const struct adopt_library *library;
    struct hf_db *from;
    struct hf_str table; /* theirs */
    struct hf_str hash, sort;
    struct hf_outbox *outbox; /* NULL: a dry run */
    bool failed_too;
    int64_t lease_us, grace_us;
    uint64_t timeout_ms;
    size_t batch;
    bool marking;     /* a row and its event are not in one transaction */
    bool from_single; /* their database has no transactions */

    struct hf_scope *kept; /* memory of the run */
    struct text_map reported;
    struct progress progress;
    uint64_t moved, duplicates;

    struct hf_scope *pass; /* memory of a pass */
    struct adopt_row *rows;
    size_t rows_len, rows_cap;
    uint64_t rows_read;
    struct text_map blocked; /* keys whose events wait for a claimed one */
    uint64_t delivered, failed, claimed, behind, unreadable;
};

#endif
