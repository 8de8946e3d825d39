/* test/sinks/brokers/kit.c: see the header. */
#include "kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- processes ------------------------------------------------------------------------------ */

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int free_port(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    close(fd);
    return ntohs(address.sin_port);
}

static bool listens(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    close(fd);
    return yes;
}

/* What a failed check leaves running ends with the program. */
enum { RUNNING_MAX = 16 };
static _Atomic pid_t running[RUNNING_MAX];

static void kill_running(void)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i])
            kill(-running[i], SIGKILL);
}

static void note_running(pid_t old, pid_t new)
{
    static bool registered;

    if (!registered)
        atexit(kill_running);
    registered = true;
    for (size_t i = 0; i < RUNNING_MAX; i++) {
        if (running[i] == old) {
            running[i] = new;
            return;
        }
    }
}

static void run_child(const struct broker *broker)
{
    char log[512];
    int fd;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(log, sizeof(log), "%s/log", broker->dir);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    fd = open("/dev/null", O_RDONLY);
    dup2(fd, 0);
    for (const char *const *env = broker->env; env && *env; env++)
        putenv((char *)(uintptr_t)*env);
    execvp(broker->argv[0], (char *const *)(uintptr_t)broker->argv);
    _exit(127);
}

static void show_log(const struct broker *broker)
{
    char path[512], line[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/log", broker->dir);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        print_message("%s", line);
    if (file)
        fclose(file);
}

void broker_start(struct broker *broker)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        run_child(broker);
    setpgid(pid, pid);
    note_running(0, pid);
    broker->pid = pid;
    for (int waited = 0; !listens(broker->port); waited += 10) {
        if (waited > broker->ready_ms || waitpid(pid, NULL, WNOHANG) != 0) {
            show_log(broker);
            test_check(false, broker->argv[0], __FILE__, __LINE__);
        }
        usleep(10000);
    }
}

void broker_kill(struct broker *broker)
{
    pid_t pid = broker->pid;

    if (pid)
        kill(-pid, SIGKILL);
}

void broker_stop(struct broker *broker)
{
    pid_t pid = broker->pid;

    if (!pid)
        return;
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    note_running(pid, 0);
    broker->pid = 0;
}

static void *killer_run(void *user)
{
    struct killer *killer = user;

    usleep((useconds_t)killer->us);
    broker_kill(killer->broker);
    return NULL;
}

void killer_start(struct killer *killer, struct broker *broker, int64_t us)
{
    *killer = (struct killer){.broker = broker, .us = us};
    CHECK(pthread_create(&killer->thread, NULL, killer_run, killer) == 0);
}

void killer_join(struct killer *killer)
{
    pthread_join(killer->thread, NULL);
}

void storm_start(struct storm *storm, struct broker *broker, int rounds, int64_t us)
{
    *storm = (struct storm){.broker = broker, .rounds = rounds, .us = us};
    killer_start(&storm->killer, broker, us);
}

void storm_again(void *user)
{
    struct storm *storm = user;

    if (storm->rounds == 0) {
        usleep(20000); /* it is on its way */
        return;
    }
    killer_join(&storm->killer);
    broker_stop(storm->broker);
    broker_start(storm->broker);
    if (--storm->rounds > 0)
        killer_start(&storm->killer, storm->broker, storm->us + storm->rounds * 7000);
}

void storm_end(struct storm *storm)
{
    if (storm->rounds == 0)
        return;
    killer_join(&storm->killer); /* it came too late for the last one */
    storm->rounds = 0;
    broker_stop(storm->broker);
    broker_start(storm->broker);
}

/* ---- events --------------------------------------------------------------------------------- */

struct hf_scope *real_scope(uint32_t timeout_ms)
{
    struct hf_scope *s = hf_scope_new(NULL);

    CHECK(s != NULL);
    hf_scope_timeout_ms(s, timeout_ms);
    return s;
}

struct hf_bytes event_payload(struct hf_scope *s, int key, int n)
{
    size_t len = (size_t)(n * 7 + key) % PAYLOAD_MAX;
    uint8_t *bytes = hf_scope_alloc(s, len + 1);

    CHECK(bytes != NULL);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i + (size_t)n);
    return hf_bytes_of(bytes, len);
}

