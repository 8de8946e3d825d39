/*
 * client/config.c: load AWS's two files and the variables, and answer what they say.
 *
 * The list of variables below is all that the client ever reads of the environment. They are copied
 * when the config is loaded: a program may call setenv() later, which would pull the text away from
 * under a thread that refreshes credentials.
 *
 * What always holds:
 *
 *  (1) A config does not change. All its memory is one scope of its own, which nobody allocates
 *      from after hf__config_load() returned.
 *  (2) Opening a file never waits, and no more than INI_FILE_MAX bytes of it are read.
 *  (3) Nothing that stands in a file is part of an error or of a log line, except names of
 *      profiles that were asked for.
 */
#include "client/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aws_variables.h"
#include "client/ini.h"

static const char *const names[] = {
    AWS_VARIABLES, "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
    "ALL_PROXY",   "no_proxy",    "NO_PROXY",    "HOME",
};

struct config {
    struct hf_env env;
    struct hf_scope *memory; /* of all below */
    struct hf_str profile;
    struct hf_str variables[ARRAY_LEN(names)]; /* absent ones have no ptr */
    struct ini ini;                            /* the config file, then the credentials file */
};

/* ---- files ---------------------------------------------------------------------------------- */

struct file {
    enum ini_file kind;
    const char *variable; /* that may name it */
    const char *usual;    /* where it is below HOME */
    const char *path;     /* NULL: there is none */
    bool named;           /* by the variable: then it has to be there */
};

static struct hf_str variable_of(const struct config *config, const char *name)
{
    size_t i = 0;

    while (i < ARRAY_LEN(names) && strcmp(names[i], name) != 0)
        i++;
    assert(i < ARRAY_LEN(names)); /* else the list lacks a name */
    return config->variables[i];
}

static enum hf_status find_path(struct hf_scope *s, struct config *config, struct file *file)
{
    struct hf_str home = variable_of(config, "HOME");
    struct hf_str path = variable_of(config, file->variable), rest;

    assert(!file->path && file->variable && file->usual[0] != '/');
    file->named = path.ptr != NULL;
    if (!path.ptr && !home.ptr)
        return HF_OK;
    if (!path.ptr)
        path = hf_scope_format(config->memory, "%.*s/%s", HF_FMT(home), file->usual);
    else if (home.ptr && str_after(path, HF_STR("~/"), &rest))
        path = hf_scope_format(config->memory, "%.*s/%.*s", HF_FMT(home), HF_FMT(rest));
    file->path = path.ptr;
    return path.ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status fail_file(struct hf_scope *s, const struct file *file, enum hf_status status,
                                const char *why)
{
    assert(file->path && status != HF_OK);
    return hf__fail(s, status, "%s%s%s: %s", file->path, file->named ? ", named by " : "",
                    file->named ? file->variable : "", why);
}

/* A home that is closed to us, as that of root to a service, has no files for us. */
static bool is_missing(const struct file *file, int error)
{
    struct stat info;

    assert(error != 0 && file->path);
    if (file->named)
        return false;
    return error == ENOENT || error == ENOTDIR ||
           (error == EACCES && stat(file->path, &info) != 0 && errno == EACCES);
}

static enum hf_status check_file(struct hf_scope *s, const struct config *config,
                                 const struct file *file, int fd, size_t *size)
{
    struct stat info;

    assert(file->path && fd >= 0);
    if (fstat(fd, &info) != 0)
        return fail_file(s, file, HF_IO, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return fail_file(s, file, HF_INVALID, "it is a directory");
    if (!S_ISREG(info.st_mode))
        return fail_file(s, file, HF_INVALID, "it is not a regular file");
    if (info.st_size > INI_FILE_MAX)
        return hf__fail(s, HF_INVALID, "%s: it is larger than %d bytes", file->path, INI_FILE_MAX);
    if (file->kind == INI_CREDENTIALS && (info.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)))
        hf__env_log(&config->env, HF_LOG_WARNING,
                    "%s: other users can %s it (mode %03o); run chmod 600", file->path,
                    info.st_mode & (S_IWOTH | S_IWGRP) ? "change" : "read",
                    (unsigned)info.st_mode & 0777u);
    *size = (size_t)info.st_size;
    return HF_OK;
}

/* (2): not more than the size that was checked, even when the file grows meanwhile. */
static enum hf_status read_file(struct hf_scope *s, struct config *config, const struct file *file,
                                int fd)
{
    size_t cap = 0, len = 0;
    char *text;

    TRY(check_file(s, config, file, fd, &cap));
    text = hf_scope_alloc(config->memory, cap + 1);
    if (!text)
        return hf__fail_nomem(s);
    while (len < cap) {
        ssize_t more = read(fd, text + len, cap - len);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return fail_file(s, file, HF_IO, strerror(errno));
        if (more == 0)
            break;
        len += (size_t)more;
    }
    assert(len <= cap && cap <= INI_FILE_MAX); /* (2) */
    return hf__ini_parse(s, config->memory, file->kind, file->path, text, len, &config->ini);
}

static enum hf_status load_file(struct hf_scope *s, struct config *config, struct file *file)
{
    enum hf_status status;
    int fd;

