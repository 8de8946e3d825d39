/*
 * base/child.h: child processes: starting one, reading what it prints, waiting for its end.
 *
 *     struct child child;
 *     int error = hf__child_open(&(struct child_how){.words = words,
 *                                                    .in = CHILD_NOTHING,
 *                                                    .out = CHILD_PIPE,
 *                                                    .err = CHILD_NOTHING,
 *                                                    .group = true,
 *                                                    .room = room,
 *                                                    .room_len = sizeof(room)}, &child);
 *     if (error)
 *         ...
 *     if (hf__child_wait(s, env, &child, 30000))
 *         ... child.outcome, and child.said bytes in the room ...
 *     hf__child_close(env, &child, 0);
 *
 * No shell is involved. All descriptors but the standard ones are to be close-on-exec, as all of
 * ours are.
 */
#ifndef HF_BASE_CHILD_H
#define HF_BASE_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

/* What a standard file of the child can be besides a descriptor of ours. */
enum {
    CHILD_NOTHING = -1, /* /dev/null */
    CHILD_OURS = -2,    /* what we have there */
    CHILD_PIPE = -3     /* one of `out` and `err`: we read what it prints */
};

struct child_how {
    char *const *words;       /* the first is found as a shell finds it; NULL behind the last */
    char *const *variables;   /* NULL: ours */
    int in, out, err;         /* a descriptor, or one of the above */
    bool group;               /* it leads a process group of its own, and is ended with that */
    const sigset_t *defaults; /* signals that get their usual effect back; NULL: all. None is
                                 blocked. */
    char *room;               /* where the beginning of what it prints goes */
    size_t room_len;
    bool full_ends; /* hf__child_wait() returns when it printed more than that */
};

struct child {
    pid_t pid;
    bool group;
    bool ended;   /* and was waited for */
    bool unknown; /* how: the program has the system collect its children. `outcome` is 0. */
    int outcome;  /* of waitpid() */
    size_t said;  /* bytes in the room */
    bool full;    /* it printed more */
    int watch;    /* a descriptor that tells its end; -1: the system has none */
    int from;     /* where we read what it prints; -1: no more */
    char *room;
    size_t room_len;
    bool full_ends;
};

/* Start a child that the caller waits for himself, by its pid. Returns 0 or an errno. No
 * CHILD_PIPE. */
int hf__child_start(const struct child_how *how, pid_t *pid);

/* Start a child, which has to be closed. Returns 0 or an errno. */
int hf__child_open(const struct child_how *how, struct child *child);

/* Read what the child prints until it has ended: true. False when `ms` are over (negative: no
 * limit), when the scope is canceled or at its deadline (NULL: none), or when the room is full and
 * `full_ends` is set. */
bool hf__child_wait(struct hf_scope *s, const struct hf_env *env, struct child *child, int64_t ms);

/* If it has not ended: SIGTERM, SIGKILL when it is still there `grace_ms` later (0: at once), and
 * its end is waited for. */
void hf__child_close(const struct hf_env *env, struct child *child, uint64_t grace_ms);

/* A file in memory with these bytes, to be a child's input: unlike a pipe it holds any number of
 * them. Without bytes it can be an output. -1 and errno when that fails. */
int hf__child_file(const void *bytes, size_t len);

/* How a command line becomes words: quotes and backslashes as in a shell, and nothing else. The
 * list ends with NULL. HF_INVALID when a quote is not closed or there is no word. */
enum hf_status hf__child_words(struct hf_scope *s, struct hf_str command, char ***words);

#endif
