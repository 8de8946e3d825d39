/*
 * cli/doctor/doctor_network.c: a service: where it is, whether it answers, who we are to it.
 *
 * The checks go up the layers, and the first that fails ends them: name, connection, TLS and HTTP,
 * credentials, signed requests. So the finding that fails names the layer.
 *
 * Names and connections are tried here, by getaddrinfo() and connect(), to have their times apart.
 * Behind a proxy these two say nothing and are skipped.
 */
#include "cli/doctor/doctor.h"

#include <holdfast/client.h>

#include "base/base.h"
#include "cli/frame/output/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECT_MS = 3000, /* for one address */
    ADDRESSES_MAX = 8, /* that are tried */
    REQUESTS = 9,      /* whose times are measured, after a first one */
    HOST_MAX = 256,
    KEY_SHOWN = 4, /* characters of each end of an access key */
    SKEW_WARNING_S = 30,
    SKEW_PROBLEM_S = 4 * 60, /* services allow five minutes */
    EXPIRES_SOON_S = 10 * 60,
    RTT_SLOW_US = 200 * 1000
};

static const char in_url[] = "?proxy=";

struct place {
    char host[HOST_MAX];
    char port[8];
    bool tls;
};

/* ---- where it is ---------------------------------------------------------------------------- */

/* "https://host:port" in its parts; a v6 address without its brackets. */
static bool place_read(struct hf_str origin, struct place *place)
{
    struct hf_str rest, port = {0};
    const char *bracket, *colon;

    place->tls = str_after(origin, HF_STR("https://"), &rest);
    if (!place->tls && !str_after(origin, HF_STR("http://"), &rest))
        return false;
    bracket = rest.len && rest.ptr[0] == '[' ? memchr(rest.ptr, ']', rest.len) : NULL;
    colon = bracket ? (bracket + 1 < rest.ptr + rest.len ? bracket + 1 : NULL)
                    : memchr(rest.ptr, ':', rest.len);
    if (colon) {
        port = hf_str_of(colon + 1, (size_t)(rest.ptr + rest.len - colon - 1));
        rest.len = (size_t)(colon - rest.ptr);
    }
    if (bracket && rest.len > 2)
        rest = hf_str_of(rest.ptr + 1, rest.len - 2);
    if (!rest.len || rest.len >= sizeof(place->host) || port.len >= sizeof(place->port))
        return false;
    snprintf(place->host, sizeof(place->host), "%.*s", HF_FMT(rest));
    if (port.len)
        snprintf(place->port, sizeof(place->port), "%.*s", HF_FMT(port));
    else
        snprintf(place->port, sizeof(place->port), "%s", place->tls ? "443" : "80");
    return true;
}

/* Is the host in the list of no_proxy? Its entries are names, which stand for those below them too, or '*'. */
static bool is_direct(const struct doctor *d, const struct place *place)
{
    const char *lower = d->cli->env("no_proxy"), *upper = d->cli->env("NO_PROXY");
    const char *list = lower && *lower ? lower : upper ? upper : "";
    size_t len = strlen(place->host);

    while (*list) {
        size_t name = strcspn(list += strspn(list, ", ."), ", ");

        if (name == 1 && *list == '*')
            return true;
        if (name && name <= len && strncasecmp(place->host + len - name, list, name) == 0 &&
            (name == len || place->host[len - name - 1] == '.'))
            return true;
        list += name;
    }
    return false;
}

/* The parameter of the URL; absent: it has none. */
static struct hf_str proxy_parameter(const struct doctor *d)
{
    struct hf_str query = d->url, value;

    str_cut(&query, '?');
    while (query.len)
        if (str_after(str_cut(&query, '&'), HF_STR("proxy="), &value))
            return value;
    return (struct hf_str){0};
}

/* What names the proxy that is used for this place, a variable or "?proxy="; NULL: there is none. */
static const char *proxy_of(const struct doctor *d, const struct place *place)
{
    static const char *const of_https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const of_http[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    const char *const *names = place->tls ? of_https : of_http;
    size_t len = place->tls ? COMMAND_LEN(of_https) : COMMAND_LEN(of_http);
    struct hf_str parameter = proxy_parameter(d);

    if (parameter.len)
        return str_is(parameter, "none") ? NULL : in_url;
    if (is_direct(d, place))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        const char *value = d->cli->env(names[i]);

        if (value && *value)
            return names[i];
    }
    return NULL;
}

