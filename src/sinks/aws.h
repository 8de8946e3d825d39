/*
 * sinks/aws.h: what the sinks for Amazon's services share: signed calls (aws.c), batches with an
 * outcome for each entry (aws_batch.c), and what SQS and SNS call a message (aws_message.c).
 */
#ifndef HF_SINKS_AWS_H
#define HF_SINKS_AWS_H

#include "client/config.h"
#include "sinks/private.h"

/* ---- aws.c: calls --------------------------------------------------------------------------- */

struct aws;

/* Options that all of them have. */
struct aws_options {
    struct hf_str region;
    struct hf_str profile;
    struct hf_str endpoint;
    struct hf_str ca_file;
    struct hf_str proxy;
    uint64_t timeout_ms;
    uint64_t connect_ms;
    uint64_t max_bytes;   /* of one entry, as the service counts */
    uint64_t batch_bytes; /* of all entries of a call */
};

/* Lines of an option table for a struct `type` whose member `aws` they are. */
#define AWS_OPTIONS(type)                                                                          \
    {"region", SINK_TEXT, offsetof(type, aws.region), 0, 0, NULL},                                 \
        {"profile", SINK_TEXT, offsetof(type, aws.profile), 0, 0, NULL},                           \
        {"endpoint", SINK_TEXT, offsetof(type, aws.endpoint), 0, 0, NULL},                         \
        {"ca_file", SINK_TEXT, offsetof(type, aws.ca_file), 0, 0, NULL},                           \
        {"proxy", SINK_TEXT, offsetof(type, aws.proxy), 0, 0, NULL},                               \
        {"timeout_ms", SINK_NUMBER, offsetof(type, aws.timeout_ms), 1, 0, NULL},                   \
        {"connect_ms", SINK_NUMBER, offsetof(type, aws.connect_ms), 1, 0, NULL},                   \
        {"max_bytes", SINK_NUMBER, offsetof(type, aws.max_bytes), 1024, 1048576, NULL},            \
    {                                                                                              \
        "batch_bytes", SINK_NUMBER, offsetof(type, aws.batch_bytes), 1024, 1048576, NULL           \
    }

struct aws_ask {
    const char *name; /* for messages: "SQS" */
    enum endpoint_service service;
    struct hf_str region; /* that is part of the target's name; absent: it has none */
    struct hf_str
        origin; /* that is part of the target's name, "http://localhost:9324"; may be absent.
                             Used when it is not Amazon's and no endpoint is configured. */
};

/* `memory` holds the texts of the options and all that the result keeps. Nothing is sent, unless only
 * the machine's metadata service knows the region. */
enum hf_status hf__aws_open(struct hf_scope *s, struct hf_scope *memory, const struct aws_ask *ask,
                            const struct aws_options *options, struct aws **aws);
void hf__aws_close(struct aws *aws);

const char *hf__aws_name(const struct aws *aws);

struct aws_request {
    const char *content_type;
    const char *target; /* X-Amz-Target; NULL: none */
    struct hf_bytes body;
};

/* The cause of a refusal. */
enum aws_blame {
    AWS_NOBODY, /* the call was not refused */
    AWS_SINK,   /* throttled, denied, down: nothing can be sent for now */
    AWS_TARGET, /* no such queue or topic */
    AWS_ENTRY,  /* an entry of the request is wrong */
    AWS_UNSURE  /* the reason is unknown; it may be an entry */
};

struct aws_answer {
    struct hf_str body;
    enum aws_blame blame; /* not AWS_NOBODY: the scope has the error */
};

/*
 * One call. HF_OK: there is an answer, the body of a 200 or the cause of a refusal. Any other status:
 * there is no answer. The answer lives in the scope.
 */
enum hf_status hf__aws_call(struct hf_scope *s, struct aws *aws, const struct aws_request *request,
                            struct aws_answer *answer);

/* HF_IO: the answer to a call is not what it has to be; the call may have happened. */
enum hf_status hf__aws_unreadable(struct hf_scope *s, const struct aws *aws, const char *why);

enum {
    AWS_CODE_MAX = 128,
    AWS_MESSAGE_MAX = 1024
}; /* bytes of a service's texts in our messages */

/* Does the code of an entry's failure blame the service and not the entry: throttled, denied? */
bool hf__aws_is_service_code(struct hf_str code, enum hf_status *status);

/* The region of arn:aws:SERVICE:REGION:ACCOUNT:NAME; false when it is no such ARN, or has a
 * template elsewhere than in its name. */
bool hf__aws_arn(struct hf_str arn, const char *service, struct hf_str *region);

