/*
 * cli/database.c: opening the database that was named, and what its failures mean to a script.
 *
 * What always holds:
 *
 *  (1) A status has one exit code, whichever command meets it: exit_of().
 *  (2) An error is one line on standard error, whatever is in the message.
 */
#include "cli/database.h"

#include <holdfast/engine.h>
#include <holdfast/prefix.h>

#include <ctype.h>
#include <string.h>

/* ---- exit codes ----------------------------------------------------------------------------- */

static int exit_of(enum hf_status status)
{
    switch (status) {
    case HF_OK:
        return CLI_OK;
    case HF_INVALID:
    case HF_SERIALIZATION:
        return CLI_USAGE;
    case HF_NOT_FOUND:
    case HF_TABLE_NOT_FOUND:
    case HF_BACKUP_NOT_FOUND:
    case HF_POLICY_NOT_FOUND:
    case HF_GLOBAL_TABLE_NOT_FOUND:
    case HF_EXPORT_NOT_FOUND:
    case HF_IMPORT_NOT_FOUND:
        return CLI_NOT_FOUND;
    case HF_CONDITION:
    case HF_TX_CANCELED:
    case HF_TOKEN_MISMATCH:
    case HF_DUPLICATE:
    case HF_IN_USE:
    case HF_TABLE_EXISTS:
    case HF_TABLE_IN_USE:
    case HF_BACKUP_IN_USE:
    case HF_LOCKED:
    case HF_LOST:
    case HF_LIMIT:
        return CLI_CONDITION;
    case HF_DENIED:
        return CLI_DENIED;
    case HF_THROTTLED:
    case HF_TX_CONFLICT:
    case HF_TX_IN_PROGRESS:
    case HF_NO_SPACE:
    case HF_STOPPED:
        return CLI_UNAVAILABLE;
    case HF_TIMEOUT:
        return CLI_TIMEOUT;
    case HF_CORRUPT:
    case HF_FORMAT:
        return CLI_CORRUPT;
    case HF_NOMEM:
    case HF_COLLECTION_SIZE:
    case HF_EXPIRED:
    case HF_TRIMMED:
    case HF_UNKNOWN_OPERATION:
    case HF_UNSUPPORTED:
    case HF_CANCELED:
    case HF_IO:
    case HF_INTERNAL:
    case HF_BACKUPS_UNAVAILABLE:
        break;
    }
    return CLI_FAILED;
}

int hf__database_exit(const struct hf_error *error)
{
    int ends = exit_of(error->status);

    /* A server that is down, a connection that broke: the same call may succeed later. */
    return ends == CLI_FAILED && error->may_retry ? (int)CLI_UNAVAILABLE : ends;
}

int hf__database_fail_of(struct cli *cli, const char *command, const struct hf_scope *s,
                         const char *what)
{
    const struct hf_error *error = hf_scope_error(s);
    struct hf_str line =
        hf_scope_format(cli->scope, "%s%s%.*s%s", what ? what : "", what ? ": " : "",
                        error->message.len ? (int)error->message.len
                                           : (int)strlen(hf_status_text(error->status)),
                        error->message.len ? error->message.ptr : hf_status_text(error->status),
                        error->may_have_happened ? " (it may have happened all the same)" : "");
    char *at;

    if (!line.ptr)
        return hf__cli_fail(cli, command, CLI_FAILED, "out of memory");
    /* The copy is ours; what a service answers may have any bytes in it. */
    at = hf_scope_alloc(cli->scope, line.len + 1);
    if (!at)
        return hf__cli_fail(cli, command, CLI_FAILED, "out of memory");
    for (size_t i = 0; i <= line.len; i++)
        at[i] = i < line.len && iscntrl((unsigned char)line.ptr[i]) ? ' ' : line.ptr[i];
    return hf__cli_fail(cli, command, hf__database_exit(error), "%s", at);
}

int hf__database_fail(struct cli *cli, const char *command)
{
    return hf__database_fail_of(cli, command, cli->scope, NULL);
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_network(struct hf_str url)
{
    static const char *const kinds[] = {"http:", "https:", "dynamodb:"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (url.len >= strlen(kinds[i]) && memcmp(url.ptr, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* "&NAME=VALUE" with the value as URLs have it, or with '?' when it is the first. */
static struct hf_str with_parameter(struct hf_scope *s, struct hf_str url, const char *name,
                                    struct hf_str value)
{
    static const char hex[] = "0123456789ABCDEF";
    char *encoded;
    size_t len = 0;

    if (!url.ptr || !value.ptr)
        return url;
    encoded = hf_scope_alloc(s, value.len * 3 + 1);
    if (!encoded)
        return (struct hf_str){0};
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];

        if (isalnum(byte) || byte == '-' || byte == '_' || byte == '.' || byte == '~') {
            encoded[len++] = (char)byte;
            continue;
        }
        encoded[len++] = '%';
        encoded[len++] = hex[byte >> 4];
        encoded[len++] = hex[byte & 15];
    }
    return hf_scope_format(s, "%.*s%c%s=%.*s", HF_FMT(url),
                           memchr(url.ptr, '?', url.len) ? '&' : '?', name, (int)len, encoded);
}

struct hf_str hf__database_url(struct hf_scope *s, const struct database_settings *settings)
{
    struct hf_str url = settings->url;

    if (!is_network(url))
        return url;
    url = with_parameter(s, url, "prefix", settings->prefix);
    url = with_parameter(s, url, "profile", settings->profile);
    return with_parameter(s, url, "region", settings->region);
}

/*
 * Is somebody there? Patterns wait for a service that cannot be reached until the deadline, which
 * is right for a program that runs for months and wrong for a person with a slip in a URL. Any
 * answer will do: who may not list tables may still have a table to work on.
 */
static bool answers(struct hf_scope *s, struct hf_db *db)
{
    enum hf_status status = hf_list_tables(s, db, &(struct hf_list_tables){.limit = 1}, NULL);

    return (status != HF_IO && status != HF_TIMEOUT) || !hf_scope_error(s)->may_retry;
}

bool hf__database_open(struct cli *cli, const char *command,
                       const struct database_settings *settings, struct hf_db **db, int *ends)
{
    struct hf_scope *s = cli->scope;
    struct hf_str url = hf__database_url(s, settings);
    struct hf_db *whole;

    *db = NULL;
    if (settings->profile.ptr && !is_network(settings->url)) {
        *ends =
            hf__cli_fail(cli, command, CLI_USAGE, "--profile is for services, and '%.*s' is none",
                         HF_FMT(settings->url));
        return false;
    }
    hf_scope_timeout_ms(s, (uint32_t)settings->timeout_ms);
    if (hf_open(s, url, HF_OPTIONS(hf_engine_options, .region = settings->region), db) != HF_OK) {
        /* Somebody has the directory open: no condition of ours, and it may pass. */
        bool taken = hf_scope_error(s)->status == HF_LOCKED;

        *ends = hf__database_fail(cli, command);
        if (taken)
            *ends = CLI_UNAVAILABLE;
        return false;
    }
    whole = *db;
    if (is_network(url)
            ? answers(s, *db)
            : !settings->prefix.ptr || hf_prefix_open(s, whole, settings->prefix, db) == HF_OK)
        return true;
    *ends = hf__database_fail(cli, command);
    hf_db_close(whole);
    *db = NULL;
    return false;
}
