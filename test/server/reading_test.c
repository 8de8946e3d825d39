/*
 * server/reading_test.c: how bytes get in: how many reads they take, and that none is forgotten.
 */
#include "help.h"

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
