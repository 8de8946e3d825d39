/*
 * cli/frame/database.c: opening the database that was named, and what its failures mean to a script.
 *
 * What always holds:
 *
 *  (1) A status has one exit code, whichever command meets it: exit_of().
 *  (2) An error is one line on standard error, whatever is in the message.
 *  (3) A directory is made by commands that store something new, and by no others.
 *  (4) A directory that this user may not write, or on a file system that nobody may write, is opened to be
 *      read. What writes then fails, and says why.
 *
 * A directory that another process has open is waited for by looking again and again, with pauses of
 * up to LOOK_MAX_MS: there is nothing to be woken by, as that process may be killed.
 */
#include "cli/frame/database.h"

#include "base/buf.h"
#include "cli/config/config_use.h"
#include "cli/frame/process/child.h"
#include "cli/serve/holder.h"

#include <holdfast/blob.h>
#include <holdfast/engine.h>
#include <holdfast/prefix.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

_Static_assert(CLI_OK == 0, "a command that has not failed");

enum { LOOK_MIN_MS = 5, LOOK_MAX_MS = 100, MOMENT_MS = 1000 };

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
        return CLI_NOT_FOUND;
    case HF_CONDITION:
    case HF_TX_CANCELED:
    case HF_TOKEN_MISMATCH:
    case HF_DUPLICATE:
    case HF_IN_USE:
    case HF_LOCKED:
    case HF_LOST:
    case HF_DELETED:
    case HF_EXPIRED:
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
    case HF_TRIMMED:
    case HF_UNKNOWN_OPERATION:
    case HF_UNSUPPORTED:
    case HF_CANCELED:
    case HF_IO:
    case HF_INTERNAL:
        break;
    }
    return CLI_FAILED;
}

int hf__database_exit(const struct hf_error *error)
{
    int ends = exit_of(error->status);

    assert(error);
    /* A server that is down, a connection that broke: the same call may succeed later. */
    return ends == CLI_FAILED && error->may_retry ? (int)CLI_UNAVAILABLE : ends;
}

/* What was refused as the directory cannot be written. (4) */
static bool is_refused(const struct cli *cli, const struct hf_error *error)
{
    static const char said[] = "The database was opened read-only";

    assert(error);
    return cli->unwritable && error->status == HF_DENIED && error->message.len > strlen(said) &&
           memcmp(error->message.ptr, said, strlen(said)) == 0;
}

/* The error of `s` with something in front and behind, as one line. */
static int fail_line(struct cli *cli, const char *command, const struct hf_scope *s,
                     const char *what, struct hf_str more)
{
    const struct hf_error *error = hf_scope_error(s);
    int ends = hf__database_exit(error), came = cli->guard ? hf__guard_signal(cli->guard) : 0;
    struct hf_str text = /* which names the table that is missing */
        hf_str_from(error->message.len ? hf_scope_error_text(s) : hf_status_text(error->status));
    struct hf_str line = hf_scope_format(cli->scope, "%s%s%.*s%.*s", what ? what : "",
                                         what ? ": " : "", HF_FMT(text), HF_FMT(more));
    char *at;

    if (is_refused(cli, error))
        line = hf_scope_format(cli->scope, "%.*s, as %s", HF_FMT(line), cli->unwritable);
    if (error->status == HF_CANCELED && came) /* a signal ended it */
        return cli->ends_by_signal ? CLI_OK : CLI_SIGNAL + came;
    /* The copy is ours; what a service answers may have any bytes in it. */
    at = line.ptr ? hf_scope_alloc(cli->scope, line.len + 1) : NULL;
    if (!at)
        return hf__cli_fail(cli, command, CLI_FAILED, "out of memory");
    for (size_t i = 0; i <= line.len; i++)
        at[i] = i < line.len && iscntrl((unsigned char)line.ptr[i]) ? ' ' : line.ptr[i];
    return hf__cli_fail_with(cli, command, ends, error, at);
}

int hf__database_fail_of(struct cli *cli, const char *command, const struct hf_scope *s,
                         const char *what)
{
    return fail_line(cli, command, s, what, HF_STR(""));
}

