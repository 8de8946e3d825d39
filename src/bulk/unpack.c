/*
 * bulk/unpack.c: gzip and zstd. Data of either has one or more parts, members or frames, behind each other.
 *
 * What always holds: data that ends inside of a part is cut, and what is behind one and is no other part
 * is damage.
 */
#include "bulk/unpack.h"

#include <pthread.h>

#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "base/library.h"

enum { GZIP_WINDOW = 15 + 16 };

#define ZSTD_FUNCTIONS(X)                                                                          \
    X(ZSTD_createDStream)                                                                          \
    X(ZSTD_freeDStream) X(ZSTD_initDStream) X(ZSTD_decompressStream) X(ZSTD_isError)
struct zstd_library {
    ZSTD_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE zstd_library
static const struct library_symbol symbols[] = {ZSTD_FUNCTIONS(LIBRARY_SYMBOL)};

static struct zstd_library zstd;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char load_error[LIBRARY_WHY]; /* empty: it works */

static void load_once(void)
{
    (void)hf__library_find("libzstd.so.1", NULL, symbols, ARRAY_LEN(symbols), &zstd, load_error);
}

enum hf_status hf__bulk_unpack_check(struct hf_scope *s, enum bulk_packing packing)
{
    if (packing != BULK_ZSTD)
        return HF_OK;
    (void)pthread_once(&once, load_once);
    return load_error[0] ? hf__fail(s, HF_UNSUPPORTED, "%s", load_error) : HF_OK;
}

struct unpacker {
    struct hf_env env;
    enum bulk_packing packing;
    bool inside; /* a part has begun and not ended */
    z_stream z;
    bool z_open;
    ZSTD_DStream *stream;
};

enum hf_status hf__bulk_unpack_open(struct hf_scope *s, enum bulk_packing packing,
                                    struct unpacker **unpacker)
{
    struct hf_env env = hf__env_fill(hf__scope_env(s));
    struct unpacker *made;

    *unpacker = NULL;
    if (packing == BULK_PLAIN)
        return HF_OK;
    TRY(hf__bulk_unpack_check(s, packing));
    made = hf__env_zalloc(&env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    made->env = env;
    made->packing = packing;
    if (packing == BULK_ZSTD)
        made->stream = zstd.ZSTD_createDStream();
    else
        made->z_open = inflateInit2(&made->z, GZIP_WINDOW) == Z_OK;
    if (!made->stream && !made->z_open) {
        hf__bulk_unpack_close(made);
        return hf__fail_nomem(s);
    }
    *unpacker = made;
    return HF_OK;
}

void hf__bulk_unpack_close(struct unpacker *unpacker)
{
    struct hf_env env;

    if (!unpacker)
        return;
    env = unpacker->env;
    if (unpacker->z_open)
        inflateEnd(&unpacker->z);
    if (unpacker->stream)
        zstd.ZSTD_freeDStream(unpacker->stream);
    hf__env_free(&env, unpacker, sizeof(*unpacker));
}

static enum hf_status fail_damaged(struct hf_scope *s, const char *what)
{
    return hf__fail(s, HF_CORRUPT, "the %s data is damaged", what);
}

static enum hf_status gzip_unpack(struct hf_scope *s, struct unpacker *u, struct hf_bytes *packed,
                                  uint8_t *room, size_t max, size_t *got)
{
    int result;

    if (!u->inside && inflateReset(&u->z) != Z_OK)
        return fail_damaged(s, "gzip");
    u->inside = true;
    u->z.next_in = packed->ptr;
    u->z.avail_in = (unsigned)packed->len;
    u->z.next_out = room;
    u->z.avail_out = (unsigned)max;
    result = inflate(&u->z, Z_NO_FLUSH);
    packed->ptr += packed->len - u->z.avail_in;
    packed->len = u->z.avail_in;
    *got = max - u->z.avail_out;
    if (result == Z_STREAM_END)
        u->inside = false;
    else if (result == Z_MEM_ERROR)
        return hf__fail_nomem(s);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_damaged(s, "gzip");
    return HF_OK;
}

static enum hf_status zstd_unpack(struct hf_scope *s, struct unpacker *u, struct hf_bytes *packed,
                                  uint8_t *room, size_t max, size_t *got)
{
    ZSTD_inBuffer in = {.src = packed->ptr, .size = packed->len};
    ZSTD_outBuffer out = {.dst = room, .size = max};
    size_t result;

    if (!u->inside && zstd.ZSTD_isError(zstd.ZSTD_initDStream(u->stream)))
        return hf__fail_nomem(s);
    result = zstd.ZSTD_decompressStream(u->stream, &out, &in);
    if (zstd.ZSTD_isError(result))
        return fail_damaged(s, "zstd");
    packed->ptr += in.pos;
    packed->len -= in.pos;
    *got = out.pos;
    u->inside = result != 0;
    return HF_OK;
}

enum hf_status hf__bulk_unpack(struct hf_scope *s, struct unpacker *unpacker,
                               struct hf_bytes *packed, uint8_t *room, size_t max, size_t *got)
{
    assert(packed->len > 0 && max > 0);
    *got = 0;
    return unpacker->packing == BULK_ZSTD ? zstd_unpack(s, unpacker, packed, room, max, got)
                                          : gzip_unpack(s, unpacker, packed, room, max, got);
}

bool hf__bulk_unpack_inside(const struct unpacker *unpacker)
{
    return unpacker && unpacker->inside;
}
