/* test/crash/damage_child.c: building databases, looking at them, in processes of their own. */
#include "damage.h"

#include "store/journal_form.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

enum { MEMTABLE = 256 * 1024 };

/* ---- directories ----------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

void remove_directory(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void list_into(const char *dir, const char *prefix, struct files *files)
{
    DIR *listing = opendir(dir);
    struct dirent *entry;

    while (listing && (entry = readdir(listing)) && files->len < FILES_MAX) {
        if (entry->d_type == DT_REG && strcmp(entry->d_name, "ballast") != 0)
            snprintf(files->names[files->len++], NAME_ROOM, "%s%.40s", prefix, entry->d_name);
    }
    if (listing)
        closedir(listing);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

void list_files(const char *dir, struct files *files)
{
    char inside[PATH_ROOM];

    files->len = 0;
    list_into(dir, "", files);
    snprintf(inside, sizeof(inside), "%s/db", dir);
    list_into(inside, "db/", files);
    snprintf(inside, sizeof(inside), "%s/journal", dir);
    list_into(inside, "journal/", files);
    qsort(files->names, files->len, NAME_ROOM, by_name); /* so that a seed means the same */
}

void copy_file(const char *from, const char *to)
{
    static char room[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t len;

    while (in >= 0 && out >= 0 && (len = read(in, room, sizeof(room))) > 0)
        if (write(out, room, (size_t)len) != len)
            break;
    if (in < 0 || out < 0)
        perror(to);
    close(in);
    close(out);
}

void copy_directory(const char *from, const char *to)
{
    char a[PATH_ROOM + NAME_ROOM], b[PATH_ROOM + NAME_ROOM];
    struct files files;

    remove_directory(to);
    mkdir(to, 0700);
    snprintf(b, sizeof(b), "%s/db", to);
    mkdir(b, 0700);
    snprintf(b, sizeof(b), "%s/journal", to);
    mkdir(b, 0700);
    list_files(from, &files);
    for (size_t i = 0; i < files.len; i++) {
        snprintf(a, sizeof(a), "%s/%s", from, files.names[i]);
        snprintf(b, sizeof(b), "%s/%s", to, files.names[i]);
        copy_file(a, b);
    }
}

/* The newest segment of the log that was begun, and where its records end. */
static struct note newest_log(const char *dir)
{
    struct note note = {0};
    struct files files;

    list_files(dir, &files);
    for (size_t i = 0; i < files.len; i++) {
        char path[PATH_ROOM + NAME_ROOM];
        uint8_t head[JOURNAL_RECORD_HEAD];
        uint64_t number;
        off_t at = JOURNAL_START;
        int fd;

        if (strncmp(files.names[i], "journal/", 8) != 0)
            continue;
        number = strtoull(files.names[i] + strlen("journal/"), NULL, 16);
        snprintf(path, sizeof(path), "%s/%s", dir, files.names[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
            memcmp(head, journal_magic, sizeof(journal_magic)) == 0 &&
            load_u64le(head + 8) == number && number > note.log) {
            while (pread(fd, head, sizeof(head), at) == sizeof(head) &&
                   journal_segment(head) == (uint32_t)number && journal_len(head))
                at += (off_t)journal_record_size(journal_len(head));
            note = (struct note){.log = (uint32_t)number, .size = (uint64_t)at};
        }
        close(fd);
    }
    return note;
}

/* ---- building -------------------------------------------------------------------------------- */

struct hf_db *open_at(struct hf_scope *s, const char *dir, enum hf_status *status)
{
    struct hf_engine_options *options =
        HF_OPTIONS(hf_engine_options, .memtable_bytes = MEMTABLE, .no_upkeep_thread = true);
    struct hf_db *db;

    *status = hf_open(s, hf_scope_format(s, "embedded:%s", dir), options, &db);
    return db;
}

struct hf_item damage_item(struct hf_scope *s, unsigned n)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char filler[400];

    for (unsigned i = 0; i < sizeof(filler); i++)
        filler[i] = digits[(n * 31 + i * i) % 36];
    return HF_ITEM(s, HF_S("pk", hf_scope_format(s, "item %u", n)), HF_N("n", n),
                   HF_S("g", hf_scope_format(s, "group %u", n % 5)),
                   HF_S("filler", hf_str_of(filler, 100 + n * 7 % 300)),
                   HF_N("expires", 4000000000u));
}

static enum hf_status make_table(struct hf_scope *s, struct hf_db *db)
{
    struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                   {HF_STR("g"), HF_SCALAR_S}};
    struct hf_key_element pk = {HF_STR("pk"), HF_KEY_HASH};
    struct hf_key_element g = {HF_STR("g"), HF_KEY_HASH};
    struct hf_projection all = {.type = HF_PROJECT_ALL};
    struct hf_index index = {.name = HF_STR("by_g"),
                             .key_schema = &g,
                             .key_schema_len = 1,
                             .projection = &all};
    struct hf_stream_spec stream = {HF_YES, HF_VIEW_NEW_IMAGE};
    struct hf_create_table create = {.table = HF_STR("damaged"),
                                     .attributes = attributes,
                                     .attributes_len = 2,
                                     .key_schema = &pk,
                                     .key_schema_len = 1,
                                     .global_indexes = &index,
                                     .global_indexes_len = 1,
                                     .billing = HF_BILLING_PAY_PER_REQUEST,
                                     .stream = &stream};
    struct hf_ttl_spec spec = {HF_YES, HF_STR("expires")};
    struct hf_update_time_to_live ttl = {.table = HF_STR("damaged"), .spec = &spec};
    enum hf_status status = hf_create_table(s, db, &create, NULL);

    return status == HF_OK ? hf_update_time_to_live(s, db, &ttl, NULL) : status;
}

