/*
 * server/help.h: a server in the test's own process, and a client that sends bytes as they are.
 *
 *     struct site site;
 *     struct line c;
 *
 *     site_open(t, &site, &(struct server_options){.idle_ms = 300});
 *     line_open(&site, &c);
 *     line_text(&c, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
 *     line_read(&c);                    c.status, c.head, c.body: exactly one answer
 *     CHECK_STR("healthy: here ", c.body);
 *     line_close(&c);
 *     site_close(&site);
 *
 * A client never waits longer than DEADLINE_MS; what does not come by then fails the test.
 */
#ifndef HF_TEST_SERVER_HELP_H
#define HF_TEST_SERVER_HELP_H

#include <holdfast/engine.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/private.h"
#include "store/store.h"
#include "test.h"

enum { DEADLINE_MS = 30000 };

/* A signature that is well formed, which is all that a server without keys looks at. */
#define SIGNED                                                                                     \
    "X-Amz-Date: 20260101T000000Z\r\n"                                                             \
    "Authorization: AWS4-HMAC-SHA256 Credential=key/20260101/here/dynamodb/aws4_request, "         \
    "SignedHeaders=host, Signature=0\r\n"

#define JSON_1_0 "Content-Type: application/x-amz-json-1.0\r\n"
#define TARGET(operation) "X-Amz-Target: DynamoDB_20120810." operation "\r\n"

/* A POST up to where its framing follows: "Content-Length: 2\r\n\r\n{}". */
#define POST_FOR(operation)                                                                        \
    "POST / HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 TARGET(operation) SIGNED

#define SERIALIZATION_BARE "{\"__type\":\"com.amazon.coral.service#SerializationException\"}"

/* ---- the server ----------------------------------------------------------------------------- */

struct site {
    struct test *t;
    struct hf_scope *s; /* the test's own thread's */
    struct hf_db *db;
    struct server *server;
    struct hf_env env;
    atomic_size_t bytes; /* that the server has from its env */
    atomic_int stops;    /* calls of on_stop */
    uint16_t port;
    pthread_t thread;
    enum hf_status outcome; /* of hf__server_run() */
    bool joined;
    unsigned fds;               /* descriptors that were open before */
    bool borrowed;              /* the database is somebody else's */
    struct store_faults faults; /* of site_open_faulty() */
    struct hf__store *store;
    struct server_clock clock; /* of site_open_admin() */
};

/* On a database in memory, with the table "tab" (hash key pk). */
void site_open(struct test *t, struct site *site, const struct server_options *options);
/* The same on a store whose calls can be made to fail. */
void site_open_faulty(struct test *t, struct site *site, const struct server_options *options);
/* With /_holdfast/, on four loops. */
void site_open_admin(struct test *t, struct site *site);
/* On a database that is there; it stays open. */
void site_serve(struct test *t, struct site *site, struct hf_db *db);
/* The same with other options. */
void site_serve_with(struct test *t, struct site *site, struct hf_db *db,
                     const struct server_options *options);
/* A socket that listens, whose connections have a send buffer of about that size; for options.
 * The caller closes it. */
int listen_small(int send_bytes);
/* Wait until hf__server_run() has returned, after somebody stopped the server. */
void site_join(struct site *site);
/* Stop and close; no memory of the server and no descriptor may be left. Close connections before.
 */
void site_close(struct site *site);
/* The table "tab", with the key pk: every site has it. */
void make_table(struct hf_scope *s, struct hf_db *db);
/* Is there an item with that pk, as the database itself has it? */
bool site_has(struct site *site, const char *pk);
/* Put an item with an attribute of `len` bytes, not by way of the server. */
void site_put(struct site *site, const char *pk, size_t len);
/* The value of a line of GET /metrics that begins with `name` and a blank; -1: there is none. */
double site_metric(struct site *site, const char *name);

/* ---- the client ----------------------------------------------------------------------------- */

struct line {
    int fd;
    uint8_t *in; /* what came and was not read yet, and before it the answer that was */
    size_t in_len;
    size_t in_cap;
    size_t used; /* bytes of the last answer */
    bool ended;  /* the server sends no more */
    bool broken; /* ... because of a reset */
    int status;
    struct hf_str reason;
    struct hf_str head; /* the fields, each with its CR LF */
    struct hf_str body;
};

void line_open(const struct site *site, struct line *c);
/* With a receive buffer of about that size, so that the server soon waits for us. */
void line_open_small(const struct site *site, struct line *c, int bytes);
void line_close(struct line *c);
/* By a reset, not by an end. */
void line_reset(struct line *c);

/* False when the server does not take it any more. */
bool line_send(struct line *c, const void *bytes, size_t len);
bool line_text(struct line *c, const char *text);
/* A POST / of an operation, in whose body ' stands for ". */
bool line_call(struct line *c, const char *operation, const char *json);
/* The same as text, in the site's scope. */
struct hf_str call_text(struct hf_scope *s, const char *operation, const char *json);
struct hf_str post_text(struct hf_scope *s, const char *fields, struct hf_str body);
void line_finish_sending(struct line *c);

/* Read one answer. Fails the test when none comes, or it is not one. */
void line_read(struct line *c);
/* The same for the answer to a HEAD, which has no body. */
void line_read_head(struct line *c);
/* Is there an answer to read? False when the connection ends before one begins. */
bool line_answers(struct line *c);
/* Does the connection end within that time, with nothing more said? */
bool line_ends(struct line *c, int64_t ms);
/* Whatever comes until the end or for that time. */
struct hf_str line_rest(struct line *c, int64_t ms);

/* Read the head of an answer that has no end. */
void line_begin(struct line *c);
/* Of what came behind it, is there that text? Waits for it. */
bool line_until(struct line *c, const char *text);
bool line_until_either(struct line *c, const char *text, const char *other);
bool line_within(struct line *c, const char *text, int64_t ms);

/* The value of a field of the answer, spelled exactly so; absent when there is none. */
struct hf_str line_field(const struct line *c, const char *name);
/* The answer is one of DynamoDB's: type, id and crc are right. Checked by CHECK_ANSWER. */
void line_check(struct line *c, int status, const char *body, const char *file, int place);
#define CHECK_ANSWER(c, status, body) line_check((c), (status), (body), __FILE__, __LINE__)

/* Call on a connection of its own, check status and body. In both texts ' stands for ". */
void site_check(struct site *site, int status, const char *expected, const char *operation,
                const char *json, const char *file, int place);
#define CHECK_CALL(site, status, expected, operation, json)                                        \
    site_check((site), (status), (expected), (operation), (json), __FILE__, __LINE__)
/* Send these bytes on a connection of their own; status, and whether the server then closes. */
int site_status(struct site *site, const char *bytes, bool *closes);

int64_t now_ms(void);
void sleep_ms(int64_t ms);
struct hf_str quoted_json(struct hf_scope *s, const char *text);
bool contains(struct hf_str text, const char *part);

#endif
