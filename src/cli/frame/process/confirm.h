/*
 * cli/frame/process/confirm.h: before something is destroyed: --yes, or a person who is asked.
 *
 * In a pipe there is nobody to ask, so a command without --yes is refused there before anything is opened.
 */
#ifndef HF_CLI_FRAME_CONFIRM_H
#define HF_CLI_FRAME_CONFIRM_H

#include "cli/frame/command.h"

/* In a check: without `yes` there has to be somebody to ask. `what` would be done: "deletes table 'x'". NULL: no
 * memory. */
enum hf_status hf__command_confirm_check(struct command_ctx *c, bool yes, const char *what);

/* Without `yes` a person is asked. Where there is none, and when the answer is no, the command ends with an error, and
 * this returns its status. */
enum hf_status hf__command_confirm(struct command_ctx *c, bool yes, struct hf_str question);

/* Both in a check, for a question that needs no database: "This deletes table 'x'. Go on?" */
enum hf_status hf__command_confirm_now(struct command_ctx *c, bool yes, const char *format, ...)
    HF_PRINTF(3, 4);

#endif