/* "build": items FROM to TO, then die. */
static int child_build(const char *dir, const char *range)
{
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status;
    struct hf_db *db = open_at(s, dir, &status);
    char path[PATH_ROOM], before[PATH_ROOM];
    char *end;
    unsigned from = (unsigned)strtoul(range, &end, 10);
    unsigned to = (unsigned)strtoul(end, NULL, 10);
    int notes;

    if (status == HF_OK && from == 1)
        status = make_table(s, db);
    snprintf(path, sizeof(path), "%s.notes", dir);
    notes = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(path, sizeof(path), "%s/durable", dir);
    snprintf(before, sizeof(before), "%s.durable", dir);
    copy_file(path, before); /* an older one, as after a power loss */
    for (unsigned n = from; status == HF_OK && n <= to; n++) {
        struct hf_put_item put = {.table = HF_STR("damaged"), .item = damage_item(s, n)};
        struct note note;

        status = hf_put_item(s, db, &put, NULL);
        note = newest_log(dir);
        note.n = n;
        if (write(notes, &note, sizeof(note)) != (ssize_t)sizeof(note))
            return CHILD_ERROR;
        hf_scope_reset(s);
    }
    if (status == HF_OK)
        raise(SIGKILL);
    printf("%s", hf_scope_error_text(s));
    return CHILD_ERROR;
}

void build(const char *dir, unsigned from, unsigned to)
{
    char text[TEXT_ROOM], range[40];
    int status;

    snprintf(range, sizeof(range), "%u %u", from, to);
    status = child_run("build", dir, range, text);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("cannot build %s: %s", dir, text);
}

/* ---- looking --------------------------------------------------------------------------------- */

struct reading {
    struct hf_scope *s;
    struct hf_db *db;
    XXH3_state_t *digest;
    unsigned items;
};

static void add_item(struct reading *r, struct hf_item item)
{
    XXH3_64bits_update(r->digest, item.ptr, item.len);
}

static enum hf_status read_pages(struct reading *r, struct hf_str index)
{
    struct hf_scan request = {.table = HF_STR("damaged"), .index = index};
    struct hf_scan_result page;

    do {
        enum hf_status status = hf_scan(r->s, r->db, &request, &page);

        if (status != HF_OK)
            return status;
        for (size_t i = 0; i < page.items_len; i++)
            add_item(r, page.items[i]);
        r->items += (unsigned)page.items_len;
        request.start = page.last;
    } while (page.last.ptr);
    return HF_OK;
}

static enum hf_status read_shard(struct reading *r, struct hf_str arn, struct hf_str shard)
{
    struct hf_get_shard_iterator get = {.arn = arn,
                                        .shard = shard,
                                        .type = HF_ITERATOR_TRIM_HORIZON};
    struct hf_get_shard_iterator_result got;
    struct hf_get_records request = {0};
    struct hf_get_records_result records;
    enum hf_status status = hf_get_shard_iterator(r->s, r->db, &get, &got);

