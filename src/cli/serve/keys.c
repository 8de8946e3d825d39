/*
 * cli/serve/keys.c: access keys from a file in the format of ~/.aws/credentials.
 *
 *     # who may call
 *     [billing]
 *     aws_access_key_id = AKIABILLING
 *     aws_secret_access_key = wJalr...
 *
 *     [reports]
 *     ...
 *
 * Secrets come by a file, as arguments can be read by everybody on the machine and variables end
 * up in logs. The profile names are for people; other settings, which such files also have, are
 * passed over. A server whose file is half understood would let in fewer than meant, or others:
 * so everything doubtful is an error with its line.
 *
 * What always holds:
 *
 *  (1) A key has both parts, and no two keys have the same access key.
 *  (2) No error shows a secret.
 */
#include "cli/serve/keys.h"

#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader {
    struct hf_scope *s;
    const char *path;
    unsigned line;
    struct cli_keys *keys;
    bool in_profile;
    unsigned profile_line;
    struct cli_key key; /* of the profile we are in */
};

#define FAIL(r, ...) (reader_fail((r), hf_scope_format((r)->s, __VA_ARGS__)))

static bool reader_fail(struct reader *r, struct hf_str error)
{
    r->keys->error = error.ptr ? error : HF_STR("out of memory");
    return false;
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool is_plain(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return text.len > 0;
}

/* ---- profiles ------------------------------------------------------------------------------- */

static bool end_profile(struct reader *r)
{
    struct cli_keys *keys = r->keys;

    if (!r->in_profile)
        return true;
    r->in_profile = false;
    /* A profile without keys has other settings, such as a role to assume. */
    if (!r->key.access.ptr && !r->key.secret.ptr)
        return true;
    if (!r->key.access.ptr || !r->key.secret.ptr)
        return FAIL(r, "%s:%u: the profile has no %s", r->path, r->profile_line,
                    r->key.access.ptr ? "aws_secret_access_key" : "aws_access_key_id");
    for (size_t i = 0; i < keys->len; i++)
        if (hf_str_equal(keys->list[i].access, r->key.access))
            return FAIL(r, "%s:%u: duplicate access key '%.*s'", r->path, r->profile_line,
                        HF_FMT(r->key.access));
    if (keys->len == KEYS_MAX)
        return FAIL(r, "%s:%u: more than %d access keys", r->path, r->profile_line, KEYS_MAX);
    keys->list[keys->len++] = r->key;
    return true;
}

static bool begin_profile(struct reader *r, struct hf_str line)
{
    if (!end_profile(r))
        return false;
    if (line.len < 3 || line.ptr[line.len - 1] != ']')
        return FAIL(r, "%s:%u: invalid profile header; write [NAME]", r->path, r->line);
    r->in_profile = true;
    r->profile_line = r->line;
    r->key = (struct cli_key){0};
    return true;
}

static bool take_setting(struct reader *r, struct hf_str line)
{
    const char *equals = memchr(line.ptr, '=', line.len);
    size_t name_len = equals ? (size_t)(equals - line.ptr) : 0;
    struct hf_str name, value;
    struct hf_str *part = NULL;

    if (!equals)
        return FAIL(r, "%s:%u: expected [PROFILE] or NAME = VALUE", r->path, r->line);
    if (!r->in_profile)
        return FAIL(r, "%s:%u: setting before the first [PROFILE]", r->path, r->line);
    name = hf__input_trim(hf_str_of(line.ptr, name_len));
    value = hf__input_trim(hf_str_of(equals + 1, line.len - name_len - 1));
    if (hf_str_equal(name, HF_STR("aws_access_key_id")))
        part = &r->key.access;
    else if (hf_str_equal(name, HF_STR("aws_secret_access_key")))
        part = &r->key.secret;
    else if (hf_str_equal(name, HF_STR("aws_session_token")))
        part = &r->key.token;
    if (!part)
        return true;
    if (part->ptr)
        return FAIL(r, "%s:%u: duplicate setting %.*s", r->path, r->line, HF_FMT(name));
    if (!is_plain(value))
        return FAIL(r, "%s:%u: the value of %.*s is empty or contains blanks", r->path, r->line,
                    HF_FMT(name));
    *part = hf_scope_copy(r->s, value);
    return part->ptr ? true : reader_fail(r, *part);
}

bool hf__keys_parse(struct hf_scope *s, const char *path, struct hf_str text, struct cli_keys *keys)
{
    struct reader r = {.s = s, .path = path, .keys = keys};
    struct hf_str line;

    *keys = (struct cli_keys){.list = hf_scope_alloc(s, KEYS_MAX * sizeof(*keys->list))};
    if (!keys->list)
        return reader_fail(&r, (struct hf_str){0});
    while (hf__input_line(&text, &line)) {
        r.line++;
        line = hf__input_trim(line);
        if (line.len == 0 || line.ptr[0] == '#' || line.ptr[0] == ';')
            continue;
        if (!(line.ptr[0] == '[' ? begin_profile(&r, line) : take_setting(&r, line)))
            return false;
    }
    if (!end_profile(&r))
        return false;
    if (keys->len == 0)
        return FAIL(&r, "%s: the file contains no access key", path);
    return true;
}

/* ---- the file ------------------------------------------------------------------------------- */

/*
 * Pipes have no mode that means anything: who has the other end decided already. The group may read
 * a file of root's when we are somebody else: that is how an administrator, or systemd with
 * LoadCredential=, hands it to us and to us alone. A file of our own that the group may read is a
 * mistake.
 */
static bool is_private(struct reader *r, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return FAIL(r, "%s: %s", r->path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return FAIL(r, "%s: is a directory; a file is needed", r->path);
    if (!S_ISREG(info.st_mode))
        return true;
    if (info.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        return FAIL(r, "%s: other users can %s this file (mode %03o); run chmod 600 %s", r->path,
                    info.st_mode & (S_IWOTH | S_IWGRP) ? "change" : "read",
                    (unsigned)info.st_mode & 0777u, r->path);
    if (info.st_mode & S_IRGRP && info.st_uid == geteuid())
        return FAIL(r, "%s: its group can read this file (mode %03o); run chmod 600 %s", r->path,
                    (unsigned)info.st_mode & 0777u, r->path);
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return FAIL(r, "%s: the file belongs to another user (uid %u)", r->path,
                    (unsigned)info.st_uid);
    return true;
}

static bool read_all(struct reader *r, int fd, struct hf_str *text)
{
    char *bytes = hf_scope_alloc(r->s, KEYS_FILE_MAX + 1);
    size_t len = 0;

    if (!bytes)
        return reader_fail(r, (struct hf_str){0});
    while (len <= KEYS_FILE_MAX) {
        ssize_t more = read(fd, bytes + len, KEYS_FILE_MAX + 1 - len);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return FAIL(r, "%s: %s", r->path, strerror(errno));
        if (more == 0) {
            *text = hf_str_of(bytes, len);
            return true;
        }
        len += (size_t)more;
    }
    return FAIL(r, "%s: larger than %d bytes", r->path, KEYS_FILE_MAX);
}

bool hf__keys_read(struct hf_scope *s, const char *path, struct cli_keys *keys)
{
    bool from_stdin = strcmp(path, "-") == 0;
    struct reader r = {.s = s, .path = from_stdin ? "standard input" : path, .keys = keys};
    int fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct hf_str text;
    bool fine;

    *keys = (struct cli_keys){0};
    if (fd < 0)
        return FAIL(&r, "%s: %s", path, strerror(errno));
    fine = is_private(&r, fd) && read_all(&r, fd, &text);
    if (!from_stdin)
        close(fd);
    return fine && hf__keys_parse(s, r.path, text, keys);
}
