/*
 * exec.c: become another program, as exec(3). Node has no such function before version 22.15.
 *
 *     exec(file, arguments)    arguments[0] is the name of the program; returns only by throwing
 *
 * So `npx holdfast` is the command itself and not a parent of it: it has our process id, terminal,
 * signals and exit code.
 */
#define NAPI_VERSION 8
#include <node_api.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text_of(napi_env env, napi_value value)
{
    size_t len = 0;
    char *text;

    if (napi_get_value_string_utf8(env, value, NULL, 0, &len) != napi_ok)
        return NULL;
    text = malloc(len + 1);
    if (text)
        (void)napi_get_value_string_utf8(env, value, text, len + 1, &len);
    return text;
}

static char **texts_of(napi_env env, napi_value array)
{
    uint32_t len = 0;
    char **texts;

    if (napi_get_array_length(env, array, &len) != napi_ok)
        return NULL;
    texts = calloc((size_t)len + 1, sizeof(*texts));
    for (uint32_t i = 0; texts && i < len; i++) {
        napi_value value;

        if (napi_get_element(env, array, i, &value) != napi_ok ||
            (texts[i] = text_of(env, value)) == NULL)
            return NULL; /* it was for the end of this process anyway */
    }
    return texts;
}

static napi_value exec(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    size_t count = 2;
    char *file = NULL, **texts = NULL;
    sigset_t none;

    if (napi_get_cb_info(env, info, &count, args, NULL, NULL) == napi_ok && count == 2) {
        file = text_of(env, args[0]);
        texts = texts_of(env, args[1]);
    }
    if (!file || !texts) {
        (void)napi_throw_error(env, NULL,
                               "exec(file, arguments): a string and an array of strings");
        return NULL;
    }
    /* Node ignores it. What is handled becomes the default by itself, what is ignored does not. */
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = 0; fd <= 2; fd++) { /* Node closes all of them at an exec() */
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0)
            (void)fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC);
    }
    execv(file, texts);
    (void)napi_throw_error(env, NULL, strerror(errno));
    return NULL;
}

/* Node finds the module by this name; without a version of its own it is one of Node-API 8. */
NAPI_EXTERN napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    napi_value value;

    if (napi_create_function(env, "exec", NAPI_AUTO_LENGTH, exec, NULL, &value) != napi_ok ||
        napi_set_named_property(env, exports, "exec", value) != napi_ok)
        return NULL;
    return exports;
}
