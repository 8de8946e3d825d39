/*
 * client/endpoint.c: where a service is.
 *
 * Somebody said so, in a variable or in the profile; else Amazon's own, which is made of the
 * region:
 *
 *     dynamodb.eu-central-1.amazonaws.com                 the usual
 *     dynamodb-fips.us-east-1.amazonaws.com               FIPS; in GovCloud the usual is FIPS
 *     dynamodb.eu-central-1.api.aws                       IPv6, too ("dual stack")
 *     111122223333.ddb.eu-central-1.amazonaws.com         of the account; DynamoDB in "aws" only
 *     http://localhost:8000                               the region "local", signed for us-east-1
 *
 * The beginning of a region's name tells its partition, and that the domain; a region that nobody
 * heard of is one of "aws", where new ones mostly are. The rules are those of the endpoint rule
 * sets that AWS's SDKs have in common, as of 2026.
 *
 * The streams of DynamoDB are a service of their own. Where DynamoDB alone is sent elsewhere, as to
 * DynamoDB Local, Alternator or a server of ours, its streams are there too, although AWS's SDKs
 * would ask Amazon for them: (2).
 *
 * What always holds:
 *
 *  (1) A URL is never part of an error: it may have a password in it.
 *  (2) Streams follow AWS_ENDPOINT_URL_DYNAMODB, or its like in the services section, when nothing
 *      else says where they are and it is not a host of Amazon's.
 *  (3) FIPS and dual stack are promises: where they cannot be kept, that is an error and no other
 *      endpoint.
 */
#include "client/config.h"

#include "base/buf.h"
#include "client/url.h"

#include <assert.h>

/* ---- Amazon's ------------------------------------------------------------------------------- */

struct partition {
    const char *name;
    const char *prefix; /* of its regions */
    const char *global; /* its region for what has no region */
    const char *suffix;
    const char *dual_suffix;
};

static const struct partition partitions[] = {
    {"aws-cn", "cn-", "aws-cn-global", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "aws-us-gov-global", "amazonaws.com", "api.aws"},
    {"aws-iso", "us-iso-", "aws-iso-global", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "aws-iso-b-global", "sc2s.sgov.gov", "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "aws-iso-e-global", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "aws-iso-f-global", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"aws-eusc", "eusc-", "aws-eusc-global", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws", "", "aws-global", "amazonaws.com", "api.aws"}, /* all others: keep it last */
};

struct service {
    const char *name;     /* for people */
    const char *variable; /* that names its URL */
    const char *table;    /* in a services section */
    const char *host;     /* what comes before the region */
    const char *fips;
    const char *dual;
    const char *dual_fips;
    const char *signing;
    bool same_suffix;  /* dual stack has the usual domain */
    bool dual_in_some; /* the names of dual stack are those of aws, aws-cn and aws-us-gov only */
    bool gov_has_fips; /* in GovCloud FIPS has a name of its own */
    bool has_global;   /* "aws-global" is a region of it, without one in its name */
};

