/*
 * cli/doctor/doctor_machine.c: versions, limits and the clock: what is the same for every database.
 *
 * Limits come from getrlimit(), from /proc/meminfo and from the control group of the process, of
 * version 2 (memory.max) or 1 (memory.limit_in_bytes). The lowest one counts. What a server needs
 * with its defaults is in docs/operations.md.
 */
#include "cli/doctor/doctor.h"

#include "base/library.h"

#include <openssl/crypto.h>

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>

#define MIB (UINT64_C(1024) * 1024)

enum {
    PROC_MAX = 8192,
    PATH_BYTES = 512,
    FILES_SERVER =
        10640,         /* descriptors of a server: 10,000 connections and the database's reserve */
    FILES_LEAST = 704, /* the reserve and a few connections */
    CLOCK_ERROR_MAX_US = 1000 * 1000,
    YEAR_LEAST = 2024 /* a clock before that was never set */
};

static const uint64_t server_memory = 480 * MIB; /* --memory, twice --memtable, --cache, 64 MiB */
static const uint64_t command_memory = 64 * MIB;
static const uint64_t file_size_least = 1024 * MIB;

/* ---- versions ------------------------------------------------------------------------------- */

struct crypto_library {
    __typeof__(OpenSSL_version) *OpenSSL_version;
};
#define LIBRARY_TABLE crypto_library
static const struct library_symbol crypto_symbols[] = {LIBRARY_SYMBOL(OpenSSL_version)};
#undef LIBRARY_TABLE

struct curl_library {
    char *(*curl_version)(void);
};
#define LIBRARY_TABLE curl_library
static const struct library_symbol curl_symbols[] = {LIBRARY_SYMBOL(curl_version)};
#undef LIBRARY_TABLE

/* The two libraries that the client loads when it connects. */
static void libraries_check(struct doctor *d)
{
    struct crypto_library crypto;
    struct curl_library curl;
    char why[LIBRARY_WHY];

    if (hf__library_find("libcrypto.so.3", "libssl3", crypto_symbols, COMMAND_LEN(crypto_symbols),
                         &crypto, why))
        hf__doctor_add(d, "OpenSSL", FINDING_OK,
                       hf_str_from(crypto.OpenSSL_version(OPENSSL_VERSION)), HF_STR(""));
    else
        hf__doctor_add(d, "OpenSSL", FINDING_PROBLEM, hf__doctor_text(d, "%s", why),
                       HF_STR("Install it: requests to a service cannot be signed without it."));
    if (hf__library_find("libcurl.so.4", NULL, curl_symbols, COMMAND_LEN(curl_symbols), &curl,
                         why)) {
        struct hf_str all = hf_str_from(curl.curl_version());

        hf__doctor_add(d, "libcurl", FINDING_OK, str_cut(&all, ' '), HF_STR(""));
    } else {
        hf__doctor_add(d, "libcurl", FINDING_PROBLEM, hf__doctor_text(d, "%s", why),
                       HF_STR("Install it: commands cannot connect to a service without it."));
    }
}

