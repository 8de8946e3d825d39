"""Measure the processor of records on every kind of database; started by bench/records, see README.md.

 (1) What a record costs is what a worker needs from the end of one to the end of the next, when the
     work is empty: the whole of it, its writes included. `above bare` is by how much that exceeds a
     loop of two conditional writes.
 (2) Scaling: with work that waits, N workers should do N times what one does, until they do what
     as many do with empty work: then the database is the limit, or the processor's time is.
 (3) Status: 0 floors hold, 1 one does not or something failed, 2 it could not be run.
"""

import argparse
import json
import os
import statistics
import sys
import time

from patterns_common import (MEANING, Databases, Failed, Goal, add_options, check_options,
                             conclude)
from server_bench import processor

WORKS = ("bare", "empty", "wait")
EMBEDDED = ("memory", "none")
RECORD_US = 50
SCALING_PERCENT = 75
RECORDS = {"memory": 250000, "full": 40000, "http": 40000}  # that wait; the fastest do more in a turn
RECORDS_DEFAULT = 100000


class Bench:
    def __init__(self, options, databases):
        self.options = options
        self.databases = databases
        self.turns = {}  # (database, work, workers): what each turn measured
        self.failures = []

    def turn(self, database):
        run = self.databases.run("bench_records", database, "--seconds", self.options.seconds,
                                 "--workers", ",".join(map(str, self.options.workers)),
                                 "--records", RECORDS.get(database, RECORDS_DEFAULT))
        for cell in run["cells"]:
            _, work, workers = cell["name"].split("/")
            self.turns.setdefault((database, work, int(workers)), []).append(cell)
            if cell["errors"]:
                self.failures.append(f"{cell['name']}: {cell['errors']} records were not completed")

    def median(self, database, work, workers, what):
        turns = self.turns.get((database, work, workers))
        return statistics.median(turn[what] for turn in turns) if turns else None

    def run(self):
        for _ in range(self.options.repeat):
            for database in self.options.databases:
                self.databases.say(database)
                try:
                    self.turn(database)
                except (Failed, OSError) as error:
                    self.failures.append(str(error))

    def print(self):
        print(f"\n{'on':<7} {'work':<6} {'workers':>7} {'records/s':>10} {'p50 us':>10} "
              f"{'p99 us':>10} {'cpu us':>9}  {'above bare':>10}")
        for (database, work, workers) in self.turns:
            ops, p50, p99, cpu = (self.median(database, work, workers, what) for what in
                                  ("ops_per_s", "p50_us", "p99_us", "cpu_us_per_op"))
            bare = self.median(database, "bare", workers, "p50_us")
            above = f"{p50 - bare:.1f} us" if work == "empty" and bare is not None else ""
            print(f"{database:<7} {work:<6} {workers:>7} {ops:>10.0f} {p50:>10.1f} {p99:>10.1f} "
                  f"{cpu:>9.1f}  {above:>10}")

    def scaling(self, database, workers):
        """(2), in percent."""
        one, many, most = (self.median(database, work, count, "ops_per_s") for work, count in
                           (("wait", 1), ("wait", workers), ("empty", workers)))
        if None in (one, many, most):
            return None
        return 100 * many / min(workers * one, most)

    def goals(self):
        for database in EMBEDDED:
            yield Goal(f"{database}: a record, 1 worker",
                       self.median(database, "empty", 1, "p50_us"), RECORD_US, None, True, "us")
        for database in self.options.databases:
            for workers in self.options.workers:
                if workers > 1:
                    yield Goal(f"{database}: scaling to {workers} workers",
                               self.scaling(database, workers), SCALING_PERCENT, None, False, "%")


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/records", description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=1, help="of every cell (1)")
    p.add_argument("--repeat", type=int, default=2, help="turns of every cell (2)")
    p.add_argument("--workers", default="1,5,32", metavar="LIST")
    add_options(p)
    options = p.parse_args(arguments)
    check_options(p, options)
    options.workers = [int(w) for w in options.workers.split(",")]
    return options


def main():
    options = parse(sys.argv[1:])
    about = {"processor": processor(), "load": round(os.getloadavg()[0], 2),
             "seconds": options.seconds, "repeat": options.repeat,
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for database in options.databases:
        print(f"{database}: {MEANING[database]}")
    try:
        with Databases(options, *(["holdfast-none"] if "http" in options.databases else [])) as d:
            bench = Bench(options, d)
            bench.run()
    except (Failed, OSError) as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2
    bench.print()
    goals = list(bench.goals())
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"about": about, "failures": bench.failures,
                       "cells": [{"on": database, "work": work, "workers": workers, "turns": turns}
                                 for (database, work, workers), turns in bench.turns.items()],
                       "goals": [goal.as_json() for goal in goals]}, f, indent=1)
            f.write("\n")
    return conclude(goals, bench.failures)


if __name__ == "__main__":
    sys.exit(main())