static const struct service services[] = {
    [ENDPOINT_DYNAMODB] = {.name = "DynamoDB",
                           .variable = "AWS_ENDPOINT_URL_DYNAMODB",
                           .table = "dynamodb",
                           .host = "dynamodb",
                           .fips = "dynamodb-fips",
                           .dual = "dynamodb",
                           .dual_fips = "dynamodb-fips",
                           .signing = "dynamodb"},
    [ENDPOINT_STREAMS] = {.name = "DynamoDB Streams",
                          .variable = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
                          .table = "dynamodb_streams",
                          .host = "streams.dynamodb",
                          .fips = "streams.dynamodb-fips",
                          .dual = "streams-dynamodb",
                          .dual_fips = "streams-dynamodb-fips",
                          .signing = "dynamodb",
                          .dual_in_some = true},
    [ENDPOINT_STS] = {.name = "STS",
                      .variable = "AWS_ENDPOINT_URL_STS",
                      .table = "sts",
                      .host = "sts",
                      .fips = "sts-fips",
                      .dual = "sts",
                      .dual_fips = "sts-fips",
                      .signing = "sts",
                      .has_global = true},
    [ENDPOINT_SSO] = {.name = "SSO",
                      .variable = "AWS_ENDPOINT_URL_SSO",
                      .table = "sso",
                      .host = "portal.sso",
                      .fips = "portal.sso-fips",
                      .dual = "portal.sso",
                      .dual_fips = "portal.sso-fips",
                      .signing = "awsssoportal"},
    [ENDPOINT_SSO_OIDC] = {.name = "SSO OIDC",
                           .variable = "AWS_ENDPOINT_URL_SSO_OIDC",
                           .table = "sso_oidc",
                           .host = "oidc",
                           .fips = "oidc-fips",
                           .dual = "oidc",
                           .dual_fips = "oidc-fips",
                           .signing = "sso-oauth"},
    [ENDPOINT_S3] = {.name = "S3",
                     .variable = "AWS_ENDPOINT_URL_S3",
                     .table = "s3",
                     .host = "s3",
                     .fips = "s3-fips",
                     .dual = "s3.dualstack",
                     .dual_fips = "s3-fips.dualstack",
                     .signing = "s3",
                     .same_suffix = true,
                     .gov_has_fips = true,
                     .has_global = true},
    [ENDPOINT_SQS] = {.name = "SQS",
                      .variable = "AWS_ENDPOINT_URL_SQS",
                      .table = "sqs",
                      .host = "sqs",
                      .fips = "sqs-fips",
                      .dual = "sqs",
                      .dual_fips = "sqs-fips",
                      .signing = "sqs"},
    [ENDPOINT_SNS] = {.name = "SNS",
                      .variable = "AWS_ENDPOINT_URL_SNS",
                      .table = "sns",
                      .host = "sns",
                      .fips = "sns-fips",
                      .dual = "sns",
                      .dual_fips = "sns-fips",
                      .signing = "sns"},
    [ENDPOINT_EVENTBRIDGE] = {.name = "EventBridge",
                              .variable = "AWS_ENDPOINT_URL_EVENTBRIDGE",
                              .table = "eventbridge",
                              .host = "events",
                              .fips = "events-fips",
                              .dual = "events",
                              .dual_fips = "events-fips",
                              .signing = "events"},
};

_Static_assert(ARRAY_LEN(services) == ENDPOINT_EVENTBRIDGE + 1, "every service is there");

#define USUAL_GLOBAL "aws-global"
#define LOCAL_REGION "local"

_Static_assert(ARRAY_LEN(partitions) > 1, "the last is for what no other has");

static bool text_is(struct hf_str text, const char *name)
{
    return hf_str_equal(text, hf_str_from(name));
}

static const struct partition *partition_of(struct hf_str region)
{
    const struct partition *partition = partitions;
    struct hf_str rest;

    while (!str_after(region, hf_str_from(partition->prefix), &rest) &&
           !text_is(region, partition->global))
        partition++; /* the last takes any */
    assert(partition < partitions + ARRAY_LEN(partitions));
    return partition;
}

/* ---- URLs ----------------------------------------------------------------------------------- */

/* The name of a region, as far as its look tells: words, and a number at its end. */
static bool looks_like_region(struct hf_str text)
{
    size_t hyphens = 0;

    for (size_t i = 0; i < text.len; i++)
        hyphens += text.ptr[i] == '-';
    return hf__url_is_label(text) && hyphens >= 2 && text.ptr[text.len - 1] >= '0' &&
           text.ptr[text.len - 1] <= '9';
}

static bool cut_suffix(struct hf_str *host, const char *suffix)
{
    size_t len = strlen(suffix);

    assert(suffix[0] && suffix[0] != '.');
    if (host->len < len + 2 ||
        !str_is_any_case(hf_str_of(host->ptr + host->len - len, len), suffix) ||
        host->ptr[host->len - len - 1] != '.')
        return false;
    host->len -= len + 1;
    assert(host->len > 0);
    return true;
}

