/*
 * sinks/sink_stdout.c: a line for each event on standard output, for people and for pipes.
 *
 * A delivery is done when the kernel has the line: nothing more is known of a pipe. When writing
 * stops in the middle of a line, the next write begins with a line end, so that a reader loses only
 * that line, which is written again.
 */
#include "sinks/private.h"

#include <unistd.h>

struct out {
    struct hf_env env;
    int form;  /* enum line_form */
    bool torn; /* the last write ended in the middle of a line */
};

static const struct sink_option options[] = {
    {"form", SINK_WORD, offsetof(struct out, form), 0, 0, "event|payload|outbox-event-bus"},
};

static enum hf_status out_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    struct out *out = self;
    enum hf_status status;
    struct lines lines;
    size_t written;

    TRY(hf__lines_make(s, (enum line_form)out->form, deliveries, len, &lines));
    if (out->torn) {
        TRY(hf__lines_write(s, "standard output", STDOUT_FILENO, hf_bytes_of("\n", 1), &written));
        out->torn = false;
    }
    status = hf__lines_write(s, "standard output", STDOUT_FILENO, lines.text, &written);
    assert(written <= lines.text.len);
    hf__lines_done(&lines, deliveries, len, written);
    out->torn = written > 0 && lines.text.ptr[written - 1] != '\n';
    return status;
}

static void out_close(void *self)
{
    struct out *out = self;
    struct hf_env env = out->env;

    hf__env_free(&env, out, sizeof(*out));
}

enum hf_status hf__sink_stdout_open(struct hf_scope *s, const struct sink_url *url,
                                    struct hf_sink **sink)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "stdout",
                                    .batch_max = LINES_BATCH,
                                    .workers = 1,
                                    .keeps_order = true,
                                    .send = out_send,
                                    .close = out_close};
    struct out *out;
    enum hf_status status;

    if (url->rest.len)
        return hf__fail(s, HF_INVALID, "only options may follow \"stdout:\"");
    out = hf__env_alloc(hf_scope_env(s), sizeof(*out));
    if (!out)
        return hf__fail_nomem(s);
    *out = (struct out){.env = *hf_scope_env(s), .form = LINE_EVENT};
    status = hf__sink_options(s, url, options, ARRAY_LEN(options), out);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, out, sink);
    if (status != HF_OK)
        out_close(out);
    return status;
}
