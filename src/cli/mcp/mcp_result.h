/*
 * cli/mcp/mcp_result.h: what a tool printed, and the result of the protocol that it becomes.
 */
#ifndef HF_CLI_MCP_MCP_RESULT_H
#define HF_CLI_MCP_MCP_RESULT_H

#include "cli/mcp/mcp.h"

/* What a command printed, and how it ended. */
struct mcp_outcome {
    char *out;
    size_t out_len;
    char *err;
    size_t err_len;
    int ends;
};

/* May the tools use this table? */
bool hf__mcp_table_allowed(const struct mcp_settings *settings, const struct json_node *name);

/* The JSON that was printed, as one line. Absent: *error; empty: nothing was printed. */
struct hf_str hf__mcp_outcome_json(struct hf_scope *s, const struct mcp_outcome *outcome,
                                   struct hf_str *error);

/* The result of tools/call for what was printed; of a list its first `cut_at` elements, 0: all. */
struct hf_str hf__mcp_outcome_result(struct hf_scope *s, const struct mcp_settings *settings,
                                     const struct mcp_tool *tool, const struct mcp_outcome *outcome,
                                     uint64_t cut_at, bool structured);

/* The same for JSON with lines that were printed beside it, and for an error. */
struct hf_str hf__mcp_result_make(struct hf_scope *s, struct hf_str json, struct hf_str notices,
                                  bool structured);
struct hf_str hf__mcp_result_error(struct hf_scope *s, struct hf_str message);

#endif
