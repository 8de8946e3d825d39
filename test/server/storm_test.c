/*
 * server/storm_test.c: many clients at once, each of which does what it likes: small requests, large
 * ones, packed ones, requests for loops and for workers, in one piece or one after the other; they
 * read fast or slowly, or go in the middle.
 *
 * Each client has an item with a number. Most requests add one to it, by way of a loop or of a
 * worker, and the answer says what it is then. So an answer that belongs to another request, one
 * out of order, and a request that is handled twice or not at all show as a wrong number.
 *
 * HF_TEST_TIMES=n has n times as many storms.
 */
#include "gate.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum {
    CLIENTS = 24,
    ASKED_MAX = 12,   /* requests in one piece */
    WORDS = 40,       /* pieces of each client */
    PAGE = 300 * 1024 /* bytes of an item that is read */
};

enum kind { ADD, ADD_LARGE, ADD_PACKED, ADD_STATEMENT, NAME, NAME_PACKED, READ, SCAN, KINDS };

struct asked {
    enum kind kind;
    uint32_t marker;
    int items; /* of READ */
};

struct client {
    struct line line; /* its buffer serves for all that comes */
    bool open;
    int words; /* pieces to send yet */
    struct hf__buf out;
    size_t sent;
    struct asked asked[ASKED_MAX];
    size_t asked_len;
    size_t answered;
    bool closes;     /* the last one asked for the end */
    size_t cut_out;  /* goes after so many bytes were sent; 0: does not */
    size_t cut_in;   /* ... or came */
    size_t came;     /* on this connection */
    bool slow;       /* reads little at a time */
    uint64_t number; /* what it was last, */
    uint64_t unsure; /* and how many were asked to add to it, and nobody knows whether they did */
};

struct storm {
    struct test *t;
    struct site *site;
    struct gated gated;
    struct client clients[CLIENTS];
    bool calm; /* nobody is slow: no connection may end that was not to */
    bool stopped;
    uint64_t taken;     /* memory for answers that the test itself holds until `give_back` */
    uint64_t give_back; /* answers */
    uint32_t markers;
    uint64_t answers, refused, ended;
};

static uint64_t below(struct storm *storm, uint64_t bound)
{
    return test_random_below(storm->t, bound);
}

/* ---- asking --------------------------------------------------------------------------------- */

static bool is_packed(enum kind kind)
{
    return kind == ADD_PACKED || kind == NAME_PACKED;
}

static bool adds(enum kind kind)
{
    return kind <= ADD_STATEMENT;
}

static struct hf_str body_of(struct storm *storm, size_t number, const struct asked *asked)
{
    struct hf_scope *s = storm->site->s;
    struct hf__buf keys = {.scope = s};

    switch (asked->kind) {
    case ADD_STATEMENT:
        return hf_scope_format(s,
                               "{\"Statements\":[{\"Statement\":\"UPDATE tab SET n=n+1 WHERE "
                               "pk='c%zu' RETURNING ALL NEW *\"}]}",
                               number);
    case READ:
        for (int i = 0; i < asked->items; i++)
            hf__buf_format(&keys, "%s{\"pk\":{\"S\":\"k%d\"}}", i ? "," : "", i);
        return hf_scope_format(s, "{\"RequestItems\":{\"tab\":{\"Keys\":[%s]}}}",
                               (const char *)keys.ptr);
    case SCAN:
        return HF_STR("{\"TableName\":\"tab\",\"FilterExpression\":\"pk=:k\","
                      "\"ExpressionAttributeValues\":{\":k\":{\"S\":\"k1\"}}}");
    case NAME:
    case NAME_PACKED:
        return HF_STR("{}");
    default:
        return hf_scope_format(s,
                               "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"c%zu\"}},%*s"
                               "\"UpdateExpression\":\"ADD n :one\",\"ReturnValues\":\"ALL_NEW\","
                               "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}",
                               number, asked->kind == ADD_LARGE ? 140000 : 1, "");
    }
}

