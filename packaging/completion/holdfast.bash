# Completion of the holdfast command for bash. The command itself finds the candidates: it gets
# the words so far and prints a line for each candidate, or :file or :dir.
_holdfast()
{
    local current=${COMP_WORDS[COMP_CWORD]}
    local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    local line

    # bash takes "--port=8000" apart at the '='; put it together again, and complete what follows.
    local -a whole=()
    local i
    for ((i = 0; i < ${#words[@]}; i++)); do
        if [[ ${words[i]} == = && ${#whole[@]} -gt 0 ]]; then
            whole[-1]+="=${words[i + 1]-}"
            ((i++))
        else
            whole+=("${words[i]}")
        fi
    done
    [[ $current == = ]] && current=

    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :file) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
            :dir) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete "${whole[@]}" 2>/dev/null)
}
complete -F _holdfast holdfast
