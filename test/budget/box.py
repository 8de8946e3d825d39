"""A `holdfast serve` in a box: with little memory, few descriptors, few threads; and its clients.

Memory is limited by a control group where one can be made (as root, version 1 or 2). Where not, the
server runs without a limit, and what it had at most is measured: Box.peak() is the same figure in
both cases, bytes that no file is behind. `Box.how` says which it was. HF_BUDGET_GROUP asks for one
kind: 1, 2, or none.
"""
import http.client
import json
import os
import queue
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

MIB = 1024 * 1024
WAIT_S = 60
SIGNED = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/here/dynamodb/aws4_request, "
                     "SignedHeaders=host, Signature=0",
}


def go_first():
    """Where that is allowed: other work on this machine is not what is measured."""
    try:
        os.nice(-10)
    except OSError:
        pass


class Group:
    """A memory control group; `path` is None when none can be made."""

    def __init__(self, limit, top="/sys/fs/cgroup"):
        self.path, self.how = None, "no control group: measured by VmHWM"
        wanted = os.environ.get("HF_BUDGET_GROUP", "")
        for kind, root, file, swap in (
                ("1", os.path.join(top, "memory"), "memory.limit_in_bytes", None),
                ("2", top, "memory.max", "memory.swap.max")):
            if wanted not in ("", kind):
                continue
            path = os.path.join(root, f"holdfast-test-{os.getpid()}-{id(self)}")
            try:
                if not os.path.exists(os.path.join(root, file if not swap else "cgroup.controllers")):
                    continue
                os.mkdir(path)
                with open(os.path.join(path, file), "w") as out:
                    out.write(str(limit))
            except OSError:
                if os.path.isdir(path):
                    os.rmdir(path)
                continue
            self.path, self.how = path, f"a control group of {limit // MIB} MiB"
            try:
                if swap:
                    with open(os.path.join(path, swap), "w") as out:
                        out.write("0")
            except OSError:
                pass
            return

    def enter(self):
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as out:
                out.write(str(os.getpid()))

    def remove(self):
        for _ in range(100):
            if not self.path:
                return
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError:
                time.sleep(0.05)


class Box:
    """A server that is ready. `memory` in bytes; `limits` are of setrlimit(); `user` of pwd."""

    def __init__(self, command, *args, memory=None, limits=(), user=None):
        self.group = Group(memory) if memory else None
        self.how = self.group.how if self.group else "no limit of memory"

        def enter():
            go_first()
            if self.group:
                self.group.enter()
            if user:  # before the limits: execve() fails for who has more than RLIMIT_NPROC
                os.setgroups([])
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
            for kind, soft, hard in limits:
                resource.setrlimit(kind, (soft, hard))

        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("HOLDFAST_", "LISTEN_", "NOTIFY_", "WATCHDOG_"))}
        self.process = subprocess.Popen([command, "serve", "--port", "0", *args], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=enter)
        self.start = []
        for line in self.process.stdout:
            self.start.append(line)
            if line.startswith("  try"):
                break
        if not self.start:
            self.log = self.process.communicate()[1]
            self.close()
            raise AssertionError(self.log)
        self.port = int(re.search(r":(\d+)$", self.start[0].strip()).group(1))

    def alive(self):
        return self.process.poll() is None

    def peak(self):
        """The most memory of its own that it ever had."""
        with open(f"/proc/{self.process.pid}/status") as file:
            text = file.read()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text).group(1)) * 1024

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def stop(self):
        """Its exit status; what it logged is in `log`."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        _, self.log = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode

    def close(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        if self.group:
            self.group.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- clients ----------------------------------------------------------------------------

    def connect(self, receive=None, timeout=WAIT_S):
        s = socket.socket()
        if receive:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        s.settimeout(timeout)
        s.connect(("127.0.0.1", self.port))
        return s

    def call(self, operation, body, client=None, **headers):
        """Status and answer."""
        own = client or self.client()
        own.request("POST", "/", body if isinstance(body, bytes) else json.dumps(body).encode(),
                    {**SIGNED, "X-Amz-Target": f"DynamoDB_20120810.{operation}", **headers})
        answer = own.getresponse()
        text = answer.read()
        if not client:
            own.close()
        return answer.status, text

    def client(self, timeout=WAIT_S):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path, timeout=WAIT_S):
        own = self.client(timeout)
        own.request("GET", path)
        answer = own.getresponse()
        text = answer.read().decode()
        own.close()
        return answer.status, text

    def metric(self, name):
        found = re.search(rf"^{name} (\d+)$", self.get("/metrics")[1], re.M)
        return int(found.group(1)) if found else None

    def make_table(self, name="tab"):
        status, text = self.call("CreateTable", {
            "TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        assert status == 200, text


def request_bytes(operation, body, *fields):
    """A whole request, to be sent as it is."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = ["POST / HTTP/1.1", "Host: localhost", f"Content-Length: {len(text)}",
             f"X-Amz-Target: DynamoDB_20120810.{operation}",
             *(f"{k}: {v}" for k, v in SIGNED.items()), *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + text


class Pulse:
    """What others see meanwhile: /livez and GetItem, again and again, by a process of its own."""

    def __init__(self, box):
        self.process = subprocess.Popen([sys.executable, __file__, str(box.port)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=go_first)
        assert self.process.stdout.readline() == "begun\n"

    def take(self):
        """Milliseconds since the last time: of the slowest, and of the slowest but one in a hundred."""
        self.process.stdin.write("take\n")
        self.process.stdin.flush()
        return self.read(self.process.stdout.readline())

    def stop(self):
        """The same, and the end."""
        return self.read(self.process.communicate("end\n", timeout=WAIT_S)[0])

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def read(self, line):
        self.failures, times = json.loads(line)
        return times[-1], times[len(times) * 99 // 100]


def pulse(port):
    box = Box.__new__(Box)
    box.port = port
    asked, times, failures = queue.SimpleQueue(), [], []
    live, item = box.client(15), box.client(15)

    def listen():
        for line in sys.stdin:
            asked.put(line)
        asked.put("end\n")

    threading.Thread(target=listen, daemon=True).start()
    print("begun", flush=True)
    while True:
        begun = time.monotonic()
        try:
            live.request("GET", "/livez")
            answer = live.getresponse()
            answer.read()
            middle = time.monotonic()
            status, _ = box.call("GetItem", {"TableName": "tab", "Key": {"pk": {"S": "small"}}}, item)
            if answer.status != 200 or status != 200:
                failures.append((answer.status, status))
        except (OSError, http.client.HTTPException) as error:
            failures.append(repr(error))
            middle = time.monotonic()
            live.close()
            item.close()
        times += [(middle - begun) * 1e3, (time.monotonic() - middle) * 1e3]
        try:
            line = asked.get(timeout=0.001)
        except queue.Empty:
            continue
        print(json.dumps([failures, sorted(times)]), flush=True)
        if line == "end\n":
            return
        times, failures = [], []


if __name__ == "__main__":
    pulse(int(sys.argv[1]))
