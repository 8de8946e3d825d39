/* cli/keys_test.c: files of credentials; (n) is an invariant of keys.c. */
#include "cli/serve/keys.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_bad(struct hf_scope *s, const char *error, const char *text)
{
    struct cli_keys keys;

    CHECK(!hf__keys_parse(s, "f", hf_str_from(text), &keys));
    CHECK_STR(error, keys.error);
    CHECK(strstr(keys.error.ptr, "hush") == NULL); /* (2) */
}

TEST(keys, several_profiles)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct cli_keys keys;

    CHECK(hf__keys_parse(s, "f",
                         HF_STR("# who\n"
                                "\n"
                                "[default]\r\n"
                                "aws_access_key_id=AKIA1\r\n"
                                "aws_secret_access_key = a/b+c==\r\n"
                                "region = eu-west-1\n"
                                "[role]\n"
                                "role_arn = x\n"
                                "  [ two words ]  \n"
                                "; more\n"
                                "aws_session_token = tok\n"
                                "\taws_secret_access_key=s2\n"
                                "aws_access_key_id   =   AKIA2"),
                         &keys));
    CHECK_INT(2, keys.len);
    CHECK_STR("AKIA1", keys.list[0].access);
    CHECK_STR("a/b+c==", keys.list[0].secret);
    CHECK(!keys.list[0].token.ptr);
    CHECK_STR("AKIA2", keys.list[1].access);
    CHECK_STR("s2", keys.list[1].secret);
    CHECK_STR("tok", keys.list[1].token);
    hf_scope_free(s);
}

/* (1) (2) */
TEST(keys, doubtful_files_are_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_bad(s, "f: the file contains no access key", "");
    check_bad(s, "f: the file contains no access key", "# nothing\n[default]\nregion = x\n");
    check_bad(s, "f:2: the profile has no aws_secret_access_key", "\n[a]\naws_access_key_id=A\n");
    check_bad(s, "f:1: the profile has no aws_access_key_id", "[a]\naws_secret_access_key=hush\n");
    check_bad(s, "f:1: the profile has no aws_access_key_id",
              "[a]\naws_secret_access_key=hush\n[b]\n");
    check_bad(s, "f:4: duplicate access key 'A'",
              "[a]\naws_access_key_id=A\naws_secret_access_key=hush\n"
              "[b]\naws_access_key_id=A\naws_secret_access_key=hush\n");
    check_bad(s, "f:3: duplicate setting aws_access_key_id",
              "[a]\naws_access_key_id=A\naws_access_key_id=B\n");
    check_bad(s, "f:2: the value of aws_secret_access_key is empty or contains blanks",
              "[a]\naws_secret_access_key=\n");
    check_bad(s, "f:2: the value of aws_secret_access_key is empty or contains blanks",
              "[a]\naws_secret_access_key=hu sh\n");
    check_bad(s, "f:1: setting before the first [PROFILE]", "aws_access_key_id=A\n");
    check_bad(s, "f:1: expected [PROFILE] or NAME = VALUE", "hush\n");
    check_bad(s, "f:1: invalid profile header; write [NAME]", "[a\n");
    check_bad(s, "f:1: invalid profile header; write [NAME]", "[]\n");
    hf_scope_free(s);
}

TEST(keys, a_thousand_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    size_t room = (KEYS_MAX + 1) * 64;
    char *text = hf_scope_alloc(s, room);
    size_t len = 0;
    struct cli_keys keys;

    for (int i = 0; i < KEYS_MAX; i++)
        len += (size_t)snprintf(text + len, room - len,
                                "[p]\naws_access_key_id=A%d\naws_secret_access_key=S\n", i);
    CHECK(hf__keys_parse(s, "f", hf_str_of(text, len), &keys));
    CHECK_INT(KEYS_MAX, keys.len);
    snprintf(text + len, room - len, "[p]\naws_access_key_id=B\naws_secret_access_key=S\n");
    check_bad(s, "f:3001: more than 1000 access keys", text);
    hf_scope_free(s);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void write_file(const char *path, mode_t mode)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    fputs("[a]\naws_access_key_id=A\naws_secret_access_key=hush\n", file);
    CHECK(fclose(file) == 0);
    CHECK(chmod(path, mode) == 0);
}