int hf__database_fail(struct cli *cli, const char *command)
{
    return hf__database_fail_of(cli, command, cli->scope, NULL);
}

/* ---- opening -------------------------------------------------------------------------------- */

bool hf__database_is_service(struct hf_str url)
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
    struct hf__buf buf = {.scope = s};

    if (!url.ptr || !value.ptr)
        return url;
    hf__buf_put_url(&buf, value, "");
    if (buf.failed)
        return (struct hf_str){0};
    return hf_scope_format(s, "%.*s%c%s=%.*s", HF_FMT(url),
                           memchr(url.ptr, '?', url.len) ? '&' : '?', name, (int)buf.len,
                           (const char *)buf.ptr);
}

struct hf_str hf__database_url(struct hf_scope *s, const struct database_settings *settings)
{
    struct hf_str url = settings->url;

    if (!hf__database_is_service(url))
        return url;
    url = with_parameter(s, url, "prefix", settings->prefix);
    url = with_parameter(s, url, "profile", settings->profile);
    return with_parameter(s, url, "region", settings->region);
}

/*
 * Does the service answer? Patterns wait for a service that cannot be reached until the deadline, which
 * is right for a program that runs for months and wrong for a person with a slip in a URL. Any
 * answer will do: a user without the right to list tables may still use one of them.
 */
static bool database_answers(struct hf_scope *s, struct hf_db *db)
{
    enum hf_status status = hf_list_tables(s, db, &(struct hf_list_tables){.limit = 1}, NULL);

    return (status != HF_IO && status != HF_TIMEOUT) || !hf_scope_error(s)->may_retry;
}

/* What to do about a service that cannot be reached. */
static struct hf_str connection_advice(struct hf_scope *s)
{
    const struct hf_error *error = hf_scope_error(s);

    if (error->status != HF_IO || error->may_have_happened)
        return HF_STR("");
    return HF_STR("; start a server with 'holdfast serve', or name another database with --db");
}

static bool read_path(struct hf_scope *s, struct hf_str url, struct hf_str *path)
{
    static const char kind[] = "embedded:";
    size_t len = sizeof(kind) - 1;

    *path = (struct hf_str){0};
    if (url.len > len && memcmp(url.ptr, kind, len) == 0)
        *path = hf_scope_copy(s, hf_str_of(url.ptr + len, url.len - len));
    return path->ptr != NULL;
}

int hf__database_taken(struct cli *cli, const char *command, const char *path)
{
    struct hf_scope *s = cli->scope;
    struct holder holder = hf__holder_find(s, path);
    struct hf_str advice = hf__holder_advice(s, &holder, path);

    fail_line(cli, command, s, NULL,
              hf_scope_format(s, "%s%.*s; %.*s", holder.pid ? ": " : "", HF_FMT(holder.text),
                              HF_FMT(advice)));
    return CLI_UNAVAILABLE;
}

struct hf_str hf__database_holder(struct hf_scope *s, const char *path)
{
    struct holder holder = hf__holder_find(s, path);

    if (!holder.pid)
        return (struct hf_str){0};
    return hf_scope_format(s, "%.*s; %.*s", HF_FMT(holder.text),
                           HF_FMT(hf__holder_advice(s, &holder, path)));
}

static bool is_usable(struct cli *cli, const char *command,
                      const struct database_settings *settings, int *ends)
{
    if (!settings->profile.ptr || hf__database_is_service(settings->url))
        return true;
    *ends = hf__cli_fail(cli, command, CLI_USAGE,
                         "--profile needs a service, and '%.*s' is not one", HF_FMT(settings->url));
    return false;
}

/* Why this directory cannot be written; NULL: it can, or it is none. (4) */
static const char *why_unwritable(struct hf_scope *s, struct hf_str url)
{
    static const char *const names[] = {"", "/durable", "/journal"};
    struct hf_str path;

    if (!read_path(s, url, &path))
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf_str file = hf_scope_format(s, "%s%s", path.ptr, names[i]);

        if (!file.ptr || faccessat(AT_FDCWD, file.ptr, W_OK, AT_EACCESS) == 0)
            continue;
        if (errno == EROFS)
            return "its file system is mounted read-only";
        if (errno == EACCES)
            return "this user has no permission to write it";
    }
    return NULL;
}