    if (status != HF_OK)
        return status;
    request.iterator = got.iterator;
    do {
        status = hf_get_records(r->s, r->db, &request, &records);
        if (status != HF_OK)
            return status;
        for (size_t i = 0; i < records.records_len; i++) {
            const struct hf_stream_change *change = records.records[i].change;

            add_item(r, change->keys);
            add_item(r, change->new_image);
            XXH3_64bits_update(r->digest, change->sequence.ptr, change->sequence.len);
        }
        request.iterator = records.next;
    } while (records.records_len && records.next.ptr);
    return HF_OK;
}

/* The table, its index, its stream, its description. */
static enum hf_status read_all(struct reading *r)
{
    struct hf_describe_table describe = {.table = HF_STR("damaged")};
    struct hf_describe_table_result table;
    struct hf_describe_stream about = {0};
    struct hf_describe_stream_result stream;
    enum hf_status status = hf_describe_table(r->s, r->db, &describe, &table);

    if (status == HF_OK) {
        XXH3_64bits_update(r->digest, table.table->arn.ptr, table.table->arn.len);
        XXH3_64bits_update(r->digest, &table.table->item_count, sizeof(int64_t));
        about.arn = table.table->stream_arn;
        status = read_pages(r, (struct hf_str){NULL, 0});
    }
    if (status == HF_OK)
        status = read_pages(r, HF_STR("by_g"));
    if (status == HF_OK)
        status = hf_describe_stream(r->s, r->db, &about, &stream);
    for (size_t i = 0; status == HF_OK && i < stream.stream->shards_len; i++)
        status = read_shard(r, about.arn, stream.stream->shards[i].id);
    return status;
}

/* "look": what can be read, before the check says what it thinks of it. */
static int child_look(const char *dir)
{
    struct reading r = {.s = hf_scope_new(NULL), .digest = XXH3_createState()};
    enum hf_status status, checked;
    char error[TEXT_ROOM / 2] = "";

    XXH3_64bits_reset(r.digest);
    r.db = open_at(r.s, dir, &status);
    if (!r.db) {
        printf("open %s %s", hf_status_name(status), hf_scope_error_text(r.s));
        return CHILD_ERROR;
    }
    status = read_all(&r);
    if (status != HF_OK)
        snprintf(error, sizeof(error), "%s %s", hf_status_name(status), hf_scope_error_text(r.s));
    checked = hf_engine_check(r.s, r.db, NULL);
    if (checked != HF_OK && status == HF_OK)
        snprintf(error, sizeof(error), "%s %s", hf_status_name(checked), hf_scope_error_text(r.s));
    printf("look %d %d %llu %u %s", status == HF_OK, checked == HF_OK,
           (unsigned long long)XXH3_64bits_digest(r.digest), r.items, error);
    XXH3_freeState(r.digest);
    hf_db_close(r.db);
    hf_scope_free(r.s);
    return CHILD_GOOD;
}

struct look look_at(const char *dir)
{
    struct look look = {0};
    int status = child_run("look", dir, "", look.text);
    int read = 0, checked = 0;

    look.crashed = !WIFEXITED(status);
    look.opened = WIFEXITED(status) && WEXITSTATUS(status) == CHILD_GOOD;
    if (look.opened &&
        sscanf(look.text, "look %d %d %llu %u", &read, &checked, &look.digest, &look.items) != 4)
        look.crashed = true;
    look.read = read;
    look.checked = checked;
    return look;
}

/* ---- children -------------------------------------------------------------------------------- */

int child_run(const char *mode, const char *dir, const char *argument, char text[TEXT_ROOM])
{
    size_t len = 0;
    ssize_t got;
    int out, status;
    pid_t pid = test_child("damage", (const char *[]){mode, dir, argument, NULL}, &out);

    while (len < TEXT_ROOM - 1 && (got = read(out, text + len, TEXT_ROOM - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    return status;
}

/* The arguments of child_run(). */
CHILD(damage)
{
    const char *mode = args[0], *dir = args[1], *argument = args[2];
    int result = CHILD_WRONG;

    if (strcmp(mode, "build") == 0)
        result = child_build(dir, argument);
    else if (strcmp(mode, "look") == 0)
        result = child_look(dir);
    else if (strcmp(mode, "torn") == 0)
        result = child_torn(dir, argument);
    else if (strcmp(mode, "full") == 0)
        result = child_full(dir);
    else if (strcmp(mode, "read_only") == 0)
        result = child_read_only(dir);
    fflush(stdout);
    return result;
}
