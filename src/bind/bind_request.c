/*
 * bind/bind_request.c: the functions that need no scope: hf_bind_request(), and opening by URL. Each call
 * borrows a scope of the bind; an answer is memory of its own, which says how it is freed. (n) is an invariant
 * of bind.c.
 */
#include "bind/bind.h"

#include <holdfast/client.h>

#include "bind/session.h"

/* ---- without a scope ------------------------------------------------------------------------ */

/* What stands before an answer, so that it can be freed when the bind is gone. */
struct answer_head {
    struct hf_env env;
    size_t size;
};
enum { HEAD_BYTES = (sizeof(struct answer_head) + 15) / 16 * 16 };

static char *answer_new(const struct hf_env *env, struct hf_str text, size_t *len)
{
    size_t size = HEAD_BYTES + text.len + 1;
    struct answer_head *head = text.ptr ? hf__env_alloc(env, size) : NULL;
    char *answer;

    *len = 0;
    if (!head)
        return NULL;
    answer = (char *)head + HEAD_BYTES;
    head->env = *env;
    head->size = size;
    memcpy(answer, text.ptr, text.len);
    answer[text.len] = '\0';
    *len = text.len;
    return answer;
}

void hf_bind_free(char *answer)
{
    struct answer_head head;

    if (!answer)
        return;
    memcpy(&head, answer - HEAD_BYTES, sizeof(head));
    hf__env_free(&head.env, answer - HEAD_BYTES, head.size);
}

static struct hf_scope *request_begin(struct hf_bind *bind)
{
    struct hf_scope *s = NULL;

    pthread_mutex_lock(&bind->mutex);
    bind->requests++;
    if (bind->scopes_len)
        s = bind->scopes[--bind->scopes_len];
    pthread_mutex_unlock(&bind->mutex);
    return s ? s : hf_scope_new(&bind->env);
}

/* (3) The bind may be gone after this. */
static void request_end(struct hf_bind *bind, struct hf_scope *s)
{
    if (s)
        hf_scope_reset(s);
    pthread_mutex_lock(&bind->mutex);
    if (s && bind->scopes_len < SCOPES_MAX) {
        bind->scopes[bind->scopes_len++] = s;
        s = NULL;
    }
    assert(bind->requests > 0);
    bind->requests--;
    pthread_cond_broadcast(&bind->ended);
    pthread_mutex_unlock(&bind->mutex);
    hf_scope_free(s);
}

int hf_bind_request(struct hf_bind *bind, const char *method, size_t method_len, const char *json,
                    size_t json_len, char **answer, size_t *answer_len)
{
    struct hf_str result = {0};
    enum hf_status status = HF_NOMEM;
    struct hf_scope *s;
    uint64_t take = 0;

    *answer = NULL;
    *answer_len = 0;
    if (!bind)
        return HF_INVALID;
    s = request_begin(bind);
    if (s)
        status = hf__bind_run(s, bind, hf_str_of(method, method_len), hf_str_of(json, json_len),
                              &result, &take);
    *answer = answer_new(&bind->env, result, answer_len);
    if (!*answer && take)
        hf__session_untake(bind, take);
    if (!*answer && status == HF_OK)
        status = HF_NOMEM;
    request_end(bind, s);
    return (int)status;
}

/* ---- opening by URL ------------------------------------------------------------------------- */

#define T hf_bind_url_options
PART(url_options, BOOL("read_only", read_only), BOOL("no_create", no_create), TEXT("sync", sync),
     TEXT("region", region), TEXT("owner", owner));
#undef T

static enum hf_status open_database(struct hf_scope *s, hf_bind_url_fn *open, struct hf_str url,
                                    struct hf_str json, struct hf_bind **bind)
{
    struct hf_bind_url_options o = {.size = sizeof(o)};
    struct bind_common common = {0};
    enum hf_status status;
    struct hf_db *db;

    TRY(hf__bind_read(s, HF_STR("open"), &url_options, json, &o, &common));
    if (common.deadline_ms)
        hf_scope_timeout_ms(s, common.deadline_ms);
    TRY(open(s, url, &o, &db));
    status = hf_bind_open(s, db,
                          HF_OPTIONS(hf_bind_options, .read_only = o.read_only, .own_db = true,
                                     .owner = o.owner),
                          bind);
    if (status != HF_OK)
        hf_db_close(db);
    return status;
}

int hf_bind_open_by(hf_bind_url_fn *open, const char *url, size_t url_len, const char *options,
                    size_t options_len, struct hf_bind **bind, char **answer, size_t *answer_len)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__buf buf = {.scope = s};
    struct hf_str result;
    enum hf_status status;

    *bind = NULL;
    *answer = NULL;
    *answer_len = 0;
    if (!s)
        return HF_NOMEM;
    status = open_database(s, open, hf_str_of(url, url_len), hf_str_of(options, options_len), bind);
    if (status == HF_OK)
        hf__buf_put_str(&buf, HF_STR("{}"));
    status = hf__bind_finish(s, status, &buf, &result);
    *answer = answer_new(hf__scope_env(s), result, answer_len);
    hf_scope_free(s);
    return (int)status;
}

static enum hf_status connect_url(struct hf_scope *s, struct hf_str url,
                                  const struct hf_bind_url_options *options, struct hf_db **db)
{
    return hf_connect(s, url, HF_OPTIONS(hf_client_options, .region = options->region), db);
}

int hf_bind_connect(const char *url, size_t url_len, const char *options, size_t options_len,
                    struct hf_bind **bind, char **answer, size_t *answer_len)
{
    return hf_bind_open_by(connect_url, url, url_len, options, options_len, bind, answer,
                           answer_len);
}
