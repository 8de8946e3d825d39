/*
 * engine/open_test.c: what opening a database costs, and what of it is durable when.
 */
#include "help.h"

static uint64_t syncs_of(const struct world *w)
{
    struct hf_engine_stats stats;

    hf_engine_stats(w->db, &stats);
    return stats.syncs;
}

/* A new database has a secret, which is of use only once there is a table. */
TEST(open, a_new_database_waits_for_no_sync_before_its_first_table)
{
    struct world w = world_open(t, "memory:");
    char url[256];

    snprintf(url, sizeof(url), "embedded:%s/full", test_directory(t));
    w.url = url;
    w.options.sync = HF_SYNC_FULL;
    world_reopen(&w);
    world_ok(&w, "ListTables", "{}");
    CHECK_INT(0, syncs_of(&w));
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    CHECK_INT(1, syncs_of(&w)); /* both, as what is durable is a prefix of what was written */
    world_close(&w);
}