static enum hf_status open_url(struct cli *cli, const struct database_settings *settings,
                               struct hf_str url, struct hf_db **db)
{
    struct hf_scope *s = cli->scope;

    cli->unwritable = settings->read_only ? NULL : why_unwritable(s, url);
    hf_scope_timeout_ms(s, (uint32_t)settings->timeout_ms);
    return hf_open(s, url,
                   HF_OPTIONS(hf_engine_options, .region = settings->region,
                              .no_create = !settings->create,
                              .read_only = settings->read_only || cli->unwritable,
                              .bulk_bytes = settings->bulk_bytes,
                              .memtable_bytes = settings->memtable_bytes,
                              .cache_bytes = settings->cache_bytes),
                   db);
}

/* After the database was opened: add the prefix, or make the first call to a service. */
static bool database_finish_open(struct cli *cli, const char *command,
                                 const struct database_settings *settings, struct hf_db **db,
                                 int *ends)
{
    struct hf_scope *s = cli->scope;
    bool network = hf__database_is_service(settings->url);
    struct hf_db *whole = *db;

    if (network ? database_answers(s, *db)
                : !settings->prefix.ptr || hf_prefix_open(s, whole, settings->prefix, db) == HF_OK)
        return true;
    *ends = fail_line(cli, command, s, NULL, network ? connection_advice(s) : HF_STR(""));
    hf_db_close(whole);
    *db = NULL;
    return false;
}

/* Is it the database that stays open? */
static bool is_shared(const struct cli *cli, const struct database_settings *settings)
{
    const struct database_settings *those = cli->shared ? &cli->shared->settings : NULL;

    return those && hf_str_equal(those->url, settings->url) &&
           hf_str_equal(those->prefix, settings->prefix) &&
           hf_str_equal(those->profile, settings->profile) &&
           hf_str_equal(those->region, settings->region);
}

void hf__database_close(struct cli *cli, struct hf_db *db)
{
    if (!cli->shared || db != cli->shared->db)
        hf_db_close(db);
}

bool hf__database_resolve(struct cli *cli, const char *command, struct database_settings *settings,
                          int *ends)
{
    return hf__cli_config_use_for(cli, command, settings, ends);
}

bool hf__database_open(struct cli *cli, const char *command,
                       const struct database_settings *settings, struct hf_db **db, int *ends)
{
    struct database_settings named = *settings; /* @NAME, if it was not resolved before */
    struct hf_str url, path;
    bool shared;
    enum hf_status status;

    *db = NULL;
    if (!hf__cli_config_use_for(cli, command, &named, ends))
        return false;
    settings = &named;
    url = hf__database_url(cli->scope, settings);
    shared = is_shared(cli, settings);
    if (shared) { /* it is opened for all that follow, not for this command */
        named.read_only = false;
        named.memtable_bytes = named.cache_bytes = 0;
        named.bulk_bytes = 0;
    }
    if (!is_usable(cli, command, settings, ends))
        return false;
    if (shared && cli->shared->db) {
        *db = cli->shared->db;
        cli->unwritable = cli->shared->unwritable;
        hf_scope_timeout_ms(cli->scope, (uint32_t)settings->timeout_ms);
        return true;
    }
    status = open_url(cli, settings, url, db);
    if (status == HF_OK) {
        bool finished = database_finish_open(cli, command, settings, db, ends);

        if (shared) {
            cli->shared->db = *db;
            cli->shared->unwritable = cli->unwritable;
        }
        return finished;
    }
    *ends = status == HF_LOCKED && read_path(cli->scope, url, &path)
                ? hf__database_taken(cli, command, path.ptr)
                : hf__database_fail(cli, command);
    return false;
}

enum hf_status hf__database_open_blobs(struct cli *cli, const struct database_settings *settings,
                                       struct hf_str url, struct hf_blobs **blobs)
{
    return hf_blobs_open(cli->scope, url,
                         HF_OPTIONS(hf_blobs_options,
                                    .client =
                                        HF_OPTIONS(hf_client_options, .profile = settings->profile,
                                                   .region = settings->region),
                                    .lazy = !settings->create),
                         blobs);
}

