/* client/credentials_process_test.c: programs that print keys; (n) is an invariant of
 * credentials_process.c. */
#include "base/child.h"
#include "help.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program of these lines, and a profile that names it with `arguments`. */
static void script(struct aws *a, const char *arguments, const char *lines)
{
    char text[4096], path[512];

    snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", lines);
    snprintf(path, sizeof(path), "%s", aws_file(a, "my program", text));
    CHECK_INT(0, chmod(path, 0700));
    snprintf(text, sizeof(text), "[default]\ncredential_process = \"%s\" %s\n", path, arguments);
    aws_file(a, "config", text);
}

/* No child of ours is left, ended or not. (1) */
static void check_no_child(void)
{
    CHECK_INT(-1, waitpid(-1, NULL, WNOHANG));
    CHECK_INT(ECHILD, errno);
}

TEST(process, words_are_split_as_a_shell_does_it)
{
    static const struct {
        const char *command;
        const char *words[5];
    } cases[] = {
        {"a", {"a"}},
        {"  a\t b  ", {"a", "b"}},
        {"\"a b\" c", {"a b", "c"}},
        {"'a \"b' c\\ d", {"a \"b", "c d"}},
        {"a\"b c\"d''e", {"ab cde"}},
        {"a \"\" b", {"a", "", "b"}},
        {"a \"\\\"\\\\\\n\" '\\'", {"a", "\"\\\\n", "\\"}},
        {"a $HOME `x` | y", {"a", "$HOME", "`x`", "|", "y"}},
        {"", {NULL}},
        {"  ", {NULL}},
        {"\"\" x", {NULL}},
        {"a \"b", {NULL}},
        {"a 'b", {NULL}},
        {"a \\", {NULL}},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum hf_status expected = cases[i].words[0] ? HF_OK : HF_INVALID;
        char **words;

        CHECK_STATUS(expected, hf__child_words(s, hf_str_from(cases[i].command), &words));
        for (size_t w = 0; expected == HF_OK && w < 5 && cases[i].words[w]; w++) {
            CHECK(words[w]);
            CHECK_STR(cases[i].words[w], hf_str_from(words[w]));
            CHECK(w + 1 == 5 || cases[i].words[w + 1] || !words[w + 1]);
        }
    }
    hf_scope_free(s);
}

TEST(process, prints_the_keys)
{
    char lines[2048], body[1100];
    struct aws a;

    aws_open(t, &a);
    snprintf(body, sizeof(body), "%s", keys_json("AKID-$2", "SessionToken", aws_time(&a, 900)));
    snprintf(lines, sizeof(lines), "echo HUSH in the log >&2\ncat <<EOF\n%s\nEOF", body);
    script(&a, "\"$HOME\" one", lines);
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("HUSH-of-AKID-one", a.secret);
    CHECK_STR("TOKEN-HUSH-of-AKID-one", a.token);
    CHECK_STR("123456789012", a.account);
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKID-one")));
    check_no_child();
    aws_close(&a);
}

TEST(process, need_not_tell_an_expiry_or_an_account)
{
    struct aws a;
    FILE *config;
    char path[256];

    aws_open(t, &a);
    script(&a, "", "echo '{\"Version\":1,\"AccessKeyId\":\"AKID\",\"SecretAccessKey\":\"HUSH\"}'");
    snprintf(path, sizeof(path), "%s/.aws/config", a.home);
    config = fopen(path, "a");
    CHECK(config && fputs("aws_account_id = 333344445555\n", config) >= 0);
    CHECK_INT(0, fclose(config));
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK(!a.token.ptr);
    CHECK_STR("333344445555", a.account);
    aws_advance_s(&a, 10 * 365 * 86400);
    CHECK_STR("AKID", aws_key(&a));
    aws_close(&a);
}

TEST(process, that_fails_or_prints_junk_is_the_error)
{
    static const struct {
        const char *lines;
        enum hf_status status;
        const char *part;
    } cases[] = {
        {"echo HUSH; exit 1", HF_DENIED, "failed with exit status 1"},
        {"exit 255", HF_DENIED, "failed with exit status 255"},
        {"echo HUSH; kill -9 $$", HF_IO, "was killed by signal 9"},
        {"kill -TERM $$", HF_IO, "was killed by signal 15"},
        {"exit 0", HF_INVALID, "is not valid JSON of credentials"},
        {"echo HUSH", HF_INVALID, "is not valid JSON of credentials"},
        {"echo '[\"HUSH\"]'", HF_INVALID, "is not valid JSON of credentials"},
        {"echo '{\"Version\":\"HUSH\"}'", HF_INVALID, "is not valid JSON of credentials"},
        {"echo '{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HUSH\"}'", HF_INVALID,
         "does not have \"Version\": 1"},
        {"echo '{\"Version\":2,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HUSH\"}'", HF_INVALID,
         "does not have \"Version\": 1"},
        {"echo '{\"Version\":1,\"SecretAccessKey\":\"HUSH\"}'", HF_INVALID, "has no AccessKeyId"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"A\"}'", HF_INVALID, "has no SecretAccessKey"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HUSH\",\"Expiration\":"
         "\"HUSH\"}'",
         HF_INVALID, "has an invalid Expiration"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HUSH\",\"Expiration\":"
         "\"2025-12-31T23:59:59Z\"}'",
         HF_DENIED, "from credential_process have expired already"},
        {"printf %s '{\"Version\":1,\"AccessKeyId\":\"A\\nB\",\"SecretAccessKey\":\"HUSH\"}'",
         HF_INVALID, "other invalid characters"},
        {"head -c 100000 /dev/zero", HF_INVALID, "prints more than 65536 bytes"},
        {"exec cat /dev/zero", HF_INVALID, "prints more than 65536 bytes"},
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        script(&a, "", cases[i].lines);
        aws_start(&a, NULL);
        CHECK_FAILS(cases[i].status, cases[i].part, &a);
        check_no_child();
        aws_stop(&a);
    }
    aws_close(&a);
}

