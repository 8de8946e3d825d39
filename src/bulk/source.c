/*
 * bulk/source.c: the records of an object: its bytes are read piece by piece, decompressed, and cut.
 *
 *     LINES   a record ends with its line
 *     CSV     as well, but an end of line between quotes ends none
 *     ION     a record is a struct with what is before it; structs follow each other, or are in a list
 *
 * What always holds:
 *
 *  (1) The bytes of all records, and of what is between them, are those of the object.
 *  (2) Memory is that of the longest record, and a piece.
 *  (3) After HF_CORRUPT the source is at its end.
 */
#include "bulk/source.h"

#include "base/buf.h"

enum { UNPACK_BYTES = 256 * 1024 };

struct source {
    struct hf_env env;
    struct bucket *bucket;
    struct hf_scope *pieces; /* has the piece that is being read */
    struct hf_scope *memory;
    struct hf_str key;
    enum bulk_form form;
    uint64_t read; /* bytes of the object */
    bool read_all;
    bool ended;
    struct hf_bytes piece;     /* what is left of it */
    struct unpacker *unpacker; /* NULL: it is not compressed */
    struct hf__buf text;       /* that was read and not handed out */
    size_t from;               /* where in it the next record begins */
    size_t looked;             /* up to where the end of that was looked for */
    uint64_t given;            /* bytes before text */
    /* the state of the search: */
    bool quoted;
    char quote; /* of Ion: the quotes that the text is between; 0: none */
    int depth;
};

enum hf_status hf__bulk_source_open(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                    enum bulk_form form, enum bulk_packing packing,
                                    struct source **source)
{
    struct hf_env env = hf__env_fill(hf__scope_env(s));
    struct source *made = hf__env_zalloc(&env, sizeof(*made));
    enum hf_status status;

    *source = NULL;
    if (!made)
        return hf__fail_nomem(s);
    made->env = env;
    made->bucket = bucket;
    made->form = form;
    made->text = (struct hf__buf){.env = &made->env};
    made->memory = hf_scope_new(&env);
    made->pieces = hf_scope_new(&env);
    if (made->memory)
        made->key = hf_scope_copy(made->memory, key);
    if (!made->pieces || !made->key.ptr) {
        hf__bulk_source_close(made);
        return hf__fail_nomem(s);
    }
    status = hf__bulk_unpack_open(s, packing, &made->unpacker);
    if (status != HF_OK) {
        hf__bulk_source_close(made);
        return status;
    }
    *source = made;
    return HF_OK;
}

void hf__bulk_source_close(struct source *source)
{
    struct hf_env env;

    if (!source)
        return;
    env = source->env;
    hf__bulk_unpack_close(source->unpacker);
    hf__buf_free(&source->text);
    hf_scope_free(source->pieces);
    hf_scope_free(source->memory);
    hf__env_free(&env, source, sizeof(*source));
}

