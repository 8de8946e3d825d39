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
    struct hf_str region; /* as the name of the target has it; absent: it has none */
    struct hf_str origin; /* where the target says it is, "http://localhost:9324"; may be absent.
                             Used when it is not Amazon's and no endpoint is configured. */
};

/* Strings of the options are those of `memory`, where all that is kept comes from. Nothing is sent,
 * unless the region is known to nobody but the machine's metadata service. */
enum hf_status hf__aws_open(struct hf_scope *s, struct hf_scope *memory, const struct aws_ask *ask,
                            const struct aws_options *options, struct aws **aws);
void hf__aws_close(struct aws *aws);

const char *hf__aws_name(const struct aws *aws);

struct aws_request {
    const char *content_type;
    const char *target; /* X-Amz-Target; NULL: none */
    struct hf_bytes body;
};

/* A refusal: who has to do something about it. */
enum aws_blame {
    AWS_NOBODY, /* there was none */
    AWS_SINK,   /* throttled, denied, down: nothing can be sent for now */
    AWS_TARGET, /* no such queue or topic */
    AWS_ENTRY,  /* of what is in the request, something is wrong */
    AWS_UNSURE  /* refused for reasons that we do not know; perhaps an entry's */
};

struct aws_answer {
    struct hf_str body;
    enum aws_blame blame; /* not AWS_NOBODY: the scope has the error */
};

/*
 * One call: HF_OK, and the body of a 200, or who is to blame for a refusal; anything else when
 * there is no answer to be had. Lives in the scope.
 */
enum hf_status hf__aws_call(struct hf_scope *s, struct aws *aws, const struct aws_request *request,
                            struct aws_answer *answer);

/* HF_IO: a call was answered with something else than its answer; it may have been done. */
enum hf_status hf__aws_unreadable(struct hf_scope *s, const struct aws *aws, const char *why);

enum { AWS_CODE_MAX = 128, AWS_MESSAGE_MAX = 1024 }; /* bytes of a service's words in ours */

/* Is the code of an entry's failure one that is not the entry's: throttled, denied? */
bool hf__aws_is_services(struct hf_str code, enum hf_status *status);

/* The region of arn:aws:SERVICE:REGION:ACCOUNT:NAME; false when it is no such ARN, or has a
 * template elsewhere than in its name. */
bool hf__aws_arn(struct hf_str arn, const char *service, struct hf_str *region);

/* What the ops of a sink say of its limits: no event that could fit is kept away from it. */
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
    /* What a 200 says of each of them, by hf__aws_told(). HF_INVALID: it is no such answer. */
    enum hf_status (*read)(struct hf_scope *s, void *self, struct hf_str body,
                           struct hf_delivery *const *deliveries, size_t len);
};

/* Make entries of the deliveries and send them. */
enum hf_status hf__aws_send(struct hf_scope *s, struct aws *aws, const struct aws_service *service,
                            void *self, const struct aws_options *limits, bool target_is_fixed,
                            struct hf_delivery *deliveries, size_t len);

/* What the service said of an entry. */
struct aws_outcome {
    bool done;
    bool for_good; /* as the service has it; its own failures never are */
    struct hf_str code, message;
};

/* Both ways at once, or twice, is no way: then it is tried again. */
void hf__aws_told(struct hf_scope *s, const char *service, struct hf_delivery *delivery,
                  const struct aws_outcome *outcome);

/* The place that an id stands for; SIZE_MAX: it is none of ours. */
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

/* How messages are made of events. */
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

/* HF_INVALID: this event cannot be one. */
enum hf_status hf__message_make(struct hf_scope *s, const struct message_how *how,
                                const struct hf_event *event, struct message *message);

/* Does the name of a queue or topic end with ".fifo"? */
bool hf__message_is_fifo(struct hf_str name);

#endif
