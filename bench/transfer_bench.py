"""An import into a directory beside the same items through BatchWriteItem, and an export.

The other way to load a database is a client that sends BatchWriteItem with 25 items to a server. The client is ours,
which is the fastest that we have: `holdfast import` with the URL of a server sends exactly that, over as many
connections as --parallel says. The server is `holdfast serve` on a directory, durable as usual. Items have 1 KiB in
eleven attributes. Each turn has a new database. Memory is the largest resident set of the process that was started.

 (1) Processor time of the other way is that of client and server.
 (2) Servers are stopped by their process id, also when we are interrupted.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOAL_FACTOR, GOAL_MEMORY_MB = 5, 128
KEY = ("--key", "customer:S,day:N")


def write_items(path, megabytes):
    """Lines of DynamoDB's JSON; returns how many."""
    dice, count, size = random.Random(1), 0, 0
    filler = "".join(dice.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(1 << 16))
    with open(path, "w", encoding="ascii") as file:
        while size < megabytes * 1000 * 1000:
            at = dice.randrange(len(filler) - 800)
            item = {"customer": {"S": "c%08d" % dice.randrange(10 ** 8)}, "day": {"N": str(count)},
                    "total": {"N": "%d.%02d" % (dice.randrange(1000), dice.randrange(100))}, "paid": {"BOOL": True},
                    "status": {"S": "shipped"}, "note": {"S": filler[at:at + 700]}, "city": {"S": filler[at:at + 12]},
                    "tags": {"SS": ["a" + str(count % 7), "b"]}, "lines": {"L": [{"N": "1"}, {"S": "x"}]},
                    "address": {"M": {"zip": {"S": "10115"}, "floor": {"N": "3"}}}, "version": {"N": "1"}}
            line = '{"Item":' + json.dumps(item, separators=(",", ":")) + "}\n"
            file.write(line)
            size += len(line)
            count += 1
    return count


def run(*command):
    """Seconds, processor seconds and megabytes that a command takes."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("failed: " + " ".join(command))
    return {"seconds": time.monotonic() - began, "processor": used.ru_utime + used.ru_stime,
            "megabytes": used.ru_maxrss / 1000}


def processor_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, options):
        self.options = options
        self.command = options.holdfast or os.path.join(ROOT, "build", "release", "holdfast")
        self.dir = tempfile.mkdtemp(prefix="bench-transfer-", dir=options.dir)
        self.source = os.path.join(self.dir, "orders.jsonl")
        self.server = None

    def directory(self):
        path = os.path.join(self.dir, "db")
        shutil.rmtree(path, ignore_errors=True)
        return path

    def into_directory(self):
        return run(self.command, "import", self.source, *KEY, "-q", "--db", "embedded:" + self.directory())

    def through_server(self, connections):
        self.server = subprocess.Popen([self.command, "serve", "--port", "0", "--db-path", self.directory()],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = re.search(r"https?://\S+", self.server.stdout.readline()).group(0)
        used = run(self.command, "import", self.source, *KEY, "-q", "--db", url, "--parallel", str(connections))
        used["processor"] += processor_of(self.server.pid)
        self.stop()
        return used

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.communicate()
            self.server = None

    def measure(self):
        count = write_items(self.source, self.options.megabytes)
        size = os.path.getsize(self.source)
        ways = {"BatchWriteItem, 1 connection": lambda: self.through_server(1),
                "BatchWriteItem, 8 connections": lambda: self.through_server(8),
                "import into a directory": self.into_directory}
        best = {}
        for _ in range(self.options.turns):
            for name, way in ways.items():
                used = way()
                if name not in best or used["seconds"] < best[name]["seconds"]:
                    best[name] = used
        out = os.path.join(self.dir, "out.jsonl")
        best["export of the directory"] = run(self.command, "export", "orders", "--to", out, "-q", "--format", "dynamodb",
                                              "--db", "embedded:" + os.path.join(self.dir, "db"))
        return {"items": count, "bytes": size, "ways": best}


def show(result):
    print("%d items, %.0f MB; the best turn of each" % (result["items"], result["bytes"] / 1e6))
    print("%-32s %9s %9s %10s %9s" % ("", "seconds", "MB/s", "processor", "memory"))
    for name, used in result["ways"].items():
        print("%-32s %9.2f %9.1f %8.2f s %6.0f MB" % (name, used["seconds"], result["bytes"] / 1e6 / used["seconds"],
                                                     used["processor"], used["megabytes"]))
    ours = result["ways"]["import into a directory"]
    for connections in ("1 connection", "8 connections"):
        other = result["ways"]["BatchWriteItem, " + connections]
        result["factor, " + connections] = other["seconds"] / ours["seconds"]
        print("import is %.1f times as fast as BatchWriteItem over %s (goal %d)" %
              (other["seconds"] / ours["seconds"], connections, GOAL_FACTOR))
    print("import takes %.0f MB (goal: less than %d)" % (ours["megabytes"], GOAL_MEMORY_MB))


def main():
    parser = argparse.ArgumentParser(prog="bench/transfer", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of JSON that are imported; default 1000")
    parser.add_argument("--turns", type=int, default=1, help="of each way; the best counts")
    parser.add_argument("--dir", default=".", help="a directory on a real disk")
    parser.add_argument("--holdfast", help="the command; default build/release/holdfast")
    parser.add_argument("--json", help="write the result to this file")
    bench = Bench(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    try:
        result = bench.measure()
    finally:
        bench.stop()
        shutil.rmtree(bench.dir, ignore_errors=True)
    show(result)
    if bench.options.json:
        with open(bench.options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
