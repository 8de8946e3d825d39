/*
 * The seam for other languages, and for programs that speak JSON: every operation of DynamoDB and
 * every pattern behind one function that takes a name and JSON and gives JSON.
 *
 * A language binds five functions, whose parameters are pointers, lengths and ints only:
 *
 *     struct hf_bind *bind;
 *     char *answer;
 *     size_t len;
 *
 *     if (hf_bind_open_url("embedded:shop.db", 16, NULL, 0, &bind, &answer, &len) != HF_OK)
 *         return complain(answer);
 *     hf_bind_free(answer);
 *     if (hf_bind_request(bind, "lock.list", 9, "{}", 2, &answer, &len) != HF_OK)
 *         return complain(answer); // the error, as JSON
 *     puts(answer);
 *     hf_bind_free(answer);
 *     hf_bind_close(bind);
 *
 * Methods with a dot in their name, such as "lock.list", are those of the patterns;
 * "bind.methods" lists them, with their arguments and results, so that code and types can be
 * generated from it. All other names are operations of DynamoDB, such as "PutItem", and take and
 * give DynamoDB's own JSON.
 *
 * Arguments are one JSON object; an unknown member is an error that names it, and null means the
 * same as leaving the member out. Every method, and every operation beside its own members, takes
 * `deadline_ms`, after which the call ends with HF_TIMEOUT, and `cancel`, a number that
 * hf_bind_cancel() takes. In JSON
 *
 *     text          is a string, which may have any character, \u0000 too
 *     bytes         are a string where they are UTF-8, otherwise {"base64": "..."}; both are taken
 *     integers      are numbers; beyond 2^53 they are given as strings of digits; both are taken
 *     items, values are DynamoDB's JSON: {"id": {"S": "7"}}
 *     times         are microseconds since 1970, and their names end with _us
 *
 * An error is {"code", "message", "retryable", "may_have_happened", ...}: code is the name of the
 * status, and the other members are those of struct hf_error. Errors of operations of DynamoDB are
 * as the wire has them, {"__type", "message", ...}, with these members added.
 *
 * docs/binding.md shows how to bind another language, with handlers of events.
 */
#ifndef HOLDFAST_BIND_H
#define HOLDFAST_BIND_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- one operation -------------------------------------------------------------------------- */

/* What became of an operation, as the server would answer. */
struct hf_json_answer {
    struct hf_str json; /* the response, or {"__type", "message", ...}; lives in the scope */
    int http_status;    /* 200, 400 or 500 */
    uint64_t reserved[4];
};

/*
 * Do the operation with that name on the wire, such as "PutItem", with DynamoDB's JSON. The answer
 * is filled in whatever comes out, unless there is no memory: then its text is absent. The error of
 * the scope says more than the answer: whether the call may be repeated, and may have happened.
 *
 * HF_UNKNOWN_OPERATION  there is none of that name
 * HF_SERIALIZATION      the text is not JSON, or a member has the wrong type
 * and as hf_db_call().
 */
HF_API HF_NODISCARD enum hf_status hf_db_call_json(struct hf_scope *s, struct hf_db *db,
                                                   struct hf_str operation, struct hf_str json,
                                                   struct hf_json_answer *answer);

/* ---- all methods, from C -------------------------------------------------------------------- */

struct hf_bind; /* a database with what its methods have opened; any thread may use it */

struct hf_bind_options {
    size_t size;         /* set by HF_OPTIONS() */
    bool read_only;      /* methods that write fail with HF_DENIED, and no table is made */
    bool own_db;         /* hf_bind_close() closes the database, too */
    struct hf_str owner; /* our name in lists of holders; default "HOST/PROCESS-ID" */
};

/*
 * The methods for `db`, which has to outlive them. Nothing is asked of the database yet: tables are
 * opened by the methods that need them, and stay open. The env is that of the scope.
 *
 * HF_INVALID  the database is NULL
 * HF_NOMEM, HF_LIMIT: of the system
 */
HF_API HF_NODISCARD enum hf_status hf_bind_open(struct hf_scope *s, struct hf_db *db,
                                                const struct hf_bind_options *options,
                                                struct hf_bind **bind);