/* Set the limits in the ops of a sink so that no event is refused that might fit. */
void hf__aws_limits(const struct aws_options *options, struct hf_sink_ops *ops);

/* 64 hex digits, in the scope. HF_NOMEM. */
enum hf_status hf__aws_hash(struct hf_scope *s, struct hf_str text, struct hf_str *hex);

/* ---- aws_batch.c: entries ------------------------------------------------------------------- */

enum { AWS_BATCH = 10 }; /* entries of a call: SQS, SNS and EventBridge */

struct aws_entry {
    struct hf_delivery *delivery;
    struct hf_str target; /* calls have entries of one target only; may be absent */
    struct hf_str text;   /* as it stands in the request, in the service's own form */
    size_t bytes;         /* as the service counts */
    bool ready;           /* false: it has failed already */
};

struct aws_service {
    /* The entry of a delivery. HF_INVALID, HF_LIMIT: it has failed for good. */
    enum hf_status (*make)(struct hf_scope *s, void *self, const struct hf_event *event,
                           struct aws_entry *entry);
    /* The request for these entries, whose ids are their places. */
    enum hf_status (*request)(struct hf_scope *s, void *self, struct aws_entry *const *entries,
                              size_t len, struct aws_request *request);
    /* Read a 200, and report the outcome of each by hf__aws_outcome(). HF_INVALID: it is not such an
     * answer. */
    enum hf_status (*read)(struct hf_scope *s, void *self, struct hf_str body,
                           struct hf_delivery *const *deliveries, size_t len);
};

/* A sink that sends by a service. */
struct aws_sender {
    struct aws *aws;
    const struct aws_service *service;
    void *self; /* the sink */
    const struct aws_options *limits;
    bool target_is_fixed; /* false: events name it */
};

/* Make entries of the deliveries and send them. */
enum hf_status hf__aws_send(struct hf_scope *s, const struct aws_sender *sender,
                            struct hf_delivery *deliveries, size_t len);

/* What the service says about an entry. */
struct aws_outcome {
    bool done;
    bool for_good; /* the service blames the sender; failures of the service never are for good */
    struct hf_str code, message;
};

/* Set the outcome of a delivery. A delivery with two outcomes has failed, and is retried. */
void hf__aws_outcome(struct hf_scope *s, const char *service, struct hf_delivery *delivery,
                     const struct aws_outcome *outcome);

/* The place that an id stands for; SIZE_MAX: it is not an id that we sent. */
size_t hf__aws_place(struct hf_str id, size_t len);

/* ---- aws_message.c: SQS and SNS -------------------------------------------------------------- */

enum message_form {
    MESSAGE_EVENT = 1, /* the body is the JSON object of hf_event_json() */
    MESSAGE_PAYLOAD,   /* the body is the payload, attributes are attributes */
    MESSAGE_BUS        /* the body is the JSON object of hf__sink_bus_message_json() */
};

enum { MESSAGE_ATTRIBUTES_MAX = 10, MESSAGE_ID_MAX = 128 };

struct message_options {
    int form; /* enum message_form */
    struct hf_str group, dedup;
    struct hf_str type_attribute;
};

#define MESSAGE_OPTIONS(type)                                                                      \
    {"form", SINK_WORD, offsetof(type, message.form), 0, 0, "event|payload|outbox-event-bus"},     \
        {"group", SINK_TEXT, offsetof(type, message.group), 0, 0, NULL},                           \
        {"dedup", SINK_TEXT, offsetof(type, message.dedup), 0, 0, NULL},                           \
    {                                                                                              \
        "type_attribute", SINK_TEXT, offsetof(type, message.type_attribute), 0, 0, NULL            \
    }

/* How events become messages. */
struct message_how {
    const char *service; /* "SQS" */
    struct message_options options;
    struct template group, dedup;
    bool fifo;
};

/* Read the templates of `options`. */
enum hf_status hf__message_prepare(struct hf_scope *s, struct hf_scope *memory, const char *service,
                                   const struct message_options *options, bool fifo,
                                   struct message_how *how);

struct message {
    struct hf_str body;
    struct event_attribute attributes[MESSAGE_ATTRIBUTES_MAX];
    size_t attributes_len;
    struct hf_str group, dedup; /* absent: none */
    size_t bytes;               /* body, and names, types and values of the attributes */
};

/* HF_INVALID: the event cannot become a message. */
enum hf_status hf__message_make(struct hf_scope *s, const struct message_how *how,
                                const struct hf_event *event, struct message *message);

/* Does the name of a queue or topic end with ".fifo"? */
bool hf__message_is_fifo(struct hf_str name);

#endif
