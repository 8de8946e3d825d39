"""Copies of tables between databases, and how far a copy that follows is behind.

Three ways to fill a server with the same items: BatchWriteItem as fast as our client sends it (`holdfast import` with the
URL of the server, over as many connections as a copy has segments), a copy of a directory, a copy of another server. The
first is the ceiling: a copy also reads its source. Then writers put items into a server at a steady rate, while `holdfast
copy --follow` applies them to another one: bench_copy_lag notes how long it takes until an item is there. Servers are
durable as usual, each way begins with a new database, and all of it shares the machine.

 (1) A copy is timed from the start of the command to its end, so its opening counts.
 (2) The copy has caught up before the writers begin.
 (3) Servers and copies are stopped by their process id, also when we are interrupted.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from transfer_bench import KEY, run, write_items

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SEGMENTS = 4


class Bench:
    def __init__(self, options):
        self.options = options
        build = options.build or os.path.join(ROOT, "build", "release")
        self.command = os.path.join(build, "holdfast")
        self.lag = os.path.join(build, "bench", "bench_copy_lag")
        self.dir = tempfile.mkdtemp(prefix="bench-copy-", dir=options.dir)
        self.children = []

    def path(self, name):
        path = os.path.join(self.dir, name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def serve(self, path):
        child = subprocess.Popen([self.command, "serve", "--port", "0", "--db-path", path], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)
        self.children.append(child)
        return re.search(r"https?://\S+", child.stdout.readline()).group(0)

    def stop(self):
        while self.children:
            child = self.children.pop()
            child.send_signal(signal.SIGTERM)
            child.wait()

    def through_batches(self, source):
        used = run(self.command, "import", source, *KEY, "-q", "--db", self.serve(self.path("target")), "--parallel",
                   str(SEGMENTS))
        self.stop()
        return used

    def copy(self, url):
        used = run(self.command, "copy", url, self.serve(self.path("target")), "--segments", str(SEGMENTS), "-q")
        self.stop()
        return used

    def copies(self):
        source, database = os.path.join(self.dir, "orders.jsonl"), self.path("source")
        items = write_items(source, self.options.megabytes)
        run(self.command, "import", source, *KEY, "-q", "--db", "embedded:" + database)
        ways = {"BatchWriteItem, %d connections" % SEGMENTS: lambda: self.through_batches(source),
                "copy of a directory": lambda: self.copy("embedded:" + database),
                "copy of a server": lambda: self.copy(self.serve(database))}
        best = {}
        for _ in range(self.options.turns):
            for name, way in ways.items():
                used = way()
                if name not in best or used["seconds"] < best[name]["seconds"]:
                    best[name] = used
        return {"items": items, "bytes": os.path.getsize(source), "ways": best}

    def follow(self):
        source, target = self.serve(self.path("source")), self.serve(self.path("target"))
        run(self.command, "table", "create", "orders", "--key", "id:S", "-q", "--db", source)
        copy = subprocess.Popen([self.command, "copy", source, target, "--follow", "-q"], stdout=subprocess.DEVNULL)
        self.children.append(copy)
        until = time.monotonic() + 60
        run(self.command, "item", "put", "orders", '{"id":"first"}', "-q", "--db", source)
        while subprocess.run([self.command, "item", "get", "orders", "first", "-q", "--db", target], check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:  # (2)
            if time.monotonic() > until or copy.poll() is not None:
                raise SystemExit("the copy does not follow")
            time.sleep(0.1)
        out = subprocess.run([self.lag, source, target, "--rate", str(self.options.rate), "--seconds",
                              str(self.options.seconds)], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.stop()
        return {**json.loads(out), "rate": self.options.rate}


def show(result):
    copies, follow = result["copies"], result["follow"]
    print("%d items, %.0f MB; the best turn of each" % (copies["items"], copies["bytes"] / 1e6))
    ceiling = None
    for name, used in copies["ways"].items():
        per_s = copies["items"] / used["seconds"]
        ceiling = ceiling or per_s
        print("%-32s %8.2f s %9.0f items/s %6.2f of BatchWriteItem" % (name, used["seconds"], per_s, per_s / ceiling))
    print("follow: %.0f of %d writes a second for %.0f s, %d samples; lag p50 %.1f ms, p99 %.1f ms, at most %.1f ms" %
          (follow["writes"] / follow["seconds"], follow["rate"], follow["seconds"], follow["samples"], follow["p50_ms"],
           follow["p99_ms"], follow["max_ms"]))


def main():
    parser = argparse.ArgumentParser(prog="bench/copy", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of JSON that are copied; default 200")
    parser.add_argument("--turns", type=int, default=3, help="of each way; the best counts")
    parser.add_argument("--rate", type=int, default=5000, help="writes a second while a copy follows; default 5000")
    parser.add_argument("--seconds", type=int, default=20, help="of following; default 20")
    parser.add_argument("--dir", default=".", help="a directory on a real disk")
    parser.add_argument("--build", help="where the programs are; default: build/release, which is built before")
    parser.add_argument("--json", help="write the result to this file, too")
    options = parser.parse_args()
    bench = Bench(options)
    try:
        result = {"copies": bench.copies(), "follow": bench.follow()}
    finally:
        bench.stop()  # (3)
        shutil.rmtree(bench.dir, ignore_errors=True)
    show(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