/*
 * End all sessions and close all that was opened. Calls that wait for a delivery end with
 * HF_STOPPED; other calls are canceled, and this waits for them. Begin no call after it. NULL is
 * accepted.
 * Blocks.
 */
HF_API void hf_bind_close(struct hf_bind *bind);

/*
 * Call a method. *result is its result, or the error, as JSON in the scope: absent only where there
 * is no memory. The scope's deadline holds, too, if it comes before `deadline_ms`.
 *
 * HF_UNKNOWN_OPERATION  there is no such method
 * HF_INVALID            the arguments are not JSON, or not those of the method; the message names
 *                       the member
 * HF_DENIED             the method writes, and options->read_only
 * and what the functions of the pattern fail with.
 */
HF_API HF_NODISCARD enum hf_status hf_bind_call(struct hf_scope *s, struct hf_bind *bind,
                                                struct hf_str method, struct hf_str json,
                                                struct hf_str *result);

/*
 * The same for the thread of an event loop, which has no time to wait. *done is true if the method was
 * called; otherwise nothing was done, and HF_OK is returned: call it on another thread. Tried are
 *
 *     GetItem                          where what it reads is in memory
 *     PutItem, UpdateItem, DeleteItem  of a database in memory
 *
 * and neither a disk nor a network is waited for, nor a lock that is held for long. A loop that makes
 * many such calls one after the other should look after its other work now and then. Since 0.3.
 */
HF_API HF_NODISCARD enum hf_status hf_bind_try(struct hf_scope *s, struct hf_bind *bind,
                                               struct hf_str method, struct hf_str json, bool *done,
                                               struct hf_str *result);

/* ---- all methods, from any language --------------------------------------------------------- */

/*
 * Call a method without a scope. Returns the status, 0 for success; *answer is the result, or the
 * error, as JSON with a NUL behind it, *answer_len its bytes. Free it with hf_bind_free(). It is NULL
 * only if there was no memory. Any number of threads may call it at once. Blocks.
 */
HF_API int hf_bind_request(struct hf_bind *bind, const char *method, size_t method_len,
                           const char *json, size_t json_len, char **answer, size_t *answer_len);

/* Free what hf_bind_request() and its kin gave. NULL is accepted. Also after hf_bind_close(). */
HF_API void hf_bind_free(char *answer);

/*
 * Cancel the calls with that `cancel` that are running now: they end with HF_CANCELED as soon as
 * they can. Returns how many. Any thread.
 */
HF_API int hf_bind_cancel(struct hf_bind *bind, uint64_t cancel);

/* ---- opening from any language -------------------------------------------------------------- */

/* How a database is opened by URL; absent and false are the defaults. */
struct hf_bind_url_options {
    size_t size;          /* of the struct */
    bool read_only;       /* change nothing */
    bool no_create;       /* of directories: it has to exist */
    struct hf_str sync;   /* of directories: "full", "batch" or "none" */
    struct hf_str region; /* of services, and in ARNs */
    struct hf_str owner;  /* as in hf_bind_options */
};

typedef enum hf_status hf_bind_url_fn(struct hf_scope *s, struct hf_str url,
                                      const struct hf_bind_url_options *options, struct hf_db **db);

/*
 * Open a database and its methods, without a scope. The options are JSON, and may be empty:
 * {"read_only", "no_create", "sync", "region", "owner"}, as struct hf_bind_url_options has them.
 * Returns the status; *answer is {} or the error as JSON, for hf_bind_free(). On failure *bind is
 * NULL. hf_bind_close() closes the database, too.
 *
 * hf_bind_connect() is for services ("http://...", "dynamodb://REGION"); hf_bind_open_url() of
 * engine.h also opens directories and memory; hf_bind_open_by() is for an `open` of your own, such
 * as one that puts a wrapper around it.
 */
HF_API int hf_bind_connect(const char *url, size_t url_len, const char *options, size_t options_len,
                           struct hf_bind **bind, char **answer, size_t *answer_len);
HF_API int hf_bind_open_by(hf_bind_url_fn *open, const char *url, size_t url_len,
                           const char *options, size_t options_len, struct hf_bind **bind,
                           char **answer, size_t *answer_len);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