/* Is it a host of Amazon's? Then *region is what its name says about that, mostly. */
static bool is_amazon(struct hf_str host, struct hf_str *region)
{
    bool found = false;

    assert(host.ptr || !host.len);
    *region = (struct hf_str){0};
    for (size_t i = 0; i < ARRAY_LEN(partitions) && !found; i++)
        found =
            cut_suffix(&host, partitions[i].dual_suffix) || cut_suffix(&host, partitions[i].suffix);
    if (!found)
        return false;
    cut_suffix(&host, "vpce"); /* an interface endpoint: vpce-1-2.dynamodb.REGION.vpce.... */
    for (size_t i = host.len; i > 0; i--)
        if (host.ptr[i - 1] == '.') {
            *region = hf_str_of(host.ptr + i, host.len - i);
            break;
        }
    if (!looks_like_region(*region))
        *region = (struct hf_str){0};
    return true;
}

/* An origin is a scheme and a host, with nothing behind it that requests add to. */
static void endpoint_check(const struct endpoint *endpoint)
{
    assert(endpoint->origin.len > endpoint->host.len + 3 && endpoint->host.len > 0);
    assert(endpoint->host.ptr + endpoint->host.len == endpoint->origin.ptr + endpoint->origin.len);
    assert(!memchr(endpoint->host.ptr, '/', endpoint->host.len));
    assert(endpoint->path.ptr && endpoint->signing_name.len);
}

static enum hf_status endpoint_make(struct hf_scope *s, const struct url *url,
                                    struct endpoint *endpoint)
{
    struct hf__buf origin = {.scope = s};
    size_t scheme;

    assert(url->host.len > 0 && url->port <= 65535 && url->path.ptr);
    hf__buf_format(&origin, "%s://", url->is_https ? "https" : "http");
    scheme = origin.len;
    for (size_t i = 0; i < url->host.len; i++)
        hf__buf_put_byte(&origin, (uint8_t)hf__url_lower(url->host.ptr[i]));
    if (url->port)
        hf__buf_format(&origin, ":%u", url->port);
    *endpoint = (struct endpoint){.path = hf_scope_copy(s, url->path)};
    if (origin.failed || !endpoint->path.ptr)
        return hf__fail_nomem(s);
    endpoint->origin = hf_str_of((const char *)origin.ptr, origin.len);
    endpoint->host = hf_str_of(endpoint->origin.ptr + scheme, origin.len - scheme);
    endpoint->signing_name = hf_str_from(services[ENDPOINT_DYNAMODB].signing);
    is_amazon(hf_str_of(endpoint->host.ptr, url->host.len), &endpoint->signing_region);
    endpoint_check(endpoint);
    return HF_OK;
}

enum hf_status hf__endpoint_of_url(struct hf_scope *s, struct hf_str url, struct endpoint *endpoint)
{
    struct url parts;
    const char *wrong = hf__url_read(url, &parts);

    *endpoint = (struct endpoint){0};
    if (wrong)
        return hf__fail(s, HF_INVALID, "the URL of the endpoint %s", wrong);
    return endpoint_make(s, &parts, endpoint);
}

bool hf__endpoint_is_loopback(const struct endpoint *endpoint)
{
    struct url url;

    assert(endpoint->origin.len > 0);
    return !hf__url_read(endpoint->origin, &url) && hf__url_is_loopback(&url);
}

/* ---- configured ----------------------------------------------------------------------------- */

/* A URL that somebody configured, and what to call that. */
struct configured {
    struct hf_str url; /* absent: none */
    const char *variable;
    const char *table; /* of the services section; NULL and no variable: of the profile itself */
};

static struct configured by_variable(const struct config *config, const char *variable)
{
    assert(variable);
    return (struct configured){.url = hf__config_variable(config, variable), .variable = variable};
}

