/*
 * cli/serve/holder.h: which process has a directory locked, so that "it is locked" can be acted on.
 */
#ifndef HF_CLI_SERVE_HOLDER_H
#define HF_CLI_SERVE_HOLDER_H

#include <holdfast/scope.h>

/* Who has a directory open. Texts are in the scope. */
struct holder {
    long pid;           /* 0: it is not known */
    struct hf_str text; /* "process 4711 (holdfast serve)" */
    bool server;        /* it is `holdfast serve` */
    struct hf_str url;  /* where it serves the directory; absent: it does not, or it is not known */
    bool started_us;    /* it started this process, and so waits for it */
};

/* Find out; .pid is 0 when nothing is found. */
struct holder hf__holder_find(struct hf_scope *s, const char *path);

/* What to do about it, in a sentence: "use its URL: --db http://127.0.0.1:8000". */
struct hf_str hf__holder_advice(struct hf_scope *s, const struct holder *holder, const char *path);

#endif
