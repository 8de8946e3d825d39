/*
 * client/describe.c: how a client would connect, hf_client_describe(), and what a server says of
 * itself, hf_server_get(). Both are for programs that look after a database: they send no operation.
 *
 * What always holds:
 *
 *  (1) No secret key and no session token leaves this file.
 *  (2) A request is sent once. Who measures must not get the sum of several attempts.
 */
#include "client/client.h"

#include "http/sign.h"

#include <assert.h>

enum { ANSWER_MAX = 4 * 1024 * 1024 };

/* ---- how it would connect ------------------------------------------------------------------- */

/* The endpoint of the URL, or Amazon's of the region. */
static enum hf_status parts_endpoint(struct hf_scope *s, const struct client_parts *parts,
                                     struct endpoint *endpoint)
{
    const struct endpoint_ask ask = {.service = ENDPOINT_DYNAMODB,
                                     .region = parts->region,
                                     .account_later = true,
                                     .fips = parts->fips,
                                     .dual_stack = parts->dual_stack};

    assert(parts->config && parts->region.len);
    *endpoint = parts->fixed;
    return endpoint->origin.ptr ? HF_OK : hf__endpoint_find(s, parts->config, &ask, endpoint);
}

static enum hf_status info_fill(struct hf_scope *s, const struct client_parts *parts,
                                struct hf_client_info *info)
{
    struct credentials_shown shown;
    struct endpoint endpoint;

    assert(parts->credentials);
    info->region = hf_scope_copy(s, parts->region);
    TRY(parts_endpoint(s, parts, &endpoint));
    info->endpoint = hf_scope_copy(s, endpoint.origin);
    info->region = hf_scope_copy(s, endpoint.signing_region);
    TRY(hf__credentials_show(s, parts->credentials, &shown));
    info->access_key = shown.access_key;
    info->credentials = hf_str_from(shown.origin);
    info->expires_us = shown.expires_us;
    info->placeholder = shown.made_up;
    return info->endpoint.ptr && info->region.ptr ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf_client_describe(struct hf_scope *s, struct hf_str url,
                                  const struct hf_client_options *options,
                                  struct hf_client_info *info)
{
    struct hf_client_options o = hf__client_options(options);
    struct client_parts parts;
    enum hf_status status;

    memset(info, 0, sizeof(*info));
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    TRY(hf__client_parts_of(s, url, &o, &parts));
    status = info_fill(s, &parts, info);
    hf__client_parts_free(&parts);
    return status;
}

/* ---- what it says of itself ----------------------------------------------------------------- */

static void field_add(struct http_head *head, const char *name, struct hf_str value)
{
    assert(name && value.ptr);
    assert(head->fields_len < HTTP_FIELDS_MAX);
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

/* Sign it, unless there are no credentials: what a server tells everybody needs none. */
static enum hf_status head_sign(struct hf_scope *s, const struct client_parts *parts,
                                const struct endpoint *endpoint, struct http_head *head)
{
    struct sign_credentials credentials;
    struct hf_str account;
    struct signer *signer;
    enum hf_status status = hf__credentials_get(s, parts->credentials, &credentials, &account);

    assert(endpoint->signing_region.len && endpoint->signing_name.len);
    if (status == HF_NOMEM || status == HF_TIMEOUT || status == HF_CANCELED)
        return status;
    if (status != HF_OK) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    TRY(hf__signer_new(s, &parts->env, &signer));
    status = hf__sign_request(s, signer, head,
                              &(struct sign_how){.credentials = &credentials,
                                                 .region = endpoint->signing_region,
                                                 .service = endpoint->signing_name,
                                                 .now_s = hf__env_wall_us(&parts->env) / 1000000});
    hf__signer_free(signer);
    return status;
}

static enum hf_status path_get(struct hf_scope *s, const struct client_parts *parts,
                               struct hf_str path, struct hf_server_answer *answer)
{
    struct http_head *head = hf__scope_array(s, 1, sizeof(*head));
    struct endpoint endpoint;
    struct http_answer got;
    enum hf_status status;

    assert(path.len && path.ptr[0] == '/' && parts->attempt_ms);
    if (!head)
        return hf__fail_nomem(s);
    TRY(parts_endpoint(s, parts, &endpoint));
    head->method = HF_STR("GET");
    head->path = head->target = hf_scope_format(s, "%.*s%.*s", HF_FMT(endpoint.path), HF_FMT(path));
    if (!head->path.ptr)
        return hf__fail_nomem(s);
    field_add(head, "Host", endpoint.host);
    field_add(head, "User-Agent", parts->agent);
    TRY(head_sign(s, parts, &endpoint, head));
    status = hf__transport_call(s, parts->transport,
                                &(struct transport_call){.origin = endpoint.origin,
                                                         .head = head,
                                                         .timeout_ms = parts->attempt_ms,
                                                         .answer_max = ANSWER_MAX},
                                &got);
    if (status != HF_OK) {
        hf__scope_error_edit(s)->may_have_happened = false; /* it only reads */
        return status;
    }
    answer->status = got.status;
    answer->body = hf_str_of((const char *)got.body.ptr, got.body.len);
    answer->server = hf__http_answer_field(&got, "Server");
    answer->date_s = hf__http_answer_date_s(&got);
    return HF_OK;
}

enum hf_status hf_server_get(struct hf_scope *s, struct hf_str url,
                             const struct hf_client_options *options, struct hf_str path,
                             struct hf_server_answer *answer)
{
    struct hf_client_options o = hf__client_options(options);
    struct client_parts parts;
    enum hf_status status;

    memset(answer, 0, sizeof(*answer));
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    if (!path.len || path.ptr[0] != '/')
        return hf__fail(s, HF_INVALID, "the path \"%.*s\" does not begin with '/'", HF_FMT(path));
    TRY(hf__client_parts_of(s, url, &o, &parts));
    status = path_get(s, &parts, path, answer);
    hf__client_parts_free(&parts);
    return status;
}
