/*
 * server/checker_test.c: /_holdfast/check: offered by every server, one check at a time, ended when
 * the server stops, and signed where keys are. (n) is an invariant of server/admin/checker.h.
 */
#include "help.h"

enum { ITEMS = 3000, VALUE = 300 };

static int ask(struct line *c, const char *method)
{
    char text[256];

    snprintf(text, sizeof(text),
             "%s /_holdfast/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
             method);
    line_text(c, text);
    line_read(c);
    return c->status;
}

/* Ask until it does not run any more. */
static void wait_for_end(struct line *c)
{
    for (int i = 0; i < DEADLINE_MS / 10; i++) {
        CHECK_INT(200, ask(c, "GET"));
        if (!contains(c->body, "\"state\":\"running\""))
            return;
        usleep(10 * 1000);
    }
    fail_msg("the check does not end");
}

TEST(checker, every_server_offers_it)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    site_put(&site, "a", 10);
    line_open(&site, &c);
    CHECK_INT(200, ask(&c, "GET"));
    CHECK(contains(c.body, "{\"state\":\"none\",\"check\":0,"));
    CHECK_INT(202, ask(&c, "POST"));
    CHECK(contains(c.body, "{\"state\":\"running\",\"check\":1,"));
    wait_for_end(&c);
    CHECK(contains(c.body, "{\"state\":\"sound\",\"check\":1,"));
    CHECK(contains(c.body, "\"items\":1,"));
    CHECK(contains(c.body, "\"problems\":0}"));
    CHECK_INT(202, ask(&c, "POST"));
    wait_for_end(&c);
    CHECK(contains(c.body, "{\"state\":\"sound\",\"check\":2,"));
    CHECK_INT(405, ask(&c, "PUT"));
    CHECK(contains(c.body, "GET and POST"));
    line_text(&c, "GET /_holdfast/checks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(404, c.status);
    line_close(&c);
    site_close(&site);
}

TEST(checker, admin_lists_it)
{
    struct site site;
    struct line c;

    site_open_admin(t, &site);
    line_open(&site, &c);
    line_text(&c, "GET /_holdfast/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK(contains(c.body, "\"POST /_holdfast/check\""));
    CHECK_INT(202, ask(&c, "POST"));
    wait_for_end(&c);
    CHECK(contains(c.body, "\"sound\""));
    line_close(&c);
    site_close(&site);
}

TEST(checker, with_keys_it_has_to_be_signed)
{
    const struct sign_credentials key = {HF_STR("key"), HF_STR("secret"), {NULL, 0}};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1, .keys = &key, .keys_len = 1});
    line_open(&site, &c);
    CHECK_INT(400, ask(&c, "POST"));
    CHECK(contains(c.body, "Authentication Token"));
    CHECK_INT(400, ask(&c, "GET"));
    CHECK(!contains(c.body, "state"));
    CHECK_INT(0, site.server->checker.state.number);
    line_close(&c);
    site_close(&site);
}

/* ---- while one runs ------------------------------------------------------------------------- */

/* So many items that a check takes a few milliseconds. */
static void fill_site(struct site *site)
{
    char pk[16];

    for (int i = 0; i < ITEMS; i++) {
        snprintf(pk, sizeof(pk), "k%d", i);
        site_put(site, pk, VALUE);
        hf_scope_reset(site->s);
    }
}

/* (1) Whoever asks while one runs gets the state of that, and requests go on. */
TEST(checker, one_runs_at_a_time)
{
    int started = 0, joined = 0;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    fill_site(&site);
    line_open(&site, &c);
    for (int i = 0; i < 50; i++) {
        int status = ask(&c, "POST");

        CHECK(status == 200 || status == 202);
        CHECK(contains(c.body, "\"state\":\"running\""));
        started += status == 202;
        joined += status == 200;
    }
    wait_for_end(&c);
    CHECK(contains(c.body, "\"items\":3000,"));
    CHECK(started >= 1 && joined >= 1);
    CHECK_INT(started, site.server->checker.state.number);
    line_close(&c);
    site_close(&site);
}

/* (2) */
TEST(checker, stopping_ends_it)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    fill_site(&site);
    line_open(&site, &c);
    CHECK_INT(202, ask(&c, "POST"));
    line_close(&c);
    hf__server_stop(site.server);
    site_join(&site);
    CHECK(!site.server->checker.started);
    CHECK(site.server->checker.state.state == CHECKS_FAILED ||
          site.server->checker.state.state == CHECKS_SOUND);
    if (site.server->checker.state.state == CHECKS_FAILED)
        CHECK_STR("The call was canceled", site.server->checker.state.problem);
    site_close(&site);
}

/* A store that fails is not damaged: nothing is known about it. */
TEST(checker, a_store_that_fails)
{
    struct site site;
    struct line c;

    site_open_faulty(t, &site, &(struct server_options){.loops = 1});
    site_put(&site, "a", 10);
    line_open(&site, &c);
    site.faults.fail_at = site.faults.calls + 1;
    CHECK_INT(202, ask(&c, "POST"));
    wait_for_end(&c);
    CHECK(contains(c.body, "\"state\":\"failed\""));
    CHECK(contains(c.body, "\"problem\":\""));
    line_close(&c);
    site_close(&site);
}
