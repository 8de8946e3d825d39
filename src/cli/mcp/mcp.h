/*
 * cli/mcp/mcp.h: the parts of `holdfast mcp`, a server of the Model Context Protocol on standard input and
 * output: tools as data (mcp_tools.c), running one (mcp_call.c), the protocol (cmd_mcp.c).
 *
 * A tool is a command of this program with named parameters. It is run in this process as if it had been
 * typed, with --json: so a tool does what its command does, and says what it says.
 */
#ifndef HF_CLI_MCP_MCP_H
#define HF_CLI_MCP_MCP_H

#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

enum { MCP_MAX_ITEMS_MAX = 10000 };
enum { MCP_KEYS_MAX = 25 }; /* items that one call gets by their keys */
enum { MCP_MAX_BYTES_MIN = 1024, MCP_MAX_BYTES_MAX = 64 * 1024 * 1024 };

/* What a parameter is in JSON, and what becomes of it on the command line. */
enum mcp_kind {
    MCP_TEXT = 1, /* a string */
    MCP_NUMBER,   /* an integer */
    MCP_FLAG,     /* a boolean; true is the option */
    MCP_OBJECT,   /* an object, as JSON */
    MCP_ANY,      /* any value, as JSON */
    MCP_KEY,      /* one or two strings or numbers, a word for each */
    MCP_KEYS,     /* several of those, for a tool that gets an item for each */
    MCP_TEXTS,    /* strings, a word or an option for each */
    MCP_VALUES    /* any values, a word of JSON for each */
};

struct mcp_parameter {
    const char *name;
    enum mcp_kind kind;
    const char *option; /* "--index"; NULL: an operand */
    const char *text;
    const char *words; /* what a text may be, with blanks between them; NULL: anything */
    bool required;
};

struct mcp_tool {
    const char *name;
    const char *command; /* "item get" */
    const char *text;
    const struct mcp_parameter *parameters;
    size_t len;
    bool writes;
    bool destroys;   /* it can remove or replace what is there */
    bool idempotent; /* of those that write: twice is as once */
    bool each;       /* it is run for each key of its parameter `keys`: mcp_call.c */
    bool limited;    /* it lists: has `limit`, which --max-items bounds */
    bool cut;        /* of those: its list has no "next"; "more": true says that there is more */
    bool statement;  /* its first parameter is PartiQL, which writes with --write alone */
    bool guarded;    /* it writes with --write alone: otherwise its command gets --read-only */
    bool by_table;   /* it works on the table that its parameter `table` names, or on all tables */
};

extern const struct mcp_tool hf__mcp_tools[];
extern const size_t hf__mcp_tools_len;

struct mcp_settings {
    struct database_settings database;
    bool write;
    struct option_list tables; /* no other ones; empty: all */
    uint64_t max_items;
    uint64_t max_bytes;
    struct hf_str blobs; /* for commands that have the option; absent: none */
};

/* Is the tool there with these settings? */
bool hf__mcp_tool_offered(const struct mcp_settings *settings, const struct mcp_tool *tool);

/* The tool of that name, offered or not; NULL: there is none. */
const struct mcp_tool *hf__mcp_tool_find(struct hf_str name);

/* "{"name":...}" as tools/list has it. `annotations`: the client's version of the protocol has them. */
void hf__mcp_tool_write(FILE *out, const struct mcp_settings *settings, const struct mcp_tool *tool,
                        bool annotations);

/*
 * Run a tool in the scope, which another thread may cancel. The result is that of tools/call, in the scope; with
 * `structured` it has structuredContent. Absent: no memory.
 */
struct hf_str hf__mcp_call(const struct cli *cli, const struct mcp_settings *settings,
                           const struct mcp_tool *tool, const struct json_node *arguments,
                           bool structured, struct hf_scope *s);

/*
 * Tables as resources, holdfast://tables/NAME: the result of resources/list, and of resources/read. Absent: an
 * error, and *error says which.
 */
struct hf_str hf__mcp_resources_list(const struct cli *cli, const struct mcp_settings *settings,
                                     struct hf_scope *s, struct hf_str *error);
struct hf_str hf__mcp_resource_read(const struct cli *cli, const struct mcp_settings *settings,
                                    struct hf_str uri, struct hf_scope *s, struct hf_str *error);

/*
 * A statement of PartiQL without the comments and blanks in front of it. *reads: its first word is SELECT,
 * so it changes nothing, however the database understands comments.
 */
struct hf_str hf__mcp_statement(struct hf_str text, bool *reads);

#endif
