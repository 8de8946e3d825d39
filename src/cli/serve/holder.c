/*
 * cli/serve/holder.c: which process has a directory locked, and what to do about it.
 *
 * Linux lists its locks in /proc/locks:
 *
 *     1: FLOCK  ADVISORY  WRITE 20073 fe:00:10961338 0 EOF
 *
 * kind, strength, mode, process, device and inode of the file. Of several that read, one is named.
 * Where there is no such list, or the holder is in another container and has no number here,
 * nothing is said.
 *
 * What the process is, its arguments say (/proc/PID/cmdline). For `holdfast serve` the URL is found:
 * the host is in its arguments, and the port is that of a socket which it has open and which
 * /proc/PID/net/tcp knows to listen, as the arguments may leave it to a variable or to systemd. Other
 * programs that serve the directory note their URL in it, in the file "served".
 */
#include "cli/serve/holder.h"

#include "cli/serve/serve.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256, NAME_MAX_BYTES = 64, ARGS_MAX_BYTES = 4096, ARGS_MAX = 64 };
enum { ANCESTORS_MAX = 64, TCP_LISTENING = 10 /* as /proc/net/tcp has it */ };

/* ---- the process ---------------------------------------------------------------------------- */

/* What /proc/PID/NAME has, up to `size`, with a NUL behind it; returns how much. */
static size_t read_process(long pid, const char *name, char *room, size_t size)
{
    char path[NAME_MAX_BYTES];
    size_t len = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
    file = fopen(path, "re");
    if (file) {
        len = fread(room, 1, size - 1, file);
        fclose(file);
    }
    room[len] = '\0';
    return len;
}

/* The arguments, of which `room` holds the texts. */
static size_t read_args(long pid, char room[ARGS_MAX_BYTES], const char *args[ARGS_MAX])
{
    size_t len = read_process(pid, "cmdline", room, ARGS_MAX_BYTES);
    size_t count = 0;

    for (size_t at = 0; at < len && count < ARGS_MAX; at += strlen(room + at) + 1)
        args[count++] = room + at;
    return count;
}

static bool has_socket(long pid, unsigned long long inode)
{
    char path[NAME_MAX_BYTES], expected[NAME_MAX_BYTES];
    struct dirent *entry;
    bool found = false;
    DIR *files;

    snprintf(expected, sizeof(expected), "socket:[%llu]", inode);
    snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
    files = opendir(path);
    while (files && !found && (entry = readdir(files))) {
        char target[NAME_MAX_BYTES] = "";

        found = readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1) > 0 &&
                strcmp(target, expected) == 0;
    }
    if (files)
        closedir(files);
    return found;
}

/* The port that a process listens on by `table`; 0: on none, or it may not be seen. */
static unsigned listening_port(long pid, const char *table)
{
    char path[NAME_MAX_BYTES], line[LINE_MAX_BYTES];
    unsigned found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/net/%s", pid, table);
    file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned port, state;
        unsigned long long inode;

        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %llu", &port, &state,
                   &inode) == 3 &&
            state == TCP_LISTENING && has_socket(pid, inode))
            found = port;
    }
    if (file)
        fclose(file);
    return found;
}

/* Where a server with these arguments listens; absent: that cannot be seen. */
static struct hf_str url_of(struct hf_scope *s, long pid, size_t args_len, const char *const *args)
{
    struct serve_plan plan = {.open = false};
    unsigned port = listening_port(pid, "tcp");
    struct options options;

    if (!port)
        port = listening_port(pid, "tcp6");
    if (!port || hf__options_parse(s, &hf__serve_options, args_len, args, NULL, &plan.settings,
                                   &options) != OPTIONS_OK)
        return (struct hf_str){0};
    return hf__serve_url(s, &plan, (uint16_t)port);
}

static bool is_word(const char *arg)
{
    for (const char *at = arg; *at; at++)
        if (*at < 'a' || *at > 'z')
            return false;
    return *arg != '\0';
}

/* What a program has noted that serves the directory which it has open (serving/serving.c): "4711
 * http://127.0.0.1:8000". Absent: it does not, or the note is somebody else's. */
