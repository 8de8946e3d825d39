/*
 * cli/frame/process/input.c: a file as a text. It may be a pipe, so its length is not known before its end. Who waits for one
 * looks at the scope now and then.
 */
#include "cli/frame/process/input.h"

#include "cli/frame/output/json.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 64 * 1024, LOOK_MS = 100 };

/* Room for more, by the C library: a scope keeps what was too small. */
static bool buffer_grow(char **text, size_t *room)
{
    size_t more = *room ? *room * 2 : STEP;
    char *longer = realloc(*text, more);

    if (!longer)
        return false;
    *text = longer;
    *room = more;
    return true;
}

/* Until there is something to read. False: the scope was canceled, by a signal that somebody guards. */
static bool input_wait(struct hf_scope *s, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    do {
        if (hf_scope_sleep_ms(s, 0) != HF_OK) {
            errno = ECANCELED;
            return false;
        }
    } while (poll(&ready, 1, LOOK_MS) == 0);
    return true;
}

struct hf_str hf__input_read(struct hf_scope *s, const char *path, size_t max, struct hf_str *error)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct hf_str copy = {0};
    char *text = NULL;
    size_t len = 0;
    size_t room = 0;
    ssize_t got = fd < 0 ? -1 : 1;

    while (got > 0 && len <= max) {
        if (len == room && !buffer_grow(&text, &room)) {
            errno = ENOMEM;
            got = -1;
            break;
        }
        got = input_wait(s, fd) ? read(fd, text + len, room - len) : -1;
        if (got < 0 && errno == EINTR)
            got = 1; /* and once more */
        else
            len += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        *error = hf_scope_format(s, "%s: %s", path, strerror(errno));
    else if (len > max)
        *error = hf_scope_format(s, "%s: larger than %zu bytes", path, max);
    else
        copy = hf_scope_copy(s, hf_str_of(text, len));
    if (!copy.ptr && !error->ptr)
        *error = HF_STR("out of memory");
    if (fd > STDIN_FILENO)
        close(fd);
    free(text);
    return copy;
}

enum hf_status hf__input_piece(struct hf_scope *s, int fd, const char *path, void *bytes,
                               size_t cap, size_t *len)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got;

    assert(fd >= 0 && cap > 0);
    *len = 0;
    hf_scope_timeout_ms(s, 0);
    do {
        enum hf_status status = hf_scope_sleep_ms(s, 0);

        if (status != HF_OK)
            return status;
    } while (poll(&ready, 1, LOOK_MS) == 0);
    got = read(fd, bytes, cap);
    if (got < 0) {
        int error = errno;

        (void)hf_scope_fail(s, HF_IO, "%s: %s", path, strerror(error));
        errno = error;
        return HF_IO;
    }
    assert((size_t)got <= cap);
    *len = (size_t)got;
    return HF_OK;
}

bool hf__input_line(struct hf_str *text, struct hf_str *line)
{
    const char *end = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
    size_t len = end ? (size_t)(end - text->ptr) : text->len;
    size_t taken = len + (end != NULL);

    assert(taken <= text->len);
    if (!text->len)
        return false;
    *line = hf_str_of(text->ptr, len);
    *text = hf_str_of(text->ptr + taken, text->len - taken);
    return true;
}

struct hf_str hf__input_trim(struct hf_str text)
{
    static const char blanks[] = {' ', '\t', '\r', '\n'};

    while (text.len && memchr(blanks, text.ptr[0], sizeof(blanks)))
        text = hf_str_of(text.ptr + 1, text.len - 1);
    while (text.len && memchr(blanks, text.ptr[text.len - 1], sizeof(blanks)))
        text.len--;
    return text;
}

/* ---- payloads ------------------------------------------------------------------------------- */

bool hf__input_is_json(struct hf_str content_type)
{
    static const char json[] = "json";
    size_t len = 0, start;

    while (len < content_type.len && content_type.ptr[len] != ';' && content_type.ptr[len] != ' ' &&
           content_type.ptr[len] != '\t')
        len++;
    if (len <= sizeof(json) - 1)
        return false;
    start = len - (sizeof(json) - 1);
    for (size_t i = 0; i < sizeof(json) - 1; i++)
        if (tolower((unsigned char)content_type.ptr[start + i]) != json[i])
            return false;
    return content_type.ptr[start - 1] == '/' || content_type.ptr[start - 1] == '+';
}

bool hf__input_fits(struct cli *cli, const char *command, struct hf_str content_type,
                    struct hf_str payload)
{
    size_t line;

    if (!payload.len || (content_type.ptr && !hf__input_is_json(content_type)))
        return true;
    line = hf__cli_json_check(payload);
    if (line)
        hf__cli_fail(
            cli, command, CLI_USAGE,
            "the payload is not valid JSON (line %zu); for other data give its type, such as "
            "--content-type text/plain",
            line);
    return line == 0;
}