uint64_t hf__bulk_source_bytes(const struct source *source)
{
    return source->given + source->from;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* (3) */
static enum hf_status source_corrupt(struct hf_scope *s, struct source *source, const char *why)
{
    source->ended = true;
    source->from = source->text.len;
    return hf__fail(s, HF_CORRUPT, "%.*s: %s", HF_FMT(source->key), why);
}

static enum hf_status piece_read(struct hf_scope *s, struct source *source)
{
    enum hf_status status;

    assert(source->piece.len == 0 && !source->read_all);
    hf_scope_reset(source->pieces);
    hf__scope_follow(source->pieces, s);
    status = hf__bulk_bucket_read(source->pieces, source->bucket, source->key, source->read,
                                  BUCKET_READ, &source->piece);
    if (status != HF_OK)
        return hf_scope_fail_from(s, status, source->pieces);
    source->read += source->piece.len;
    source->read_all = source->piece.len < BUCKET_READ;
    return HF_OK;
}

static enum hf_status source_unpack(struct hf_scope *s, struct source *source, uint8_t *room,
                                    size_t *got)
{
    enum hf_status status =
        hf__bulk_unpack(s, source->unpacker, &source->piece, room, UNPACK_BYTES, got);

    if (status != HF_CORRUPT)
        return status;
    return source_corrupt(s, source, hf_scope_copy(s, hf_str_from(hf_scope_error_text(s))).ptr);
}

/* Append some bytes to the text; *more is false at the end of the object. */
static enum hf_status text_grow(struct hf_scope *s, struct source *source, bool *more)
{
    uint8_t *room;
    size_t got = 0;

    *more = false;
    if (source->ended)
        return HF_OK;
    if (source->from) { /* what was handed out goes */
        source->given += source->from;
        source->looked -= source->from;
        source->text.len -= source->from;
        memmove(source->text.ptr, source->text.ptr + source->from, source->text.len);
        source->from = 0;
    }
    while (!got) {
        if (!source->piece.len) {
            if (!source->read_all)
                TRY(piece_read(s, source));
            if (!source->piece.len) {
                if (hf__bulk_unpack_inside(source->unpacker))
                    return source_corrupt(s, source, "the compressed data ends too early");
                source->ended = true;
                return HF_OK;
            }
        }
        if (!source->unpacker) {
            hf__buf_put(&source->text, source->piece.ptr, source->piece.len);
            got = source->piece.len;
            source->piece.len = 0;
            continue;
        }
        room = hf__buf_reserve(&source->text, UNPACK_BYTES);
        if (!room)
            break;
        TRY(source_unpack(s, source, room, &got));
        source->text.len += got;
    }
    if (source->text.failed)
        return hf__fail_nomem(s);
    *more = true;
    return HF_OK;
}

/* ---- where records end ---------------------------------------------------------------------- */

/* Each looks from `looked` on for the end of the record, and leaves `looked` behind it. */

static bool line_ends(struct source *source)
{
    const uint8_t *text = source->text.ptr;
    const uint8_t *end = memchr(text + source->looked, '\n', source->text.len - source->looked);

    source->looked = end ? (size_t)(end - text) + 1 : source->text.len;
    return end != NULL;
}

static bool csv_ends(struct source *source)
{
    while (source->looked < source->text.len) {
        char c = (char)source->text.ptr[source->looked++];

        if (c == '"')
            source->quoted = !source->quoted;
        else if (c == '\n' && !source->quoted)
            return true;
    }
    return false;
}

/*
 * An item of Ion ends with the bracket that closes its struct. Items may be the elements of one list,
 * whose own brackets and commas are between records. Brackets in texts do not count.
 */
static bool ion_ends(struct source *source)
{
    while (source->looked < source->text.len) {
        char c = (char)source->text.ptr[source->looked];

        if (source->quote && c == '\\') {
            if (source->looked + 1 == source->text.len)
                return false;
            source->looked += 2;
            continue;
        }
        source->looked++;
        if (source->quote) {
            if (c == source->quote)
                source->quote = 0;
        } else if (c == '"' || c == '\'') {
            source->quote = c;
        } else if (c == '{' || (c == '[' && source->depth)) {
            source->depth++;
        } else if ((c == '}' || c == ']') && source->depth && --source->depth == 0) {
            return true;
        }
    }
    return false;
}

static bool record_ends(struct source *source)
{
    switch (source->form) {
    case SOURCE_CSV:
        return csv_ends(source);
    case SOURCE_ION:
        return ion_ends(source);
    case SOURCE_LINES:
        break;
    }
    return line_ends(source);
}

/* Nothing but spaces; and of Ion, but what stands between items. */
static bool is_blank(struct hf_str text, enum bulk_form form)
{
    static const char blanks[] = {' ', '\t', '\r', '\n', '[', ']', ','};
    size_t len = form == SOURCE_ION ? sizeof(blanks) : 4;

    for (size_t i = 0; i < text.len; i++)
        if (!memchr(blanks, text.ptr[i], len))
            return false;
    return true;
}

/* What is from `from` to `looked` is a record, unless it is blank. */
static bool record_take(struct source *source, struct hf_str *record)
{
    struct hf_str text = {(const char *)source->text.ptr + source->from,
                          source->looked - source->from};

    source->from = source->looked;
    if (source->form != SOURCE_ION) {
        if (text.len && text.ptr[text.len - 1] == '\n')
            text.len--;
        if (text.len && text.ptr[text.len - 1] == '\r')
            text.len--;
    }
    *record = text;
    return !is_blank(text, source->form);
}

enum hf_status hf__bulk_source_next(struct hf_scope *s, struct source *source,
                                    struct hf_str *record, bool *found)
{
    bool more = true;

    *found = false;
    *record = (struct hf_str){NULL, 0};
    for (;;) {
        assert(source->from <= source->looked && source->looked <= source->text.len);
        if (source->looked < source->text.len && record_ends(source)) {
            *found = record_take(source, record);
            if (*found)
                return HF_OK;
            continue;
        }
        if (source->text.len - source->from > SOURCE_RECORD_MAX)
            return source_corrupt(s, source, "a record is longer than 16 MB");
        TRY(text_grow(s, source, &more));
        if (more)
            continue;
        source->looked = source->text.len; /* the last one may have no end of line */
        if (source->from < source->text.len)
            *found = record_take(source, record);
        return HF_OK;
    }
}