void make_event(struct hf_scope *s, int key, int n, struct hf_outbox_event *event)
{
    *event = (struct hf_outbox_event){
        .state = HF_OUTBOX_PENDING,
        .event =
            {
                .id = hf_scope_format(s, "%d-%d", key, n),
                .type = HF_STR("order.placed"),
                .key = hf_scope_format(s, "key %d", key),
                .sequence = (uint64_t)n + 1,
                .time_us = 1767225600000000 + n,
                .payload = event_payload(s, key, n),
                .content_type = HF_STR("application/octet-stream"),
                .source = HF_STR("/shop"),
                .correlation = HF_STR("c-1"),
                .aggregate = HF_STR("order/7"),
                .tenant = HF_STR("caf\xc3\xa9 \"x\" 100%"),
                .headers = HF_ITEM(s, HF_S("region", HF_STR("eu west"))),
            },
    };
}

struct hf_delivery send_one(struct hf_scope *s, struct hf_sink *sink,
                            const struct hf_outbox_event *event, enum hf_status *status)
{
    struct hf_delivery delivery = {.event = event};

    *status = hf_sink_send(s, sink, &delivery, 1);
    return delivery;
}

/* ---- certificates --------------------------------------------------------------------------- */

static void add_extension(X509 *x, int what, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, x, x, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    CHECK(extension && X509_add_ext(x, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static FILE *open_pem(const char *dir, const char *name, const char *suffix)
{
    char path[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, suffix);
    file = fopen(path, "we");
    CHECK(file != NULL);
    return file;
}

void make_certificate(const char *dir, const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    FILE *file;

    CHECK(key && x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_set_version(x, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    CHECK_INT(1, X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                            (const unsigned char *)"localhost", -1, -1, 0));
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(x, NID_subject_alt_name, "DNS:localhost");
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    file = open_pem(dir, name, "pem");
    CHECK(PEM_write_X509(file, x) == 1 && fclose(file) == 0);
    file = open_pem(dir, name, "key");
    CHECK(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    X509_free(x);
    EVP_PKEY_free(key);
}

void check_tls(struct test *t, const char *url, int port, const char *rest, const char *dir)
{
    static const struct {
        const char *host, *trusted, *more;
        bool works;
    } cases[] = {
        {"localhost", "server", "", true},
        {"localhost", "other", "", false},
        {"127.0.0.1", "server", "", false},
        {"127.0.0.1", "other", "&tls_verify=no", true},
    };

    (void)t;
    make_certificate(dir, "other");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_scope *s = real_scope(60000);
        struct hf_outbox_event event;
        struct hf_delivery delivery;
        enum hf_status status;
        struct hf_sink *sink;

        make_event(s, 0, (int)i, &event);
        CHECK_OK(hf_sink_open(s,
                              hf_scope_format(s, "%s%s:%d/%stls=yes&ca_file=%s/%s.pem%s", url,
                                              cases[i].host, port, rest, dir, cases[i].trusted,
                                              cases[i].more),
                              &sink));
        delivery = send_one(s, sink, &event, &status);
        if ((status == HF_OK) != cases[i].works)
            print_message("%s, %s: %s\n", cases[i].host, cases[i].trusted, hf_scope_error_text(s));
        CHECK_INT(cases[i].works, status == HF_OK);
        CHECK_INT(cases[i].works, delivery.status == HF_OK);
        hf_sink_close(sink);
        hf_scope_free(s);
    }
}

/* ---- ledger --------------------------------------------------------------------------------- */

/* One batch: the next `per_key` of each key that are not delivered. Its length. */
static size_t make_batch(struct hf_scope *s, struct ledger *ledger, int per_key,
                         struct hf_outbox_event *events, struct hf_delivery *deliveries)
{
    size_t len = 0;

    for (int i = 0; i < per_key; i++) {
        for (int key = 0; key < KEYS; key++) {
            int n = ledger->sent[key] + i;

            if (n >= ledger->events)
                continue;
            make_event(s, key, n, &events[len]);
            deliveries[len] = (struct hf_delivery){.event = &events[len]};
            len++;
        }
    }
    return len;
}

void ledger_send(struct ledger *ledger, struct hf_sink *sink, int events, int per_key,
                 ledger_again_fn *again, void *user)
{
    static struct hf_outbox_event batch[KEYS * 64];
    static struct hf_delivery deliveries[KEYS * 64];
    struct hf_scope *s = real_scope(0);
    size_t len;

    CHECK(per_key <= 64 && events <= LEDGER_EVENTS);
    ledger->events = events;
    while (hf_scope_reset(s), (len = make_batch(s, ledger, per_key, batch, deliveries)) > 0) {
        enum hf_status status;

        hf_scope_timeout_ms(s, 20000);
        status = hf_sink_send(s, sink, deliveries, len);
        ledger->batches++;
        for (size_t i = 0; i < len; i++) {
            int key, n;

            CHECK(sscanf(batch[i].event.id.ptr, "%d-%d", &key, &n) == 2);
            if (deliveries[i].status == HF_OK)
                ledger->acked[key][n] = true;
            else
                CHECK(deliveries[i].error.len > 0 || status != HF_OK);
            if (deliveries[i].status != HF_OK && status == HF_OK)
                print_message("%s: %.*s\n", batch[i].event.id.ptr, HF_FMT(deliveries[i].error));
            if (status == HF_OK)
                CHECK_INT(HF_OK, deliveries[i].status);
        }
        for (int key = 0; key < KEYS; key++)
            while (ledger->sent[key] < events && ledger->acked[key][ledger->sent[key]])
                ledger->sent[key]++;
        if (status != HF_OK) {
            ledger->failures++;
            CHECK(hf_scope_error_text(s)[0] != '\0');
            CHECK(again != NULL);
            again(user);
        }
    }
    hf_scope_free(s);
}

struct sender {
    struct ledger *ledger;
    struct hf_sink *sink;
    int first; /* key; it has the next one too */
    bool failed;
    pthread_t thread;
};

static void *sender_run(void *user)
{
    struct sender *sender = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int n = 0; n < sender->ledger->events; n++) {
        struct hf_outbox_event events[2];
        struct hf_delivery deliveries[2] = {{.event = &events[0]}, {.event = &events[1]}};

        hf_scope_reset(s);
        hf_scope_timeout_ms(s, 60000);
        for (int i = 0; i < 2; i++)
            make_event(s, sender->first + i, n, &events[i]);
        if (hf_sink_send(s, sender->sink, deliveries, 2) != HF_OK)
            sender->failed = true;
        for (int i = 0; i < 2; i++) {
            if (deliveries[i].status == HF_OK)
                sender->ledger->acked[sender->first + i][n] = true;
            else
                sender->failed = true;
        }
    }
    hf_scope_free(s);
    return NULL;
}

void ledger_send_threads(struct ledger *ledger, struct hf_sink *sink, int events)
{
    struct sender senders[KEYS / 2];

    ledger->events = events;
    for (int i = 0; i < KEYS / 2; i++) {
        senders[i] = (struct sender){.ledger = ledger, .sink = sink, .first = 2 * i};
        CHECK_INT(0, pthread_create(&senders[i].thread, NULL, sender_run, &senders[i]));
    }
    for (int i = 0; i < KEYS / 2; i++)
        pthread_join(senders[i].thread, NULL);
    for (int i = 0; i < KEYS / 2; i++)
        CHECK(!senders[i].failed);
}

void ledger_see(struct ledger *ledger, struct hf_str id, struct hf_bytes payload)
{
    struct hf_scope *s = real_scope(0);
    struct hf_bytes expected;
    char text[64];
    int key, n;

    snprintf(text, sizeof(text), "%.*s", HF_FMT(id));
    CHECK(sscanf(text, "%d-%d", &key, &n) == 2);
    CHECK(key >= 0 && key < KEYS && n >= 0 && n < ledger->events);
    expected = event_payload(s, key, n);
    if (payload.len != expected.len ||
        (payload.len && memcmp(payload.ptr, expected.ptr, payload.len) != 0))
        ledger->damaged++;
    if (ledger->seen[key][n]++) {
        ledger->duplicates++;
    } else {
        if (n != ledger->last[key]) /* a new one is the next one */
            ledger->disorder++;
        ledger->last[key] = n + 1;
    }
    hf_scope_free(s);
}

void ledger_check(const struct ledger *ledger, bool once)
{
    int missing = 0;

    for (int key = 0; key < KEYS; key++)
        for (int n = 0; n < ledger->events; n++)
            if (!ledger->seen[key][n])
                missing++;
    if (missing || ledger->disorder || ledger->damaged || (once && ledger->duplicates))
        print_message(
            "%d batches, %d failures: %d missing, %d out of order, %d damaged, %d twice\n",
            ledger->batches, ledger->failures, missing, ledger->disorder, ledger->damaged,
            ledger->duplicates);
    CHECK_INT(0, missing);
    CHECK_INT(0, ledger->disorder);
    CHECK_INT(0, ledger->damaged);
    if (once)
        CHECK_INT(0, ledger->duplicates);
}