TEST(process, that_is_not_there_is_the_error)
{
    struct aws a;

    aws_open(t, &a);
    aws_file(&a, "config", "[default]\ncredential_process = /nowhere/program --HUSH\n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_INVALID, "of profile \"default\" cannot be started: No such file", &a);
    aws_stop(&a);
    aws_file(&a, "config", "[default]\ncredential_process = \"HUSH\n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_INVALID, "cannot be run: a quote in it is not closed", &a);
    check_no_child();
    aws_close(&a);
}

/* Does it run no more? Whoever has to collect it may take his time. */
static bool is_gone(pid_t pid)
{
    char path[64], stat[256] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return true;
    CHECK(fgets(stat, sizeof(stat), file));
    fclose(file);
    state = strrchr(stat, ')');
    return state && state[2] == 'Z';
}

/* Wait until the process has ended; whether it did. */
static bool has_ended(pid_t pid)
{
    for (int i = 0; i < 200; i++) {
        if (is_gone(pid))
            return true;
        usleep(10000);
    }
    return false;
}

static pid_t noted_pid(struct aws *a)
{
    char path[256];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/pid", a->home);
    file = fopen(path, "r");
    CHECK(file && fscanf(file, "%d", &pid) == 1);
    fclose(file);
    return pid;
}

TEST(process, that_hangs_is_killed_with_what_it_started)
{
    static const char *const hangs[] = {
        "sleep 1000 & echo $! >\"$1\"/pid; wait",
        "trap '' TERM INT HUP; sleep 1000 & echo $! >\"$1\"/pid; while :; do sleep 1; done",
        "exec >&-; sleep 1000 & echo $! >\"$1\"/pid; wait", /* and has closed the pipe */
        /* has left its group */
        "echo $$ >\"$1\"/pid; exec perl -e 'setpgrp(0, getpgrp(getppid())); sleep 30'",
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(hangs); i++) {
        struct sign_credentials now;
        struct hf_str account;
        int64_t began = real_ms();

        script(&a, a.home, hangs[i]);
        aws_start(&a, NULL);
        hf_scope_reset(a.s);
        hf_scope_timeout_ms(a.s, 300);
        CHECK_STATUS(HF_TIMEOUT, hf__credentials_get(a.s, a.credentials, &now, &account));
        CHECK(real_ms() - began < 2000);
        check_no_child();
        CHECK(has_ended(noted_pid(&a)));
        aws_stop(&a);
    }
    aws_close(&a);
}

static void *cancel_soon(void *user)
{
    usleep(200 * 1000);
    hf_scope_cancel(user);
    return NULL;
}

TEST(process, that_hangs_is_left_when_the_scope_is_canceled)
{
    struct sign_credentials now;
    struct hf_str account;
    struct aws a;
    pthread_t thread;
    int64_t began = real_ms();

    aws_open(t, &a);
    script(&a, "", "sleep 1000");
    aws_start(&a, NULL);
    hf_scope_reset(a.s);
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_soon, a.s));
    CHECK_STATUS(HF_CANCELED, hf__credentials_get(a.s, a.credentials, &now, &account));
    CHECK(real_ms() - began < 2000);
    pthread_join(thread, NULL);
    check_no_child();
    aws_close(&a);
}

/* Half a minute is the limit where the scope has none; the elapsed clock tells. */
static void *advance_soon(void *user)
{
    usleep(300 * 1000);
    aws_advance_s(user, 31);
    return NULL;
}

TEST(process, that_hangs_has_half_a_minute)
{
    struct aws a;
    pthread_t thread;

    aws_open(t, &a);
    script(&a, "", "sleep 1000");
    aws_start(&a, NULL);
    CHECK_INT(0, pthread_create(&thread, NULL, advance_soon, &a));
    CHECK_FAILS(HF_IO, "did not end in time and was killed", &a);
    CHECK(hf_scope_error(a.s)->may_retry);
    pthread_join(thread, NULL);
    check_no_child();
    aws_close(&a);
}

/* Something that it left behind holds the pipe: it has said what it had to. */
TEST(process, that_leaves_something_behind_has_ended)
{
    struct aws a;
    int64_t began = real_ms();
    pid_t left;

    aws_open(t, &a);
    script(&a, a.home,
           "sleep 1000 & echo $! >\"$1\"/pid\n"
           "echo '{\"Version\":1,\"AccessKeyId\":\"AKID\",\"SecretAccessKey\":\"HUSH\"}'");
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK(real_ms() - began < 2000);
    left = noted_pid(&a);
    CHECK_INT(0, kill(left, 0));
    CHECK_INT(0, kill(left, SIGKILL));
    aws_close(&a);
}

/* A program may let the system collect its children. */
TEST(process, that_is_collected_by_the_system_is_judged_by_what_it_prints)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    struct aws a;

    aws_open(t, &a);
    script(&a, "", "echo '{\"Version\":1,\"AccessKeyId\":\"AKID\",\"SecretAccessKey\":\"HUSH\"}'");
    aws_start(&a, NULL);
    CHECK_INT(0, sigaction(SIGCHLD, &ignore, &before));
    CHECK_STR("AKID", aws_key(&a));
    CHECK_INT(0, sigaction(SIGCHLD, &before, NULL));
    aws_close(&a);
}
