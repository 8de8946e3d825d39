/*
 * test/blob/fake_s3.h: S3, as strict as the real one where it matters, and in the mood that a test
 * wants.
 *
 * Every request is checked as a whole: signature, hash of the body, path, query. One that is wrong
 * in a way that no request of ours may be sets `wrong`, which the test finds when it closes the
 * fake.
 */
#ifndef HF_TEST_BLOB_FAKE_S3_H
#define HF_TEST_BLOB_FAKE_S3_H

#include <pthread.h>

#include "../http/help.h"

/* What becomes of a call. */
enum fake_mood {
    WELL,
    BROKEN,       /* 500 InternalError, nothing was done */
    BROKEN_AFTER, /* 500, everything was done */
    SLOW_DOWN,    /* 503 SlowDown */
    GATEWAY,      /* 502 and a page of HTML */
    HANG_UP,      /* closed before anything was done */
    LOST,         /* closed after everything was done */
    CUT,          /* all done, half of the answer's body, closed */
    GARBAGE,      /* 200 and something else; nothing was done */
    LATE_ERROR,   /* 200, and InternalError in the body; nothing was done */
    DENIED,       /* 403 AccessDenied */
    EXPIRED,      /* 400 ExpiredToken */
    BAD_PART,     /* 400 InvalidPart */
    FULL,         /* 507 */
    PACKED,       /* 200, with Content-Encoding: gzip */
    LEAK,         /* 403 SignatureDoesNotMatch, with the secret in its message */
    WRONG_RANGE   /* 206 of other bytes */
};

enum { FAKE_OBJECTS = 600, FAKE_PARTS = 40, FAKE_UPLOADS = 20, FAKE_CALLS = 4096 };

struct fake_object {
    char key[700];
    uint8_t *bytes;
    size_t len;
    int64_t at_s;
};

struct fake_upload {
    char key[700];
    char id[40]; /* empty: none */
    int64_t at_s;
    struct {
        uint8_t *bytes;
        size_t len;
    } parts[FAKE_PARTS];
};

struct fake_s3 {
    struct listener listener;
    const char *bucket;          /* its name */
    bool there;                  /* it exists */
    bool forbidden;              /* and is somebody else's: 403 for all */
    const char *region;          /* where it is */
    _Atomic int64_t clock_off_s; /* of its clock, from ours */
    int page;                    /* objects of a list; default 1000 */
    int slow_ms;                 /* of a GET */
    int slow_copy_ms;            /* of a copy */
    bool deep_lists;             /* lists are of all that is below, as those of blobs are not */
    bool no_ranges;              /* Range is not known */
    bool no_conditions;          /* If-None-Match is not known */
    bool same_page;              /* a list that never ends */
    enum fake_mood moods[FAKE_CALLS];
    size_t moods_len; /* calls beyond are well */
    atomic_int calls;
    atomic_int gets, puts, heads, deletes, copies, part_puts, lists, bucket_puts;
    atomic_int under_way, most; /* GETs at the same time */
    pthread_mutex_t lock;       /* guards all below */
    struct fake_object objects[FAKE_OBJECTS];
    size_t objects_len;
    struct fake_upload uploads[FAKE_UPLOADS];
    int ids;
    char wrong[512];
    char last_body[1024];
};

void fake_open(struct fake_s3 *fake);
/* Fails the test when something was wrong. */
void fake_close(struct fake_s3 *fake);

/* The moods of the next calls. */
void fake_moods(struct fake_s3 *fake, const enum fake_mood *moods, size_t len);
#define FAKE_MOODS(fake, ...)                                                                      \
    fake_moods(fake, (const enum fake_mood[]){__VA_ARGS__},                                        \
               sizeof((const enum fake_mood[]){__VA_ARGS__}) / sizeof(enum fake_mood))

/* The object of that key, or NULL; nobody may be calling. */
struct fake_object *fake_find(struct fake_s3 *fake, const char *key);
void fake_add(struct fake_s3 *fake, const char *key, const char *text);
size_t fake_uploads(struct fake_s3 *fake);

#define FAKE_KEY "AKID"
#define FAKE_SECRET "HUSHsecretsecretsecretsecretsecretsecret"

#endif