/* Connect to one address; the time it took, or -1 and errno. */
static int64_t address_connect(struct doctor *d, const struct addrinfo *address)
{
    int64_t begin = hf__doctor_now_us(d), took = -1;
    socklen_t len = sizeof(int);
    int fd, error = 0;

    fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};

        error = errno;
        if (error == EINPROGRESS) {
            error = poll(&wait, 1, (int)hf__doctor_left_ms(d, CONNECT_MS)) == 1 ? 0 : ETIMEDOUT;
            if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
                error = errno;
        }
    }
    if (!error)
        took = hf__doctor_now_us(d) - begin;
    close(fd);
    errno = error;
    return took;
}

/* False: no address could be connected to. */
static bool connect_check(struct doctor *d, const struct place *place,
                          const struct addrinfo *addresses)
{
    size_t tried = 0, failed = 0;
    int64_t best = -1;
    int error = 0;

    for (const struct addrinfo *at = addresses; at && tried < ADDRESSES_MAX; at = at->ai_next) {
        int64_t took = address_connect(d, at);

        tried++;
        if (took < 0) {
            failed++;
            error = errno;
        } else if (best < 0 || took < best) {
            best = took;
        }
    }
    if (best < 0) {
        hf__doctor_add(
            d, "connection", FINDING_PROBLEM,
            hf__doctor_text(d, "%s port %s: %s", place->host, place->port, strerror(error)),
            error == ECONNREFUSED
                ? HF_STR("Nothing listens there. Start a server with 'holdfast serve', or name "
                         "another database with --db or HOLDFAST_DB.")
                : HF_STR("Check the address, firewalls and security groups between here and "
                         "there."));
        return false;
    }
    hf__doctor_add(d, "connection", best > RTT_SLOW_US ? FINDING_WARNING : FINDING_OK,
                   hf__doctor_text(d, "%s port %s in %.*s%s", place->host, place->port,
                                   HF_FMT(hf__doctor_time(d, best)),
                                   failed ? "; some addresses do not answer" : ""),
                   best > RTT_SLOW_US ? HF_STR("It is far away: use an endpoint that is nearer.")
                                      : HF_STR(""));
    return true;
}

/* Name and connection. False: there is no way there. */
static bool reach_check(struct doctor *d, const struct place *place)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const char *proxy = proxy_of(d, place);
    int64_t begin = hf__doctor_now_us(d), took;
    struct addrinfo *addresses;
    int result;
    bool reached;

    if (proxy) {
        hf__doctor_add(d, "connection", FINDING_SKIPPED,
                       hf__doctor_text(d, "%s is set: requests go through a proxy", proxy),
                       proxy == in_url ? HF_STR("To go without one, remove it from the URL.")
                                       : HF_STR("To go without one, add the host to no_proxy."));
        return true;
    }
    result = getaddrinfo(place->host, place->port, &hints, &addresses);
    took = hf__doctor_now_us(d) - begin;
    if (result != 0) {
        hf__doctor_add(d, "name", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s: %s", place->host,
                                       result == EAI_SYSTEM ? strerror(errno)
                                                            : gai_strerror(result)),
                       HF_STR("Check the name in the URL, and the resolver: /etc/resolv.conf."));
        return false;
    }
    hf__doctor_add(d, "name", FINDING_OK,
                   hf__doctor_text(d, "%s, found in %.*s", place->host,
                                   HF_FMT(hf__doctor_time(d, took))),
                   HF_STR(""));
    reached = connect_check(d, place, addresses);
    freeaddrinfo(addresses);
    return reached;
}

/* ---- what it says --------------------------------------------------------------------------- */

static void skew_check(struct doctor *d, int64_t date_s)
{
    int64_t skew = date_s ? date_s - (int64_t)time(NULL) : 0;
    int64_t off = skew < 0 ? -skew : skew;
    struct hf_str found;

    if (!date_s)
        return;
    found = off <= 1 ? HF_STR("the same as here")
                     : hf__doctor_text(d, "%" PRId64 " s %s ours", off,
                                       skew > 0 ? "ahead of" : "behind");
    hf__doctor_add(d, "server clock",
                   off > SKEW_PROBLEM_S   ? FINDING_PROBLEM
                   : off > SKEW_WARNING_S ? FINDING_WARNING
                                          : FINDING_OK,
                   found,
                   off > SKEW_WARNING_S ? HF_STR("Set the clock that is wrong: signatures that are "
                                                 "five minutes off are refused.")
                                        : HF_STR(""));
}

