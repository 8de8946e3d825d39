/*
 * cli/frame/process/confirm.c: see confirm.h.
 */
#include "cli/frame/process/confirm.h"

#include "base/base.h"
#include "cli/frame/output/rows.h"
#include "cli/frame/process/line_reader.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_MAX = 4096 }; /* bytes */

enum hf_status hf__command_confirm_check(struct command_ctx *c, bool yes, const char *what)
{
    if (yes || (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1))
        return HF_OK;
    if (!what)
        return HF_NOMEM;
    return hf__command_fail(c, CLI_USAGE, "this %s: add --yes to confirm", what);
}

enum hf_status hf__command_confirm(struct command_ctx *c, bool yes, struct hf_str question)
{
    struct line_reader reader;
    struct hf_str answer = {0};
    enum hf_status status;

    if (yes)
        return HF_OK;
    if (!hf__line_reader_open(&reader, "-", ANSWER_MAX))
        return hf__command_fail(c, CLI_FAILED, "cannot read the answer");
    fflush(c->cli->out);
    hf__rows_print(c->cli->err, question);
    fputs(" [y/N] ", c->cli->err);
    fflush(c->cli->err);
    status = hf__line_reader_next(c->scope, &reader, &answer);
    if (status == HF_OK &&
        (hf_str_equal(answer, HF_STR("y")) || hf_str_equal(answer, HF_STR("Y")) ||
         hf_str_equal(answer, HF_STR("yes"))))
        yes = true;
    hf__line_reader_close(&reader);
    if (yes || status == HF_CANCELED)
        return status;
    return hf__command_fail(c, CLI_CONDITION, "not confirmed: nothing was done");
}

enum hf_status hf__command_confirm_now(struct command_ctx *c, bool yes, const char *format, ...)
{
    enum hf_status status = HF_NOMEM;
    struct hf_str question;
    va_list args;
    char *what;
    int len;

    va_start(args, format);
    len = vasprintf(&what, format, args);
    va_end(args);
    if (len < 0)
        return status;
    question = hf_scope_format(c->scope, "This %s. Go on?", what);
    if (question.ptr)
        status = hf__command_confirm_check(c, yes, what);
    free(what);
    return status == HF_OK ? hf__command_confirm(c, yes, question) : status;
}
