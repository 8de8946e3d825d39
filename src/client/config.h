/*
 * client/config.h: what AWS's files and variables say, read once when a client is opened.
 *
 * ~/.aws/config has sections [default], [profile NAME], [sso-session NAME] and [services NAME];
 * ~/.aws/credentials has [NAME], whose values win over those of the profile with the same name.
 * A value is the rest of a line; indented lines below an empty value are a table of their own, as
 * "dynamodb =\n  endpoint_url = ..." in a services section or in a profile.
 *
 * Variables come through the env, files from where the variables say. A config never changes after
 * it was loaded, so any thread reads it.
 */
#ifndef HF_CLIENT_CONFIG_H
#define HF_CLIENT_CONFIG_H

#include "base/base.h"

struct config;

/*
 * Load. `profile` absent: AWS_PROFILE, else AWS_DEFAULT_PROFILE, else "default". With `nothing` set
 * no file and no variable is read, and every question below has an absent answer. Files that are
 * missing are empty, unless a variable names them or the profile was asked for by name.
 *
 * HF_INVALID  a line cannot be read (the message has file and line, never its text), or the profile
 *             that was asked for is nowhere
 * HF_IO       a file cannot be read
 * HF_NOMEM
 */
enum hf_status hf__config_load(struct hf_scope *s, const struct hf_env *env, struct hf_str profile,
                               bool nothing, struct config **config);
void hf__config_free(struct config *config);

const struct hf_env *hf__config_env(const struct config *config);
struct hf_str hf__config_profile(const struct config *config); /* its name */

/* A variable of the environment; absent when it is unset, empty, or when nothing may be read. */
struct hf_str hf__config_variable(const struct config *config, const char *name);

/* A value of a profile, such as "role_arn"; absent when there is none. */
struct hf_str hf__config_value(const struct config *config, struct hf_str profile, const char *key);
bool hf__config_has_profile(const struct config *config, struct hf_str profile);

/* A value of [sso-session NAME]. */
struct hf_str hf__config_sso(const struct config *config, struct hf_str session, const char *key);

/* Variable, else value of the chosen profile; absent when neither is there. */
struct hf_str hf__config_setting(const struct config *config, const char *variable,
                                 const char *key);

/* ---- what follows from it, endpoint.c ------------------------------------------------------- */

enum endpoint_service {
    ENDPOINT_DYNAMODB,
    ENDPOINT_STREAMS,
    ENDPOINT_STS,
    ENDPOINT_SSO,
    ENDPOINT_S3,
    ENDPOINT_SQS,
    ENDPOINT_SNS,
    ENDPOINT_EVENTBRIDGE
};

struct endpoint {
    struct hf_str origin; /* "https://dynamodb.eu-central-1.amazonaws.com", no slash behind */
    struct hf_str path;   /* before every path, without a slash behind; mostly empty */
    struct hf_str host;   /* value of the Host field */
    struct hf_str signing_region; /* may differ from the region that was asked for */
    struct hf_str signing_name;   /* "dynamodb" */
};

/*
 * Where a service of a region is: the first of AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the
 * services section of the profile, its endpoint_url, and Amazon's own (partitions aws, aws-cn,
 * aws-us-gov, aws-iso, aws-iso-b, aws-eusc; FIPS and dual-stack forms).
 * AWS_IGNORE_CONFIGURED_ENDPOINT_URLS skips the configured ones. `account` may be absent; with it
 * and AWS_ACCOUNT_ID_ENDPOINT_MODE preferred or required, DynamoDB's endpoint is that of the
 * account. Strings live in the scope.
 *
 * HF_INVALID  a configured URL is none, the region is no region, or a combination does not exist
 */
struct endpoint_ask {
    enum endpoint_service service;
    struct hf_str region;
    struct hf_str account;
    enum hf_flag fips;       /* HF_UNSET: AWS_USE_FIPS_ENDPOINT, profile */
    enum hf_flag dual_stack; /* HF_UNSET: AWS_USE_DUALSTACK_ENDPOINT, profile */
};
enum hf_status hf__endpoint_find(struct hf_scope *s, const struct config *config,
                                 const struct endpoint_ask *ask, struct endpoint *endpoint);

/* An endpoint by URL: "http://host:port/path". HF_INVALID names what is wrong with it. */
enum hf_status hf__endpoint_of_url(struct hf_scope *s, struct hf_str url,
                                   struct endpoint *endpoint);

/* Is the endpoint's host this machine itself: localhost, 127.x.x.x or [::1]? */
bool hf__endpoint_is_loopback(const struct endpoint *endpoint);

#endif
