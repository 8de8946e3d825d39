/*
 * cli/serve/keys.h: who may call, from a file of credentials.
 */
#ifndef HF_CLI_SERVE_KEYS_H
#define HF_CLI_SERVE_KEYS_H

#include <holdfast/scope.h>

enum { KEYS_FILE_MAX = 1024 * 1024, KEYS_MAX = 1000 };

struct cli_key {
    struct hf_str access;
    struct hf_str secret;
    struct hf_str token; /* absent: none */
};

struct cli_keys {
    struct cli_key *list; /* in the scope */
    size_t len;
    struct hf_str error; /* one sentence with file and line */
};

/*
 * Read AWS's credentials format: profiles in brackets, each with aws_access_key_id and
 * aws_secret_access_key, perhaps aws_session_token. `path` is only for errors.
 */
bool hf__keys_parse(struct hf_scope *s, const char *path, struct hf_str text,
                    struct cli_keys *keys);

/* The same from a file; "-" is standard input. A file that others may read or change is refused. */
bool hf__keys_read(struct hf_scope *s, const char *path, struct cli_keys *keys);

#endif
