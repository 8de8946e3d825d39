/*
 * sinks/broker.h: what the sinks of brokers share: the URL of a broker, waiting until a deadline,
 * and connections that are kept from one batch to the next.
 *
 * The libraries of brokers are not linked, but loaded when the first sink of their kind is opened,
 * by base/library.h: docs/decisions/0006-sinks-load-their-libraries.md.
 */
#ifndef HF_SINKS_BROKER_H
#define HF_SINKS_BROKER_H

#include <pthread.h>

#include "base/library.h"
#include "sinks/private.h"

/* ---- URLs ----------------------------------------------------------------------------------- */

struct broker_url {
    struct hf_str user;     /* decoded, followed by a NUL; absent: none */
    struct hf_str password; /* decoded, followed by a NUL; absent: none */
    struct hf_str host;     /* followed by a NUL; a v6 address without its brackets */
    unsigned port;
    struct hf_str path; /* behind the slash that follows the host; not decoded */
};

/* Read "//user:password@host:port/path". HF_INVALID says what is wrong, and shows nothing of it. */
enum hf_status hf__broker_url(struct hf_scope *s, const struct sink_url *url, unsigned default_port,
                              struct broker_url *parts);

/* What every kind has for TLS. */
struct broker_tls {
    enum hf_flag on;
    struct hf_str ca_file, cert_file, key_file; /* absent: the system's authorities; none */
    enum hf_flag verify;                        /* HF_NO: certificates are not checked */
};
#define BROKER_TLS_OPTIONS(type)                                                                   \
    {.name = "tls", .kind = SINK_YES_NO, .at = offsetof(type, tls.on)},                            \
        {.name = "ca_file", .kind = SINK_TEXT, .at = offsetof(type, tls.ca_file)},                 \
        {.name = "cert_file", .kind = SINK_TEXT, .at = offsetof(type, tls.cert_file)},             \
        {.name = "key_file", .kind = SINK_TEXT, .at = offsetof(type, tls.key_file)},               \
    {                                                                                              \
        .name = "tls_verify", .kind = SINK_YES_NO, .at = offsetof(type, tls.verify)                \
    }

/* HF_INVALID: there are options of TLS without tls=yes; or one of cert_file and key_file is missing. */
enum hf_status hf__broker_check_tls(struct hf_scope *s, const struct broker_tls *tls);

/* The file with the system's certificate authorities, or NULL; for libraries that do not find it
 * themselves. */
const char *hf__broker_authorities(void);

/* HF_INVALID: a text that a library takes as a C string contains a NUL. Messages call it `what`. */
enum hf_status hf__broker_c_text(struct hf_scope *s, const char *what, struct hf_str text);

/* ---- time ----------------------------------------------------------------------------------- */

/*
 * How long a batch may take: until the deadline of the scope, by the clock of its env, and at most
 * timeout_ms by the system's clock, as waiting would never end if the env's clock stands still.
 */
struct broker_wait {
    struct hf_scope *s;
    uint32_t timeout_ms;
    int64_t end_us;
};

enum {
    BROKER_SLICE_MS = 20, /* cancellation is noticed after so long: it cannot wake the thread */
    BROKER_TIMEOUT_MS = 30000
};

int64_t hf__broker_now_us(void);
void hf__broker_wait_begin(struct broker_wait *wait, struct hf_scope *s, uint64_t timeout_ms);

/* HF_OK, or HF_TIMEOUT or HF_CANCELED with an error of the scope. */
enum hf_status hf__broker_wait_check(struct broker_wait *wait);

/* Milliseconds that are left, at most `cap`. */
int hf__broker_wait_ms(const struct broker_wait *wait, int cap);

/* Wait up to BROKER_SLICE_MS for `events` of a socket; *ready are those that came, or 0. */
enum hf_status hf__broker_poll(struct broker_wait *wait, int fd, short events, short *ready);

/* A connected socket that does not block. Failures call the broker `name`. */
enum hf_status hf__broker_connect(struct broker_wait *wait, const char *name,
                                  const struct broker_url *url, int *fd);

/* ---- failures ------------------------------------------------------------------------------- */

/* hf__fail() with may_retry set: the broker may accept messages later. */
enum hf_status hf__broker_fail(struct hf_scope *s, enum hf_status status, const char *format, ...)
    HF_PRINTF(3, 4);

/* ---- order ---------------------------------------------------------------------------------- */

/* As `send` of a sink. */
typedef enum hf_status broker_send_fn(struct hf_scope *s, void *self,
                                      struct hf_delivery *deliveries, size_t len);

/*
 * Send a batch in waves: of each key the first event, then the second of those whose first was
 * delivered, and so on. So `send` never sees two events of a key, and order is kept whatever a broker
 * does with an event after it has refused another one. Events without a key are in the first wave.
 */
enum hf_status hf__broker_send_waves(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                     size_t len, broker_send_fn *send);

/* ---- lanes: connections, each for one thread at a time -------------------------------------- */

struct broker_lane {
    struct broker_lane *next;
    int64_t kept_us; /* when it became idle, by hf__broker_now_us() */
};

struct broker_lanes {
    pthread_mutex_t mutex;
    struct broker_lane *idle; /* guarded by it; the one that was used last is first */
};

void hf__broker_lanes_init(struct broker_lanes *lanes);
void hf__broker_lanes_destroy(struct broker_lanes *lanes); /* all lanes have been taken before */

/* Take an idle lane, or NULL; and make one idle again. */
struct broker_lane *hf__broker_lane_take(struct broker_lanes *lanes);
void hf__broker_lane_keep(struct broker_lanes *lanes, struct broker_lane *lane);

#endif
