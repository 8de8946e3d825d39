/*
 * client/credentials_sso.c: people who logged in with the AWS CLI.
 *
 * `aws sso login` leaves a token in ~/.aws/sso/cache/, in a file that is named by the SHA-1 of the
 * session's name, or of the start URL where a profile has no session. With it the SSO portal gives
 * keys for a role of an account. A token that has expired is renewed by SSO's OIDC service, where
 * the login left what that needs, and the file is written again: the old refresh token may be of no
 * use any more, and the CLI shall not need another login because of us.
 *
 * `aws login` leaves keys themselves, in ~/.aws/login/cache/, named by the SHA-256 of the session.
 * They live for a quarter of an hour and the CLI renews them; here they are only read.
 *
 * Logging in needs a person. Where that is what is missing, the error says which command to run.
 */
#include "client/source.h"

#include <assert.h>
#include <openssl/evp.h>

#include "wire/wire.h"

enum { DIGEST_TEXT = 2 * EVP_MAX_MD_SIZE + 1, RENEWED_MAX_S = 366 * 86400 };

static enum hf_status digest_text(struct hf_scope *s, const EVP_MD *kind, struct hf_str of,
                                  char text[DIGEST_TEXT])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    assert(of.len > 0);
    if (!EVP_Digest(of.ptr, of.len, digest, &len, kind, NULL))
        return hf__fail(s, HF_INTERNAL, "OpenSSL has no digest for the name of a cache file");
    assert(len > 0 && 2 * (size_t)len < DIGEST_TEXT);
    for (unsigned i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return HF_OK;
}

/* ---- documents ------------------------------------------------------------------------------ */

#define AT(type, member) (uint16_t) offsetof(struct type, member)

/* In the order in which the CLI writes them. */
static const struct field cache_list[] = {
    {.name = "startUrl", .kind = FIELD_STR, .at = AT(sso_token, start_url)},
    {.name = "region", .kind = FIELD_STR, .at = AT(sso_token, region)},
    {.name = "accessToken", .kind = FIELD_STR, .at = AT(sso_token, access_token)},
    {.name = "expiresAt", .kind = FIELD_STR, .at = AT(sso_token, expires_at)},
    {.name = "clientId", .kind = FIELD_STR, .at = AT(sso_token, client_id)},
    {.name = "clientSecret", .kind = FIELD_STR, .at = AT(sso_token, client_secret)},
    {.name = "registrationExpiresAt", .kind = FIELD_STR, .at = AT(sso_token, client_expires_at)},
    {.name = "refreshToken", .kind = FIELD_STR, .at = AT(sso_token, refresh_token)},
};

static const struct fields cache_fields = {"Token", cache_list, ARRAY_LEN(cache_list),
                                           sizeof(struct sso_token)};

/* Can it be the value of a header? */
static bool is_sendable(struct hf_str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~')
            return false;
    return token.len > 0;
}

enum hf_status hf__source_read_sso(struct hf_scope *s, struct hf_str json, struct sso_token *token)
{
    enum hf_status status;

    assert(json.ptr || !json.len);
    *token = (struct sso_token){.expires_us = 0};
    status = hf__wire_read(s, &cache_fields, json, token);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK || !is_sendable(token->access_token) ||
        !hf__source_time(token->expires_at, &token->expires_us))
        return hf__fail(s, HF_INVALID, "invalid token of aws sso login");
    if (!token->client_id.len || !token->client_secret.len ||
        !hf__source_time(token->client_expires_at, &token->client_expires_us))
        token->refresh_token = hf_str_of(NULL, 0);
    return HF_OK;
}

struct renewed_document {
    struct hf_str access_token;
    struct hf_str refresh_token;
    int64_t expires_s; /* from now */
};

static const struct field renewed_list[] = {
    {.name = "accessToken", .kind = FIELD_STR, .at = AT(renewed_document, access_token)},
    {.name = "refreshToken", .kind = FIELD_STR, .at = AT(renewed_document, refresh_token)},
    {.name = "expiresIn", .kind = FIELD_INT, .at = AT(renewed_document, expires_s)},
};

static const struct fields renewed_fields = {"Renewed", renewed_list, ARRAY_LEN(renewed_list),
                                             sizeof(struct renewed_document)};

struct renewal {
    struct hf_str grant_type;
    struct hf_str client_id;
    struct hf_str client_secret;
    struct hf_str refresh_token;
};

static const struct field renewal_list[] = {
    {.name = "grantType", .kind = FIELD_STR, .at = AT(renewal, grant_type)},
    {.name = "clientId", .kind = FIELD_STR, .at = AT(renewal, client_id)},
    {.name = "clientSecret", .kind = FIELD_STR, .at = AT(renewal, client_secret)},
    {.name = "refreshToken", .kind = FIELD_STR, .at = AT(renewal, refresh_token)},
};

