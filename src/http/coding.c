/*
 * http/coding.c: gzip and deflate, around libdeflate.
 *
 * libdeflate works from memory to memory: it cannot stop in the middle and go on later, but says
 * when there is too little room. So unpacking guesses the room, and doubles it as long as that is
 * allowed.
 *
 * What always holds:
 *
 *  (1) No more than `limit` bytes are ever unpacked, whatever the data promises: there is never
 *      more room than that.
 *  (2) No more memory is taken than the data can fill: DEFLATE makes of a byte RATIO_MAX at most.
 *  (3) All of the body is used, up to its last byte, or it is refused.
 */
#include "http/http.h"

#include <libdeflate.h>

enum {
    RATIO_MAX = 1032,  /* two bits stand for 258 bytes at most */
    ROOM_MIN = 1024,   /* of a first guess */
    GZIP_MIN = 18,     /* bytes of a gzip member's header and trailer */
    LEVEL = 2,         /* of 1 to 12: answers are packed while their client waits */
    WEIGHT_MAX = 1000, /* weights are q values in thousandths */
    WEIGHT_NONE = -1   /* a coding that the client does not mention */
};

/* ---- unpacking ------------------------------------------------------------------------------ */

/* Unpacks one member of gzip, or the one stream of zlib; both functions of libdeflate look so. */
typedef enum libdeflate_result unpack_fn(struct libdeflate_decompressor *d, const void *in,
                                         size_t in_len, void *out, size_t out_len, size_t *in_used,
                                         size_t *out_used);

struct unpacking {
    uint8_t *out;
    size_t used;
    size_t room;
    size_t most; /* that `room` may become */
};

/*
 * How much room to begin with. The last four bytes of gzip are the length of what the last member
 * unpacks to, which is all of them as a rule; but they are only what somebody claims.
 */
static size_t first_room(struct hf_bytes body, bool gzip, size_t most)
{
    size_t room = body.len > SIZE_MAX / 4 ? most : body.len * 4;

    if (gzip && body.len >= GZIP_MIN)
        room = load_u32le(body.ptr + body.len - 4);
    if (room < ROOM_MIN)
        room = ROOM_MIN;
    return room < most ? room : most;
}

/* Twice the room, as far as it may go. False when there is no memory. */
static bool room_double(struct hf_scope *s, struct unpacking *u)
{
    size_t room = u->room > u->most / 2 ? u->most : u->room * 2;
    uint8_t *out = hf__scope_grow(s, u->out, u->room, room);

    if (!out)
        return false;
    u->out = out;
    u->room = room;
    return true;
}

/* Member after member up to the last byte; zlib's format has only one. */
static enum hf_status unpack_all(struct hf_scope *s, struct libdeflate_decompressor *d,
                                 unpack_fn *unpack, bool gzip, struct hf_bytes body,
                                 struct unpacking *u)
{
    size_t at = 0;

    while (at < body.len) {
        size_t in_used = 0, out_used = 0;

        switch (unpack(d, body.ptr + at, body.len - at, u->out + u->used, u->room - u->used,
                       &in_used, &out_used)) {
        case LIBDEFLATE_SUCCESS:
            at += in_used;
            u->used += out_used;
            if (!gzip && at < body.len)
                return hf__fail(s, HF_INVALID, "the body has more bytes after its deflate data");
            break;
        case LIBDEFLATE_INSUFFICIENT_SPACE:
            if (u->room == u->most)
                return hf__fail(s, HF_LIMIT, "the body unpacks to more than %zu bytes", u->most);
            if (!room_double(s, u))
                return hf__fail_nomem(s);
            break; /* and once more with the same member */
        default:
            return hf__fail(s, HF_INVALID, "the body is not valid %s data",
                            gzip ? "gzip" : "deflate");
        }
    }
    return HF_OK;
}

static enum hf_status unpack_with(struct hf_scope *s, unpack_fn *unpack, bool gzip,
                                  struct hf_bytes body, size_t limit, struct hf_bytes *unpacked)
{
    struct unpacking u = {.most = limit};
    struct libdeflate_decompressor *d;
    enum hf_status status;

    if (body.len == 0)
        return hf__fail(s, HF_INVALID, "the body is empty, which is not valid %s data",
                        gzip ? "gzip" : "deflate");
    if (body.len < limit / RATIO_MAX)
        u.most = body.len * RATIO_MAX;
    u.room = first_room(body, gzip, u.most);
    u.out = hf_scope_alloc(s, u.room);
    d = u.out ? libdeflate_alloc_decompressor() : NULL;
    if (!d)
        return hf__fail_nomem(s);
    status = unpack_all(s, d, unpack, gzip, body, &u);
    libdeflate_free_decompressor(d);
    if (status == HF_OK)
        *unpacked = hf_bytes_of(u.out, u.used);
    return status;
}

