# Completion of the holdfast command for fish. The command itself finds the candidates: it gets
# the words so far and prints a line for each candidate, or :file or :dir.
function __holdfast_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l before ''
    # "--name=value" is one word; what is offered has to begin as it does.
    if string match -q -- '--*=*' $current
        set before (string replace -r '=.*' '=' -- $current)
    end
    for line in (command $words[1] complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path (string replace -r '^--[^=]*=' '' -- $current)
            case :dir
                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- $current) ''
            case '*'
                echo $before$line
        end
    end
end
complete -c holdfast -f -a '(__holdfast_complete)'