static void put_request(struct storm *storm, size_t number, const struct asked *asked, bool last)
{
    static const char *const operations[KINDS] = {
        [ADD] = "UpdateItem",        [ADD_LARGE] = "UpdateItem",
        [ADD_PACKED] = "UpdateItem", [ADD_STATEMENT] = "BatchExecuteStatement",
        [READ] = "BatchGetItem",     [SCAN] = "Scan"};
    struct client *c = &storm->clients[number];
    struct hf_scope *s = storm->site->s;
    struct hf_str body = body_of(storm, number, asked);
    struct hf_bytes bytes = hf_bytes_of(body.ptr, body.len);
    struct hf_str operation = operations[asked->kind] ? hf_str_from(operations[asked->kind])
                                                      : hf_scope_format(s, "Nope%u", asked->marker);

    if (is_packed(asked->kind))
        CHECK_OK(hf__http_pack(s, HTTP_GZIP, bytes, &bytes));
    hf__buf_format(&c->out,
                   "POST / HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 SIGNED
                   "X-Amz-Target: DynamoDB_20120810.%.*s\r\n%s%s%sContent-Length: %zu\r\n\r\n",
                   HF_FMT(operation), is_packed(asked->kind) ? "Content-Encoding: gzip\r\n" : "",
                   below(storm, 8) == 0 ? "Expect: 100-continue\r\n" : "",
                   last && c->closes ? "Connection: close\r\n" : "", bytes.len);
    hf__buf_put(&c->out, bytes.ptr, bytes.len);
}

