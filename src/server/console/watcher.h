/*
 * server/console/watcher.h: /console/api/stream: answers without an end, to which news is added.
 *
 * The thread of figures.h makes the news, once for all; the loops send it on to those of their
 * connections that watch, in the format of server-sent events (text/event-stream).
 *
 *     GET /console/api/stream              figures, writes, health
 *     GET /console/api/stream?requests=1   and request, dropped
 *
 *  (1) Nobody is sent more than one piece of news ahead: whoever has not read the last one misses
 *      the next, and is told what was missed. So what it holds is bounded, and counted as any answer.
 *  (2) It ends when the server stops. It is an answer with "Connection: close": nothing that
 *      comes behind the request is looked at.
 */
#ifndef HF_SERVER_WATCHER_H
#define HF_SERVER_WATCHER_H

#include <uv.h>

#include "base/base.h"

enum { WATCHES_MAX = 256 };

struct answer;
struct conn;

/* The requests. */
void hf__watcher_handle(struct answer *answer, struct hf_bytes body);

/* There is news; on a loop. */
void hf__watcher_on_news(uv_async_t *news);

/* The connection watches no more. It may never have. */
void hf__watcher_end(struct conn *conn);

#endif