static const struct fields renewal_fields = {"Renewal", renewal_list, ARRAY_LEN(renewal_list),
                                             sizeof(struct renewal)};

struct role_credentials {
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token;
    int64_t expiration_ms;
    struct hf_str expires_at; /* of aws login, which writes a text */
    struct hf_str account;    /* of aws login */
};

struct role_document {
    const struct role_credentials *credentials;
    struct hf_str message;
};

static const struct field credentials_list[] = {
    {.name = "accessKeyId", .kind = FIELD_STR, .at = AT(role_credentials, access_key)},
    {.name = "secretAccessKey", .kind = FIELD_STR, .at = AT(role_credentials, secret_key)},
    {.name = "sessionToken", .kind = FIELD_STR, .at = AT(role_credentials, session_token)},
    {.name = "expiration", .kind = FIELD_INT, .at = AT(role_credentials, expiration_ms)},
    {.name = "expiresAt", .kind = FIELD_STR, .at = AT(role_credentials, expires_at)},
    {.name = "accountId", .kind = FIELD_STR, .at = AT(role_credentials, account)},
};

static const struct fields credentials_fields = {"RoleCredentials", credentials_list,
                                                 ARRAY_LEN(credentials_list),
                                                 sizeof(struct role_credentials)};

static const struct field role_list[] = {
    {.name = "roleCredentials",
     .kind = FIELD_STRUCT,
     .at = AT(role_document, credentials),
     .sub = &credentials_fields},
    {.name = "message", .kind = FIELD_STR, .at = AT(role_document, message)},
};

static const struct fields role_fields = {"Role", role_list, ARRAY_LEN(role_list),
                                          sizeof(struct role_document)};

static const struct field login_list[] = {
    {.name = "accessToken",
     .kind = FIELD_STRUCT,
     .at = AT(role_document, credentials),
     .sub = &credentials_fields},
};

static const struct fields login_fields = {"Login", login_list, ARRAY_LEN(login_list),
                                           sizeof(struct role_document)};

/* ---- the settings --------------------------------------------------------------------------- */

struct sso_settings {
    struct hf_str profile;
    struct hf_str session; /* absent in a profile of the older kind */
    struct hf_str start_url;
    struct hf_str region;
    struct hf_str account;
    struct hf_str role;
};

static enum hf_status find_settings(struct hf_scope *s, struct source *source,
                                    struct hf_str profile, struct sso_settings *is)
{
    const struct config *config = source->config;
    const char *missing;

    is->profile = profile;
    is->session = hf__config_value(config, profile, "sso_session");
    is->account = hf__config_value(config, profile, "sso_account_id");
    is->role = hf__config_value(config, profile, "sso_role_name");
    if (is->session.ptr) {
        is->start_url = hf__config_sso(config, is->session, "sso_start_url");
        is->region = hf__config_sso(config, is->session, "sso_region");
    } else {
        is->start_url = hf__config_value(config, profile, "sso_start_url");
        is->region = hf__config_value(config, profile, "sso_region");
    }
    missing = !is->account.ptr ? "sso_account_id" : !is->role.ptr ? "sso_role_name" : NULL;
    if (missing)
        return hf__fail(s, HF_INVALID, "Profile \"%.*s\" is for SSO, but has no %s",
                        HF_FMT(profile), missing);
    missing = !is->region.ptr ? "sso_region" : !is->start_url.ptr ? "sso_start_url" : NULL;
    if (missing && is->session.ptr)
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" names sso-session \"%.*s\", which does not exist or has "
                        "no %s",
                        HF_FMT(profile), HF_FMT(is->session), missing);
    if (missing)
        return hf__fail(s, HF_INVALID, "Profile \"%.*s\" is for SSO, but has no %s",
                        HF_FMT(profile), missing);
    return HF_OK;
}

/* HF_DENIED: a person has to log in. */
static enum hf_status fail_login(struct hf_scope *s, struct hf_str profile, const char *why)
{
    assert(profile.ptr && why);
    return hf__fail(s, HF_DENIED,
                    "The SSO login for profile \"%.*s\" %s: run aws sso login "
                    "--profile %.*s",
                    HF_FMT(profile), why, HF_FMT(profile));
}

/* ---- the token ------------------------------------------------------------------------------ */

static struct hf_str body_text(const struct http_answer *answer)
{
    return hf_str_of((const char *)answer->body.ptr, answer->body.len);
}

