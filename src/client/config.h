/*
 * client/config.h: what AWS's files and variables say, read once when a client is opened.
 *
 * ~/.aws/config has sections [default], [profile NAME], [sso-session NAME] and [services NAME];
 * ~/.aws/credentials has [NAME], whose values win over those of the profile with the same name.
 * A value is the rest of a line; indented lines below an empty value are a table of their own, as
 * "dynamodb =\n  endpoint_url = ..." in a services section or in a profile.
 *
 * Variables come through the env, files from where the variables say. Both are read when the config
 * is loaded and never again, so any thread may ask it, whatever the program does to its
 * environment.
 */
#ifndef HF_CLIENT_CONFIG_H
#define HF_CLIENT_CONFIG_H

#include <holdfast/retry.h>

#include "base/base.h"

struct config;

/*
 * Load. `profile` absent: AWS_PROFILE, else AWS_DEFAULT_PROFILE, else "default". With `nothing` set
 * no file and no variable is read, and every question below has an absent answer. Files that are
 * missing are empty, unless AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE names them. On failure
 * *config is NULL.
 *
 * HF_INVALID  a line cannot be read (the message has file and line, never its text), a file is too
 *             large or none, or the profile that was asked for by name is nowhere
 * HF_IO       a file cannot be read
 * HF_NOMEM
 */
enum hf_status hf__config_load(struct hf_scope *s, const struct hf_env *env, struct hf_str profile,
                               bool nothing, struct config **config);
void hf__config_free(struct config *config);

const struct hf_env *hf__config_env(const struct config *config);
struct hf_str hf__config_profile(const struct config *config); /* its name */

/* A variable of the environment; absent when it was unset, empty, or when nothing may be read. The
 * name has to be in the list of config.c. */
struct hf_str hf__config_variable(const struct config *config, const char *name);

/* A value of a profile, such as "role_arn"; absent when there is none or it is empty. */
struct hf_str hf__config_value(const struct config *config, struct hf_str profile, const char *key);
bool hf__config_has_profile(const struct config *config, struct hf_str profile);

/* A value of [sso-session NAME]. */
struct hf_str hf__config_sso(const struct config *config, struct hf_str session, const char *key);

/* A value of the table of a service, such as "dynamodb", in the services section of the profile. */
struct hf_str hf__config_service(const struct config *config, const char *service, const char *key);

/* Variable, else value of the chosen profile; absent when neither is there. */
struct hf_str hf__config_setting(const struct config *config, const char *variable,
                                 const char *key);

/* ---- settings with their values checked, settings.c ----------------------------------------- */

/*
 * HF_INVALID names the variable, or the profile and the key, and says what may stand there. What is
 * set nowhere comes out as absent, 0 or HF_UNSET.
 */

/* The first of `explicit`, AWS_REGION, AWS_DEFAULT_REGION and the profile's. Absent, and HF_OK,
 * when there is none; then the metadata service of the machine may know it. */
enum hf_status hf__config_region(struct hf_scope *s, const struct config *config,
                                 struct hf_str explicit, struct hf_str *region);

/* AWS_RETRY_MODE and AWS_MAX_ATTEMPTS, or the profile's; "legacy" is taken for "standard". */
enum hf_status hf__config_retry(struct hf_scope *s, const struct config *config,
                                enum hf_retry_mode *mode, uint32_t *attempts);

/* "true" or "false", in any case. */
enum hf_status hf__config_flag(struct hf_scope *s, const struct config *config,
                               const char *variable, const char *key, enum hf_flag *flag);

/* Path of a file of certificates: AWS_CA_BUNDLE, or the profile's ca_bundle. */
struct hf_str hf__config_ca_bundle(const struct config *config);

/*
 * The proxy for a scheme, and the hosts that are reached without it, as curl has them: lower case
 * before upper case, and of HTTP_PROXY, which a web server may have set from a request, the lower
 * case only. Absent: none.
 */
void hf__config_proxy(const struct config *config, bool is_https, struct hf_str *proxy,
                      struct hf_str *no_proxy);

/* ---- what follows from it, endpoint.c ------------------------------------------------------- */

enum endpoint_service {
    ENDPOINT_DYNAMODB,
    ENDPOINT_STREAMS,
    ENDPOINT_STS,
    ENDPOINT_SSO,
    ENDPOINT_SSO_OIDC,
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
    bool account_later;      /* it is not known yet: that it is required is no failure */
    enum hf_flag fips;       /* HF_UNSET: AWS_USE_FIPS_ENDPOINT, profile */
    enum hf_flag dual_stack; /* HF_UNSET: AWS_USE_DUALSTACK_ENDPOINT, profile */
};
enum hf_status hf__endpoint_find(struct hf_scope *s, const struct config *config,
                                 const struct endpoint_ask *ask, struct endpoint *endpoint);

/* An endpoint by URL: "http://host:port/path". HF_INVALID names what is wrong with it. */
enum hf_status hf__endpoint_of_url(struct hf_scope *s, struct hf_str url,
                                   struct endpoint *endpoint);

/* Copy its texts to `memory`, where they last as long as that does. HF_NOMEM. */
enum hf_status hf__endpoint_keep(struct hf_scope *s, struct hf_scope *memory,
                                 struct endpoint *endpoint);

/* Is the endpoint's host this machine itself: localhost, 127.x.x.x or [::1]? */
bool hf__endpoint_is_loopback(const struct endpoint *endpoint);

#endif
