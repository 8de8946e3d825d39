/*
 * cli/transfer/transfer_source.c: the files of an import, one after the other, as chunks of whole lines.
 *
 * A file may be compressed with gzip, whatever its name: its first two bytes say so. It may have several
 * members, as ours do. A chunk has lines of one file and is some hundred kilobytes long, or as long as its one
 * line. From a pipe that is slow, it is what there is.
 *
 * What always holds:
 *
 *  (1) A chunk begins where a line of its file begins, and for CSV where a record does: an end of line
 *      between quotes ends no record. Quotes inside of a quoted field are doubled, so a record ends at an
 *      end of line with an even number of quotes before it.
 *  (2) Compressed data that ends before its end is an error, and so is anything behind it that is no
 *      further member.
 */
#include "cli/transfer/transfer.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 256 * 1024, PACKED_BYTES = 64 * 1024, LOOK_MS = 100, GZIP_WINDOW = 15 + 16 };

/* ---- bytes ---------------------------------------------------------------------------------- */

struct transfer_input {
    int fd;
    const char *path; /* for messages */
    bool pipe;
    bool gzip;
    bool begun;  /* the first bytes were looked at */
    bool inside; /* a member of gzip has begun and not ended */
    bool ended;
    uint64_t read_bytes;
    z_stream z;
    uint8_t *packed; /* PACKED_BYTES; of what is not compressed, only the first bytes */
    size_t packed_from, packed_to;
};

static enum hf_status input_open(struct hf_scope *s, struct transfer_input *in, const char *path)
{
    struct stat about;

    *in = (struct transfer_input){.fd = STDIN_FILENO, .path = "standard input"};
    if (strcmp(path, "-") != 0) {
        in->path = path;
        in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO may have no writer yet */
    }
    if (in->fd < 0)
        return hf__transfer_fail(s, path, errno);
    if (fstat(in->fd, &about) == 0 && S_ISDIR(about.st_mode)) {
        close(in->fd);
        return hf__transfer_fail(s, path, EISDIR);
    }
    in->pipe = !S_ISREG(about.st_mode);
    in->packed = malloc(PACKED_BYTES);
    if (in->packed)
        return HF_OK;
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    return hf_scope_fail(s, HF_NOMEM, "out of memory");
}

static void input_close(struct transfer_input *in)
{
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    if (in->gzip)
        inflateEnd(&in->z);
    free(in->packed);
    *in = (struct transfer_input){.fd = -1};
}

/* Is there something to read, without waiting? */
static bool input_ready(const struct transfer_input *in)
{
    struct pollfd ready = {.fd = in->fd, .events = POLLIN};

    return !in->pipe || poll(&ready, 1, 0) != 0;
}

static enum hf_status raw_read(struct hf_scope *s, struct transfer_input *in, void *to, size_t max,
                               size_t *got)
{
    struct pollfd ready = {.fd = in->fd, .events = POLLIN};
    ssize_t done;

    assert(in->fd >= 0 && max > 0);
    do {
        do {
            hf_scope_timeout_ms(s, 0);
            TRY(hf_scope_sleep_ms(s, 0));
        } while (in->pipe && poll(&ready, 1, LOOK_MS) == 0);
        done = read(in->fd, to, max);
    } while (done < 0 && (errno == EAGAIN || errno == EINTR));
    if (done < 0)
        return hf__transfer_fail(s, in->path, errno);
    *got = (size_t)done;
    in->read_bytes += *got;
    return HF_OK;
}

static enum hf_status packed_fill(struct hf_scope *s, struct transfer_input *in)
{
    size_t got = 0;

    assert(in->packed_from <= in->packed_to && in->packed_to <= PACKED_BYTES);
    if (in->packed_from < in->packed_to)
        return HF_OK;
    TRY(raw_read(s, in, in->packed, PACKED_BYTES, &got));
    in->packed_from = 0;
    in->packed_to = got;
    return HF_OK;
}