static void check_refused(struct hf_scope *s, const char *path, const char *text)
{
    struct cli_keys keys;

    CHECK(!hf__keys_read(s, path, &keys));
    CHECK(strstr(keys.error.ptr, text) != NULL);
    CHECK(strstr(keys.error.ptr, path) != NULL);
}

TEST(keys, a_file_is_for_its_owner_alone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct cli_keys keys;
    char path[200];

    snprintf(path, sizeof(path), "%s/keys", test_directory(t));
    check_refused(s, path, "No such file");
    write_file(path, 0600);
    CHECK(hf__keys_read(s, path, &keys));
    CHECK_INT(1, keys.len);
    CHECK_STR("hush", keys.list[0].secret);
    write_file(path, 0640);
    check_refused(s, path, "its group can read this file (mode 640); run chmod 600");
    write_file(path, 0440);
    check_refused(s, path, "its group can read this file (mode 440)");
    write_file(path, 0644);
    check_refused(s, path, "other users can read this file (mode 644)");
    write_file(path, 0604);
    check_refused(s, path, "other users can read this file (mode 604)");
    write_file(path, 0602);
    check_refused(s, path, "other users can change this file (mode 602)");
    write_file(path, 0660);
    check_refused(s, path, "other users can change this file (mode 660)");
    write_file(path, 0600);
    if (geteuid() == 0) {
        CHECK(chown(path, 4242, 0) == 0);
        check_refused(s, path, "belongs to another user (uid 4242)");
        CHECK(chown(path, 0, 0) == 0);
    }
    CHECK(truncate(path, KEYS_FILE_MAX + 1) == 0);
    check_refused(s, path, "larger than");
    check_refused(s, test_directory(t), "is a directory");
    hf_scope_free(s);
}

/* root:GROUP of mode 640, or 440 as systemd has it for LoadCredential= (the bit is that of an ACL).
 */
TEST(keys, root_may_hand_a_file_to_our_group)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const mode_t modes[] = {0640, 0440};
    const char *directory = test_directory(t);
    struct cli_keys keys;
    char path[200];
    bool read;

    if (geteuid() != 0)
        skip();
    snprintf(path, sizeof(path), "%s/keys", directory);
    CHECK(chmod(directory, 0711) == 0);
    for (size_t i = 0; i < 2; i++) {
        write_file(path, modes[i]);
        CHECK(chown(path, 0, 4242) == 0);
        CHECK(setegid(4242) == 0 && seteuid(4242) == 0);
        read = hf__keys_read(s, path, &keys);
        CHECK(seteuid(0) == 0 && setegid(0) == 0);
        if (!read)
            fail_msg("%s", keys.error.ptr);
        CHECK_INT(1, keys.len);
    }
    hf_scope_free(s);
}

TEST(keys, a_pipe_will_do)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char text[] = "[a]\naws_access_key_id=A\naws_secret_access_key=hush\n";
    struct cli_keys keys;
    char path[32];
    int ends[2];

    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    CHECK(hf__keys_read(s, path, &keys));
    CHECK_STR("A", keys.list[0].access);
    close(ends[0]);
    hf_scope_free(s);
}

TEST(keys, without_memory_it_says_so)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct cli_keys keys;
        bool fine = s && hf__keys_parse(s, "f",
                                        HF_STR("[a]\naws_access_key_id=A\n"
                                               "aws_secret_access_key=hush\n"),
                                        &keys);

        ALLOC_SWEEP_STOP(t);
        CHECK(fine != t->alloc_failed);
        if (s && !fine)
            CHECK_STR("out of memory", keys.error);
        hf_scope_free(s);
    }
}
