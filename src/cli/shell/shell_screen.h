/*
 * cli/shell/shell_screen.h: the output of a command that may be longer than the terminal is high.
 */
#ifndef HF_CLI_SHELL_SHELL_SCREEN_H
#define HF_CLI_SHELL_SHELL_SCREEN_H

#include "base/child.h"
#include "cli/shell/shell.h"

/* What was written so far. */
enum screen_state {
    SCREEN_HELD,   /* it fits so far, and waits */
    SCREEN_PAGER,  /* it goes to a program */
    SCREEN_MORE,   /* a page at a time, as there is no such program */
    SCREEN_CLOSED, /* nobody wants the rest */
    SCREEN_WHOLE   /* it goes to the terminal as it comes */
};

struct screen {
    struct shell *shell;
    FILE *out, *err;
    enum screen_state state;
    size_t rows, columns;
    size_t line, column; /* where the cursor would be */
    char *held;
    size_t held_len, held_cap;
    char *errors; /* what waits for the end of the pager */
    size_t errors_len;
    struct child pager;
    int pipe;  /* to it; -1: there is none */
    bool rung; /* the guard's bell was heard */
};

/* How high and wide the terminal is now; 0: not known. */
void hf__screen_size(size_t *rows, size_t *columns);

/* Begin: cli->out and cli->err of a command are screen->out and screen->err from here on. False: no
 * memory. Without `paged` nothing waits. */
bool hf__screen_begin(struct screen *screen, struct shell *shell, bool paged);

/* All is written, and read. True: somebody has left before the end, and what ended the command then is
 * no error. */
bool hf__screen_end(struct screen *screen);

#endif