static struct configured by_table(const struct config *config, const char *table)
{
    assert(table);
    return (struct configured){.url = hf__config_service(config, table, "endpoint_url"),
                               .table = table};
}

static struct configured of_profile(const struct config *config)
{
    return (struct configured){
        .url = hf__config_value(config, hf__config_profile(config), "endpoint_url")};
}

static enum hf_status fail_configured(struct hf_scope *s, const struct configured *from,
                                      const char *wrong)
{
    assert(from->url.ptr && wrong);
    if (from->variable)
        return hf__fail(s, HF_INVALID, "the URL in %s %s", from->variable, wrong);
    if (from->table)
        return hf__fail(s, HF_INVALID, "the URL in endpoint_url of %s in a services section %s",
                        from->table, wrong);
    return hf__fail(s, HF_INVALID, "the URL in endpoint_url of the profile %s", wrong);
}

/* (2): where DynamoDB is, unless it is at Amazon's; what is wrong with it, DynamoDB will say. */
static struct configured of_dynamodb(const struct config *config)
{
    const struct service *dynamodb = &services[ENDPOINT_DYNAMODB];
    struct configured found = by_variable(config, dynamodb->variable);
    struct hf_str region;
    struct url url;

    if (!found.url.ptr)
        found = by_table(config, dynamodb->table);
    if (found.url.ptr && !hf__url_read(found.url, &url) && is_amazon(url.host, &region))
        found.url = (struct hf_str){0};
    return found;
}

static enum hf_status find_configured(struct hf_scope *s, const struct config *config,
                                      enum endpoint_service which, struct configured *found)
{
    enum hf_flag ignore;

    assert((size_t)which < ARRAY_LEN(services));
    TRY(hf__config_flag(s, config, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                        "ignore_configured_endpoint_urls", &ignore));
    *found = (struct configured){0};
    if (ignore == HF_YES)
        return HF_OK;
    *found = by_variable(config, services[which].variable);
    if (!found->url.ptr)
        *found = by_variable(config, "AWS_ENDPOINT_URL");
    if (!found->url.ptr)
        *found = by_table(config, services[which].table);
    if (!found->url.ptr)
        *found = of_profile(config);
    if (!found->url.ptr && which == ENDPOINT_STREAMS)
        *found = of_dynamodb(config);
    return HF_OK;
}

/* ---- made of the region --------------------------------------------------------------------- */

/* What is asked for, with everything filled in. */
struct wish {
    const struct service *service;
    const struct partition *partition; /* NULL without a region */
    enum endpoint_service which;
    struct hf_str region; /* may be absent when there is a URL */
    bool fips;
    bool dual;
};

/* Old names of FIPS endpoints: "fips-us-east-1" and "us-east-1-fips". */
static void read_fips_region(struct wish *wish)
{
    struct hf_str rest = wish->region;

    if (str_after(wish->region, HF_STR("fips-"), &rest)) {
        wish->region = rest;
        wish->fips = true;
    } else if (rest.len > 5 && memcmp(rest.ptr + rest.len - 5, "-fips", 5) == 0) {
        wish->region.len -= 5;
        wish->fips = true;
    }
}

