/*
 * http/http.h: HTTP/1.1 requests and answers, read strictly.
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
 * The bytes may move between two calls (a buffer grows), but what was handed over must not change,
 * except by the reader, which puts chunks together in place. However the bytes are split, the
 * outcome is the same.
 *
 * Strings of the head and the body point into the bytes of the latest call, so they last until the
 * next one, or until the bytes move.
 *
 * Answers are read in the same way, see hf__http_begin_answer().
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
    HTTP_HEAD_MAX = 16 * 1024,        /* bytes of the request line, and of all header fields */
    HTTP_BODY_MAX = 16 * 1024 * 1024, /* bytes of a body, as sent and as unpacked */
    HTTP_CHUNK_LINE_MAX = 256,        /* bytes of a chunk's size and its extensions */
    HTTP_INTERIM_MAX = 16             /* answers such as "100 Continue" before the final one */
};

struct http_field {
    struct hf_str name;  /* as sent; compare with hf__http_is() */
    struct hf_str value; /* without blanks around it */
};

struct http_head {
    struct hf_str method;
    struct hf_str
        target; /* as sent: path and query, perhaps with "http://host" before them; or "*" */
    struct hf_str path;  /* as sent, not decoded; never empty */
    struct hf_str query; /* behind the '?'; absent when there is none */
    struct hf_str host; /* with the port, if there is one; absent in HTTP/1.0 only, perhaps empty */
    int status;         /* of an answer, which has none of the above */
    int minor;          /* of HTTP/1.minor: 0 or 1 */
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
    int status;       /* 400, 413, 417, 501, 505 */
    const char *text; /* for the person behind the client; lives as long as the reader */
};

struct http_reader {
    struct http_limits limits;
    struct http_head head;
    struct hf_bytes body; /* of HTTP_DONE */
    size_t used;          /* of HTTP_DONE: bytes of this request */
    size_t wanted;        /* of HTTP_MORE and HTTP_HEAD: bytes the whole request has at least */
    struct http_error error;
    /* the reader's own: */
    int state;
    bool answer;         /* an answer is read, not a request */
    bool answer_no_body; /* the answer has no body, as its request was a HEAD */
    bool until_close;    /* the answer ends with the connection */
    int interim;         /* interim answers that were skipped so far */
    bool head_returned;  /* HTTP_HEAD was returned */
    uintptr_t at;        /* the address of the bytes when the head was parsed */
    size_t start;        /* of the request line: an empty line may come before it */
    size_t fields_at;    /* where the header fields start */
    size_t head_len;     /* up to and with the empty line */
    size_t body_len;     /* of chunks, put together so far */
    size_t chunk_left;   /* of the current chunk's data */
    size_t framing;      /* bytes around the data of chunks so far */
    size_t trailers_at;  /* where the fields behind the last chunk start */
    size_t trailers_len; /* how many there were so far */
    size_t line;         /* where the current line starts */
    size_t scanned;      /* bytes that are parsed */
    char sentence[80];   /* of errors that name a limit */
};

void hf__http_begin(struct http_reader *reader, const struct http_limits *limits);

/*
 * `bytes` starts with the request's first byte and has all that was handed over before. A request
 * that is no longer than its limits allow fits into 2 * head_bytes + body_bytes and a few bytes, or
 * when chunked into twice that.
 */
enum http_result hf__http_read(struct http_reader *reader, uint8_t *bytes, size_t len);

/*
 * Begin an answer, to be read by hf__http_read() as well; `no_body` when the request was a HEAD.
 * Answers of the 1xx kind are skipped, head.status is that of the final one. An error's status is
 * 413 when the body is beyond its limit, and means nothing otherwise.
 */
void hf__http_begin_answer(struct http_reader *reader, const struct http_limits *limits,
                           bool no_body);

/*
 * No byte follows those of the last call of hf__http_read(), which did not end the answer:
 * HTTP_DONE when it is one that the end of the connection ends, else HTTP_BAD.
 */
enum http_result hf__http_end_answer(struct http_reader *reader, const uint8_t *bytes, size_t len);

/* The first field of that name, in any case; absent when there is none. */
struct hf_str hf__http_field(const struct http_head *head, const char *name);
struct hf_str hf__http_find(const struct http_field *fields, size_t fields_len, const char *name);

/* Are these bytes equal, in any case of ASCII letters? */
bool hf__http_same(const char *a, const char *b, size_t len);

/* Is it this name? Inline, as the length of a literal is known and decides most comparisons. */
static inline bool hf__http_is(struct hf_str text, const char *name)
{
    return text.len == strlen(name) && hf__http_same(text.ptr, name, text.len);
}

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

/*
 * The coding of ours that an Accept-Encoding value likes best: q values count, gzip comes before
 * deflate, and both before identity when they are liked as much. HTTP_IDENTITY for an absent value.
 */
enum http_coding hf__http_accepted(struct hf_str accept_encoding);

/* `body` packed, in the scope; `body` itself for HTTP_IDENTITY. HF_NOMEM. */
enum hf_status hf__http_pack(struct hf_scope *s, enum http_coding coding, struct hf_bytes body,
                             struct hf_bytes *packed);

#endif
