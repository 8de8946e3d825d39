/*
 * server/console/console.h: /console/: a page about the database, and what it asks for.
 *
 *     GET  /console/           the page: files that are a part of the program (cmake/embed.c)
 *     GET  /console/api/info   what this server is, and may do
 *     POST /console/api/call   {"method": "lock.list", "arguments": {...}}: a call of a pattern, as
 *                              server_options.call has them
 *     POST /console/api/explain    what a statement or query reads: console_explain.c
 *     GET  /console/api/stream what happens, as it happens: watcher.h
 *     GET  /console/api/history    an hour of figures: figures.h
 *
 *  (1) Only a page of our own can use it. What a browser says about who asks (Origin,
 *      Sec-Fetch-Site) has to be ourselves; --cors changes nothing here. What changes something has
 *      a content type that no form can have.
 *  (2) The page runs nothing but files of ours: the policy that it is sent with allows no other
 *      script, no other host and no frame.
 *  (3) With keys, everything has to be signed but the files and the least of `info`, which say
 *      nothing about the database.
 */
#ifndef HF_SERVER_CONSOLE_H
#define HF_SERVER_CONSOLE_H

#include "base/base.h"

struct answer;
struct server;

/* A file of console/. The program has the packed ones alone; those of --console-dir are plain. */
struct console_file {
    const char *path; /* "lib/router.js" */
    const char *etag; /* W/"...": of the plain bytes */
    struct hf_bytes plain;
    struct hf_bytes packed; /* gzip */
};

extern const struct console_file hf__console_files[];
extern const size_t hf__console_files_len;

/* Is it a path of the console? */
bool hf__console_path(struct hf_str path);

/* Is it the path of calls, which may take long? */
bool hf__console_is_call(struct hf_str path);

/* A request for it. */
void hf__console_handle(struct answer *answer, struct hf_bytes body);

/* ---- console_api.c -------------------------------------------------------------------------- */

/* `path` is what stands behind /console/api/. */
void hf__console_api(struct answer *answer, struct hf_str path, struct hf_bytes body);

/* {"error": {"code", "message", "retryable", "may_have_happened"}}: nothing was done. */
void hf__console_error(struct answer *answer, int http_status, enum hf_status status,
                       struct hf_str message);

/* ---- console_explain.c ---------------------------------------------------------------------- */

void hf__console_explain(struct answer *answer, struct hf_bytes body);

#endif