void hf__doctor_versions(struct doctor *d, bool network)
{
    struct utsname name;

    hf__doctor_add(d, "holdfast", FINDING_OK,
                   hf__doctor_text(d, "%s, with RocksDB %s", hf_version(), hf__cli_rocksdb()),
                   HF_STR(""));
    if (uname(&name) == 0)
        hf__doctor_add(d, "kernel", FINDING_OK,
                       hf__doctor_text(d, "%s %s on %s", name.sysname, name.release, name.machine),
                       HF_STR(""));
    if (network)
        libraries_check(d);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void files_check(struct doctor *d)
{
    struct rlimit limit;
    struct hf_str found;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_max == RLIM_INFINITY) {
        hf__doctor_add(d, "open files", FINDING_OK, HF_STR("no limit"), HF_STR(""));
        return;
    }
    found = hf__doctor_text(d, "at most %" PRIu64 " (hard limit %" PRIu64 ")",
                            (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max);
    if (limit.rlim_max < FILES_LEAST)
        hf__doctor_add(d, "open files", FINDING_PROBLEM, found,
                       hf__doctor_text(d,
                                       "A server needs %d at least. Raise the hard limit: "
                                       "LimitNOFILE= in the unit, or /etc/security/limits.conf.",
                                       FILES_LEAST));
    else if (limit.rlim_max < FILES_SERVER)
        hf__doctor_add(d, "open files", FINDING_WARNING, found,
                       hf__doctor_text(d,
                                       "A server accepts fewer connections than its 10,000. Raise "
                                       "the hard limit to %d, or set --connections lower.",
                                       FILES_SERVER));
    else
        hf__doctor_add(d, "open files", FINDING_OK, found, HF_STR(""));
}

static void file_size_check(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    hf__doctor_add(d, "file size",
                   limit.rlim_cur < file_size_least ? FINDING_PROBLEM : FINDING_WARNING,
                   hf__doctor_text(d, "at most %.*s",
                                   HF_FMT(hf__doctor_bytes(d, (uint64_t)limit.rlim_cur))),
                   HF_STR("The kernel ends a process that passes this limit. Remove it: ulimit -f "
                          "unlimited, or LimitFSIZE=infinity in the unit."));
}

/* A number of bytes behind "NAME:" in /proc/meminfo; 0: there is none. */
static uint64_t meminfo_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);

    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* The limit of one control group's file; UINT64_MAX: "max", or no such file. */