/* Look at the first bytes. */
static enum hf_status input_begin(struct hf_scope *s, struct transfer_input *in)
{
    static const uint8_t magic[] = {0x1F, 0x8B};

    assert(!in->packed_to && !in->gzip);
    in->begun = true;
    while (in->packed_to < sizeof(magic)) {
        size_t got = 0;

        TRY(raw_read(s, in, in->packed + in->packed_to, PACKED_BYTES - in->packed_to, &got));
        if (!got)
            break;
        in->packed_to += got;
    }
    in->gzip = in->packed_to >= sizeof(magic) && memcmp(in->packed, magic, sizeof(magic)) == 0;
    if (in->gzip && inflateInit2(&in->z, GZIP_WINDOW) != Z_OK) {
        in->gzip = false;
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    }
    in->inside = in->gzip;
    return HF_OK;
}

static enum hf_status gzip_read(struct hf_scope *s, struct transfer_input *in, void *to, size_t max,
                                size_t *got)
{
    assert(in->gzip && in->begun && max > 0);
    while (!*got) {
        int result;

        TRY(packed_fill(s, in));
        if (in->packed_from == in->packed_to) {
            in->ended = true;
            return in->inside ? hf_scope_fail(s, HF_CORRUPT,
                                              "%s: the compressed data ends too early; the file "
                                              "was cut",
                                              in->path)
                              : HF_OK;
        }
        if (!in->inside && inflateReset(&in->z) != Z_OK)
            return hf_scope_fail(s, HF_CORRUPT, "%s: damaged compressed data", in->path);
        in->inside = true;
        in->z.next_in = in->packed + in->packed_from;
        in->z.avail_in = (unsigned)(in->packed_to - in->packed_from);
        in->z.next_out = to;
        in->z.avail_out = (unsigned)max;
        result = inflate(&in->z, Z_NO_FLUSH);
        in->packed_from = in->packed_to - in->z.avail_in;
        *got = max - in->z.avail_out;
        if (result == Z_STREAM_END)
            in->inside = false;
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return hf_scope_fail(s, result == Z_MEM_ERROR ? HF_NOMEM : HF_CORRUPT,
                                 "%s: damaged compressed data: %s", in->path,
                                 in->z.msg ? in->z.msg : "out of memory");
    }
    return HF_OK;
}

/* Some bytes; 0 at the end. */
static enum hf_status input_read(struct hf_scope *s, struct transfer_input *in, void *to,
                                 size_t max, size_t *got)
{
    *got = 0;
    if (in->ended)
        return HF_OK;
    if (!in->begun)
        TRY(input_begin(s, in));
    if (in->gzip)
        return gzip_read(s, in, to, max, got);
    if (in->packed_from < in->packed_to) {
        size_t there = in->packed_to - in->packed_from;

        *got = there < max ? there : max;
        memcpy(to, in->packed + in->packed_from, *got);
        in->packed_from += *got;
        return HF_OK;
    }
    TRY(raw_read(s, in, to, max, got));
    in->ended = *got == 0;
    return HF_OK;
}

enum hf_status hf__transfer_source_peek(struct hf_scope *s, const char *path, char *room,
                                        size_t max, size_t *len)
{
    struct transfer_input in;
    enum hf_status status;
    size_t got = 1;

    assert(max > 0);
    *len = 0;
    TRY(input_open(s, &in, path));
    do {
        status = input_read(s, &in, room + *len, max - *len, &got);
        *len += got;
    } while (status == HF_OK && got && *len < max);
    input_close(&in);
    return status;
}

/* ---- lines ---------------------------------------------------------------------------------- */

struct transfer_source {
    const struct transfer_file *files;
    size_t files_len;
    enum transfer_format format;
    struct transfer_position start;
    size_t file; /* that is read, or is next */
    bool open;
    struct transfer_input in;
    uint64_t lines;         /* of it that were handed out */
    uint64_t before_bytes;  /* of the files before it */
    uint64_t counted_bytes; /* that are in the counts of chunks */
    uint64_t number;        /* of the next chunk */
    char *rest;             /* that was read behind the last chunk */
    size_t rest_len, rest_cap;
    char *header; /* the first record, for CSV */
    size_t header_len;
};