/* The account's endpoint or not: *use. */
static enum hf_status choose_account(struct hf_scope *s, const struct config *config,
                                     const struct wish *wish, struct hf_str account, bool later,
                                     bool *use)
{
    static const char variable[] = "AWS_ACCOUNT_ID_ENDPOINT_MODE";
    struct hf_str mode = hf__config_setting(config, variable, "account_id_endpoint_mode");
    bool required = text_is(mode, "required");

    assert(wish->partition && wish->region.len); /* without a URL there is a region */
    *use = false;
    if (wish->which != ENDPOINT_DYNAMODB || text_is(mode, "disabled"))
        return HF_OK;
    if (mode.ptr && !required && !text_is(mode, "preferred"))
        return hf__fail(s, HF_INVALID,
                        "%s, or account_id_endpoint_mode of the profile, must be preferred, "
                        "required or disabled",
                        variable);
    if (wish->fips && required)
        return hf__fail(s, HF_INVALID,
                        "%s is required, but endpoints of an account have no FIPS form", variable);
    if (!text_is(hf_str_from(wish->partition->name), "aws") && required)
        return hf__fail(s, HF_INVALID,
                        "%s is required, but the partition %s has no endpoints of an account",
                        variable, wish->partition->name);
    if (!account.len && required && !later)
        return hf__fail(s, HF_INVALID,
                        "%s is required, but the credentials have no account ID: set "
                        "AWS_ACCOUNT_ID",
                        variable);
    *use = account.len && !wish->fips && text_is(hf_str_from(wish->partition->name), "aws");
    if (*use && !hf__url_is_label(account))
        return hf__fail(s, HF_INVALID, "the account ID of the credentials is invalid");
    return HF_OK;
}

static enum hf_status make_local(struct hf_scope *s, const struct wish *wish,
                                 struct endpoint *endpoint)
{
    assert(text_is(wish->region, LOCAL_REGION));
    if (wish->fips || wish->dual)
        return hf__fail(s, HF_INVALID, "the region local has no %s endpoint",
                        wish->fips ? "FIPS" : "dual-stack");
    TRY(endpoint_make(s,
                      &(struct url){.host = HF_STR("localhost"), .port = 8000, .path = HF_STR("")},
                      endpoint));
    endpoint->signing_region = HF_STR("us-east-1");
    return HF_OK;
}

/* What stands before the region. */
static const char *host_of(const struct wish *wish)
{
    const struct service *service = wish->service;
    const char *partition = wish->partition->name;
    bool in_some = !service->dual_in_some || strcmp(partition, "aws") == 0 ||
                   strcmp(partition, "aws-cn") == 0 || strcmp(partition, "aws-us-gov") == 0;

    if (wish->dual && in_some)
        return wish->fips ? service->dual_fips : service->dual;
    if (!wish->fips)
        return service->host;
    if (strcmp(partition, "aws-us-gov") == 0 && !service->gov_has_fips)
        return service->host;
    return service->fips;
}

static enum hf_status make_amazon(struct hf_scope *s, const struct config *config,
                                  const struct wish *wish, const struct endpoint_ask *ask,
                                  struct endpoint *endpoint)
{
    const struct partition *partition = wish->partition;
    const char *suffix =
        wish->dual && !wish->service->same_suffix ? partition->dual_suffix : partition->suffix;
    bool global = wish->service->has_global && text_is(wish->region, USUAL_GLOBAL) && !wish->dual &&
                  !wish->fips;
    struct url url = {.is_https = true, .path = HF_STR("")};
    bool of_account;

