/*
 * client/ini.h: the dialect of ini in AWS's two files, as a list of settings in the order of the
 * files. See ini.c for the rules.
 */
#ifndef HF_CLIENT_INI_H
#define HF_CLIENT_INI_H

#include "base/base.h"

enum {
    INI_FILE_MAX = 1024 * 1024, /* bytes of a file */
    INI_LINE_MAX = 64 * 1024    /* bytes of a line; long session tokens have some thousand */
};

/* Which file it is: in the credentials file a section is the name of a profile and no more. */
enum ini_file { INI_CONFIG, INI_CREDENTIALS };

enum ini_kind { INI_OTHER, INI_PROFILE, INI_SSO_SESSION, INI_SERVICES };

struct ini_entry {
    enum ini_kind kind;
    bool bare;             /* of [default], as opposed to [profile default] */
    struct hf_str section; /* name of the profile, session or services; absent of others */
    struct hf_str key;     /* absent: this entry says that the section is there */
    struct hf_str sub;     /* key in the table below an empty value; else absent */
    struct hf_str value;
};

struct ini {
    struct ini_entry *list;
    size_t len;
    size_t cap;
};

/*
 * Add what `text` says behind what is in `ini`. The text is changed and must live as long as the
 * ini, as must `memory`, where the list comes from. `path` is for messages.
 *
 * HF_INVALID  with file and line, never with what is written there
 * HF_NOMEM
 */
enum hf_status hf__ini_parse(struct hf_scope *s, struct hf_scope *memory, enum ini_file file,
                             const char *path, char *text, size_t len, struct ini *ini);

/*
 * The newest value of a key, in any case; absent when there is none. With `sub`, that of the table
 * below the newest `key`.
 */
struct hf_str hf__ini_find(const struct ini *ini, enum ini_kind kind, struct hf_str section,
                           const char *key, const char *sub);
bool hf__ini_has(const struct ini *ini, enum ini_kind kind, struct hf_str section);

#endif