enum hf_status hf__transfer_source_open(struct hf_scope *s, const struct transfer_file *files,
                                        size_t len, enum transfer_format format,
                                        struct transfer_position start,
                                        struct transfer_source **source)
{
    struct transfer_source *made = calloc(1, sizeof(*made));

    *source = made;
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    assert(start.file <= len);
    *made = (struct transfer_source){.files = files,
                                     .files_len = len,
                                     .format = format,
                                     .start = start,
                                     .file = (size_t)start.file,
                                     .in = {.fd = -1}};
    for (size_t i = 0; i < made->file; i++)
        made->before_bytes += files[i].bytes;
    return HF_OK;
}

void hf__transfer_source_close(struct transfer_source *source)
{
    if (!source)
        return;
    if (source->open)
        input_close(&source->in);
    free(source->rest);
    free(source->header);
    free(source);
}

struct hf_str hf__transfer_source_header(const struct transfer_source *source)
{
    return source->header ? hf_str_of(source->header, source->header_len) : (struct hf_str){0};
}

static bool room_make(char **ptr, size_t *cap, size_t wanted)
{
    char *more;

    if (*cap >= wanted)
        return true;
    more = realloc(*ptr, wanted);
    if (!more)
        return false;
    *ptr = more;
    *cap = wanted;
    return true;
}

/* Where the last whole line in the text ends, behind its end of line; 0: there is none. (1) */
static size_t last_end(const struct transfer_source *source, const char *text, size_t len)
{
    const char *found;
    size_t end = 0;
    bool quoted = false;

    assert(text || !len);
    if (source->format != TRANSFER_CSV) {
        found = len ? memrchr(text, '\n', len) : NULL;
        return found ? (size_t)(found - text) + 1 : 0;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == '\n' && !quoted)
            end = i + 1;
    }
    return end;
}

static uint64_t lines_count(const char *text, size_t len)
{
    uint64_t lines = 0;
    const char *at = text, *end = text + len;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines + (len && text[len - 1] != '\n');
}

/* Read until there are enough whole lines. */
static enum hf_status chunk_fill(struct hf_scope *s, struct transfer_source *source,
                                 struct transfer_chunk *chunk)
{
    size_t end = 0, got = 1;

    assert(source->open && source->rest_len <= source->rest_cap);
    if (!room_make(&chunk->ptr, &chunk->cap, source->rest_len + CHUNK_BYTES))
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    if (source->rest_len)
        memcpy(chunk->ptr, source->rest, source->rest_len);
    chunk->len = source->rest_len;
    source->rest_len = 0;
    while (got) {
        bool enough = chunk->len >= CHUNK_BYTES || (chunk->len && !input_ready(&source->in));

        end = enough ? last_end(source, chunk->ptr, chunk->len) : 0;
        if (end)
            break;
        if (chunk->len > TRANSFER_LINE_MAX)
            return hf_scope_fail(s, HF_LIMIT, "%s:%llu: the line is longer than %d bytes",
                                 source->in.path, (unsigned long long)source->lines + 1,
                                 TRANSFER_LINE_MAX);
        if (chunk->len + CHUNK_BYTES / 4 > chunk->cap &&
            !room_make(&chunk->ptr, &chunk->cap, chunk->cap * 2))
            return hf_scope_fail(s, HF_NOMEM, "out of memory");
        TRY(input_read(s, &source->in, chunk->ptr + chunk->len, chunk->cap - chunk->len, &got));
        chunk->len += got;
    }
    if (!got)
        end = chunk->len;
    chunk->ends_file = !got;
    assert(end <= chunk->len && chunk->len <= chunk->cap);
    source->rest_len = chunk->len - end;
    if (!room_make(&source->rest, &source->rest_cap, source->rest_len))
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    if (source->rest_len)
        memcpy(source->rest, chunk->ptr + end, source->rest_len);
    chunk->len = end;
    return HF_OK;
}

