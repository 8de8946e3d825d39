"""Measure our primitives beside the seed's in one run; started by bench/primitives, see README.md.

Ours run on four databases, the seed's calls (primitives_seed.js) on dynoxide in memory. A call goes
round all of them before the next one begins, and round again for every repetition.

 (1) Factors are our median by the seed's best turn with as many callers.
 (2) The seed's process stays, and has made every call for a while before it is measured.
 (3) Status: 0 floors hold, 1 one does not or something failed, 2 it could not be run.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

from patterns_common import (MEANING, Databases, Failed, Goal, add_options, check_options,
                             conclude)
from server_bench import processor

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = "seed"
WARM_UP = 1  # seconds, of each of the seed's calls

# Our call, and the seed's that does the same for its user.
CALLS = {
    "lock": "lock", "counter-hot": "counter-hot", "counter": "counter", "kv-set": "kv-set",
    "kv-set-blind": "kv-set", "kv-get": "kv-get", "once-new": "once-new", "once-done": "once-done",
    "limit": "limit",
}

# Over HTTP, by callers: floor and aim. Calls that are not named here are shown and not judged.
FAST = {1: (8, 12), 32: (18, 25)}
HTTP_GOALS = {
    "lock": {1: (10, 15), 32: (20, 30)}, "counter-hot": FAST, "counter": FAST, "kv-set": FAST,
    "kv-set-blind": FAST, "kv-get": FAST, "once-new": {1: (12, 20), 32: (25, 50)},
}
EMBEDDED_FLOORS = {call: 100 if call == "once-new" else 80 for call in HTTP_GOALS}
EMBEDDED = ("memory", "none")  # durable ones are bound by the disk, and the seed's is in memory


class Seed:
    """The process that makes the seed's calls."""

    def __init__(self, databases, script="primitives_seed.js"):
        sdk = os.path.join(databases.places["peers"], "@aws-sdk/client-dynamodb")
        url = f"http://127.0.0.1:{databases.servers['dynoxide-mem'].port}"
        self.process = subprocess.Popen(
            ["node", "--no-warnings", os.path.join(HERE, script), url, sdk],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ops = self.answer()["ready"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the seed's process has ended")
        return json.loads(line)

    def ask(self, **line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def run(self, op, callers, seconds):
        return self.ask(op=op, callers=callers, seconds=seconds)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    def __init__(self, options, databases):
        self.options = options
        self.databases = databases
        self.seed = None
        self.turns = {}  # (who, call, callers): what each turn measured
        self.failures = []

    def open_seed(self):
        if "dynoxide-mem" not in self.databases.servers:
            return
        self.databases.say("warm the seed up")
        self.seed = Seed(self.databases)
        for op in sorted(set(CALLS.values())):
            self.seed.run(op, 32, WARM_UP)

    def turn(self, who, call, callers):
        if who != SEED:
            run = self.databases.run("bench_primitives", who, "--only", f"*/{call}/{callers}",
                                     "--threads", callers, "--seconds", self.options.seconds)
            result = run["cells"][0]
        elif self.seed:
            result = self.seed.run(CALLS[call], callers, self.options.seconds)
        else:
            return
        if result["errors"]:
            self.failures.append(f"{who}/{call}/{callers}: {result['errors']} errors")
        self.turns.setdefault((who, call, callers), []).append(result)

    def median(self, who, call, callers, what):
        turns = self.turns.get((who, call, callers))
        return statistics.median(turn[what] for turn in turns) if turns else None

    def factor(self, who, call, callers):
        """(1)"""
        ours = self.median(who, call, callers, "ops_per_s")
        seeds = self.turns.get((SEED, call, callers))
        if ours is None or not seeds:
            return None
        return ours / max(turn["ops_per_s"] for turn in seeds)

    def measure(self, call, callers):
        names = self.options.databases + [SEED]
        for i in range(self.options.repeat):
            for who in names[i % len(names):] + names[:i % len(names)]:
                try:
                    self.turn(who, call, callers)
                except (Failed, OSError) as error:
                    self.failures.append(str(error))
        for who in names:
            self.print_row(who, call, callers)

    def print_row(self, who, call, callers):
        if (who, call, callers) not in self.turns:
            return
        ops, p50, p99, cpu = (self.median(who, call, callers, what) for what in
                              ("ops_per_s", "p50_us", "p99_us", "cpu_us_per_op"))
        factor = self.factor(who, call, callers) if who != SEED else None
        print(f"{call:<13} {callers:>3}  {who:<7} {ops:>10.0f} {p50:>10.1f} {p99:>10.1f} {cpu:>9.1f}"
              f"  {'' if factor is None else f'{factor:.1f} x':>9}", flush=True)

    def run(self):
        self.open_seed()
        print(f"\n{'call':<13} {'of':>3}  {'on':<7} {'ops/s':>10} {'p50 us':>10} {'p99 us':>10} "
              f"{'cpu us':>9}  {'of seed':>9}")
        try:
            for call in CALLS:
                for callers in self.options.callers:
                    if re.search(self.options.only, f"{call}/{callers}"):
                        self.measure(call, callers)
        finally:
            if self.seed:
                self.seed.close()

    def goals(self):
        for call, limits in HTTP_GOALS.items():
            for callers, (floor, aim) in limits.items():
                yield Goal(f"http {call}/{callers}", self.factor("http", call, callers), floor, aim)
        for call, floor in EMBEDDED_FLOORS.items():
            for who in EMBEDDED:
                for callers in (1, 32):
                    yield Goal(f"{who} {call}/{callers}", self.factor(who, call, callers), floor)


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/primitives", description=__doc__.splitlines()[0])
    p.add_argument("--only", default="", metavar="REGEX", help="cells as lock/32")
    p.add_argument("--seconds", type=float, default=0.5, help="of every turn (0.5)")
    p.add_argument("--repeat", type=int, default=2, help="turns of every cell (2)")
    p.add_argument("--callers", default="1,8,32", metavar="LIST")
    p.add_argument("--no-seed", action="store_true", help="ours alone")
    add_options(p)
    options = p.parse_args(arguments)
    check_options(p, options)
    options.callers = [int(c) for c in options.callers.split(",")]
    return options


def main():
    options = parse(sys.argv[1:])
    about = {"processor": processor(), "load": round(os.getloadavg()[0], 2),
             "seconds": options.seconds, "repeat": options.repeat,
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for database in options.databases:
        print(f"{database}: {MEANING[database]}")
    print(f"{SEED}: the seed's calls with the AWS SDK for JavaScript, on dynoxide in memory")
    servers = ["holdfast-none"] if "http" in options.databases else []
    servers += [] if options.no_seed else ["dynoxide-mem"]
    try:
        with Databases(options, *servers) as databases:
            bench = Bench(options, databases)
            bench.run()
    except (Failed, OSError) as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2
    goals = list(bench.goals())
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"about": about, "failures": bench.failures,
                       "cells": [{"on": who, "call": call, "callers": callers, "turns": turns}
                                 for (who, call, callers), turns in bench.turns.items()],
                       "goals": [goal.as_json() for goal in goals]}, f, indent=1)
            f.write("\n")
    return conclude(goals, bench.failures)


if __name__ == "__main__":
    sys.exit(main())
