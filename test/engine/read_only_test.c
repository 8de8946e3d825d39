/*
 * engine/read_only_test.c: a database that is opened to be read: everything can be, nothing in its
 * directory changes, and whoever wants to write is told why not.
 */
#include "help.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <xxhash.h>

/* Names, sizes, times and contents of all files below a directory. */
static uint64_t digest(const char *dir)
{
    uint64_t sum = 0;
    DIR *listing = opendir(dir);
    struct dirent *entry;

    CHECK(listing);
    while ((entry = readdir(listing))) {
        char path[1024];
        struct stat info;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        CHECK(stat(path, &info) == 0);
        sum += XXH3_64bits(path, strlen(path)) ^ (uint64_t)info.st_size ^
               (uint64_t)info.st_mtim.tv_nsec << 20;
        if (S_ISDIR(info.st_mode)) {
            sum += digest(path) * 3;
        } else if (info.st_size > 0) {
            char *bytes = malloc((size_t)info.st_size);
            int fd = open(path, O_RDONLY);

            CHECK(bytes && fd >= 0 && read(fd, bytes, (size_t)info.st_size) == info.st_size);
            sum += XXH3_64bits(bytes, (size_t)info.st_size);
            free(bytes);
            close(fd);
        }
    }
    closedir(listing);
    return sum;
}

static int write_and_die(struct world *w)
{
    for (int i = 0; i < 300; i++)
        callf(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'k%d'},'v':{'N':'%d'}}}", i, i);
    return 0;
}

static const char *const writes[][2] = {
    {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}"},
    {"DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'absent'}}}"},
    {"UpdateItem", "{'TableName':'tab','Key':{'pk':{'S':'k1'}}}"},
    {"BatchWriteItem", "{'RequestItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'a'}}}}]}}"},
    {"TransactWriteItems",
     "{'TransactItems':[{'Delete':{'TableName':'tab','Key':{'pk':{'S':'k1'}}}}]}"},
    {"CreateTable", PK_TABLE("other", "")},
    {"DeleteTable", "{'TableName':'tab'}"},
    {"UpdateTimeToLive", "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':true,"
                         "'AttributeName':'at'}}"},
    {"CreateBackup", "{'TableName':'tab','BackupName':'one'}"},
};

static void check_reads(struct world *w)
{
    struct hf_str answer = world_ok(w, "Scan", "{'TableName':'tab','ConsistentRead':true}");

    CHECK(next_number(&answer, "\"Count\":") == 300);
    world_ok(w, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'k7'}},'ConsistentRead':true}");
    world_ok(w, "ListTables", "{}");
    world_ok(w, "ExecuteStatement", "{'Statement':'SELECT * FROM tab'}");
    CHECK_OK(hf_engine_check(w->scope, w->db, NULL));
}

static void check_refusals(struct world *w)
{
    const struct hf_execute_statement insert = {.statement =
                                                    HF_STR("INSERT INTO tab VALUE {'pk':'z'}")};
    struct hf_execute_statement_result result;

    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        if (!is_error(world_call(w, writes[i][0], writes[i][1])))
            fail_msg("%s was carried out", writes[i][0]);
        CHECK_STATUS(HF_DENIED, hf_scope_error(w->scope)->status);
        CHECK(strstr(hf_scope_error_text(w->scope), "read-only"));
    }
    /* A request that says nothing is how clients ask whether there is such an operation. */
    CHECK(is_error(world_call(w, "UpdateTimeToLive", "{}")));
    CHECK_STATUS(HF_INVALID, hf_scope_error(w->scope)->status);
    CHECK(is_error(world_call(w, "TransactWriteItems", "{}")));
    CHECK_STATUS(HF_INVALID, hf_scope_error(w->scope)->status);
    CHECK_STATUS(HF_DENIED, hf_execute_statement(w->scope, w->db, &insert, &result));
    CHECK_STATUS(HF_DENIED, hf_engine_upkeep(w->scope, w->db, NULL));
}

