/*
 * server/console/watcher.c: see watcher.h.
 */
#include "server/console/watcher.h"

#include "server/console/console.h"
#include "server/console/figures.h"
#include "server/private.h"

struct watcher {
    struct watcher *next; /* in loop->watchers, as is `previous` */
    struct watcher *previous;
    struct conn *conn;
    bool requests;
    struct news_seen seen;
};

static struct watcher *new_watcher(struct conn *conn, bool requests)
{
    struct loop *loop = conn->loop;
    struct watcher *watcher = hf__env_alloc(&loop->server->env, sizeof(*watcher));

    if (!watcher)
        return NULL;
    *watcher = (struct watcher){.conn = conn, .requests = requests, .next = loop->watchers};
    if (loop->watchers)
        loop->watchers->previous = watcher;
    loop->watchers = watcher;
    conn->watcher = watcher;
    return watcher;
}

void hf__watcher_end(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct watcher *watcher = conn->watcher;

    if (!watcher)
        return;
    conn->watcher = NULL;
    *(watcher->previous ? &watcher->previous->next : &loop->watchers) = watcher->next;
    if (watcher->next)
        watcher->next->previous = watcher->previous;
    hf__figures_unwatch(loop->server->figures, watcher->requests);
    hf__env_free(&loop->server->env, watcher, sizeof(*watcher));
}

void hf__watcher_handle(struct answer *answer, struct hf_bytes body)
{
    struct figures *figures = answer->context->server->figures;
    bool requests = hf_str_equal(answer->head->query, HF_STR("requests=1"));
    struct conn *conn = answer->conn;
    struct watcher *watcher = NULL;
    struct hf__buf *out;

    (void)body;
    if (answer->context->worker || hf_str_equal(answer->head->method, HF_STR("HEAD"))) {
        hf__console_error(answer, 400, HF_INVALID, HF_STR("expected a GET without a body"));
        return;
    }
    if (!conn->close_after && hf__figures_watch(figures, requests)) {
        watcher = new_watcher(conn, requests);
        if (!watcher)
            hf__figures_unwatch(figures, requests);
    }
    if (!watcher) {
        hf__console_error(answer, 503, HF_LIMIT,
                          HF_STR("the server stops, or too many watch it already"));
        return;
    }
    answer->type = HF_STR("text/event-stream");
    answer->endless = true;
    answer->as_is = true;
    out = hf__answer_begin(answer);
    hf__buf_put_str(out, HF_STR("retry: 2000\n\n"));
    hf__figures_begin(figures, &watcher->seen, out);
    hf__answer_end(answer, 200);
}

void hf__watcher_on_news(uv_async_t *news)
{
    struct loop *loop = news->data;
    struct figures *figures = loop->server->figures;
    struct hf__buf text = {.env = &loop->server->env};
    struct watcher *next;

    for (struct watcher *watcher = loop->watchers; watcher; watcher = next) {
        bool ready = watcher->conn->state == CONN_WATCHING;

        next = watcher->next; /* it may end here, but no other does */
        text.len = 0;
        hf__figures_news(figures, &watcher->seen, watcher->requests, !ready, &text);
        if (text.failed)
            hf__conn_close(watcher->conn);
        else if (text.len > 0)
            hf__answer_more(watcher->conn, hf_str_of((const char *)text.ptr, text.len));
        text.failed = false;
    }
    hf__buf_free(&text);
    hf__group_commit_flush(loop); /* poll comes first otherwise, and may sleep */
}