    TRY(find_path(s, config, file));
    /* The usual way to say that there shall be no file. */
    if (!file->path || strcmp(file->path, "/dev/null") == 0)
        return HF_OK;
    fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return is_missing(file, errno) ? HF_OK : fail_file(s, file, HF_IO, strerror(errno));
    status = read_file(s, config, file, fd);
    close(fd);
    return status;
}

/* ---- load ----------------------------------------------------------------------------------- */

static enum hf_status read_variables(struct hf_scope *s, struct config *config)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct hf_str value = hf_str_from(config->env.getenv(names[i], config->env.user));

        if (!value.len)
            continue;
        config->variables[i] = hf_scope_copy(config->memory, value);
        if (!config->variables[i].ptr)
            return hf__fail_nomem(s);
    }
    return HF_OK;
}

/* The profile, and whether somebody asked for it by name. */
static enum hf_status choose_profile(struct hf_scope *s, struct config *config,
                                     struct hf_str profile, const char **asked_by)
{
    static const char *const by[] = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"};

    assert(!config->profile.ptr); /* once (1) */
    *asked_by = profile.len ? "the program" : NULL;
    for (size_t i = 0; i < ARRAY_LEN(by) && !profile.len; i++) {
        profile = variable_of(config, by[i]);
        *asked_by = profile.len ? by[i] : NULL;
    }
    config->profile = hf_scope_copy(config->memory, profile.len ? profile : HF_STR("default"));
    return config->profile.ptr ? HF_OK : hf__fail_nomem(s);
}

static void warn_of_services(const struct config *config)
{
    struct hf_str name = hf__config_value(config, config->profile, "services");

    if (name.ptr && !hf__ini_has(&config->ini, INI_SERVICES, name))
        hf__env_log(&config->env, HF_LOG_WARNING,
                    "the profile '%.*s' has services = NAME, but there is no such [services NAME]",
                    HF_FMT(config->profile));
}

static enum hf_status files_load(struct hf_scope *s, struct config *config, struct hf_str profile)
{
    struct file config_file = {.kind = INI_CONFIG,
                               .variable = "AWS_CONFIG_FILE",
                               .usual = ".aws/config"};
    struct file credentials_file = {.kind = INI_CREDENTIALS,
                                    .variable = "AWS_SHARED_CREDENTIALS_FILE",
                                    .usual = ".aws/credentials"};
    const char *asked_by;

    TRY(read_variables(s, config));
    TRY(choose_profile(s, config, profile, &asked_by));
    TRY(load_file(s, config, &config_file));
    TRY(load_file(s, config, &credentials_file));
    if (asked_by && !hf__config_has_profile(config, config->profile))
        return hf__fail(s, HF_INVALID, "profile '%.*s', named by %s, is not in %s or %s",
                        HF_FMT(config->profile), asked_by,
                        config_file.path ? config_file.path : "~/.aws/config",
                        credentials_file.path ? credentials_file.path : "~/.aws/credentials");
    warn_of_services(config);
    return HF_OK;
}

enum hf_status hf__config_load(struct hf_scope *s, const struct hf_env *env, struct hf_str profile,
                               bool nothing, struct config **config)
{
    struct hf_scope *memory = hf_scope_new(env);
    struct config *fresh = memory ? hf__scope_array(memory, 1, sizeof(*fresh)) : NULL;
    const char *asked_by;
    enum hf_status status;

    *config = NULL;
    if (!fresh) {
        hf_scope_free(memory);
        return hf__fail_nomem(s);
    }
    fresh->env = hf__env_fill(env);
    fresh->memory = memory;
    status = nothing ? choose_profile(s, fresh, profile, &asked_by) : files_load(s, fresh, profile);
    if (status != HF_OK)
        hf__config_free(fresh);
    else
        *config = fresh;
    return status;
}

void hf__config_free(struct config *config)
{
    if (config)
        hf_scope_free(config->memory); /* where the config is, too */
}

/* ---- questions ------------------------------------------------------------------------------ */

const struct hf_env *hf__config_env(const struct config *config)
{
    return &config->env;
}

struct hf_str hf__config_profile(const struct config *config)
{
    assert(config->profile.len > 0);
    return config->profile;
}

struct hf_str hf__config_variable(const struct config *config, const char *name)
{
    return variable_of(config, name);
}

static struct hf_str unless_empty(struct hf_str value)
{
    return value.len ? value : (struct hf_str){0};
}

struct hf_str hf__config_value(const struct config *config, struct hf_str profile, const char *key)
{
    return unless_empty(hf__ini_find(&config->ini, INI_PROFILE, profile, key, NULL));
}

bool hf__config_has_profile(const struct config *config, struct hf_str profile)
{
    assert(profile.ptr || !profile.len);
    return hf__ini_has(&config->ini, INI_PROFILE, profile);
}

struct hf_str hf__config_sso(const struct config *config, struct hf_str session, const char *key)
{
    return unless_empty(hf__ini_find(&config->ini, INI_SSO_SESSION, session, key, NULL));
}

struct hf_str hf__config_service(const struct config *config, const char *service, const char *key)
{
    struct hf_str name = hf__config_value(config, config->profile, "services");

    assert(service && key);
    if (!name.ptr)
        return name;
    return unless_empty(hf__ini_find(&config->ini, INI_SERVICES, name, service, key));
}

struct hf_str hf__config_setting(const struct config *config, const char *variable_name,
                                 const char *key)
{
    struct hf_str value = variable_of(config, variable_name);

    assert(variable_name && key);
    return value.ptr ? value : hf__config_value(config, config->profile, key);
}
