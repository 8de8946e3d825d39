/*
 * test/http/transport_test.c: calls over loopback connections; (n) is an invariant of transport.c,
 * (Cn) one of connection.c.
 */
#include "help.h"

#include <sys/socket.h>

/* ---- keeping connections -------------------------------------------------------------------- */

TEST(transport, a_connection_serves_many_calls)
{
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    for (int i = 0; i < 10; i++) {
        char body[32];

        snprintf(body, sizeof(body), "call %d", i);
        CHECK_OK(caller_post(&c, l.origin, hf_str_from(body)));
        CHECK_INT(200, c.answer.status);
        CHECK_STR(body, caller_body(&c));
        CHECK_STR("6", hf__answer_field(&c.answer, "content-LENGTH"));
        CHECK(hf__answer_field(&c.answer, "Content").ptr == NULL);
        hf_scope_reset(c.s);
    }
    CHECK_INT(1, caller_stats(&c).connects);
    CHECK_INT(9, caller_stats(&c).reuses);
    CHECK_INT(1, caller_stats(&c).idle);
    CHECK_INT(1, atomic_load(&l.accepted));
    caller_close(&c);
    listener_close(&l);
}
