"""What bench/primitives and bench/records share: the databases, and running our programs on them.

 (1) Every turn is a process of its own; databases on disk and the server stay for the whole run.
 (2) The server is stopped by its process id, also when we are interrupted.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from server_bench import BUILD, IN_MEMORY, ROOT, file_system
from server_procs import Failed, Server, find_places

DATABASES = ("memory", "none", "full", "http")
MEANING = {
    "memory": "embedded, in memory", "none": "embedded, on disk, not synced",
    "full": "embedded, on disk, durable when answered", "http": "holdfast serve, on disk, not synced",
}


class Databases:
    """The databases of a run: use as a context."""

    def __init__(self, options, *servers):
        self.program = options.prog
        self.places = find_places(ROOT, BUILD, options.holdfast, options.peers)
        self.dir = tempfile.mkdtemp(prefix="bench-patterns-", dir=options.dir)
        self.servers = {name: Server(name, self.places, self.dir) for name in servers}

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        try:
            for name, server in self.servers.items():
                if not server.program():
                    raise Failed(f"{name} is not there")
                server.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            server.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def arguments(self, database):
        if database == "http":
            return ["--url", f"http://127.0.0.1:{self.servers['holdfast-none'].port}"]
        if database == "memory":
            return ["--url", "memory:"]
        return ["--url", f"embedded:{os.path.join(self.dir, database)}", "--sync", database]

    def run(self, name, database, *arguments):
        """Run a program of bench/ on a database; what it wrote as JSON."""
        path = os.path.join(self.dir, "turn.json")
        command = [os.path.join(self.places["bench"], name), "--json", path]
        command += self.arguments(database) + [str(a) for a in arguments]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.stderr:
            self.say(done.stderr.strip())
        if done.returncode != 0:
            raise Failed(f"{' '.join([name] + command[1:])}: status {done.returncode}")
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def say(self, text):
        print(f"{self.program}: {text}", file=sys.stderr, flush=True)


def add_options(parser):
    parser.add_argument("--databases", default=",".join(DATABASES), metavar="LIST")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"), help="on a real disk (build)")
    parser.add_argument("--holdfast", metavar="PROGRAM", help=f"ours ({BUILD}/holdfast)")
    parser.add_argument("--peers", default=os.path.join(ROOT, "build/bench-peers"), metavar="DIR")


def check_options(parser, options):
    options.prog = parser.prog
    options.databases = options.databases.split(",")
    for database in options.databases:
        if database not in DATABASES:
            parser.error(f"there is no database {database}")
    if file_system(options.dir) in IN_MEMORY:
        parser.error(f"{options.dir} is in memory; --dir must be on a real disk")


class Goal:
    """`value` has to be at least (or at most) `floor`, and better `aim`; None: not measured."""

    def __init__(self, name, value, floor, aim=None, at_most=False, unit="x"):
        self.name, self.value, self.floor, self.aim = name, value, floor, aim
        self.at_most, self.unit = at_most, unit

    def met(self, limit):
        if self.value is None or limit is None:
            return None
        return self.value <= limit if self.at_most else self.value >= limit

    def as_json(self):
        return {"name": self.name, "value": self.value, "unit": self.unit, "floor": self.floor,
                "aim": self.aim, "at_most": self.at_most, "floor_met": self.met(self.floor),
                "aim_met": self.met(self.aim)}

    def __str__(self):
        words = {True: "holds", False: "MISSED", None: ""}
        value = "not measured" if self.value is None else f"{self.value:.1f} {self.unit}"
        sign = "<=" if self.at_most else ">="
        aim = "" if self.aim is None else f"aim {sign} {self.aim:g}: {words[self.met(self.aim)]}"
        return (f"{self.name:<34} {value:>14}   floor {sign} {self.floor:<5g} "
                f"{words[self.met(self.floor)]:<8}{aim}")


def conclude(goals, failures):
    """Print the goals; the status: 0 floors hold, 1 one does not or something failed."""
    print()
    for goal in goals:
        print(goal)
    for failure in failures:
        print(f"FAILED: {failure}")
    missed = [g for g in goals if g.met(g.floor) is False]
    held = [g for g in goals if g.met(g.floor)]
    print(f"\nfloors: {len(held)} hold, {len(missed)} do not, "
          f"{len(goals) - len(held) - len(missed)} not measured")
    return 1 if missed or failures else 0
