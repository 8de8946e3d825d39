/*
 * server/reading_test.c: how bytes get in: how many reads they take, and that none is forgotten.
 */
#include "help.h"

#include <poll.h>
#include <sys/socket.h>

/* Calls of read(2) by this process so far, the client's own among them. */
static long reads_so_far(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    char line[80];
    long reads = -1;

    while (file && fgets(line, sizeof(line), file))
        (void)sscanf(line, "syscr: %ld", &reads);
    if (file)
        fclose(file);
    return reads;
}

/* The rest of a head or of a chunk's line has no length that is known; it comes in large pieces all
 * the same. */
TEST(reading, a_head_in_two_pieces_takes_few_reads)
{
    enum { FILL = 8000 };
    struct site site;
    struct line c;
    char fill[FILL + 1];
    long before;

    site_open(t, &site, &(struct server_options){.loops = 1});
    memset(fill, 'x', FILL);
    fill[FILL] = '\0';
    line_open(&site, &c);
    line_text(&c, "GET /livez HTTP/1.1\r\nHost: loc");
    sleep_ms(50);
    before = reads_so_far();
    if (before < 0) {
        line_close(&c);
        site_close(&site);
        return; /* a kernel that does not count them */
    }
    line_text(&c, "alhost\r\nX-Fill: ");
    line_text(&c, fill);
    line_text(&c, "\r\n\r\n");
    line_read(&c);
    CHECK_STR("alive\n", c.body);
    CHECK(reads_so_far() - before < 100);
    line_close(&c);
    site_close(&site);
}

/*
 * The question whether a body is welcome is answered behind as many answers as just fit: the room
 * for answers is used up while a request is half there, and its other half must still be looked at.
 */
TEST(reading, a_request_that_begins_when_the_room_ends_is_answered)
{
    enum { ITEMS = 3, ITEM = 340000, BODY = 100000, TIMES = 20, CONTINUE = 25 };
    static const char *const names[ITEMS] = {"a", "b", "c"};
    struct hf__buf all = {0};
    size_t len = 0, last = 0;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    all.scope = site.s;
    for (int i = 0; i < ITEMS; i++) {
        const char *json =
            hf_scope_format(site.s, "{'TableName':'tab','Key':{'pk':{'S':'%s'}}}", names[i]).ptr;

        site_put(&site, names[i], ITEM);
        line_open(&site, &c);
        line_call(&c, "GetItem", json);
        line_read(&c);
        last = c.used;
        line_close(&c);
        if (i == ITEMS - 1) { /* the last one fills up what is left, but for a few bytes */
            site_put(&site, names[i], ITEM + (OUTPUT_PAUSE - CONTINUE / 2) - (len + last));
        }
        len += last;
        hf__buf_put_str(&all, call_text(site.s, "GetItem", json));
    }
    hf__buf_format(&all,
                   POST_FOR("ListTables") "Expect: 100-continue\r\nContent-Length: %d\r\n\r\n{",
                   BODY);
    for (int i = 2; i < BODY; i++)
        hf__buf_put_byte(&all, ' ');
    hf__buf_put_byte(&all, '}');
    for (int i = 0; i < TIMES; i++) {
        line_open(&site, &c);
        line_send(&c, all.ptr, all.len);
        for (int j = 0; j < ITEMS; j++)
            CHECK_ANSWER(&c, 200, NULL);
        line_read(&c);
        CHECK_INT(100, c.status);
        CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
        line_close(&c);
    }
    site_close(&site);
}

/*
 * The last answer was too much for the socket at once, and the client had sent more than was looked
 * at. What it sent is still read and dropped: otherwise closing would cut the answer short.
 */
TEST(reading, what_comes_behind_the_last_request_does_not_cut_its_answer)
{
    int fd = listen_small(128 * 1024);
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.sockets = &fd, .sockets_len = 1, .loops = 1});
    site_put(&site, "big", 390000);
    line_open_small(&site, &c, 4096);
    line_text(&c, POST_FOR("GetItem") "Connection: close\r\nContent-Length: 46\r\n\r\n"
                                      "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"big\"}}}  ");
    sleep_ms(100);
    line_text(&c, "GET / HTTP/1.1\r\n");
    for (size_t left = 270000; left > 0;) { /* what is in the server's kernel is all there is */
        static char piece[4096];
        struct pollfd poller = {.fd = c.fd, .events = POLLIN};
        ssize_t got;

        CHECK_INT(1, poll(&poller, 1, DEADLINE_MS));
        got = recv(c.fd, piece, left < sizeof(piece) ? left : sizeof(piece), 0);
        CHECK(got > 0);
        left -= (size_t)got;
    }
    sleep_ms(LINGER_MS + 3 * SWEEP_MS);
    CHECK(line_rest(&c, 5000).len > 120000);
    CHECK(!c.broken);
    line_close(&c);
    site_close(&site);
    close(fd);
}
