/*
 * server/clock_test.c: moving the clock of the database by /_holdfast/clock.
 */
#include "help.h"

/* One PUT; returns the status. In the text ' stands for ". */
static int put_clock(struct site *site, struct line *c, const char *json)
{
    struct hf_str body = quoted_json(site->s, json);

    line_text(c, hf_scope_format(site->s,
                                 "PUT /_holdfast/clock HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: %zu\r\n\r\n%.*s",
                                 body.len, HF_FMT(body))
                     .ptr);
    line_read(c);
    return c->status;
}

/* Step by step it gets no farther than in one: a time before 1970 or of no calendar is refused. */
TEST(clock, steps_do_not_lead_too_far)
{
    int64_t farthest;
    struct site site;
    struct line c;

    site_open_admin(t, &site);
    line_open(&site, &c);
    CHECK_INT(200, put_clock(&site, &c, "{'now_s':4294967294}"));
    farthest = atomic_load(&site.clock.offset_us);
    CHECK_INT(400, put_clock(&site, &c, "{'advance_s':2}"));
    CHECK_INT(400, put_clock(&site, &c, "{'advance_s':2147483647}"));
    CHECK(contains(c.body, "out of range"));
    CHECK_INT(farthest, atomic_load(&site.clock.offset_us));
    CHECK_INT(200, put_clock(&site, &c, "{'advance_s':-2147483647}"));
    CHECK_INT(200, put_clock(&site, &c, "{'advance_s':-2147483646}"));
    CHECK_INT(400, put_clock(&site, &c, "{'advance_s':-2}"));
    CHECK_INT(400, put_clock(&site, &c, "{'advance_s':-2147483647}"));
    CHECK_INT(400, put_clock(&site, &c, "{'now_s':4294967295}"));
    CHECK_INT(400, put_clock(&site, &c, "{'now_s':-1}"));
    CHECK_INT(400, put_clock(&site, &c, "{'advance_s':2147483648}"));
    CHECK_INT(200, put_clock(&site, &c, "{'reset':true}"));
    CHECK_INT(0, atomic_load(&site.clock.offset_us));
    line_close(&c);
    site_close(&site);
}