/* What it asks next, in one piece. */
static void ask(struct storm *storm, size_t number)
{
    struct client *c = &storm->clients[number];
    size_t len = below(storm, 3) ? 1 : 1 + below(storm, ASKED_MAX);

    hf_scope_reset(storm->site->s);
    c->words--;
    c->out.len = 0;
    c->sent = 0;
    c->answered = 0;
    c->closes = below(storm, 10) == 0;
    c->cut_out = c->cut_in = 0;
    for (c->asked_len = 0; c->asked_len < len; c->asked_len++) {
        struct asked *asked = &c->asked[c->asked_len];

        *asked = (struct asked){.kind = (enum kind)below(storm, KINDS),
                                .marker = ++storm->markers,
                                .items = 1 + (int)below(storm, 5)};
        put_request(storm, number, asked, c->asked_len + 1 == len);
    }
    if (below(storm, 12) == 0)
        c->cut_out = 1 + below(storm, c->out.len);
    else if (below(storm, 12) == 0)
        c->cut_in = c->came + 1 + below(storm, 100000);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* How many of those that are asked, and not answered, add? */
static uint64_t still_adds(const struct client *c)
{
    uint64_t count = 0;

    for (size_t i = c->answered; i < c->asked_len; i++)
        count += adds(c->asked[i].kind);
    return count;
}

static void hang_up(struct storm *storm, struct client *c, bool ours)
{
    if (!ours) {
        storm->ended++;
        CHECK(!storm->calm || storm->stopped || (c->closes && c->answered == c->asked_len));
    }
    if (ours && below(storm, 2))
        line_reset(&c->line);
    else
        line_close(&c->line);
    c->open = false;
    c->unsure += still_adds(c);
    c->asked_len = c->answered = 0;
}

static void check_number(struct client *c, struct hf_str body)
{
    const char *at = memmem(body.ptr, body.len, "\"N\":\"", 5);
    uint64_t number;

    CHECK(at != NULL);
    number = strtoull(at + 5, NULL, 10);
    CHECK(number > c->number);
    CHECK(number <= c->number + 1 + c->unsure);
    c->unsure -= number - c->number - 1;
    c->number = number;
}

static void check_answer(struct storm *storm, struct client *c, int status, struct hf_str body)
{
    const struct asked *asked = &c->asked[c->answered];
    char text[40];

    CHECK(c->answered < c->asked_len);
    c->answered++;
    storm->answers++;
    if (status == 408 && storm->give_back) /* it came too slowly; nothing was done */
        return;
    if (status == 503) {
        CHECK(!storm->calm || storm->stopped);
        CHECK(contains(body, "ServiceUnavailableException"));
        storm->refused++; /* and nothing was done */
        return;
    }
    CHECK_INT(asked->kind == NAME || asked->kind == NAME_PACKED ? 400 : 200, status);
    if (adds(asked->kind)) {
        check_number(c, body);
    } else if (asked->kind == READ) {
        CHECK(body.len > (size_t)asked->items * PAGE);
        snprintf(text, sizeof(text), "\"pk\":{\"S\":\"k%d\"}", asked->items - 1);
        CHECK(contains(body, text));
    } else if (asked->kind == SCAN) {
        CHECK(contains(body, "\"Count\":"));
    } else {
        snprintf(text, sizeof(text), "Nope%u ", asked->marker);
        CHECK(contains(body, text));
    }
}

/* Take the answers that are there whole. */
static void take_answers(struct storm *storm, struct client *c)
{
    struct line *line = &c->line;
    size_t at = 0;

    for (;;) {
        char *begin = (char *)line->in + at, *end, *field;
        size_t left = line->in_len - at, len = 0, head;
        int status;

        end = left ? memmem(begin, left, "\r\n\r\n", 4) : NULL;
        if (!end)
            break;
        CHECK(memcmp(begin, "HTTP/1.1 ", 9) == 0);
        status = (int)strtol(begin + 9, NULL, 10);
        head = (size_t)(end + 4 - begin);
        field = memmem(begin, head, "\r\nContent-Length: ", 18);
        CHECK((field != NULL) == (status != 100));
        if (field)
            len = strtoull(field + 18, NULL, 10);
        if (left < head + len)
            break;
        if (status != 100)
            check_answer(storm, c, status, hf_str_of(begin + head, len));
        at += head + len;
    }
    memmove(line->in, line->in + at, line->in_len - at);
    line->in_len -= at;
}

/* ---- clients -------------------------------------------------------------------------------- */

static void receive(struct storm *storm, struct client *c)
{
    struct line *line = &c->line;
    size_t some = c->slow ? 2048 : 256 * 1024;
    ssize_t got;

    if (line->in_cap < line->in_len + some) {
        line->in_cap = 2 * (line->in_len + some);
        line->in = realloc(line->in, line->in_cap);
    }
    got = recv(line->fd, line->in + line->in_len, some, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        hang_up(storm, c, false);
        return;
    }
    line->in_len += (size_t)got;
    c->came += (size_t)got;
    take_answers(storm, c);
    if (c->cut_in && c->came >= c->cut_in)
        hang_up(storm, c, true);
}

static void give(struct storm *storm, struct client *c)
{
    size_t end = c->cut_out ? c->cut_out : c->out.len;
    ssize_t sent = send(c->line.fd, c->out.ptr + c->sent, end - c->sent, MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN)
        return; /* what came before the end is read yet */
    c->sent += sent > 0 ? (size_t)sent : 0;
    if (c->cut_out && c->sent >= c->cut_out)
        hang_up(storm, c, true);
}

/* False: it is done. */
static bool prepare(struct storm *storm, size_t number)
{
    struct client *c = &storm->clients[number];

    if (c->open && c->answered == c->asked_len && c->closes)
        return true; /* until the end comes */
    if (c->open && c->answered < c->asked_len)
        return true;
    if (c->words == 0 || storm->stopped) {
        if (c->open)
            line_close(&c->line);
        c->open = false;
        return false;
    }
    if (!c->open) {
        c->slow = !storm->calm && below(storm, 4) == 0;
        c->came = 0;
        c->closes = false;
        if (c->slow)
            line_open_small(storm->site, &c->line, 4096);
        else
            line_open(storm->site, &c->line);
        c->open = true;
    }
    ask(storm, number);
    return true;
}

static void blow(struct storm *storm, uint64_t stop_at)
{
    int64_t until = now_ms() + 4 * DEADLINE_MS;
    bool any = true;

    while (any) {
        struct pollfd polls[CLIENTS] = {0};
        size_t numbers[CLIENTS], len = 0;

        CHECK(now_ms() < until);
        any = false;
        if (!storm->stopped && stop_at && storm->answers > stop_at) {
            storm->stopped = true;
            hf__server_stop(storm->site->server);
        }
        if (storm->answers > storm->give_back)
            hf__budget_count(&storm->site->server->budget.output, &storm->taken, 0);
        for (size_t i = 0; i < CLIENTS; i++) {
            struct client *c = &storm->clients[i];

            if (!prepare(storm, i))
                continue;
            any = true;
            numbers[len] = i;
            polls[len++] =
                (struct pollfd){.fd = c->line.fd,
                                .events = (short)(POLLIN | (c->sent < c->out.len ? POLLOUT : 0))};
        }
        CHECK(!len || poll(polls, len, DEADLINE_MS) > 0);
        for (size_t i = 0; i < len; i++) {
            struct client *c = &storm->clients[numbers[i]];

            if (polls[i].revents & (POLLIN | POLLHUP | POLLERR) && (!c->slow || below(storm, 3)))
                receive(storm, c);
            if (c->open && polls[i].revents & POLLOUT)
                give(storm, c);
        }
    }
}

/* ---- storms --------------------------------------------------------------------------------- */

/* All that is counted is back at nothing. */
static void check_calm(struct storm *storm)
{
    struct server *server = storm->site->server;

    for (int i = 0; i < DEADLINE_MS; i++) {
        if (!atomic_load(&server->budget.output) && !atomic_load(&server->budget.input) &&
            !atomic_load(&server->work.running) && !atomic_load(&server->conns_len))
            break;
        sleep_ms(1);
    }
    CHECK_INT(0, atomic_load(&server->budget.output));
    CHECK_INT(0, atomic_load(&server->budget.input));
    CHECK_INT(0, atomic_load(&server->work.running));
    CHECK_INT(0, atomic_load(&server->work.waiting));
    CHECK_INT(0, atomic_load(&server->conns_len));
}

/* The numbers are what the answers said. */
static void check_numbers(struct storm *storm)
{
    struct hf_scope *s = storm->site->s;

    for (size_t i = 0; i < CLIENTS; i++) {
        struct hf_get_item_result got;
        int64_t n;

        CHECK_OK(hf_get_item(
            s, storm->gated.inner,
            &(struct hf_get_item){.table = HF_STR("tab"),
                                  .key = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "c%zu", i))),
                                  .consistent = HF_YES},
            &got));
        CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n));
        CHECK((uint64_t)n >= storm->clients[i].number);
        CHECK((uint64_t)n <= storm->clients[i].number + storm->clients[i].unsure);
    }
}

