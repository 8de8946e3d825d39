"""The aws command with its modules loaded: warm.py SOCKET, run by the Python that aws is run by.

A start of aws is most of what it does: it loads modules for half a second. Here they are loaded once,
and each command is a process that is forked after that, with an environment, arguments and output of
its own, as a new one would have. run.py connects to the socket for each command and sends one message,
JSON with "args" and "env", with descriptors of standard output and standard error; the answer is the
exit status, or nothing when the process was ended by something else.
"""
import json
import os
import signal
import socket
import sys

import awscli.clidriver

OWN = {"AWS_DATA_PATH": os.environ["AWS_DATA_PATH"]}  # which it has set when it was loaded


def run(connection, message, out, err):
    null = os.open(os.devnull, os.O_RDONLY)
    for to, fd in enumerate((null, out, err)):
        os.dup2(fd, to)
    os.environ.clear()
    os.environ.update(message["env"], **OWN)
    sys.argv = ["aws", *message["args"]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        status = awscli.clidriver.main()
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(str(status or 0).encode())


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            text, fds, _, _ = socket.recv_fds(connection, 1 << 20, 2)
            if os.fork() == 0:
                try:
                    run(connection, json.loads(text), *fds)
                finally:
                    os._exit(0)
            for fd in fds:
                os.close(fd)
            connection.close()


if __name__ == "__main__":
    main()