    if (wish->which == ENDPOINT_S3 && wish->fips && text_is(hf_str_from(partition->name), "aws-cn"))
        return hf__fail(s, HF_INVALID, "S3 has no FIPS endpoints in the partition aws-cn");
    TRY(choose_account(s, config, wish, ask->account, ask->account_later, &of_account));
    if (of_account)
        url.host = hf_scope_format(s, "%.*s.ddb.%.*s.%s", HF_FMT(ask->account),
                                   HF_FMT(wish->region), suffix);
    else if (global)
        url.host = hf_scope_format(s, "%s.%s", wish->service->host, suffix);
    else
        url.host = hf_scope_format(s, "%s.%.*s.%s", host_of(wish), HF_FMT(wish->region), suffix);
    if (!url.host.ptr)
        return hf__fail_nomem(s);
    TRY(endpoint_make(s, &url, endpoint));
    endpoint->signing_region = global ? HF_STR("us-east-1") : hf_scope_copy(s, wish->region);
    assert(!endpoint->signing_region.ptr || endpoint->signing_region.len > 0);
    return endpoint->signing_region.ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status make_configured(struct hf_scope *s, const struct wish *wish,
                                      const struct configured *from, struct endpoint *endpoint)
{
    struct url url;
    const char *wrong = hf__url_read(from->url, &url);

    assert(from->url.ptr);
    if (!wrong && (wish->fips || wish->dual)) /* (3) */
        wrong = wish->fips ? "cannot be used together with FIPS endpoints"
                           : "cannot be used together with dual-stack endpoints";
    if (wrong)
        return fail_configured(s, from, wrong);
    TRY(endpoint_make(s, &url, endpoint));
    if (wish->region.len)
        endpoint->signing_region = text_is(wish->region, LOCAL_REGION)
                                       ? HF_STR("us-east-1")
                                       : hf_scope_copy(s, wish->region);
    return !wish->region.len || endpoint->signing_region.ptr ? HF_OK : hf__fail_nomem(s);
}

/* ---- together ------------------------------------------------------------------------------- */

static enum hf_status read_flag(struct hf_scope *s, const struct config *config, enum hf_flag asked,
                                const char *variable, const char *key, bool *set)
{
    enum hf_flag flag = asked;

    assert(asked == HF_UNSET || asked == HF_YES || asked == HF_NO);
    if (flag == HF_UNSET)
        TRY(hf__config_flag(s, config, variable, key, &flag));
    *set = flag == HF_YES;
    return HF_OK;
}

enum hf_status hf__endpoint_find(struct hf_scope *s, const struct config *config,
                                 const struct endpoint_ask *ask, struct endpoint *endpoint)
{
    struct wish wish = {.service = &services[ask->service],
                        .which = ask->service,
                        .region = ask->region};
    bool local = ask->service == ENDPOINT_DYNAMODB || ask->service == ENDPOINT_STREAMS;
    struct configured configured;

    assert((size_t)ask->service < ARRAY_LEN(services));
    *endpoint = (struct endpoint){0};
    TRY(read_flag(s, config, ask->fips, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", &wish.fips));
    TRY(read_flag(s, config, ask->dual_stack, "AWS_USE_DUALSTACK_ENDPOINT",
                  "use_dualstack_endpoint", &wish.dual));
    TRY(find_configured(s, config, ask->service, &configured));
    read_fips_region(&wish);
    if (wish.region.len && !hf__url_is_label(wish.region))
        return hf__fail(s, HF_INVALID,
                        "the region must be the name of a region, such as eu-central-1");
    if (!configured.url.ptr && !wish.region.len)
        return hf__fail(s, HF_INVALID,
                        "no region for %s: set AWS_REGION, or region in the profile '%.*s'",
                        wish.service->name, HF_FMT(hf__config_profile(config)));
    if (wish.region.len)
        wish.partition = partition_of(wish.region);
    if (configured.url.ptr)
        TRY(make_configured(s, &wish, &configured, endpoint));
    else if (local && text_is(wish.region, LOCAL_REGION))
        TRY(make_local(s, &wish, endpoint));
    else
        TRY(make_amazon(s, config, &wish, ask, endpoint));
    endpoint->signing_name = hf_str_from(wish.service->signing);
    assert(endpoint->signing_region.ptr || !wish.region.len);
    endpoint_check(endpoint);
    return HF_OK;
}

enum hf_status hf__endpoint_keep(struct hf_scope *s, struct hf_scope *memory,
                                 struct endpoint *endpoint)
{
    struct hf_str *texts[] = {&endpoint->origin, &endpoint->path, &endpoint->host,
                              &endpoint->signing_region, &endpoint->signing_name};

    assert(endpoint->origin.len > endpoint->host.len && endpoint->host.len > 0);
    assert(endpoint->path.ptr && endpoint->signing_name.len);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = hf_scope_copy(memory, *texts[i]);
        if (!texts[i]->ptr)
            return hf__fail_nomem(s);
    }
    return HF_OK;
}
