/*
 * client/help.c: services over HTTP on loopback, and a machine of AWS's in miniature.
 */
#include "help.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 10, DRIP_MS = 50 };

/* ---- services ------------------------------------------------------------------------------- */

const char *mock_field(const struct mock_request *request, const char *name)
{
    static _Thread_local char value[8 * 1024];
    size_t len = strlen(name);

    value[0] = '\0';
    for (const char *line = strstr(request->head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        while (*line == ' ')
            line++;
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\r"), line);
        break;
    }
    return value;
}

struct line {
    struct mock *mock;
    int fd;
};

static bool wait_readable(struct mock *mock, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    while (!atomic_load(&mock->stop))
        if (poll(&wait, 1, POLL_MS) > 0)
            return true;
    return false;
}

/* One request from the line; false at its end. */
static bool read_request(struct line *line, struct mock_request *request)
{
    static const char length[] = "\r\ncontent-length:";
    size_t len = 0, body_at = 0, want = 0;
    char *bytes = calloc(1, sizeof(request->head) + sizeof(request->body));
    bool whole = false;

    while (!whole && len < sizeof(request->head) + sizeof(request->body) - 1) {
        const char *end;
        ssize_t got;

        if (!wait_readable(line->mock, line->fd))
            break;
        got =
            recv(line->fd, bytes + len, sizeof(request->head) + sizeof(request->body) - 1 - len, 0);
        if (got <= 0)
            break;
        len += (size_t)got;
        end = strstr(bytes, "\r\n\r\n");
        if (!end)
            continue;
        body_at = (size_t)(end + 4 - bytes);
        want = 0;
        for (const char *at = bytes; at < end; at++)
            if (strncasecmp(at, length, sizeof(length) - 1) == 0)
                want = strtoul(at + sizeof(length) - 1, NULL, 10);
        whole = len >= body_at + want;
    }
    if (whole && body_at < sizeof(request->head) && want < sizeof(request->body)) {
        memcpy(request->head, bytes, body_at);
        memcpy(request->body, bytes + body_at, want);
        request->body_len = want;
        sscanf(bytes, "%15s %1023s", request->method, request->target);
    }
    free(bytes);
    return whole;
}

static void send_all(struct mock *mock, int fd, const char *bytes, size_t len, bool drip)
{
    for (size_t i = 0; i < len && !atomic_load(&mock->stop);) {
        ssize_t sent = send(fd, bytes + i, drip ? 1 : len - i, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        i += (size_t)sent;
        if (drip)
            usleep(DRIP_MS * 1000);
    }
}

static void sleep_unless_stopped(struct mock *mock, int ms)
{
    for (int slept = 0; slept < ms && !atomic_load(&mock->stop); slept += POLL_MS)
        usleep(POLL_MS * 1000);
}

/* False: the line ends here. */
static bool send_answer(struct line *line, const struct mock_answer *answer)
{
    const char *body = answer->body ? answer->body : answer->room;
    size_t len = answer->len ? answer->len : strlen(body);
    bool drip = answer->way == MOCK_DRIP;
    char head[256];
    int head_len =
        snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\n%s%s%sContent-Length: %zu\r\n\r\n",
                 answer->status ? answer->status : 200, answer->date ? "Date: " : "",
                 answer->date ? answer->date : "", answer->date ? "\r\n" : "", len);

    sleep_unless_stopped(line->mock, answer->delay_ms);
    switch (answer->way) {
    case MOCK_HANG:
        while (!atomic_load(&line->mock->stop))
            usleep(POLL_MS * 1000);
        return false;
    case MOCK_CLOSE:
        return false;
    case MOCK_JUNK:
        send_all(line->mock, line->fd, body, len, false);
        return false;
    case MOCK_CUT:
        send_all(line->mock, line->fd, head, (size_t)head_len, false);
        send_all(line->mock, line->fd, body, len / 2, false);
        return false;
    case MOCK_ANSWER:
    case MOCK_DRIP:
        break;
    }
    send_all(line->mock, line->fd, head, (size_t)head_len, drip);
    send_all(line->mock, line->fd, body, len, drip);
    return true;
}

static void *serve_line(void *user)
{
    struct line *line = user;
    struct mock *mock = line->mock;
    struct mock_request *request = malloc(sizeof(*request));
    struct mock_answer *answer = malloc(sizeof(*answer));
    bool more = true;

    while (more) {
        memset(request, 0, sizeof(*request));
        memset(answer, 0, sizeof(*answer));
        if (!read_request(line, request))
            break;
        request->nth = atomic_fetch_add(&mock->requests, 1) + 1;
        pthread_mutex_lock(&mock->lock);
        mock->fn(mock->user, request, answer);
        pthread_mutex_unlock(&mock->lock);
        more = send_answer(line, answer);
    }
    close(line->fd);
    free(answer);
    free(request);
    free(line);
    return NULL;
}

static void *serve(void *user)
{
    struct mock *mock = user;

    while (wait_readable(mock, mock->listener)) {
        struct line *line = malloc(sizeof(*line));

        *line = (struct line){mock, accept(mock->listener, NULL, NULL)};
        if (line->fd < 0 || mock->lines_len == sizeof(mock->lines) / sizeof(mock->lines[0])) {
            fprintf(stderr, "a mock has too many lines\n");
            abort();
        }
        pthread_create(&mock->lines[mock->lines_len++], NULL, serve_line, line);
    }
    return NULL;
}

void mock_open(struct mock *mock, mock_fn *fn, void *user)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);

    memset(mock, 0, sizeof(*mock));
    mock->fn = fn;
    mock->user = user;
    mock->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(mock->listener >= 0);
    /* Heads and bodies are sent one by one: a body must not wait until the head is confirmed. */
    CHECK_INT(0, setsockopt(mock->listener, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    CHECK_INT(0, bind(mock->listener, (struct sockaddr *)&address, len));
    CHECK_INT(0, listen(mock->listener, 128));
    CHECK_INT(0, getsockname(mock->listener, (struct sockaddr *)&address, &len));
    snprintf(mock->url, sizeof(mock->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    CHECK_INT(0, pthread_mutex_init(&mock->lock, NULL));
    CHECK_INT(0, pthread_create(&mock->thread, NULL, serve, mock));
}

void mock_close(struct mock *mock)
{
    atomic_store(&mock->stop, true);
    pthread_join(mock->thread, NULL);
    for (size_t i = 0; i < mock->lines_len; i++)
        pthread_join(mock->lines[i], NULL);
    close(mock->listener);
    pthread_mutex_destroy(&mock->lock);
}

/* ---- the machine ---------------------------------------------------------------------------- */

static void *aws_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct aws *a = user;

    if (a->watched && ptr && old_size < a->watched && memmem(ptr, old_size, "HUSH", 4))
        atomic_store(&a->unwiped, true);
    return a->t->env.alloc(ptr, old_size, new_size, a->t->env.user);
}

static int64_t aws_wall(void *user)
{
    return atomic_load(&((struct aws *)user)->wall_us);
}

static int64_t aws_elapsed(void *user)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 +
           atomic_load(&((struct aws *)user)->elapsed_us);
}

static void aws_random(void *bytes, size_t len, void *user)
{
    struct aws *a = user;

    a->t->env.random(bytes, len, a->t->env.user);
}

void aws_say(struct aws *a, const char *text)
{
    size_t len = strlen(text);

    pthread_mutex_lock(&a->lock);
    if (strstr(text, "HUSH") && !a->leaked[0])
        snprintf(a->leaked, sizeof(a->leaked), "%s", text);
    if (len + 2 > sizeof(a->said) - a->said_len)
        a->said_len = 0; /* that is for tests which look for a line */
    memcpy(a->said + a->said_len, text, len);
    a->said_len += len;
    a->said[a->said_len++] = '\n';
    a->said[a->said_len] = '\0';
    pthread_mutex_unlock(&a->lock);
}

static void aws_log(enum hf_log_level level, struct hf_str line, void *user)
{
    char text[2048];

    (void)level;
    snprintf(text, sizeof(text), "%.*s", HF_FMT(line));
    aws_say(user, text);
}

static const char *aws_getenv(const char *name, void *user)
{
    struct aws *a = user;

    for (size_t i = 0; i < a->variables_len; i++)
        if (strcmp(a->variables[i].name, name) == 0)
            return a->variables[i].value;
    return NULL;
}

void aws_set(struct aws *a, const char *name, const char *value)
{
    size_t at = 0;

    while (at < a->variables_len && strcmp(a->variables[at].name, name) != 0)
        at++;
    if (!value) {
        if (at < a->variables_len)
            a->variables[at] = a->variables[--a->variables_len];
        return;
    }
    CHECK(at < AWS_VARIABLES_MAX && strlen(value) < sizeof(a->variables[0].value));
    snprintf(a->variables[at].name, sizeof(a->variables[at].name), "%s", name);
    snprintf(a->variables[at].value, sizeof(a->variables[at].value), "%s", value);
    if (at == a->variables_len)
        a->variables_len++;
}

void aws_open(struct test *t, struct aws *a)
{
    memset(a, 0, sizeof(*a));
    a->t = t;
    test_env(t);
    atomic_store(&a->wall_us, t->wall_us);
    CHECK_INT(0, pthread_mutex_init(&a->lock, NULL));
    a->env = (struct hf_env){.size = sizeof(a->env),
                             .user = a,
                             .alloc = aws_alloc,
                             .wall_us = aws_wall,
                             .elapsed_us = aws_elapsed,
                             .random = aws_random,
                             .log = aws_log,
                             .getenv = aws_getenv};
    snprintf(a->home, sizeof(a->home), "%s", test_directory(t));
    aws_set(a, "HOME", a->home);
    aws_set(a, "AWS_EC2_METADATA_DISABLED", "true");
    a->s = hf_scope_new(&a->env);
    CHECK(a->s);
}

void aws_stop(struct aws *a)
{
    hf__credentials_close(a->credentials);
    hf__transport_close(a->transport);
    hf__config_free(a->config);
    a->credentials = NULL;
    a->transport = NULL;
    a->config = NULL;
}

void aws_close(struct aws *a)
{
    aws_stop(a);
    hf_scope_free(a->s);
    if (a->leaked[0])
        print_error("a secret was said: %s\n", a->leaked);
    CHECK(!a->leaked[0]);
    pthread_mutex_destroy(&a->lock);
}

const char *aws_file(struct aws *a, const char *name, const char *text)
{
    static _Thread_local char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/.aws/%s", a->home, name);
    for (char *slash = strchr(path + strlen(a->home) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(path, "w");
    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(0, fclose(file));
    return path;
}

enum hf_status aws_try_start(struct aws *a, const struct credentials_options *options)
{
    struct credentials_options own = {.fn = NULL};

    if (options)
        own = *options;
    TRY(hf__config_load(a->s, &a->env, hf_str_of(NULL, 0), false, &a->config));
    TRY(hf__transport_open(a->s, &(struct transport_options){.env = &a->env}, &a->transport));
    own.config = a->config;
    own.transport = a->transport;
    return hf__credentials_open(a->s, &own, &a->credentials);
}

void aws_start(struct aws *a, const struct credentials_options *options)
{
    enum hf_status status = aws_try_start(a, options);

    if (status != HF_OK)
        print_error("%s\n", hf_scope_error_text(a->s));
    CHECK_OK(status);
}

enum hf_status aws_get(struct aws *a)
{
    struct sign_credentials now = {.access_key = {NULL, 0}};
    enum hf_status status;

    hf_scope_reset(a->s);
    status = hf__credentials_get(a->s, a->credentials, &now, &a->account);
    a->secret = now.secret_key;
    a->token = now.session_token;
    if (status != HF_OK)
        aws_say(a, hf_scope_error_text(a->s));
    return status;
}

struct hf_str aws_key(struct aws *a)
{
    struct sign_credentials now;
    enum hf_status status;

    hf_scope_reset(a->s);
    status = hf__credentials_get(a->s, a->credentials, &now, &a->account);
    if (status != HF_OK) {
        aws_say(a, hf_scope_error_text(a->s));
        print_error("%s\n", hf_scope_error_text(a->s));
    }
    CHECK_OK(status);
    a->secret = now.secret_key;
    a->token = now.session_token;
    return now.access_key;
}

enum hf_status aws_get_in(struct aws *a, struct hf_scope *s, char *key)
{
    struct sign_credentials now;
    struct hf_str account;
    enum hf_status status = hf__credentials_get(s, a->credentials, &now, &account);

    if (status == HF_OK)
        snprintf(key, 64, "%.*s", HF_FMT(now.access_key));
    else
        aws_say(a, hf_scope_error_text(s));
    return status;
}

void aws_check_part(struct aws *a, const char *part, const char *file, int line)
{
    const char *text = hf_scope_error_text(a->s);

    if (!strstr(text, part))
        print_error("expected \"%s\" in: %s\n", part, text);
    test_check(strstr(text, part) != NULL, "the message has it", file, line);
}

void aws_advance_s(struct aws *a, int64_t seconds)
{
    atomic_fetch_add(&a->wall_us, seconds * 1000000);
    atomic_fetch_add(&a->elapsed_us, seconds * 1000000);
}

const char *aws_time(struct aws *a, int64_t seconds)
{
    static _Thread_local char text[2][32];
    static _Thread_local int turn;
    time_t at = (time_t)(atomic_load(&a->wall_us) / 1000000 + seconds);
    struct tm tm;

    turn = !turn;
    gmtime_r(&at, &tm);
    strftime(text[turn], sizeof(text[turn]), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return text[turn];
}

int64_t real_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *keys_json(const char *key, const char *token_name, const char *expiration)
{
    static _Thread_local char text[1024];

    snprintf(text, sizeof(text),
             "{\"Version\": 1, \"Code\": \"Success\", \"Type\": \"AWS-HMAC\", \"Other\": [1, {}], "
             "\"AccessKeyId\": \"%s\", \"SecretAccessKey\": \"HUSH-of-%s\", "
             "\"%s\": \"TOKEN-HUSH-of-%s\", \"Expiration\": \"%s\", "
             "\"AccountId\": \"123456789012\"}",
             key, key, token_name, key, expiration);
    return text;
}

void sts_xml(char *out, size_t size, const char *operation, const char *key, const char *expiration)
{
    snprintf(out, size,
             "<%sResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
             "  <%sResult>\n"
             "    <AssumedRoleUser>\n"
             "      <AssumedRoleId>AROA:name</AssumedRoleId>\n"
             "      <Arn>arn:aws:sts::210987654321:assumed-role/role/name</Arn>\n"
             "    </AssumedRoleUser>\n"
             "    <Credentials>\n"
             "      <AccessKeyId>%s</AccessKeyId>\n"
             "      <SecretAccessKey>HUSH-of-%s</SecretAccessKey>\n"
             "      <SessionToken>TOKEN-HUSH-of-%s</SessionToken>\n"
             "      <Expiration>%s</Expiration>\n"
             "    </Credentials>\n"
             "  </%sResult>\n"
             "  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>\n"
             "</%sResponse>\n",
             operation, operation, key, key, key, expiration, operation, operation);
}
