/*
 * cli/frame/process/line_reader.c: lines of a file. See line_reader.h.
 *
 * What was read and not taken yet is in one piece of memory, which grows up to the longest line.
 */
#include "cli/frame/process/line_reader.h"

#include "cli/frame/process/input.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_BYTES = 64 * 1024 };

bool hf__line_reader_open(struct line_reader *reader, const char *path, size_t max)
{
    assert(max > 0);
    *reader = (struct line_reader){.fd = STDIN_FILENO, .path = "standard input", .max = max};
    if (strcmp(path, "-") == 0)
        return true;
    reader->path = path;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    return reader->fd >= 0;
}

void hf__line_reader_close(struct line_reader *reader)
{
    if (reader->fd > STDIN_FILENO)
        close(reader->fd);
    free(reader->ptr);
    *reader = (struct line_reader){.fd = -1};
}

static void reader_check(const struct line_reader *reader)
{
    assert(reader->fd >= 0 && reader->path && reader->max > 0);
    assert(reader->from <= reader->to && reader->to <= reader->cap);
    assert(reader->ptr || !reader->cap);
}

/* Room for more, and for a NUL. */
static enum hf_status make_room(struct hf_scope *s, struct line_reader *reader)
{
    size_t cap = reader->cap ? reader->cap * 2 : FIRST_BYTES;
    char *ptr;

    reader_check(reader);
    if (reader->from) {
        memmove(reader->ptr, reader->ptr + reader->from, reader->to - reader->from);
        reader->to -= reader->from;
        reader->from = 0;
    }
    if (reader->to + 1 < reader->cap)
        return HF_OK;
    if (reader->to > reader->max)
        return hf_scope_fail(s, HF_LIMIT, "longer than %zu bytes", reader->max);
    ptr = realloc(reader->ptr, cap);
    if (!ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    reader->ptr = ptr;
    reader->cap = cap;
    return HF_OK;
}

static enum hf_status read_more(struct hf_scope *s, struct line_reader *reader)
{
    enum hf_status status = make_room(s, reader);
    size_t got;

    if (status != HF_OK)
        return status;
    assert(reader->from == 0 && reader->to + 1 < reader->cap);
    status = hf__input_piece(s, reader->fd, reader->path, reader->ptr + reader->to,
                             reader->cap - reader->to - 1, &got);
    reader->to += got;
    reader->ended = status == HF_OK && got == 0;
    return status;
}

static struct hf_str take_line(struct line_reader *reader, size_t len, bool has_end)
{
    char *begin = reader->ptr + reader->from;

    assert(reader->from + len + has_end <= reader->to && reader->to < reader->cap);
    reader->from += len + has_end;
    reader->number++;
    if (len && begin[len - 1] == '\r')
        len--;
    begin[len] = '\0';
    return hf_str_of(begin, len);
}

enum hf_status hf__line_reader_next(struct hf_scope *s, struct line_reader *reader,
                                    struct hf_str *line)
{
    size_t seen = 0;

    reader_check(reader);
    *line = (struct hf_str){0};
    for (;;) {
        size_t there = reader->to - reader->from;
        const char *begin = there ? reader->ptr + reader->from : NULL;
        const char *end = there > seen ? memchr(begin + seen, '\n', there - seen) : NULL;
        size_t len = end ? (size_t)(end - begin) : there;
        enum hf_status status;

        if (len > reader->max)
            return hf_scope_fail(s, HF_LIMIT, "longer than %zu bytes", reader->max);
        if (end || (reader->ended && there)) {
            *line = take_line(reader, len, end != NULL);
            return HF_OK;
        }
        if (reader->ended)
            return HF_OK;
        seen = there;
        status = read_more(s, reader);
        if (status != HF_OK)
            return status;
    }
}

bool hf__line_reader_ready(const struct line_reader *reader)
{
    struct pollfd ready = {.fd = reader->fd, .events = POLLIN};
    size_t there = reader->to - reader->from;

    if (reader->ended || (there && memchr(reader->ptr + reader->from, '\n', there)))
        return true;
    return poll(&ready, 1, 0) != 0;
}