/* What OIDC gives for the refresh token. */
static enum hf_status ask_oidc(struct hf_scope *s, struct source *source,
                               const struct sso_settings *is, const struct sso_token *token,
                               struct renewed_document *renewed)
{
    struct renewal renewal = {.grant_type = HF_STR("refresh_token"),
                              .client_id = token->client_id,
                              .client_secret = token->client_secret,
                              .refresh_token = token->refresh_token};
    struct endpoint endpoint;
    struct hf__buf body = {.scope = s};
    struct source_call call = {.what = "SSO OIDC",
                               .transport = source->transport,
                               .endpoint = &endpoint,
                               .method = "POST",
                               .target = HF_STR("/token"),
                               .timeout_ms = SOURCE_CALL_MS,
                               .attempts = SOURCE_ATTEMPTS};
    struct http_answer answer;
    enum hf_status status;

    assert(token->refresh_token.len && token->client_id.len && token->client_secret.len);
    TRY(hf__endpoint_find(s, source->config,
                          &(struct endpoint_ask){.service = ENDPOINT_SSO_OIDC,
                                                 .region = is->region},
                          &endpoint));
    hf__wire_write(&body, &renewal_fields, &renewal);
    if (body.failed)
        return hf__fail_nomem(s);
    call.body = hf_bytes_of(body.ptr, body.len);
    call.fields[call.fields_len++] =
        (struct http_field){HF_STR("Content-Type"), HF_STR("application/json")};
    TRY(hf__source_call(s, source, &call, &answer));
    if (answer.status == 429 || answer.status >= 500)
        return hf__fail(s, HF_IO, "SSO OIDC did not renew the login: HTTP status %d",
                        answer.status);
    if (answer.status != 200)
        return fail_login(s, is->profile, "has expired");
    status = hf__wire_read(s, &renewed_fields, body_text(&answer), renewed);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK || !is_sendable(renewed->access_token) || renewed->expires_s <= 0 ||
        renewed->expires_s > RENEWED_MAX_S)
        return hf__fail(s, HF_IO, "The answer of SSO OIDC has no token in it");
    return HF_OK;
}

/* Renew the token, in its file too. */
static enum hf_status token_renew(struct hf_scope *s, struct source *source,
                                  const struct sso_settings *is, struct hf_str path,
                                  struct sso_token *token)
{
    struct renewed_document renewed = {.expires_s = 0};
    struct hf__buf text = {.scope = s};
    char basic[SIGN_TIME + 1];

    assert(path.len && token->refresh_token.len);
    TRY(ask_oidc(s, source, is, token, &renewed));
    assert(renewed.access_token.len && renewed.expires_s > 0);
    token->access_token = renewed.access_token;
    if (renewed.refresh_token.len)
        token->refresh_token = renewed.refresh_token;
    hf__sign_time_text(hf__env_wall_us(source->env) / 1000000 + renewed.expires_s, basic);
    token->expires_at = hf_scope_format(s, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", basic, basic + 4,
                                        basic + 6, basic + 9, basic + 11, basic + 13);
    if (!token->expires_at.ptr)
        return hf__fail_nomem(s);
    hf__wire_write(&text, &cache_fields, token);
    if (text.failed)
        return hf__fail_nomem(s);
    if (!hf__source_write(s, path, hf_str_of((char *)text.ptr, text.len)))
        hf__env_log(source->env, HF_LOG_WARNING,
                    "credentials: the SSO login was renewed, but %.*s cannot be written",
                    HF_FMT(path));
    return HF_OK;
}

static enum hf_status find_token(struct hf_scope *s, struct source *source,
                                 const struct sso_settings *is, struct hf_str *access_token)
{
    int64_t now_us = hf__env_wall_us(source->env);
    struct hf_str path, text;
    struct sso_token token;
    char name[DIGEST_TEXT];
    enum hf_status status;
    bool missing;

    assert(is->session.ptr || is->start_url.ptr);
    TRY(digest_text(s, EVP_sha1(), is->session.ptr ? is->session : is->start_url, name));
    TRY(hf__source_home(s, source, &path, "sso/cache/%s.json", name));
    TRY(hf__source_file(s, path, &missing, &text));
    if (missing)
        return fail_login(s, is->profile, "does not exist");
    status = hf__source_read_sso(s, text, &token);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK)
        return fail_login(s, is->profile, "cannot be read");
    if (token.expires_us <= now_us) {
        if (!token.refresh_token.len || token.client_expires_us <= now_us)
            return fail_login(s, is->profile, "has expired");
        TRY(token_renew(s, source, is, path, &token));
    }
    *access_token = token.access_token;
    assert(is_sendable(*access_token)); /* it becomes the value of a header */
    return HF_OK;
}

/* ---- the role ------------------------------------------------------------------------------- */

static enum hf_status take_role(struct hf_scope *s, const struct sso_settings *is,
                                const struct http_answer *answer, struct hf_str token,
                                struct source_keys *keys)
{
    struct role_document document = {.credentials = NULL};
    enum hf_status status = hf__wire_read(s, &role_fields, body_text(answer), &document);
    const struct role_credentials *found = document.credentials;

