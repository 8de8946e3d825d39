/*
 * cli/config/config_edit.c: changing the file of named databases. See config.h.
 *
 * The text is changed line by line, so comments, blank lines and the order of everything stay. The new file is
 * written beside the old one, made durable, and put in its place: readers see one or the other. Whoever
 * changes it holds a lock on its folder, so that of two changes at once none is lost.
 */
#include "base/base.h"
#include "base/buf.h"
#include "cli/config/config.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAIL(config, ...) edit_fail((config), hf_scope_format((config)->s, __VA_ARGS__))

static bool edit_fail(struct cli_config *config, struct hf_str error)
{
    config->error = error.ptr ? error : HF_STR("out of memory");
    return false;
}

/* ---- lines ---------------------------------------------------------------------------------- */

struct edit_line {
    struct hf_str whole; /* with its end */
    struct hf_str name;  /* of a section that begins here; else absent */
    struct hf_str key;   /* of a setting; else absent */
    bool blank;
};

static bool line_next(struct hf_str *text, struct edit_line *line)
{
    const char *end = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
    size_t len = end ? (size_t)(end - text->ptr) + 1 : text->len;
    struct hf_str bare;
    const char *equals;

    if (!text->len)
        return false;
    *line = (struct edit_line){.whole = hf_str_of(text->ptr, len)};
    assert(len > 0 && len <= text->len);
    *text = hf_str_of(text->ptr + len, text->len - len);
    bare = hf__input_trim(line->whole);
    line->blank = bare.len == 0;
    if (!bare.len || bare.ptr[0] == '#' || bare.ptr[0] == ';')
        return true;
    equals = memchr(bare.ptr, '=', bare.len);
    assert(bare.ptr[0] != '[' || bare.len >= 3); /* the text was parsed: [NAME] */
    if (bare.ptr[0] == '[')
        line->name = hf__input_trim(hf_str_of(bare.ptr + 1, bare.len - 2));
    else if (equals)
        line->key = hf__input_trim(hf_str_of(bare.ptr, (size_t)(equals - bare.ptr)));
    return true;
}

static void put_text(struct hf__buf *buf, struct hf_str text)
{
    assert(text.ptr || !text.len);
    hf__buf_put(buf, text.ptr, text.len);
}

static void put_setting(struct hf__buf *buf, struct hf_str key, struct hf_str value)
{
    assert(key.len > 0 && value.ptr);
    put_text(buf, key);
    put_text(buf, HF_STR(" = "));
    put_text(buf, value);
    put_text(buf, HF_STR("\n"));
}

/* A last line without an end gets one, before something is written behind it. */
static void put_line_end(struct hf__buf *buf)
{
    if (buf->len && buf->ptr[buf->len - 1] != '\n')
        put_text(buf, HF_STR("\n"));
}

static struct hf_str buf_text(const struct hf__buf *buf)
{
    if (buf->failed)
        return (struct hf_str){0};
    return buf->len ? hf_str_of((const char *)buf->ptr, buf->len) : HF_STR("");
}

/*
 * Where a new setting of a section goes: how many bytes of the text are before it, after the last line of the
 * section that is not blank. The part before all sections ends where the first of them begins, as comments in
 * front of a section belong to it. False: there is no such section.
 */
static bool section_place(struct hf_str text, struct hf_str name, size_t *place)
{
    struct hf_str rest = text;
    struct edit_line line;
    bool inside = !name.ptr;

    assert(text.ptr || !text.len);
    *place = 0;
    while (line_next(&rest, &line)) {
        if (line.name.ptr) {
            if (inside)
                return true;
            inside = name.ptr && hf_str_equal(line.name, name);
        }
        if (inside && !line.blank && (line.name.ptr || line.key.ptr))
            *place = text.len - rest.len;
    }
    return inside;
}

/* ---- edits ---------------------------------------------------------------------------------- */

/* The text with the line of that key replaced, or left out. *found: there was one. */
static struct hf_str setting_replace(struct cli_config *config, struct hf_str name,
                                     struct hf_str key, struct hf_str value, bool *found)
{
    struct hf__buf buf = {.scope = config->s};
    struct hf_str rest = config->text;
    bool inside = !name.ptr;
    struct edit_line line;

    *found = false;
    while (line_next(&rest, &line)) {
        if (line.name.ptr)
            inside = name.ptr && hf_str_equal(line.name, name);
        if (!inside || !line.key.ptr || !hf_str_equal(line.key, key)) {
            put_text(&buf, line.whole);
            continue;
        }
        *found = true;
        if (value.ptr)
            put_setting(&buf, key, value);
    }
    return buf_text(&buf);
}

