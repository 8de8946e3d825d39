/*
 * base/library.c: loading shared libraries; see the header.
 *
 *  (1) A library is loaded with RTLD_LOCAL, so its names do not mix with others' of the program,
 *      and with RTLD_NODELETE: some have threads, and handlers for the end of threads and of the
 *      program, that must not lose their code.
 *  (2) A table is complete or was not asked for: a function that is missing fails the whole.
 */
#include "base/library.h"

#include <dlfcn.h>

/* "libnats3.4" for "libnats.so.3.4", "libmp3-1" for "libmp3.so.1": as Debian names packages. */
static void name_package(const char *soname, char *name, size_t size)
{
    static const char mark[] = ".so.";
    const char *so = (const char *)memmem(soname, strlen(soname), mark, strlen(mark));
    bool digit = so && so > soname && so[-1] >= '0' && so[-1] <= '9';

    if (so)
        snprintf(name, size, "%.*s%s%s", (int)(so - soname), soname, digit ? "-" : "",
                 so + strlen(mark));
    else
        snprintf(name, size, "%s", soname);
}

/* Is it this library that is missing, or is it there and cannot be used: one that it needs, ...? */
static bool is_missing(const char *soname, const char *said)
{
    static const char words[] = "No such file";
    size_t len = strlen(soname), said_len = strlen(said);

    return said_len > len && memcmp(said, soname, len) == 0 &&
           memmem(said, said_len, words, strlen(words)) != NULL;
}

static void say_why(const char *soname, const char *package, const char *said,
                    char why[LIBRARY_WHY])
{
    char name[LIBRARY_WHY / 4];

    if (!is_missing(soname, said)) {
        snprintf(why, LIBRARY_WHY, "library %s cannot be loaded: %s", soname, said);
        return;
    }
    if (!package)
        name_package(soname, name, sizeof(name));
    snprintf(why, LIBRARY_WHY, "library %s is missing: install package %s", soname,
             package ? package : name);
}

bool hf__library_find(const char *soname, const char *package, const struct library_symbol *symbols,
                      size_t len, void *table, char why[LIBRARY_WHY])
{
    void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* (1) */
    const char *missing = NULL;

    if (!handle) {
        say_why(soname, package, dlerror(), why);
        return false;
    }
    for (size_t i = 0; i < len && !missing; i++) {
        void *function = dlsym(handle, symbols[i].name);

        if (!function)
            missing = symbols[i].name; /* (2) */
        /* POSIX has dlsym() return functions as data, which C does not know how to convert. */
        memcpy((char *)table + symbols[i].at, &function, sizeof(function));
    }
    if (missing)
        snprintf(why, LIBRARY_WHY, "library %s has no %s(): install a newer version of it", soname,
                 missing);
    (void)dlclose(handle); /* (1): it stays */
    return !missing;
}

enum hf_status hf__library_load(struct hf_scope *s, const char *soname,
                                const struct library_symbol *symbols, size_t len, void *table)
{
    char why[LIBRARY_WHY];

    if (hf__library_find(soname, NULL, symbols, len, table, why))
        return HF_OK;
    return hf__fail(s, HF_UNSUPPORTED, "%s", why);
}