    assert(is->account.ptr && is->role.ptr && token.len);
    if (status == HF_NOMEM)
        return status;
    if (answer->status == 401)
        return fail_login(s, is->profile, "is not accepted any more");
    if (answer->status != 200) {
        struct hf_str message = hf__source_quote(s, document.message, &token, 1);

        return hf__fail(s, answer->status == 429 || answer->status >= 500 ? HF_IO : HF_DENIED,
                        "SSO refused role %.*s of account %.*s: HTTP status %d%s%.*s",
                        HF_FMT(is->role), HF_FMT(is->account), answer->status,
                        message.len ? ": " : "", HF_FMT(message));
    }
    if (status != HF_OK || !found || !found->access_key.len || !found->secret_key.len ||
        found->expiration_ms <= 0 || found->expiration_ms > INT64_MAX / 1000)
        return hf__fail(s, HF_IO,
                        "The answer of SSO for role %.*s of account %.*s has no credentials in it",
                        HF_FMT(is->role), HF_FMT(is->account));
    *keys = (struct source_keys){.access_key = found->access_key,
                                 .secret_key = found->secret_key,
                                 .session_token = found->session_token,
                                 .account = is->account,
                                 .expires_us = found->expiration_ms * 1000,
                                 .origin = "SSO"};
    return HF_OK;
}

enum hf_status hf__source_sso(struct hf_scope *s, struct source *source, struct hf_str profile,
                              struct source_keys *keys)
{
    struct sso_settings is;
    struct endpoint endpoint;
    struct hf__buf target = {.scope = s};
    struct source_call call = {.what = "SSO",
                               .transport = source->transport,
                               .endpoint = &endpoint,
                               .method = "GET",
                               .timeout_ms = SOURCE_CALL_MS,
                               .attempts = SOURCE_ATTEMPTS};
    struct http_answer answer;
    struct hf_str token;

    TRY(find_settings(s, source, profile, &is));
    TRY(hf__endpoint_find(s, source->config,
                          &(struct endpoint_ask){.service = ENDPOINT_SSO, .region = is.region},
                          &endpoint));
    TRY(find_token(s, source, &is, &token));
    hf__buf_put_str(&target, HF_STR("/federation/credentials?role_name="));
    hf__buf_put_url(&target, is.role, "");
    hf__buf_put_str(&target, HF_STR("&account_id="));
    hf__buf_put_url(&target, is.account, "");
    if (target.failed)
        return hf__fail_nomem(s);
    call.target = hf_str_of((char *)target.ptr, target.len);
    call.fields[call.fields_len++] = (struct http_field){HF_STR("x-amz-sso_bearer_token"), token};
    TRY(hf__source_call(s, source, &call, &answer));
    return take_role(s, &is, &answer, token, keys);
}

/* ---- aws login ------------------------------------------------------------------------------ */

enum hf_status hf__source_login(struct hf_scope *s, struct source *source, struct hf_str profile,
                                struct source_keys *keys)
{
    struct hf_str session = hf__config_value(source->config, profile, "login_session");
    struct hf_str folder = hf__config_variable(source->config, "AWS_LOGIN_CACHE_DIRECTORY");
    struct role_document document = {.credentials = NULL};
    const struct role_credentials *found;
    struct hf_str path, text = {NULL, 0};
    char name[DIGEST_TEXT];
    bool missing;

    assert(session.ptr); /* or it was not asked */
    TRY(digest_text(s, EVP_sha256(), session, name));
    if (folder.ptr) {
        path = hf_scope_format(s, "%.*s/%s.json", HF_FMT(folder), name);
        if (!path.ptr)
            return hf__fail_nomem(s);
    } else {
        TRY(hf__source_home(s, source, &path, "login/cache/%s.json", name));
    }
    TRY(hf__source_file(s, path, &missing, &text));
    if (hf__wire_read(s, &login_fields, text, &document) == HF_NOMEM)
        return HF_NOMEM;
    found = document.credentials;
    *keys = (struct source_keys){.origin = "aws login"};
    if (!found || !hf__source_time(found->expires_at, &keys->expires_us) ||
        keys->expires_us <= hf__env_wall_us(source->env))
        return hf__fail(s, HF_DENIED,
                        "The login for profile \"%.*s\" %s: run aws login --profile %.*s",
                        HF_FMT(profile), missing ? "does not exist" : "has expired",
                        HF_FMT(profile));
    keys->access_key = found->access_key;
    keys->secret_key = found->secret_key;
    keys->session_token = found->session_token;
    keys->account = found->account;
    assert(keys->expires_us > 0 && keys->origin);
    return HF_OK;
}
