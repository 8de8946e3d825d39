/*
 * server/console/health.c: what is wrong or may become so, and what to do about it.
 */
#include "server/console/figures.h"

#include "wire/wire.h"

enum health_level { HEALTH_ERROR, HEALTH_WARNING, HEALTH_INFO, HEALTH_LEVELS };

struct health_list {
    struct hf__buf *out;
    enum health_level level; /* that is written now */
    bool any;
};

#define MIB (1024.0 * 1024)
#define GIB ((uint64_t)1 << 30)

enum { SLOW_US = 100 * 1000, SOME_COMMITS = 10, OLD_BACKUP_S = 7 * 24 * 3600, SOME_REFUSED = 10 };

static void list_add(struct health_list *list, enum health_level level, const char *advice,
                     const char *format, ...) HF_PRINTF(4, 5);

static void list_add(struct health_list *list, enum health_level level, const char *advice,
                     const char *format, ...)
{
    static const char *const names[HEALTH_LEVELS] = {"error", "warning", "info"};
    char what[256];
    va_list args;

    if (level != list->level)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    hf__buf_format(list->out, "%s{\"level\":\"%s\",\"what\":", list->any ? "," : "", names[level]);
    hf__wire_write_str(list->out, hf_str_from(what));
    hf__buf_put_str(list->out, HF_STR(",\"advice\":"));
    hf__wire_write_str(list->out, hf_str_from(advice));
    hf__buf_put_byte(list->out, '}');
    list->any = true;
}

static bool is_near(uint64_t value, uint64_t limit, unsigned percent)
{
    return limit > 0 && value >= limit / 100 * percent;
}

static void check_disk(struct health_list *list, const struct health_facts *f)
{
    if (f->stopped)
        list_add(
            list, HEALTH_ERROR,
            "Look at the log and at the disk (dmesg), then restart the server. Every write that "
            "was answered is safe.",
            "A sync failed: writes are refused");
    if (f->no_space)
        list_add(list, HEALTH_ERROR, "Free space on the disk, or delete items.",
                 "The disk is full: only deletes are accepted");
    else if (f->disk_total &&
             (f->disk_free < GIB || is_near(f->disk_total - f->disk_free, f->disk_total, 90)))
        list_add(list, HEALTH_WARNING,
                 "Free space on the disk, or move the database to a larger one, before writes are "
                 "refused.",
                 "The disk has %.0f MiB left", (double)f->disk_free / MIB);
    if (f->commits >= SOME_COMMITS && f->commit_p99_us > SLOW_US)
        list_add(list, HEALTH_WARNING,
                 "Look for other programs that write to this disk, or use a faster one.",
                 "Syncs are slow: one of a hundred took more than %.0f ms in the last minute",
                 f->commit_p99_us / 1e3);
}

static void check_limits(struct health_list *list, const struct health_facts *f)
{
    if (f->turned_away)
        list_add(list, HEALTH_ERROR,
                 "Raise --connections, or close connections that clients do not use.",
                 "%llu connections were refused in the last minutes, as there were too many",
                 (unsigned long long)f->turned_away);
    else if (is_near(f->connections, f->connections_limit, 80))
        list_add(list, HEALTH_WARNING,
                 "Raise --connections, or close connections that clients do not use.",
                 "%llu of %llu connections are open", (unsigned long long)f->connections,
                 (unsigned long long)f->connections_limit);
    if (f->busy || f->evicted)
        list_add(list, HEALTH_WARNING, "Raise --memory, or send fewer large requests at once.",
                 "In the last minutes there was no memory for %llu answers",
                 (unsigned long long)(f->busy + f->evicted));
    else if (is_near(f->input, f->input_limit, 80) || is_near(f->output, f->output_limit, 80))
        list_add(list, HEALTH_WARNING, "Raise --memory, or send fewer large requests at once.",
                 "Requests and answers take %.0f of %.0f MiB", (double)(f->input + f->output) / MIB,
                 (double)(f->input_limit + f->output_limit) / MIB);
    if (is_near(f->resident, f->memory_limit, 85))
        list_add(list, HEALTH_WARNING,
                 "Lower --cache, --memtable or --memory, or give the process more memory.",
                 "The process takes %.0f of %.0f MiB", (double)f->resident / MIB,
                 (double)f->memory_limit / MIB);
    if (f->lengthy)
        list_add(list, HEALTH_INFO, "Look at the slowest of the live requests.",
                 "%llu requests kept others waiting for more than 50 ms in the last minutes",
                 (unsigned long long)f->lengthy);
}

static void check_access(struct health_list *list, const struct health_facts *f)
{
    if (f->open_to_all)
        list_add(list, HEALTH_WARNING, "Start the server with --credentials.",
                 "Everyone who can reach the port can read and change all data");
    if (f->refused >= SOME_REFUSED)
        list_add(list, HEALTH_WARNING,
                 "Look for a client with a wrong key, or with a clock that is wrong.",
                 "%llu requests were refused for their signature in the last minutes",
                 (unsigned long long)f->refused);
    if (f->clock_jump_ms)
        list_add(list, HEALTH_WARNING, "Let the clock be kept right by NTP, without jumps.",
                 "The clock of this machine jumped by %.1f s", (double)f->clock_jump_ms / 1e3);
}

static void check_data(struct health_list *list, const struct health_facts *f)
{
    if (f->in_memory)
        list_add(list, HEALTH_INFO, "Start the server without --in-memory to keep data.",
                 "Data is in memory: it is lost when the server stops");
    if (f->read_only)
        list_add(list, HEALTH_INFO, "Start it without --read-only to change data.",
                 "The database is read-only");
    if (!f->backups_known || f->tables == 0 || f->in_memory)
        return;
    if (f->backup_age_s < 0)
        list_add(list, HEALTH_INFO, "Make a backup of each table that matters.",
                 "There are no backups");
    else if (f->backup_age_s > OLD_BACKUP_S)
        list_add(list, HEALTH_WARNING, "Make a backup of each table that matters.",
                 "The newest backup is %lld days old", (long long)f->backup_age_s / (24 * 3600));
}

void hf__health_write(struct hf__buf *out, const struct health_facts *facts)
{
    struct health_list list = {.out = out};

    hf__buf_put_byte(out, '[');
    for (int level = 0; level < HEALTH_LEVELS; level++) {
        list.level = (enum health_level)level;
        check_disk(&list, facts);
        check_limits(&list, facts);
        check_access(&list, facts);
        check_data(&list, facts);
    }
    hf__buf_put_byte(out, ']');
}