static struct hf_client_options client_options(const struct doctor *d)
{
    return (struct hf_client_options){.size = sizeof(struct hf_client_options),
                                      .profile = d->settings->database.profile,
                                      .region = d->settings->database.region,
                                      .retry = {.mode = HF_RETRY_OFF}};
}

/* Of a holdfast server: may it write, and which version is it? */
static void holdfast_check(struct doctor *d)
{
    struct hf_client_options options = client_options(d);
    const struct json_node *json, *version;
    struct hf_server_answer answer;
    struct hf_str error;

    if (hf_server_get(d->s, d->url, &options, HF_STR("/readyz"), &answer) == HF_OK) {
        struct hf_str reason = str_cut(&answer.body, '\n');

        hf__doctor_add(d, "server", answer.status == 200 ? FINDING_OK : FINDING_PROBLEM,
                       hf__doctor_text(d, "holdfast serve: %.*s", HF_FMT(reason)),
                       answer.status == 200
                           ? HF_STR("")
                           : HF_STR("Read the log of the server. After a failed sync look at the "
                                    "disk, then restart it; if the disk is full, free some "
                                    "space."));
    }
    if (hf_server_get(d->s, d->url, &options, HF_STR("/_holdfast/top"), &answer) != HF_OK ||
        answer.status != 200)
        return;
    json = hf__cli_json_read(d->s, answer.body, &error);
    version = hf__cli_json_member(json, "version");
    if (version && !str_is(version->text, hf_version()))
        hf__doctor_add(d, "server version", FINDING_OK,
                       hf__doctor_text(d, "%.*s; this command is %s", HF_FMT(version->text),
                                       hf_version()),
                       HF_STR(""));
}

/* TLS and HTTP. False: they do not work. */
static bool http_check(struct doctor *d, const struct place *place)
{
    struct hf_client_options options = client_options(d);
    int64_t begin = hf__doctor_now_us(d), took;
    const char *proxy = proxy_of(d, place);
    struct hf_server_answer answer;

    if (hf_server_get(d->s, d->url, &options, HF_STR("/"), &answer) != HF_OK) {
        hf__doctor_add(
            d, place->tls ? "TLS and HTTP" : "HTTP", FINDING_PROBLEM,
            hf__doctor_text(d, "%s", hf_scope_error_text(d->s)),
            proxy == in_url ? HF_STR("Check the proxy in the URL (?proxy=), then the server.")
            : proxy
                ? hf__doctor_text(d, "Check the proxy of %s, or add the host to no_proxy.", proxy)
            : place->tls ? HF_STR("Check that the server speaks TLS on this port, and its "
                                  "certificate; AWS_CA_BUNDLE names other authorities.")
                         : HF_STR("Check that the server speaks HTTP on this port; one "
                                  "with TLS needs https://."));
        hf_scope_ok(d->s);
        return false;
    }
    took = hf__doctor_now_us(d) - begin;
    hf__doctor_add(d, place->tls ? "TLS and HTTP" : "HTTP", FINDING_OK,
                   hf__doctor_text(d, "answers with status %d in %.*s, with the connection%s%.*s",
                                   answer.status, HF_FMT(hf__doctor_time(d, took)),
                                   answer.server.len ? "; it is " : "", HF_FMT(answer.server)),
                   HF_STR(""));
    skew_check(d, answer.date_s);
    if (str_is(answer.server, "holdfast"))
        holdfast_check(d);
    hf_scope_ok(d->s);
    return true;
}

/* ---- who we are to it ----------------------------------------------------------------------- */

/* The ends of an access key: enough to know which one it is. */
static struct hf_str key_shown(struct doctor *d, struct hf_str key)
{
    if (key.len < 4 * KEY_SHOWN)
        return hf__doctor_text(d, "%.*s...",
                               (int)(key.len < KEY_SHOWN ? key.len / 2 : KEY_SHOWN / 2), key.ptr);
    return hf__doctor_text(d, "%.*s...%.*s", KEY_SHOWN, key.ptr, KEY_SHOWN,
                           key.ptr + key.len - KEY_SHOWN);
}

static void credentials_check(struct doctor *d, const struct hf_client_info *info,
                              enum hf_status status)
{
    int64_t left = info->expires_us ? info->expires_us / 1000000 - (int64_t)time(NULL) : 0;
    struct hf_str found;