/* Take off bytes at the beginning, which have so many lines. */
static void chunk_behead(struct transfer_chunk *chunk, size_t len, uint64_t lines)
{
    assert(len <= chunk->len && lines <= chunk->lines);
    chunk->len -= len;
    memmove(chunk->ptr, chunk->ptr + len, chunk->len);
    chunk->first_line += lines;
    chunk->lines -= lines;
}

/* What stands at the beginning of a file and is no item: a mark of UTF-8, a header. */
static enum hf_status head_take(struct hf_scope *s, struct transfer_source *source,
                                struct transfer_chunk *chunk)
{
    static const char mark[] = "\xEF\xBB\xBF";
    bool quoted = false;
    size_t end = 0;

    assert(chunk->first_line == 1);
    if (chunk->len >= 3 && memcmp(chunk->ptr, mark, 3) == 0)
        chunk_behead(chunk, 3, 0);
    if (source->format != TRANSFER_CSV)
        return HF_OK;
    while (end < chunk->len && (quoted || chunk->ptr[end] != '\n'))
        quoted ^= chunk->ptr[end++] == '"';
    free(source->header);
    source->header = malloc(end + 1);
    if (!source->header)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    memcpy(source->header, chunk->ptr, end);
    source->header_len = end && chunk->ptr[end - 1] == '\r' ? end - 1 : end;
    end += end < chunk->len;
    chunk_behead(chunk, end, lines_count(chunk->ptr, end));
    return HF_OK;
}

/* Lines that were done before: they are left out. */
static void done_skip(const struct transfer_source *source, struct transfer_chunk *chunk)
{
    size_t len = 0;
    uint64_t lines = 0;

    assert(chunk->file >= source->start.file);
    if (chunk->file != source->start.file)
        return;
    while (lines < chunk->lines && chunk->first_line + lines <= source->start.line) {
        const char *end = memchr(chunk->ptr + len, '\n', chunk->len - len);

        len = end ? (size_t)(end - chunk->ptr) + 1 : chunk->len;
        lines++;
    }
    chunk_behead(chunk, len, lines);
}

static enum hf_status file_begin(struct hf_scope *s, struct transfer_source *source)
{
    assert(!source->open && source->file < source->files_len);
    TRY(input_open(s, &source->in, source->files[source->file].path.ptr));
    source->open = true;
    source->lines = 0;
    source->rest_len = 0;
    return HF_OK;
}

static void file_end(struct transfer_source *source)
{
    assert(source->open && source->file < source->files_len);
    input_close(&source->in);
    source->open = false;
    source->before_bytes += source->files[source->file].bytes;
    source->file++;
}

enum hf_status hf__transfer_source_next(struct hf_scope *s, struct transfer_source *source,
                                        struct transfer_chunk *chunk, bool *found)
{
    uint64_t at;

    *found = false;
    while (source->file < source->files_len) {
        if (!source->open)
            TRY(file_begin(s, source));
        TRY(chunk_fill(s, source, chunk));
        chunk->file = source->file;
        chunk->first_line = source->lines + 1;
        chunk->lines = lines_count(chunk->ptr, chunk->len);
        source->lines += chunk->lines;
        if (chunk->first_line == 1)
            TRY(head_take(s, source, chunk));
        done_skip(source, chunk);
        at = source->before_bytes + source->in.read_bytes;
        if (!source->in.gzip) /* how much a part of compressed data takes is not known */
            at -= source->rest_len + source->in.packed_to - source->in.packed_from;
        assert(at >= source->counted_bytes);
        chunk->source_bytes = at - source->counted_bytes;
        source->counted_bytes = at;
        if (chunk->ends_file)
            file_end(source);
        if (chunk->lines || chunk->ends_file) {
            chunk->number = source->number++;
            *found = true;
            return HF_OK;
        }
    }
    return HF_OK;
}
