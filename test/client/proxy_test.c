/*
 * client/proxy_test.c: the chaos proxy does what its list of faults says, as seen by a client that
 * knows nothing of retries.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rig.h"

enum { PATIENCE_MS = 100, ANSWER_MS = 10000, MANY = 256 * 1024 };

struct raw {
    int fd;
    char *bytes; /* of the answer */
    size_t len;
    bool reset;
};

static void raw_open(struct raw *raw, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {.tv_usec = PATIENCE_MS * 1000};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *raw = (struct raw){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK_INT(0, connect(raw->fd, (struct sockaddr *)&to, sizeof(to)));
    CHECK_INT(0, setsockopt(raw->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
}

static void raw_send(struct raw *raw, const char *operation, const char *json)
{
    char text[2048];
    int len = snprintf(text, sizeof(text),
                       "POST / HTTP/1.1\r\nHost: localhost\r\n"
                       "Content-Type: application/x-amz-json-1.0\r\n"
                       "X-Amz-Target: DynamoDB_20120810.%s\r\n"
                       "X-Amz-Date: 20260101T000000Z\r\n"
                       "Authorization: AWS4-HMAC-SHA256 Credential=key/20260101/here/dynamodb/"
                       "aws4_request, SignedHeaders=host, Signature=0\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       operation, strlen(json), json);

    CHECK(len > 0 && (size_t)len < sizeof(text));
    CHECK_INT(len, send(raw->fd, text, (size_t)len, MSG_NOSIGNAL));
}

/* Until the end, or until nothing came for a while. An answer that has to come is waited for, however busy the
   machine is. */
static void raw_read(struct raw *raw, bool has_to_come)
{
    struct pollfd poll_fd = {.fd = raw->fd, .events = POLLIN};

    if (has_to_come)
        CHECK_INT(1, poll(&poll_fd, 1, ANSWER_MS));
    raw->bytes = malloc(MANY);
    CHECK(raw->bytes != NULL);
    while (raw->len < MANY) {
        ssize_t got = recv(raw->fd, raw->bytes + raw->len, MANY - raw->len, 0);

        raw->reset = got < 0 && errno == ECONNRESET;
        if (got <= 0)
            break;
        raw->len += (size_t)got;
    }
}

static void raw_close(struct raw *raw)
{
    close(raw->fd);
    free(raw->bytes);
}

#define PUT_JSON(name)                                                                             \
    "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"" name "\"}},\"ReturnValues\":\"NONE\","     \
    "\"ReturnConsumedCapacity\":\"TOTAL\"}"

static void make_table(struct rig *rig)
{
    rig_do(rig, "CreateTable",
           "{'TableName':'tab','KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
           "'BillingMode':'PAY_PER_REQUEST',"
           "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}]}");
}

/* Whether the write has been done. One that is expected is waited for. */
static bool effect_is_there(struct rig *rig, bool expected)
{
    for (int tries = expected ? ANSWER_MS / 10 : 1; tries; tries--) {
        if (occurrences(rig_do(rig, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}"),
                        "'Item'") == 1)
            return true;
        usleep(10000);
    }
    return false;
}

/* One write through a fault: has it the effect that it should have, and the shape? */
TEST(proxy, every_fault_is_what_it_says)
{
    struct rig rig;

    rig_open(&rig);
    make_table(&rig);
    for (enum chaos_fault fault = CHAOS_NONE; fault < CHAOS_FAULTS; fault++) {
        struct chaos_script script = {.faults = {fault}, .len = 1, .ms = 20, .seed = fault};
        struct raw raw;
        bool done, whole;

        rig_do(&rig, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
        chaos_play(rig.chaos, &script);
        raw_open(&raw, chaos_port(rig.chaos));
        raw_send(&raw, "PutItem", PUT_JSON("a"));
        raw_read(&raw, strstr(chaos_name(fault), "RESET_") ||
                           (chaos_outlook(fault) == CHAOS_HARMLESS && fault != CHAOS_CONTINUE));
        whole = raw.len > 12 && memcmp(raw.bytes, "HTTP/1.1 200", 12) == 0;
        if (strstr(chaos_name(fault), "RESET_") && fault != CHAOS_RESET_BEHIND && !raw.reset)
            fail_msg("%s is no reset", chaos_name(fault));
        if (chaos_outlook(fault) == CHAOS_HARMLESS && fault != CHAOS_CONTINUE && !whole)
            fail_msg("%s: %.*s", chaos_name(fault), (int)raw.len, raw.bytes);
        if (strstr(chaos_name(fault), "_REQUEST") && fault != CHAOS_LATE_REQUEST)
            CHECK_INT(0, raw.len);
        raw_close(&raw);
        CHECK(chaos_quiet(rig.chaos, ANSWER_MS));
        done = effect_is_there(&rig, chaos_effect(fault) != CHAOS_NOTHING);
        if (done != (chaos_effect(fault) != CHAOS_NOTHING))
            fail_msg("%s: the effect is%s there", chaos_name(fault), done ? "" : " not");
        CHECK_INT(1, chaos_counts(rig.chaos).requests);
        CHECK_INT(done, chaos_counts(rig.chaos).done);
    }
    rig_close(&rig);
}

/* What is held back is not lost, and waits until the partition is over. */
TEST(proxy, a_partition_holds_back_and_then_lets_go)
{
    static const unsigned directions[] = {CHAOS_THERE, CHAOS_BACK, CHAOS_THERE | CHAOS_BACK};
    struct rig rig;

    rig_open(&rig);
    make_table(&rig);
    for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
        struct raw raw;

        rig_do(&rig, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
        chaos_partition(rig.chaos, directions[i]);
        raw_open(&raw, chaos_port(rig.chaos));
        raw_send(&raw, "PutItem", PUT_JSON("a"));
        raw_read(&raw, false);
        CHECK_INT(0, raw.len);
        CHECK_INT(directions[i] == CHAOS_BACK, effect_is_there(&rig, directions[i] == CHAOS_BACK));
        free(raw.bytes);
        chaos_partition(rig.chaos, 0);
        raw_read(&raw, true);
        CHECK(raw.len > 12 && memcmp(raw.bytes, "HTTP/1.1 200", 12) == 0);
        raw_close(&raw);
        CHECK(chaos_quiet(rig.chaos, ANSWER_MS));
    }
    rig_close(&rig);
}