static struct hf_str noted_url(struct hf_scope *s, long pid, const char *path)
{
    struct hf_str name = hf_scope_format(s, "%s/served", path), url = {0};
    char line[LINE_MAX_BYTES], text[LINE_MAX_BYTES];
    FILE *file = name.ptr ? fopen(name.ptr, "re") : NULL;
    long noted;

    if (file && fgets(line, sizeof(line), file) && line[strcspn(line, "\n")] == '\n' &&
        sscanf(line, "%ld %255s", &noted, text) == 2 && noted == pid &&
        strncmp(text, "http://", strlen("http://")) == 0)
        url = hf_scope_format(s, "%s", text);
    if (file)
        fclose(file);
    return url;
}

static void holder_describe(struct hf_scope *s, struct holder *holder, const char *path)
{
    char name[NAME_MAX_BYTES], room[ARGS_MAX_BYTES];
    const char *args[ARGS_MAX];
    size_t args_len = read_args(holder->pid, room, args);
    bool ours;

    read_process(holder->pid, "comm", name, sizeof(name));
    name[strcspn(name, "\n")] = '\0';
    ours = strcmp(name, "holdfast") == 0 && args_len > 1 && is_word(args[1]);
    holder->server = ours && strcmp(args[1], "serve") == 0;
    if (holder->server)
        holder->url = url_of(s, holder->pid, args_len - 2, args + 2);
    else
        holder->url = noted_url(s, holder->pid, path);
    if (ours)
        holder->text = hf_scope_format(s, "process %ld (%s %s%s%s)", holder->pid, name, args[1],
                                       args_len > 2 && is_word(args[2]) ? " " : "",
                                       args_len > 2 && is_word(args[2]) ? args[2] : "");
    else if (*name)
        holder->text = hf_scope_format(s, "process %ld (%s)", holder->pid, name);
    else
        holder->text = hf_scope_format(s, "process %ld", holder->pid);
}

/* Who started `pid`; 0: nobody that can be seen. */
static long parent_of(long pid)
{
    char room[ARGS_MAX_BYTES];
    const char *line;
    long parent = 0;

    read_process(pid, "status", room, sizeof(room));
    line = strstr(room, "\nPPid:");
    if (line && sscanf(line, "\nPPid: %ld", &parent) != 1)
        parent = 0;
    return parent;
}

static bool is_ancestor(long pid)
{
    long at = (long)getpid();

    for (int i = 0; i < ANCESTORS_MAX && at > 1; i++) {
        at = parent_of(at);
        if (at == pid)
            return true;
    }
    return false;
}

/* ---- the lock ------------------------------------------------------------------------------- */

struct holder hf__holder_find(struct hf_scope *s, const char *path)
{
    struct holder holder = {.pid = 0};
    struct stat info;
    char line[LINE_MAX_BYTES];
    FILE *file;

    if (stat(path, &info) != 0)
        return holder;
    file = fopen("/proc/locks", "re");
    while (file && !holder.pid && fgets(line, sizeof(line), file)) {
        long pid;
        unsigned major_number, minor_number;
        unsigned long long inode;

        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%llu", &pid, &major_number, &minor_number,
                   &inode) == 4 &&
            pid > 0 && inode == info.st_ino && major_number == major(info.st_dev) &&
            minor_number == minor(info.st_dev))
            holder.pid = pid;
    }
    if (file)
        fclose(file);
    if (holder.pid) {
        holder_describe(s, &holder, path);
        holder.started_us = is_ancestor(holder.pid);
    }
    return holder;
}

struct hf_str hf__holder_advice(struct hf_scope *s, const struct holder *holder, const char *path)
{
    if (holder->url.ptr)
        return hf_scope_format(s, "connect to it with --db %.*s", HF_FMT(holder->url));
    if (holder->server)
        return HF_STR(
            "connect to it with --db http://HOST:PORT (it printed its URL when it started)");
    if (holder->started_us)
        return HF_STR("it started this command: use a server for both, 'holdfast serve'");
    return hf_scope_format(
        s,
        "wait until it ends, or share the directory through a server: run 'holdfast serve "
        "--db-path %s' and give its URL as --db",
        path);
}
