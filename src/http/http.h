/*
 * http/http.h: HTTP/1.1 requests, read strictly.
 *
 * A reader turns bytes into requests, and does no input or output of its own. Its caller keeps the
 * bytes of a connection in one piece of memory, from the first byte of the request on, and asks
 * again whenever there are more:
 *
 *     hf__http_begin(&reader, &limits);
 *     for (;;) {
 *         switch (hf__http_read(&reader, bytes, len)) {
 *         case HTTP_MORE: get more bytes; ask again
 *         case HTTP_HEAD: reader.head is there and the body is not; send "100 Continue" if it is
 *                         expected, refuse the request, or just ask again
 *         case HTTP_DONE: reader.head and reader.body; the next request starts at bytes + used
 *         case HTTP_BAD:  answer with reader.error and close the connection
 *         }
 *     }
 *
 * The bytes may move between two calls (a buffer grows), but what was handed over must not change.
 * However the bytes are split, the outcome is the same.
 *
 * Strict means: what two readers could understand in two ways is refused. A request has one length
 * at most, lines end with CR LF, names are tokens with nothing between them and the colon, and a
 * chunked body is the only transfer coding there is.
 */
#ifndef HF_HTTP_HTTP_H
#define HF_HTTP_HTTP_H

#include "base/base.h"

enum {
    HTTP_FIELDS_MAX = 100,            /* header fields of a request */
    HTTP_HEAD_MAX = 16 * 1024,        /* bytes of request line and header fields, each */
    HTTP_BODY_MAX = 16 * 1024 * 1024, /* bytes of a body, as sent and as unpacked */
    HTTP_CHUNK_LINE_MAX = 256         /* bytes of a chunk's size and its extensions */
};

struct http_field {
    struct hf_str name;  /* as sent; compare with hf__http_is() */
    struct hf_str value; /* without blanks around it */
};

struct http_head {
    struct hf_str method;
    struct hf_str target; /* as sent: path and query */
    struct hf_str path;   /* as sent, not decoded */
    struct hf_str query;  /* behind the '?'; absent when there is none */
    struct hf_str host;   /* absent in HTTP/1.0 only */
    int minor;            /* of HTTP/1.minor: 0 or 1 */
    bool keep_alive;
    bool expect_continue;
    bool chunked;
    uint64_t length; /* Content-Length; 0 when there is none */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t fields_len;
};

enum http_result { HTTP_MORE, HTTP_HEAD, HTTP_DONE, HTTP_BAD };

struct http_limits {
    size_t head_bytes; /* 0: HTTP_HEAD_MAX */
    size_t body_bytes; /* 0: HTTP_BODY_MAX */
};

struct http_error {
    int status;       /* 400, 413, 414, 417, 431, 501, 505 */
    const char *text; /* a sentence for the person behind the client */
};

struct http_reader {
    struct http_limits limits;
    struct http_head head;
    struct hf_bytes
        body;      /* of HTTP_DONE; chunks are put together in place, in the caller's bytes */
    size_t used;   /* of HTTP_DONE: bytes of this request */
    size_t wanted; /* of HTTP_MORE: bytes the whole request has at least, as far as known */
    struct http_error error;
    /* the reader's own: */
    int state;
    size_t scanned;
    size_t head_len;
    size_t body_len;
    uint64_t chunk_left;
};

void hf__http_begin(struct http_reader *reader, const struct http_limits *limits);

/* `bytes` starts with the request's first byte and has all that was handed over before. */
enum http_result hf__http_read(struct http_reader *reader, uint8_t *bytes, size_t len);

/* The first field of that name, in any case; absent when there is none. */
struct hf_str hf__http_field(const struct http_head *head, const char *name);

/* Are they equal, in any case of ASCII letters? */
bool hf__http_is(struct hf_str text, const char *name);

/* "OK" for 200 and so on; "Unknown" for what the server never sends. */
const char *hf__http_reason(int status);

/* ---- content codings ------------------------------------------------------------------------ */

enum http_coding { HTTP_IDENTITY, HTTP_GZIP, HTTP_DEFLATE };

/*
 * A body as it was before `encoding`, the value of Content-Encoding, was applied; lives in the
 * scope, or is `body` itself. gzip may have several members; deflate is zlib's format.
 *
 * HF_LIMIT    it would have more than `limit` bytes
 * HF_INVALID  the data is broken or empty, or the coding unknown
 */
enum hf_status hf__http_unpack(struct hf_scope *s, struct hf_str encoding, struct hf_bytes body,
                               size_t limit, struct hf_bytes *unpacked);

/* The coding of ours that an Accept-Encoding value likes best; q values count. */
enum http_coding hf__http_accepted(struct hf_str accept_encoding);

/* `body` packed, in the scope. HF_NOMEM. */
enum hf_status hf__http_pack(struct hf_scope *s, enum http_coding coding, struct hf_bytes body,
                             struct hf_bytes *packed);

#endif