enum hf_status hf__http_unpack(struct hf_scope *s, struct hf_str encoding, struct hf_bytes body,
                               size_t limit, struct hf_bytes *unpacked)
{
    *unpacked = (struct hf_bytes){0};
    if (hf__http_is(encoding, "gzip") || hf__http_is(encoding, "x-gzip"))
        return unpack_with(s, libdeflate_gzip_decompress_ex, true, body, limit, unpacked);
    if (hf__http_is(encoding, "deflate"))
        return unpack_with(s, libdeflate_zlib_decompress_ex, false, body, limit, unpacked);
    if (encoding.len && !hf__http_is(encoding, "identity"))
        return hf__fail(s, HF_INVALID, "unsupported content coding: use gzip or deflate");
    if (body.len > limit)
        return hf__fail(s, HF_LIMIT, "the body has more than %zu bytes", limit);
    *unpacked = body;
    return HF_OK;
}

/* ---- Accept-Encoding ------------------------------------------------------------------------ */

static struct hf_str text_trim(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (from < to && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    return hf_str_of(from, (size_t)(to - from));
}

/* The part of `list` up to `separator`, which is taken away from it. */
static struct hf_str next_part(struct hf_str *list, char separator)
{
    const char *end = list->ptr + list->len;
    const char *found = list->len ? memchr(list->ptr, separator, list->len) : NULL;
    struct hf_str part = text_trim(list->ptr, found ? found : end);

    *list = found ? hf_str_of(found + 1, (size_t)(end - found - 1)) : hf_str_of(end, 0);
    return part;
}

/* "0.5" is 500: a zero or a one and up to three decimals. 0 for what is not a weight. */
static int weight_of(struct hf_str text)
{
    int weight = 0, unit = WEIGHT_MAX;

    for (size_t i = 0; i < text.len; i++) {
        if (i == 1) {
            if (text.ptr[i] != '.')
                return 0;
            continue;
        }
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || unit == 0)
            return 0;
        weight += (text.ptr[i] - '0') * unit;
        unit /= 10;
    }
    return weight <= WEIGHT_MAX ? weight : 0;
}

/* Weights by coding, and the one of "*" behind them. */
enum { ANY = HTTP_DEFLATE + 1, WEIGHTS };

/* Take one element, such as "gzip;q=0.5", into the weights; the first mention counts. */
static void element_weigh(struct hf_str element, int weights[WEIGHTS])
{
    struct hf_str name = next_part(&element, ';');
    int weight = WEIGHT_MAX, which;

    while (element.len) {
        struct hf_str parameter = next_part(&element, ';');

        if (parameter.len >= 2 && hf__http_is(hf_str_of(parameter.ptr, 2), "q="))
            weight = weight_of(hf_str_of(parameter.ptr + 2, parameter.len - 2));
    }
    if (hf__http_is(name, "gzip") || hf__http_is(name, "x-gzip"))
        which = HTTP_GZIP;
    else if (hf__http_is(name, "deflate"))
        which = HTTP_DEFLATE;
    else if (hf__http_is(name, "identity"))
        which = HTTP_IDENTITY;
    else if (hf__http_is(name, "*"))
        which = ANY;
    else
        return;
    if (weights[which] == WEIGHT_NONE)
        weights[which] = weight;
}

/*
 * Identity needs no mention, and then comes after all that is mentioned. It is also what is left
 * when everything is refused: an answer that is not packed helps more than none.
 */
enum http_coding hf__http_accepted(struct hf_str accept_encoding)
{
    int weights[WEIGHTS] = {WEIGHT_NONE, WEIGHT_NONE, WEIGHT_NONE, WEIGHT_NONE};
    int gzip, deflate, identity;

    while (accept_encoding.len)
        element_weigh(next_part(&accept_encoding, ','), weights);
    identity = weights[HTTP_IDENTITY];
    gzip = weights[HTTP_GZIP] == WEIGHT_NONE ? weights[ANY] : weights[HTTP_GZIP];
    deflate = weights[HTTP_DEFLATE] == WEIGHT_NONE ? weights[ANY] : weights[HTTP_DEFLATE];
    if (gzip > 0 && gzip >= deflate && gzip >= identity)
        return HTTP_GZIP;
    if (deflate > 0 && deflate >= identity)
        return HTTP_DEFLATE;
    return HTTP_IDENTITY;
}

/* ---- packing -------------------------------------------------------------------------------- */

enum hf_status hf__http_pack(struct hf_scope *s, enum http_coding coding, struct hf_bytes body,
                             struct hf_bytes *packed)
{
    struct libdeflate_compressor *c;
    size_t room, len;
    uint8_t *out;

    *packed = body;
    if (coding == HTTP_IDENTITY)
        return HF_OK;
    if (body.len == 0)
        body.ptr = (const uint8_t *)""; /* libdeflate wants to point somewhere */
    *packed = (struct hf_bytes){0};
    c = libdeflate_alloc_compressor(LEVEL);
    if (!c)
        return hf__fail_nomem(s);
    room = coding == HTTP_GZIP ? libdeflate_gzip_compress_bound(c, body.len)
                               : libdeflate_zlib_compress_bound(c, body.len);
    out = hf_scope_alloc(s, room);
    if (!out) {
        libdeflate_free_compressor(c);
        return hf__fail_nomem(s);
    }
    len = coding == HTTP_GZIP ? libdeflate_gzip_compress(c, body.ptr, body.len, out, room)
                              : libdeflate_zlib_compress(c, body.ptr, body.len, out, room);
    libdeflate_free_compressor(c);
    assert(len); /* there was room for the worst case */
    *packed = hf_bytes_of(out, len);
    return HF_OK;
}