/* Another process writes, and ends without closing. */
static void let_die(struct world *w)
{
    char name[256];
    int status = -1;
    pid_t pid;

    snprintf(name, sizeof(name), "%s.%s", w->t->group, w->t->name);
    pid = fork();
    if (pid == 0) {
        setenv(crash_variable, w->url, 1);
        if (freopen("/dev/null", "w", stdout))
            execl("/proc/self/exe", "test_engine", name, (char *)NULL);
        _exit(127);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* After a clean close, and after an end without one. */
TEST(read_only, everything_is_read_and_nothing_changes)
{
    struct world w;
    char url[256], path[200];

    crash_here(t, write_and_die);
    w = world_open(t, "memory:");
    snprintf(path, sizeof(path), "%s/store", test_directory(t));
    snprintf(url, sizeof(url), "embedded:%s", path);
    w.url = url;
    w.options.sync = HF_SYNC_FULL;
    world_reopen(&w);
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (int killed = 0; killed < 2; killed++) {
        struct hf_db *second, *writer;
        struct hf_engine_stats stats;
        uint64_t before;

        if (!killed)
            write_and_die(&w);
        hf_db_close(w.db);
        if (killed)
            let_die(&w);
        before = digest(path);
        w.options.read_only = true;
        CHECK_OK(hf_open(w.scope, hf_str_from(url), &w.options, &w.db));
        hf_engine_stats(w.db, &stats);
        CHECK(stats.read_only && !stats.no_space && !stats.stopped);
        check_reads(&w);
        check_refusals(&w);
        check_reads(&w);
        CHECK_OK(hf_open(w.scope, hf_str_from(url), &w.options, &second)); /* both may read */
        w.options.read_only = false;
        CHECK_STATUS(HF_LOCKED, hf_open(w.scope, hf_str_from(url), &w.options, &writer));
        hf_db_close(second);
        hf_db_close(w.db);
        CHECK(digest(path) == before);
        CHECK_OK(hf_open(w.scope, hf_str_from(url), &w.options, &w.db));
        w.options.read_only = true;
        CHECK_STATUS(HF_LOCKED, hf_open(w.scope, hf_str_from(url), &w.options, &second));
        w.options.read_only = false;
        world_ok(&w, "UpdateItem", "{'TableName':'tab','Key':{'pk':{'S':'k1'}}}");
    }
    world_close(&w);
}

TEST(read_only, what_is_not_there_is_not_made)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf_engine_options *options = HF_OPTIONS(hf_engine_options, .read_only = true);
    struct hf_db *db;
    struct stat info;

    CHECK_STATUS(HF_NOT_FOUND,
                 hf_open(s, hf_scope_format(s, "embedded:%s/none", path), options, &db));
    CHECK(stat(hf_scope_format(s, "%s/none", path).ptr, &info) != 0);
    CHECK_STATUS(HF_INVALID, hf_open(s, hf_scope_format(s, "embedded:%s", path), options, &db));
    CHECK(stat(hf_scope_format(s, "%s/HOLDFAST.new", path).ptr, &info) != 0);
    CHECK_STATUS(HF_INVALID, hf_open(s, HF_STR("memory:"), options, &db));
    hf_scope_free(s);
}

/* The same for who wants to write, but not to begin a database by a slip. */
TEST(no_create, what_is_not_there_is_not_made)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf_str inside = hf_scope_format(s, "embedded:%s/db", path);
    struct hf_engine_options *options = HF_OPTIONS(hf_engine_options, .no_create = true);
    struct hf_db *db;
    struct stat info;

    CHECK_STATUS(HF_NOT_FOUND, hf_open(s, inside, options, &db));
    CHECK(!db && stat(hf_scope_format(s, "%s/db", path).ptr, &info) != 0);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_open(s, hf_scope_format(s, "embedded:%s/no/db", path), options, &db));
    /* a directory that is empty is no database, and stays empty */
    CHECK(mkdir(hf_scope_format(s, "%s/db", path).ptr, 0700) == 0);
    CHECK_STATUS(HF_NOT_FOUND, hf_open(s, inside, options, &db));
    CHECK(rmdir(hf_scope_format(s, "%s/db", path).ptr) == 0);
    CHECK_STATUS(HF_OK, hf_open(s, inside, NULL, &db));
    hf_db_close(db);
    CHECK_STATUS(HF_OK, hf_open(s, inside, options, &db));
    hf_db_close(db);
    CHECK_STATUS(HF_OK, hf_open(s, HF_STR("memory:"), options, &db));
    hf_db_close(db);
    hf_scope_free(s);
}
