/*
 * cli/frame/options/help.h: what the command says about itself: the list of nouns by group, the commands of a
 * noun, and topics, which are about all commands. manual.c makes the manual pages of the same.
 */
#ifndef HF_CLI_FRAME_HELP_H
#define HF_CLI_FRAME_HELP_H

#include "cli/frame/cli.h"

/* A line of the list: a noun with several commands, or a command of one word. */
struct help_entry {
    const char *word;
    const char *summary;
    size_t group;                      /* in cli->groups */
    const struct cli_noun *noun;       /* NULL: none is known of that name */
    const struct cli_command *command; /* the first one whose name begins with the word */
};

/* All of them, as the groups order them. Those that no group names are last. NULL: no memory. */
const struct help_entry *hf__help_entries(struct cli *cli, size_t *len);

/* Does the name of a command begin with this word, and have another behind it? */
bool hf__help_is_of(const char *name, const char *word);

/* The commands of a noun, as "add, get, set". */
struct hf_str hf__help_verbs(struct cli *cli, const char *noun);

/* About all commands: `holdfast help WORD`. */
struct help_topic {
    const char *word;
    const char *title;   /* of its section in the manual */
    const char *summary; /* in the list of topics */
    const char *text;    /* as in text.h */
};

extern const struct help_topic hf__help_topics[];
extern const size_t hf__help_topics_len;

/* Opens the help and the manual. */
extern const char hf__help_about[];

/* `holdfast --help`, `holdfast NOUN --help`. They return how the program ends. */
int hf__help_print(struct cli *cli);
int hf__help_print_noun(struct cli *cli, const char *noun);

/* `holdfast help WORDS`, where these are no command; false: nor anything else. */
bool hf__help_find(struct cli *cli, const char *word, int *ends);

#endif
