/*
 * cli/serve/log.h: the log of a command, on a file descriptor.
 *
 *     hf__log_begin(&log, STDERR_FILENO, getenv("JOURNAL_STREAM"));
 *     env.log = hf__log_line;
 *     env.user = &log;
 */
#ifndef HF_CLI_SERVE_LOG_H
#define HF_CLI_SERVE_LOG_H

#include <holdfast/env.h>

enum log_format { LOG_TEXT, LOG_JSON };

enum { LOG_LINE_MAX = 4096 }; /* bytes of a line with its end; longer ones are cut */

struct cli_log {
    int fd;
    enum log_format format;
    enum hf_log_level level; /* what is less urgent is left out; set at will */
    bool journal;            /* fd leads to systemd's journal: lines start with their level */
    hf_clock_fn *wall_us;    /* NULL: the system's clock */
    void *wall_user;
};

/* `journal_stream` is the value of the variable JOURNAL_STREAM, or NULL. Text, level info. */
void hf__log_begin(struct cli_log *log, int fd, const char *journal_stream);

/* For hf_env.log; `user` is a struct cli_log. Any thread. */
void hf__log_line(enum hf_log_level level, struct hf_str line, void *user);

/* A formatted line. */
void hf__log_print(struct cli_log *log, enum hf_log_level level, const char *format, ...)
    HF_PRINTF(3, 4);

#endif
