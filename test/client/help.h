/*
 * client/help.h: a machine of AWS's in miniature: services that answer over HTTP on loopback, a
 * home directory, variables, clocks that can be set, and a log that is kept.
 *
 *     struct aws a;
 *     struct mock sts;
 *
 *     aws_open(t, &a);
 *     mock_open(&sts, answer_fn, &state);
 *     aws_set(&a, "AWS_ENDPOINT_URL_STS", sts.url);
 *     aws_file(&a, "config", "[default]\nregion = eu-central-1\n");
 *     aws_start(&a, NULL);
 *     CHECK_STR("AKIDROLE", aws_key(&a));
 *     aws_close(&a);
 *     mock_close(&sts);
 *
 * Every secret of these tests has HUSH in it. aws_close() fails the test when that word is in a
 * log line or in an error that came out of the calls below.
 */
#ifndef HF_TEST_CLIENT_HELP_H
#define HF_TEST_CLIENT_HELP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/credentials.h"
#include "client/source.h"
#include "test.h"

/* ---- services ------------------------------------------------------------------------------- */

struct mock_request {
    char method[16];
    char target[1024];
    char head[16 * 1024]; /* all of it, with the first line */
    char body[64 * 1024]; /* with a NUL behind it */
    size_t body_len;
    int nth; /* from 1 */
};

/* The value of a field, in a buffer of the request's thread; "" when there is none. */
const char *mock_field(const struct mock_request *request, const char *name);

enum mock_way {
    MOCK_ANSWER,
    MOCK_HANG,  /* say nothing until the mock is closed */
    MOCK_CLOSE, /* close without a word */
    MOCK_CUT,   /* close in the middle of the body */
    MOCK_DRIP,  /* a byte of the answer in 50 ms */
    MOCK_JUNK   /* the body alone, with no head before it */
};

struct mock_answer {
    int status; /* 0: 200 */
    enum mock_way way;
    size_t len; /* of the body; 0: up to its NUL */
    int delay_ms;
    const char *date; /* the value of the field Date; NULL: none */
    const char *body;
    char room[8 * 1024]; /* for a body that is made */
};

/* Called by one thread at a time. */
typedef void mock_fn(void *user, const struct mock_request *request, struct mock_answer *answer);

struct mock {
    char url[64]; /* "http://127.0.0.1:12345" */
    atomic_int requests;
    mock_fn *fn;
    void *user;
    int listener;
    atomic_bool stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of fn, and of the list of threads */
    pthread_t lines[256];
    size_t lines_len;
};

void mock_open(struct mock *mock, mock_fn *fn, void *user);
void mock_close(struct mock *mock);

/* ---- the machine ---------------------------------------------------------------------------- */

enum { AWS_VARIABLES_MAX = 32 };

struct aws {
    struct test *t;
    struct hf_env env;
    struct hf_scope *s;
    struct config *config;
    struct transport *transport;
    struct credentials *credentials;
    struct hf_str account; /* of the last aws_key() */
    struct hf_str secret;
    struct hf_str token;
    char home[128];
    struct {
        char name[64];
        char value[512];
    } variables[AWS_VARIABLES_MAX];
    size_t variables_len;
    atomic_llong wall_us;    /* stands still, unless moved */
    atomic_llong elapsed_us; /* added to the system's clock */
    pthread_mutex_t lock;
    char said[64 * 1024]; /* log lines and errors */
    size_t said_len;
    size_t watched;      /* pieces of memory below that size are searched when they go back: */
    atomic_bool unwiped; /* one of them had a secret in it */
    char leaked[512];    /* the first of these that has a secret in it */
};

/* With a home that has nothing in it, and without a metadata service. */
void aws_open(struct test *t, struct aws *a);
void aws_close(struct aws *a);

void aws_set(struct aws *a, const char *name, const char *value); /* NULL: unset */

/* Write ~/.aws/NAME; folders are made. The path of it. */
const char *aws_file(struct aws *a, const char *name, const char *text);

/* Load the config, open the transport and the credentials. NULL: all defaults. */
void aws_start(struct aws *a, const struct credentials_options *options);
/* The same, but give the status back; what is open is closed with the machine. */
enum hf_status aws_try_start(struct aws *a, const struct credentials_options *options);
void aws_stop(struct aws *a);

/* The access key of now; the test fails when there is none. */
struct hf_str aws_key(struct aws *a);

/* The status of asking, whose error is kept; in a scope that is reset before. */
enum hf_status aws_get(struct aws *a);

/* The same with that scope: for threads. The access key is copied to `key`, of 64 bytes. */
enum hf_status aws_get_in(struct aws *a, struct hf_scope *s, char *key);

/* Check that asking fails so, and that the message has that text in it. */
#define CHECK_FAILS(status_, part, a_)                                                             \
    do {                                                                                           \
        CHECK_STATUS(status_, aws_get(a_));                                                        \
        aws_check_part(a_, part, __FILE__, __LINE__);                                              \
    } while (0)
void aws_check_part(struct aws *a, const char *part, const char *file, int line);

void aws_say(struct aws *a, const char *text);

/* Both clocks go on. */
void aws_advance_s(struct aws *a, int64_t seconds);

/* The wall clock, `seconds` from now, as 2026-01-01T00:00:00Z; in a buffer of the thread. */
const char *aws_time(struct aws *a, int64_t seconds);

/* Milliseconds of the system's own clock. */
int64_t real_ms(void);

/* The document of processes, containers and the metadata service, in a buffer of the thread. */
const char *keys_json(const char *key, const char *token_name, const char *expiration);

/* STS's answer, in `out`. */
void sts_xml(char *out, size_t size, const char *operation, const char *key,
             const char *expiration);

#endif
