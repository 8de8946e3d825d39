/*
 * client/credentials_process.c: keys that a program prints.
 *
 * The command line of a profile is split into words as a shell does it, quotes and backslashes and
 * nothing else, and the program is started directly: no shell sees it, so no variable, pipe or
 * semicolon in it means anything. It prints JSON. What it writes to its standard error goes
 * nowhere, as that may have secrets in it too.
 *
 * The program leads a process group of its own. One that does not end in time is killed with all it
 * started; one that ends while something it started still holds the pipe has said what it had to.
 * Where the program that we are part of lets the system collect its children, nothing is known of
 * its end, and what was printed decides.
 *
 * What always holds: what it printed is wiped when it is no longer needed, but for what is handed
 * on.
 */
#include "client/source.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <sys/wait.h>

#include "base/child.h"

enum { PROCESS_MS = 30000 };

static enum hf_status process_start(struct hf_scope *s, struct hf_str profile, char **words,
                                    char *room, struct child *child)
{
    int error = hf__child_open(&(struct child_how){.words = words,
                                                   .in = CHILD_NOTHING,
                                                   .out = CHILD_PIPE,
                                                   .err = CHILD_NOTHING,
                                                   .group = true,
                                                   .room = room,
                                                   .room_len = SOURCE_TEXT_MAX,
                                                   .full_ends = true},
                               child);

    assert(words[0]);
    if (!error)
        return HF_OK;
    return hf__fail(s, error == ENOENT || error == EACCES ? HF_INVALID : HF_IO,
                    "credential_process of profile \"%.*s\" cannot be started: %s", HF_FMT(profile),
                    strerror(error));
}

/* Read until it has ended. */
static enum hf_status process_listen(struct hf_scope *s, struct source *source,
                                     struct hf_str profile, struct child *child)
{
    bool ended = hf__child_wait(s, source->env, child, hf__source_left_ms(s, source, PROCESS_MS));

    if (child->full)
        return hf__fail(s, HF_INVALID,
                        "credential_process of profile \"%.*s\" prints more than %d bytes",
                        HF_FMT(profile), SOURCE_TEXT_MAX);
    if (!ended) {
        TRY(hf__scope_alive(s));
        return hf__fail(s, HF_IO,
                        "credential_process of profile \"%.*s\" did not end in time and was killed",
                        HF_FMT(profile));
    }
    if (WIFSIGNALED(child->outcome))
        return hf__fail(s, HF_IO, "credential_process of profile \"%.*s\" was killed by signal %d",
                        HF_FMT(profile), WTERMSIG(child->outcome));
    if (WEXITSTATUS(child->outcome) != 0)
        return hf__fail(s, HF_DENIED,
                        "credential_process of profile \"%.*s\" failed with exit status %d",
                        HF_FMT(profile), WEXITSTATUS(child->outcome));
    return HF_OK;
}

enum hf_status hf__source_process(struct hf_scope *s, struct source *source, struct hf_str profile,
                                  struct hf_str command, struct source_keys *keys)
{
    char *room = hf_scope_alloc(s, SOURCE_TEXT_MAX);
    struct child child;
    enum hf_status status;
    char **words;

    assert(command.len > 0);
    if (!room)
        return hf__fail_nomem(s);
    status = hf__child_words(s, command, &words);
    if (status == HF_INVALID)
        return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(s),
                                     "credential_process of profile \"%.*s\" cannot be run: %s",
                                     HF_FMT(profile), hf_scope_error_text(s));
    TRY(status);
    TRY(process_start(s, profile, words, room, &child));
    status = process_listen(s, source, profile, &child);
    hf__child_close(source->env, &child, 0);
    assert(child.said <= SOURCE_TEXT_MAX);
    *keys = (struct source_keys){.origin = "credential_process"};
    if (status == HF_OK)
        status = hf__source_read_keys(s, SOURCE_PROCESS, hf_str_of(room, child.said), keys);
    if (status != HF_OK)
        OPENSSL_cleanse(room, child.said);
    return status;
}
