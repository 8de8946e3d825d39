/*
 * cli/doctor/doctor.h: what the files of `holdfast doctor` share: findings, and the groups of checks.
 *
 * A check measures one thing and reports one finding: what it is, how it is, what was measured, and
 * what to do about it. Checks only look: none of them changes a database, and none depends on
 * another one having succeeded.
 */
#ifndef HF_CLI_DOCTOR_DOCTOR_H
#define HF_CLI_DOCTOR_DOCTOR_H

#include "cli/frame/commands.h"

enum finding_state {
    FINDING_OK,
    FINDING_SKIPPED, /* it could not be looked at, and that is no fault */
    FINDING_WARNING, /* works, but not as well or as safely as it should */
    FINDING_PROBLEM, /* does not work, or will not for long */
    FINDING_STATES
};

struct doctor_settings {
    struct database_settings database;
};

struct doctor {
    struct command_ctx *c;
    struct cli *cli;
    struct hf_scope *s;
    const struct doctor_settings *settings;
    struct hf_str url;             /* with prefix, profile and region */
    size_t counts[FINDING_STATES]; /* of findings so far */
    int64_t deadline_us;           /* by the elapsed clock: checks of the network end then */
};

/* Report a finding. `advice` says what to do; empty: nothing is to be done. Texts may have any bytes:
 * what a terminal would obey is replaced. */
void hf__doctor_add(struct doctor *d, const char *check, enum finding_state state,
                    struct hf_str found, struct hf_str advice);

/* hf_scope_format() in the scope of the command, with a text in any case. */
struct hf_str hf__doctor_text(struct doctor *d, const char *format, ...) HF_PRINTF(2, 3);

/* 1.5 GB, 640 KB; 3.2 ms, 140 us. */
struct hf_str hf__doctor_bytes(struct doctor *d, uint64_t bytes);
struct hf_str hf__doctor_time(struct doctor *d, int64_t us);

/* By the elapsed clock of the scope. */
int64_t hf__doctor_now_us(const struct doctor *d);

/* How many milliseconds checks of the network have left, at most `cap`; 0: none. */
uint32_t hf__doctor_left_ms(const struct doctor *d, uint32_t cap);

/* Sort, so that the middle is the median. */
void hf__doctor_sort(int64_t *values, size_t len);

/* A small file such as those of /proc, with a NUL behind it; false: it cannot be read. */
bool hf__doctor_read(const char *path, char *room, size_t size);

/* ---- groups of checks ----------------------------------------------------------------------- */

void hf__doctor_versions(struct doctor *d, bool network);
void hf__doctor_limits(struct doctor *d);
void hf__doctor_clock(struct doctor *d);
void hf__doctor_variables(struct doctor *d);
void hf__doctor_directory(struct doctor *d, const char *path);
void hf__doctor_network(struct doctor *d);

#endif