static void put_items(struct storm *storm)
{
    struct hf_scope *s = storm->site->s;

    for (int i = 0; i < 5; i++)
        site_put(storm->site, hf_scope_format(s, "k%d", i).ptr, PAGE);
    for (size_t i = 0; i < CLIENTS; i++)
        CHECK_OK(hf_put_item(
            s, storm->gated.inner,
            &(struct hf_put_item){.table = HF_STR("tab"),
                                  .item = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "c%zu", i)),
                                                  HF_N("n", 0))},
            NULL));
}

enum { CALM = 1, STOPS = 2, PRESSED = 4 };

static void run_storm(struct test *t, int weather)
{
    struct storm *storm = calloc(1, sizeof(*storm));
    const bool calm = weather & CALM, pressed = weather & PRESSED;
    struct site site;

    *storm = (struct storm){.t = t, .site = &site, .calm = calm};
    gate_site(t, &storm->gated, &site,
              &(struct server_options){.loops = 1 + (uint32_t)below(storm, 2),
                                       .workers = 1 + (uint32_t)below(storm, 3),
                                       .memory_max = (calm ? 512 : 32) * UINT64_C(1048576),
                                       .sync_beside = below(storm, 3) > 0,
                                       .access_log = below(storm, 2) > 0,
                                       .body_ms = pressed ? 200 : 0,
                                       .drain_ms = DEADLINE_MS});
    put_items(storm);
    if (pressed) {
        storm->give_back = 200;
        hf__budget_count(&site.server->budget.output, &storm->taken,
                         site.server->budget.output_max);
    }
    atomic_store(&storm->gated.sync_us, 300);
    for (size_t i = 0; i < CLIENTS; i++)
        storm->clients[i] = (struct client){.words = WORDS, .out = {.env = &site.env}};
    blow(storm, weather & STOPS ? 50 + below(storm, 300) : 0);
    CHECK(storm->answers > 50);
    if (pressed)
        CHECK(storm->refused > 0 && storm->answers > 2 * storm->give_back);
    check_calm(storm);
    check_numbers(storm);
    for (size_t i = 0; i < CLIENTS; i++)
        hf__buf_free(&storm->clients[i].out);
    if (getenv("HF_TEST_SAY"))
        fprintf(stderr, "%llu answers, %llu refused, %llu ended\n",
                (unsigned long long)storm->answers, (unsigned long long)storm->refused,
                (unsigned long long)storm->ended);
    gate_close(&storm->gated, &site);
    free(storm);
}

TEST(storm, of_readers_that_keep_up)
{
    for (uint32_t i = 0; i < test_times(1); i++)
        run_storm(t, CALM);
}

TEST(storm, of_all_kinds)
{
    for (uint32_t i = 0; i < test_times(1); i++)
        run_storm(t, 0);
}

TEST(storm, while_the_server_stops)
{
    for (uint32_t i = 0; i < test_times(4); i++)
        run_storm(t, STOPS | (i % 2 ? CALM : 0));
}

/* Somebody holds all the memory for answers: what needs some is refused with 503 and not carried
 * out, the rest goes on; and once it is given back all is carried out again. */
TEST(storm, without_memory_for_answers)
{
    for (uint32_t i = 0; i < test_times(1); i++)
        run_storm(t, PRESSED);
}
