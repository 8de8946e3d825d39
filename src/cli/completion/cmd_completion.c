/*
 * cli/completion/cmd_completion.c: `holdfast completion bash|zsh|fish` prints a script for the shell. The
 * scripts know nothing about our commands: they call `holdfast complete` with the words so far, and offer
 * what it prints (cli/frame/options/complete.c). The build writes them to the files that packages install.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <string.h>

/*
 * bash takes words apart at ':' and '=', as in "--db http://host:8000" and "--port=8000". They are put
 * together again where the line has no blank between them. What is offered never contains such a
 * character, so it replaces the last part alone.
 */
static const char bash_script[] =
    "# Completion of the holdfast command for bash: source <(holdfast completion bash)\n"
    "_holdfast()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} rest=${COMP_LINE:0:COMP_POINT} word line i\n"
    "    local -a words=()\n"
    "\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $rest == [[:blank:]]* || $i -eq 0 ]]; then\n"
    "            rest=${rest#\"${rest%%[![:blank:]]*}\"}\n"
    "            words+=(\"\")\n"
    "        fi\n"
    "        ((i < COMP_CWORD)) || word=$rest\n"
    "        words[-1]+=$word\n"
    "        rest=${rest#\"$word\"}\n"
    "    done\n"
    "    current=$word\n"
    "    [[ $current == [=:] ]] && current=\n"
    "    # The shell's own quotes are no part of a word.\n"
    "    words=(\"${words[@]//[\\\"\\']/}\")\n"
    "\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "            :file)\n"
    "                compopt -o filenames\n"
    "                mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
    "                ;;\n"
    "            :dir)\n"
    "                compopt -o filenames\n"
    "                mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -d -- \"$current\")\n"
    "                ;;\n"
    "            *) COMPREPLY+=(\"$line\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" complete \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _holdfast holdfast\n";

/* As a file in $fpath its first line is what counts, and the file is the function. */
static const char zsh_script[] =
    "#compdef holdfast\n"
    "# Completion of the holdfast command for zsh: source <(holdfast completion zsh)\n"
    "_holdfast()\n"
    "{\n"
    "    local -a answers\n"
    "    local line\n"
    "\n"
    "    # \"--name=value\": what follows the '=' is completed.\n"
    "    [[ $PREFIX == --*=* ]] && compset -P '*='\n"
    "    for line in \"${(@f)$(\"$words[1]\" complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "            '') ;;\n"
    "            :file) _files ;;\n"
    "            :dir) _files -/ ;;\n"
    "            *) answers+=(\"$line\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#answers )) && compadd -- \"${(@u)answers}\"\n"
    "    return 0\n"
    "}\n"
    "if [[ $funcstack[1] == _holdfast ]]; then\n"
    "    _holdfast \"$@\"\n"
    "else\n"
    "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
    "    compdef _holdfast holdfast\n"
    "fi\n";

static const char fish_script[] =
    "# Completion of the holdfast command for fish: holdfast completion fish | source\n"
    "function __holdfast_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l before ''\n"
    "    # \"--name=value\" is one word; what is offered has to begin as it does.\n"
    "    if string match -q -- '--*=*' $current\n"
    "        set before (string replace -r '=.*' '=' -- $current)\n"
    "    end\n"
    "    for line in (command $words[1] complete $words[2..-1] \"$current\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case :file\n"
    "                __fish_complete_path (string replace -r '^--[^=]*=' '' -- $current)\n"
    "            case :dir\n"
    "                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- $current) ''\n"
    "            case '*'\n"
    "                echo $before$line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c holdfast -f -a '(__holdfast_complete)'\n";

static const struct {
    const char *shell;
    const char *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

struct settings {
    bool unused;
};

static const struct option_example completion_examples[] = {
    {"source <(holdfast completion bash)", "In ~/.bashrc, and with zsh in ~/.zshrc."},
    {"holdfast completion zsh > \"${fpath[1]}/_holdfast\"", "For zsh as a file, which is faster."},
    {"holdfast completion fish > ~/.config/fish/completions/holdfast.fish", "For fish."},
};

const struct options_table hf__completion_options = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .about =
        "Print a script that lets a shell complete the words of this command: commands, options, "
        "values and files; and the names of tables, if the database is a service that answers "
        "at once. A data directory is not opened for that.",
    .examples = completion_examples,
    .examples_len = COMMAND_LEN(completion_examples),
    .notes = "Packages install these scripts where the shells find them.",
};

static enum hf_status completion_print(struct command_ctx *c)
{
    for (size_t i = 0; i < COMMAND_LEN(scripts); i++)
        if (strcmp(scripts[i].shell, c->operands[0]) == 0) {
            fputs(scripts[i].script, c->cli->out);
            return HF_OK;
        }
    return hf__command_fail(c, CLI_USAGE, "unknown shell '%s'; use bash, zsh or fish",
                            c->operands[0]);
}

COMMAND_OF(completion, completion_print, .settings_size = sizeof(struct settings), .min = 1,
           .max = 1);