static uint64_t group_limit(const char *format, const char *group, uint64_t *used,
                            const char *used_format)
{
    char path[PATH_BYTES], text[64];
    uint64_t limit;

    snprintf(path, sizeof(path), format, group);
    if (!hf__doctor_read(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    limit = strtoull(text, NULL, 10);
    snprintf(path, sizeof(path), used_format, group);
    *used = hf__doctor_read(path, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
    return limit;
}

/* The lowest memory limit of our control group and those above it; UINT64_MAX: none. */
static uint64_t memory_limit(uint64_t *used)
{
    char groups[PROC_MAX], group[PATH_BYTES] = "";
    uint64_t lowest = UINT64_MAX;
    const char *line;

    if (!hf__doctor_read("/proc/self/cgroup", groups, sizeof(groups)))
        return lowest;
    line = strncmp(groups, "0::", 3) == 0 ? groups : strstr(groups, "\n0::");
    if (line)
        snprintf(group, sizeof(group), "%.*s", (int)strcspn(strstr(line, "0::") + 3, "\n"),
                 strstr(line, "0::") + 3);
    for (;;) {
        uint64_t now = 0, limit;
        char *slash = strrchr(group, '/');

        limit = group_limit("/sys/fs/cgroup%s/memory.max", group, &now,
                            "/sys/fs/cgroup%s/memory.current");
        if (limit < lowest) {
            lowest = limit;
            *used = now;
        }
        if (!slash)
            break;
        *slash = '\0';
    }
    if (lowest == UINT64_MAX)
        lowest = group_limit("/sys/fs/cgroup/memory%s/memory.limit_in_bytes", "", used,
                             "/sys/fs/cgroup/memory%s/memory.usage_in_bytes");
    return lowest;
}

static void memory_check(struct doctor *d)
{
    char text[PROC_MAX];
    uint64_t total = 0, available = 0, used = 0, group = memory_limit(&used);
    bool grouped;
    struct hf_str found;

    if (hf__doctor_read("/proc/meminfo", text, sizeof(text))) {
        total = meminfo_bytes(text, "MemTotal:");
        available = meminfo_bytes(text, "MemAvailable:");
    }
    if (!total)
        return;
    grouped = group < total;
    if (grouped) {
        total = group;
        if (available > (used < group ? group - used : 0))
            available = used < group ? group - used : 0;
    }
    found = hf__doctor_text(d, "%.*s available of %.*s%s", HF_FMT(hf__doctor_bytes(d, available)),
                            HF_FMT(hf__doctor_bytes(d, total)),
                            grouped ? ", the limit of the control group" : "");
    if (available < command_memory)
        hf__doctor_add(d, "memory", FINDING_PROBLEM, found,
                       HF_STR("Free some, or raise the limit of the container or unit: the kernel "
                              "may end processes."));
    else if (total < server_memory)
        hf__doctor_add(d, "memory", FINDING_WARNING, found,
                       HF_STR("A server with its defaults may take 480 MiB. Start it with a lower "
                              "--memory, --memtable and --cache, or raise the limit."));
    else
        hf__doctor_add(d, "memory", FINDING_OK, found, HF_STR(""));
}

/* Where the kernel promises no more memory than it has, allocations fail early. */
static void overcommit_check(struct doctor *d)
{
    char text[PROC_MAX];
    uint64_t limit, committed, left;

    if (!hf__doctor_read("/proc/sys/vm/overcommit_memory", text, sizeof(text)) || text[0] != '2' ||
        !hf__doctor_read("/proc/meminfo", text, sizeof(text)))
        return;
    limit = meminfo_bytes(text, "CommitLimit:");
    committed = meminfo_bytes(text, "Committed_AS:");
    left = limit > committed ? limit - committed : 0;
    hf__doctor_add(d, "overcommit", left < server_memory ? FINDING_WARNING : FINDING_OK,
                   hf__doctor_text(d, "vm.overcommit_memory is 2, and %.*s can still be promised",
                                   HF_FMT(hf__doctor_bytes(d, left))),
                   left < server_memory
                       ? HF_STR("Allocations of a server may fail: add swap, raise "
                                "vm.overcommit_ratio, or set vm.overcommit_memory to 0.")
                       : HF_STR(""));
}

void hf__doctor_limits(struct doctor *d)
{
    files_check(d);
    file_size_check(d);
    memory_check(d);
    overcommit_check(d);
}

/* ---- the clock ------------------------------------------------------------------------------ */

void hf__doctor_clock(struct doctor *d)
{
    struct timex state = {.modes = 0};
    time_t now = time(NULL);
    struct tm parts;
    int result;

    if (gmtime_r(&now, &parts) && parts.tm_year + 1900 < YEAR_LEAST) {
        hf__doctor_add(d, "clock", FINDING_PROBLEM,
                       hf__doctor_text(d, "the year is %d", parts.tm_year + 1900),
                       HF_STR("Set the clock: signatures, expiry and TLS depend on it."));
        return;
    }
    result = adjtimex(&state);
    if (result < 0)
        hf__doctor_add(d, "clock", FINDING_SKIPPED,
                       HF_STR("the kernel does not say whether it is synchronised"), HF_STR(""));
    else if (result == TIME_ERROR || (state.status & STA_UNSYNC))
        hf__doctor_add(d, "clock", FINDING_WARNING,
                       HF_STR("not synchronised with other clocks (NTP)"),
                       HF_STR("Run an NTP client, such as chrony or systemd-timesyncd: services "
                              "refuse signatures that are five minutes off."));
    else if (state.maxerror > CLOCK_ERROR_MAX_US)
        hf__doctor_add(d, "clock", FINDING_WARNING,
                       hf__doctor_text(d, "synchronised, but it may be off by %.*s",
                                       HF_FMT(hf__doctor_time(d, state.maxerror))),
                       HF_STR("Look at the NTP client, such as with 'chronyc tracking'."));
    else
        hf__doctor_add(d, "clock", FINDING_OK,
                       hf__doctor_text(d, "synchronised, off by %.*s at most",
                                       HF_FMT(hf__doctor_time(d, state.maxerror))),
                       HF_STR(""));
}
