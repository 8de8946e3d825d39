/*
 * client/credentials.h: who we are to a service: AWS's chain of sources, and refreshing in time.
 *
 * The order: what the program says; variables AWS_ACCESS_KEY_ID and kin; web identity; the profile
 * (static keys, a role by source_profile or credential_source, SSO, credential_process); a
 * container's endpoint; the metadata service of the machine. The first that is configured decides:
 * when it is configured and fails, that is the error, except that a metadata service which is not
 * there just means that there are none.
 *
 * Any number of threads ask; one of them refreshes, ahead of the expiry, while the others go on
 * with what is still valid. Secrets are never part of an error or of a log line.
 */
#ifndef HF_CLIENT_CREDENTIALS_H
#define HF_CLIENT_CREDENTIALS_H

#include <holdfast/client.h>

#include "base/base.h"
#include "client/config.h"
#include "http/sign.h"
#include "http/transport.h"

struct credentials;

enum { CREDENTIALS_SKEW_S = 4 * 60 }; /* a clock this much off is corrected; services allow 5 min */

struct credentials_options {
    const struct config *config;        /* outlives the credentials */
    struct transport *transport;        /* outlives the credentials; for what speaks HTTP */
    const struct hf_credentials *fixed; /* NULL or without access_key: the chain */
    hf_credentials_fn *fn;              /* instead of all else */
    void *fn_user;
    struct hf_str region; /* for STS; may be absent */
    bool local;           /* for a loopback endpoint: nothing is asked over the network
                             unless it is configured, and when there are no credentials
                             at all, made-up ones do */
    bool profile_asked;   /* the program named a profile: it goes before the variables */
};

enum hf_status hf__credentials_open(struct hf_scope *s, const struct credentials_options *options,
                                    struct credentials **credentials);
void hf__credentials_close(struct credentials *credentials);

/*
 * Those of now, as strings in the scope. `account` is the account id where the source has it
 * (AWS_ACCOUNT_ID, aws_account_id, AssumedRole ARN, container and process output), else absent.
 *
 * HF_DENIED   there are none; the message lists what was looked at
 * HF_INVALID  a source is configured wrongly; the message names it
 * HF_IO       a source could not be asked; may_retry
 * HF_TIMEOUT, HF_CANCELED, HF_NOMEM
 */
enum hf_status hf__credentials_get(struct hf_scope *s, struct credentials *credentials,
                                   struct sign_credentials *now, struct hf_str *account);

/* What may be shown of those of now: no secret. Fails as hf__credentials_get() does. */
struct credentials_shown {
    struct hf_str access_key; /* in the scope */
    const char *origin;       /* "the variable AWS_ACCESS_KEY_ID" */
    int64_t expires_us;       /* 0: never */
    bool made_up;             /* hf__credentials_made_up() */
};
enum hf_status hf__credentials_show(struct hf_scope *s, struct credentials *credentials,
                                    struct credentials_shown *shown);

/* The service refused this key as expired or unknown: fetch new ones before the next use, if the
 * source can give others. True when the next hf__credentials_get() may give others. */
bool hf__credentials_refused(struct credentials *credentials, struct hf_str access_key);

/* Are these the ones that a database on this machine gets when no source has any? */
bool hf__credentials_made_up(const struct sign_credentials *used);

/*
 * The region by the machine's metadata service, when it is configured nowhere else; absent, and HF_OK,
 * when there is no such service or it is switched off. Lives in the scope.
 */
enum hf_status hf__credentials_region(struct hf_scope *s, const struct config *config,
                                      struct hf_str *region);

#endif