bool hf__database_nothing_yet(const struct cli *cli)
{
    return !cli->table_named && hf_scope_error(cli->scope)->status == HF_NOT_FOUND;
}

int hf__database_unopened(struct cli *cli, const char *command,
                          const struct database_settings *settings)
{
    struct hf_str more = HF_STR("");

    if (hf__database_nothing_yet(cli)) {
        if (settings->absent_ok)
            return DATABASE_ABSENT;
        if (settings->maker)
            more = hf_scope_format(cli->scope, " yet; 'holdfast %s' creates it", settings->maker);
    }
    return fail_line(cli, command, cli->scope, NULL, more);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static uint64_t now_ms(const struct cli *cli)
{
    const struct hf_env *env = hf_scope_env(cli->scope);

    return (uint64_t)(env->elapsed_us(env->user) / 1000);
}

/* Report which process has the directory open. */
static void report_holder(struct cli *cli, const char *command, const struct holder *holder,
                          const char *path)
{
    struct hf_str advice = hf__holder_advice(cli->scope, holder, path);

    hf__cli_fail(cli, command, CLI_OK, "waiting for %s: in use by %.*s%s%.*s", path,
                 HF_FMT(holder->pid ? holder->text : HF_STR("another process")),
                 holder->server ? "; " : "", HF_FMT(holder->server ? advice : HF_STR("")));
}

/* The time to wait is over. */
static int give_up(struct cli *cli, const char *command, const struct database_settings *settings,
                   const struct database_wait *wait, const struct holder *holder, const char *path)
{
    int ends = holder->server || holder->started_us ? (int)CLI_UNAVAILABLE : wait->busy_code;

    if (holder->started_us)
        return hf__cli_fail(
            cli, command, CLI_UNAVAILABLE,
            "%.*s has the database open and started this command, so both would wait forever; "
            "use a server for both: 'holdfast serve'",
            HF_FMT(holder->text));
    if (ends == CLI_UNAVAILABLE || !settings->quiet)
        hf__database_taken(cli, command, path);
    return ends;
}

bool hf__database_open_waiting(struct cli *cli, const char *command,
                               const struct database_settings *settings, struct database_wait *wait,
                               struct hf_db **db, int *ends)
{
    struct hf_scope *s = cli->scope;
    uint64_t begin_ms = now_ms(cli);
    uint32_t look_ms = LOOK_MIN_MS;
    struct hf_str path;
    bool reported = settings->quiet;

    wait->waited_ms = 0;
    if (!read_path(s, settings->url, &path) || is_shared(cli, settings))
        return hf__database_open(cli, command, settings, db, ends);
    *db = NULL;
    *ends = CLI_FAILED;
    if (!is_usable(cli, command, settings, ends))
        return false;
    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        enum hf_status status = open_url(cli, settings, settings->url, db);
        struct holder holder;

        wait->waited_ms = now_ms(cli) - begin_ms;
        if (status == HF_OK) {
            *ends = CLI_OK; /* of what follows */
            return database_finish_open(cli, command, settings, db, ends);
        }
        if (status != HF_LOCKED) {
            *ends = hf__database_fail(cli, command);
            return false;
        }
        holder = hf__holder_find(s, path.ptr);
        if ((wait->bounded && wait->waited_ms >= wait->wait_ms) || holder.started_us) {
            *ends = give_up(cli, command, settings, wait, &holder, path.ptr);
            return false;
        }
        if (!reported && wait->waited_ms >= MOMENT_MS) {
            report_holder(cli, command, &holder, path.ptr);
            reported = true;
        }
        if (wait->bounded && look_ms > wait->wait_ms - wait->waited_ms)
            look_ms = (uint32_t)(wait->wait_ms - wait->waited_ms);
        hf_scope_timeout_ms(s, 0);
        if (hf_scope_sleep_ms(s, look_ms) != HF_OK)
            return false;
        look_ms = look_ms * 2 < LOOK_MAX_MS ? look_ms * 2 : LOOK_MAX_MS;
        hf_scope_rewind(s, mark);
    }
}
