"""The aws command with its modules loaded: warm.py SOCKET, run by the Python that aws is run by.

A start of aws is most of what it does: it loads modules and its description of the service for more
than half a second. Here they are loaded once, and each command is a process that is forked after that,
with an environment, arguments and output of its own, as a new one would have. run.py connects to the
socket for each command and sends one message, JSON with "args" and "env", with descriptors of standard output and standard error; the answer is the
exit status, or nothing when the process was ended by something else.
"""
import functools
import gc
import json
import os
import signal
import socket
import sys

import awscli.clidriver

LOADERS = sys.modules.get("awscli.botocore.loaders") or sys.modules["botocore.loaders"]
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


def warm_up():
    """Load what a command loads when it begins, and keep what it reads. Nothing is called: that starts threads."""
    read = LOADERS.JSONFileLoader.load_file
    kept = functools.lru_cache(maxsize=None)(lambda path: read(None, path))
    LOADERS.JSONFileLoader.load_file = lambda self, path: kept(path)
    loader = awscli.clidriver.create_clidriver().session.get_component("data_loader")
    names = [f"{service}/2012-08-10/{kind}" for service in ("dynamodb", "dynamodbstreams")
             for kind in ("service-2", "paginators-1", "waiters-2", "endpoint-rule-set-1")]
    for name in ["endpoints", "partitions", "sdk-default-configuration", *names]:
        try:
            loader.load_data(name)
        except Exception:  # not every version of aws has all of them
            pass
    gc.collect()
    gc.freeze()  # no child copies all of it just to look for garbage


def main():
    path = sys.argv[1]
    warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
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