    if (status != HF_OK) {
        hf__doctor_add(d, "credentials", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s", hf_scope_error_text(d->s)),
                       HF_STR("Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile "
                              "with --profile. 'aws sso login' renews those of SSO."));
        hf_scope_ok(d->s);
        return;
    }
    if (info->placeholder) {
        hf__doctor_add(d, "credentials", FINDING_OK,
                       HF_STR("none are set; a database on this machine gets placeholders"),
                       HF_STR(""));
        return;
    }
    found = hf__doctor_text(d, "access key %.*s from %.*s", HF_FMT(key_shown(d, info->access_key)),
                            HF_FMT(info->credentials));
    if (info->expires_us)
        found =
            hf__doctor_text(d, "%.*s, valid for %.*s", HF_FMT(found),
                            HF_FMT(hf__rows_duration(d->s, left > 0 ? (uint64_t)left * 1000 : 0)));
    hf__doctor_add(d, "credentials",
                   info->expires_us && left < EXPIRES_SOON_S ? FINDING_WARNING : FINDING_OK, found,
                   info->expires_us && left < EXPIRES_SOON_S
                       ? HF_STR("They expire soon: renew them, such as with 'aws sso login'.")
                       : HF_STR(""));
}

static void request_failed(struct doctor *d)
{
    const struct hf_error *error = hf_scope_error(d->s);
    struct hf_str message = hf__doctor_text(d, "ListTables: %s", hf_scope_error_text(d->s));

    if (error->status == HF_DENIED && str_is(error->exception, "AccessDeniedException"))
        hf__doctor_add(d, "requests", FINDING_WARNING, message,
                       HF_STR("Commands that name a table may still work. 'holdfast iam --help' "
                              "has the policies that each pattern needs."));
    else if (error->status == HF_DENIED)
        hf__doctor_add(d, "requests", FINDING_PROBLEM, message,
                       HF_STR("The key is unknown there, expired or has another secret: check "
                              "where it comes from, above, and --region."));
    else
        hf__doctor_add(d, "requests", FINDING_PROBLEM, message,
                       HF_STR("The service answers, but not to operations: check that it is a "
                              "DynamoDB, and its own state and log."));
    hf_scope_ok(d->s);
}

/* Signed requests, and how long they take. */
static void requests_check(struct doctor *d)
{
    struct hf_client_options options = client_options(d);
    int64_t times[REQUESTS];
    enum hf_status status;
    struct hf_db *db;

    hf_scope_timeout_ms(d->s, hf__doctor_left_ms(d, UINT32_MAX));
    status = hf_connect(d->s, d->url, &options, &db);
    if (status == HF_OK)
        status = hf_list_tables(d->s, db, &(struct hf_list_tables){.limit = 1}, NULL);
    for (size_t i = 0; i < REQUESTS && status == HF_OK; i++) {
        int64_t begin = hf__doctor_now_us(d);

        status = hf_list_tables(d->s, db, &(struct hf_list_tables){.limit = 1}, NULL);
        times[i] = hf__doctor_now_us(d) - begin;
    }
    if (status == HF_OK) {
        hf__doctor_sort(times, REQUESTS);
        hf__doctor_add(d, "requests", FINDING_OK,
                       hf__doctor_text(d, "ListTables in %.*s (median of %d), %.*s at most",
                                       HF_FMT(hf__doctor_time(d, times[REQUESTS / 2])), REQUESTS,
                                       HF_FMT(hf__doctor_time(d, times[REQUESTS - 1]))),
                       HF_STR(""));
    } else {
        request_failed(d);
    }
    hf_db_close(db);
}

void hf__doctor_network(struct doctor *d)
{
    struct hf_client_options options = client_options(d);
    struct hf_client_info info;
    enum hf_status status;
    struct place place;

    hf_scope_timeout_ms(d->s, hf__doctor_left_ms(d, UINT32_MAX));
    status = hf_client_describe(d->s, d->url, &options, &info);
    if (!info.endpoint.ptr || !place_read(info.endpoint, &place)) {
        hf__doctor_add(d, "URL", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s", hf_scope_error_text(d->s)),
                       HF_STR("Write http://HOST:PORT, https://HOST:PORT, dynamodb://REGION or "
                              "embedded:DIR, in --db or HOLDFAST_DB."));
        hf_scope_ok(d->s);
        return;
    }
    hf__doctor_add(d, "endpoint", FINDING_OK,
                   hf__doctor_text(d, "%.*s, signed for region %.*s", HF_FMT(info.endpoint),
                                   HF_FMT(info.region)),
                   HF_STR(""));
    credentials_check(d, &info, status);
    if (reach_check(d, &place) && http_check(d, &place) && status == HF_OK)
        requests_check(d);
}