struct hf_str hf__cli_config_edit(struct cli_config *config, struct hf_str name, struct hf_str key,
                                  struct hf_str value)
{
    struct hf__buf buf = {.scope = config->s};
    size_t place = 0;
    bool found;
    struct hf_str text = setting_replace(config, name, key, value, &found);

    if (found || !value.ptr || !text.ptr)
        return text;
    if (!section_place(text, name, &place)) { /* a new section, at the end */
        put_text(&buf, text);
        put_line_end(&buf);
        if (text.len)
            put_text(&buf, HF_STR("\n"));
        put_text(&buf, HF_STR("["));
        put_text(&buf, name);
        put_text(&buf, HF_STR("]\n"));
        put_setting(&buf, key, value);
        return buf_text(&buf);
    }
    put_text(&buf, hf_str_of(text.ptr, place));
    put_line_end(&buf);
    put_setting(&buf, key, value);
    if (!place && text.len) /* the first line of all */
        put_text(&buf, HF_STR("\n"));
    put_text(&buf, hf_str_of(text.ptr + place, text.len - place));
    return buf_text(&buf);
}

struct hf_str hf__cli_config_edit_remove(struct cli_config *config, struct hf_str name)
{
    struct hf__buf buf = {.scope = config->s};
    struct hf_str rest = config->text;
    struct edit_line line;
    bool inside = false;

    while (line_next(&rest, &line)) {
        if (line.name.ptr)
            inside = hf_str_equal(line.name, name);
        /* a comment in it may be about the next section: it stays */
        if (!inside || (!line.name.ptr && !line.key.ptr && !line.blank))
            put_text(&buf, line.whole);
    }
    return buf_text(&buf);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Make the folders of the path, for the user alone. */
static bool folders_make(struct cli_config *config)
{
    struct hf_str copy = hf_scope_copy(config->s, config->path);
    char *path = copy.ptr ? hf_scope_alloc(config->s, copy.len + 1) : NULL;

    if (!path)
        return edit_fail(config, (struct hf_str){0});
    memcpy(path, copy.ptr, copy.len + 1);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return FAIL(config, "%s: %s", path, strerror(errno));
        *at = '/';
    }
    return true;
}

/* The folder of the file, with a NUL behind it. */
static struct hf_str folder_of(struct cli_config *config, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return HF_STR(".");
    return slash == path ? HF_STR("/")
                         : hf_scope_format(config->s, "%.*s", (int)(slash - path), path);
}

bool hf__cli_config_lock(struct cli_config *config, int *lock)
{
    struct hf_str folder;

    *lock = -1;
    if (!config->path.ptr)
        return FAIL(config, "HOME is not set, so there is no config file: set HOLDFAST_CONFIG");
    if (!folders_make(config))
        return false;
    folder = folder_of(config, config->path.ptr);
    if (!folder.ptr)
        return edit_fail(config, folder);
    *lock = open(folder.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX) != 0)
        return FAIL(config, "%.*s: %s", HF_FMT(folder), strerror(errno));
    return true;
}

void hf__cli_config_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

static bool write_all(int fd, struct hf_str text)
{
    while (text.len) {
        ssize_t done = write(fd, text.ptr, text.len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        text = hf_str_of(text.ptr + done, text.len - (size_t)done);
    }
    return fsync(fd) == 0;
}

bool hf__cli_config_write(struct cli_config *config, struct hf_str text)
{
    char real[PATH_MAX];
    /* a link, as tools for such files make them, stays one */
    const char *path = realpath(config->path.ptr, real) ? real : config->path.ptr;
    struct hf_str made = hf_scope_format(config->s, "%s.XXXXXX", path);
    struct hf_str folder = folder_of(config, path);
    char *name = made.ptr ? hf_scope_alloc(config->s, made.len + 1) : NULL;
    bool fine;
    int fd;

    if (!name || !folder.ptr)
        return edit_fail(config, (struct hf_str){0});
    memcpy(name, made.ptr, made.len + 1);
    fd = mkstemp(name); /* with mode 600 */
    if (fd < 0)
        return FAIL(config, "%s: %s", name, strerror(errno));
    fine = write_all(fd, text);
    fine = close(fd) == 0 && fine;
    if (!fine || rename(name, path) != 0) {
        int error = errno;

        unlink(name);
        return FAIL(config, "%s: %s", path, strerror(error));
    }
    fd = open(folder.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    return true;
}
