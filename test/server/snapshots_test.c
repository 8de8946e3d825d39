/*
 * server/snapshots_test.c: /_holdfast/snapshots: names, limits, taking and restoring through HTTP,
 * from several connections at once.
 */
#include "help.h"

static int request(struct line *c, const char *method, const char *path)
{
    char text[512];

    snprintf(text, sizeof(text),
             "%s /_holdfast%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method,
             path);
    CHECK(line_text(c, text));
    line_read(c);
    return c->status;
}

TEST(snapshots, take_list_restore_delete)
{
    struct site site;
    struct line c;

    site_open_admin(t, &site);
    line_open(&site, &c);
    CHECK_INT(200, request(&c, "GET", "/snapshots"));
    CHECK_STR("{\"snapshots\":[]}\n", c.body);
    site_put(&site, "kept", 10);
    CHECK_INT(200, request(&c, "PUT", "/snapshots/fresh"));
    CHECK(contains(c.body, "{\"name\":\"fresh\",\"tables\":1,\"items\":1,\"bytes\":"));
    CHECK(contains(c.body, "\"taken\":"));
    site_put(&site, "dropped", 10);
    CHECK_INT(200, request(&c, "PUT", "/snapshots/a-2_B"));
    CHECK_INT(200, request(&c, "GET", "/snapshots"));
    CHECK(contains(c.body, "{\"snapshots\":[{\"name\":\"a-2_B\",\"tables\":1,\"items\":2,"));
    CHECK(contains(c.body, "{\"name\":\"fresh\",\"tables\":1,\"items\":1,"));

    CHECK_INT(200, request(&c, "POST", "/snapshots/fresh/restore"));
    CHECK(contains(c.body, "{\"name\":\"fresh\""));
    CHECK(site_has(&site, "kept") && !site_has(&site, "dropped"));
    CHECK_INT(200, request(&c, "POST", "/snapshots/a-2_B/restore"));
    CHECK(site_has(&site, "kept") && site_has(&site, "dropped"));
    CHECK_INT(200, request(&c, "PUT", "/snapshots/fresh")); /* replaces */
    CHECK(contains(c.body, "\"items\":2"));
    CHECK_INT(200, request(&c, "POST", "/snapshots/fresh/restore"));
    CHECK(site_has(&site, "dropped"));

    CHECK_INT(200, request(&c, "DELETE", "/snapshots/fresh"));
    CHECK(contains(c.body, "a-2_B") && !contains(c.body, "fresh"));
    CHECK_INT(404, request(&c, "DELETE", "/snapshots/fresh"));
    CHECK_INT(404, request(&c, "POST", "/snapshots/fresh/restore"));
    CHECK(contains(c.body, "no such snapshot"));
    CHECK_INT(200, request(&c, "GET", "/"));
    CHECK(contains(c.body, "\"POST /_holdfast/snapshots/NAME/restore\""));
    line_close(&c);
    site_close(&site);
}

TEST(snapshots, names_and_methods)
{
    static const struct {
        const char *method;
        const char *path;
        int status;
    } asked[] = {
        {"PUT", "/snapshots/", 400},
        {"PUT", "/snapshots/a.b", 400},
        {"PUT", "/snapshots/a%20b", 400},
        {"PUT", "/snapshots/a/b", 404},
        {"PUT", "/snapshots/a/restore/", 404},
        {"PUT", "/snapshots/a/restore", 405},
        {"GET", "/snapshots/a", 405},
        {"POST", "/snapshots/a", 405},
        {"PUT", "/snapshots", 405},
        {"POST", "/snapshots//restore", 400},
        {"GET", "/snapshotsa", 404},
        {"PUT", "/snapshots/NAME", 200},
        {"PUT", "/snapshots/0123456789012345678901234567890123456789012345678901234567890123", 200},
        {"PUT", "/snapshots/01234567890123456789012345678901234567890123456789012345678901234",
         400},
    };
    struct site site;
    struct line c;

    site_open_admin(t, &site);
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        if (request(&c, asked[i].method, asked[i].path) != asked[i].status)
            fail_msg("%s %s: %d", asked[i].method, asked[i].path, c.status);
    line_close(&c);
    site_close(&site);
}

TEST(snapshots, at_most_a_hundred)
{
    struct site site;
    struct line c;
    char path[32];

    site_open_admin(t, &site);
    line_open(&site, &c);
    for (int i = 99; i >= 0; i--) {
        snprintf(path, sizeof(path), "/snapshots/%02d", i);
        CHECK_INT(200, request(&c, "PUT", path));
    }
    CHECK_INT(400, request(&c, "PUT", "/snapshots/one-more"));
    CHECK(contains(c.body, "the limit of 100 snapshots"));
    CHECK_INT(200, request(&c, "PUT", "/snapshots/50"));
    CHECK_INT(200, request(&c, "GET", "/snapshots"));
    CHECK(contains(c.body, "{\"snapshots\":[{\"name\":\"00\",") && contains(c.body, "\"99\""));
    CHECK_INT(200, request(&c, "DELETE", "/snapshots/00"));
    CHECK_INT(200, request(&c, "PUT", "/snapshots/one-more"));
    line_close(&c);
    site_close(&site);
}

/* ---- from several connections --------------------------------------------------------------- */

struct client {
    struct site *site;
    int number;
    int wrong;
    pthread_t thread;
};

/* No CHECK here: it would end the wrong thread. But line_read() fails the test when there is no
 * answer; so this ends with the process, not unseen. */
static void *client_run(void *user)
{
    static const char *const requests[][2] = {{"PUT", "/snapshots/shared"},
                                              {"POST", "/snapshots/shared/restore"},
                                              {"DELETE", "/snapshots/shared"},
                                              {"GET", "/snapshots"}};
    struct client *client = user;
    struct line c;

    line_open(client->site, &c);
    for (int i = 0; i < 60; i++) {
        const char *const *r = requests[(i + client->number) % 4];
        int status = request(&c, r[0], r[1]);

        client->wrong += status != 200 && status != 404;
    }
    line_close(&c);
    return NULL;
}

TEST(snapshots, replaced_and_deleted_while_others_restore_them)
{
    struct client clients[4];
    struct site site;

    site_open_admin(t, &site);
    site_put(&site, "kept", 1000);
    for (int i = 0; i < 4; i++) {
        clients[i] = (struct client){.site = &site, .number = i};
        CHECK_INT(0, pthread_create(&clients[i].thread, NULL, client_run, &clients[i]));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(clients[i].thread, NULL);
        CHECK_INT(0, clients[i].wrong);
    }
    CHECK(site_has(&site, "kept"));
    site_close(&site);
}
