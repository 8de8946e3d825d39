"""Measure outbox and relay beside the seed's in one run; started by bench/outbox, see README.md.

Ours run on four databases with default options, the seed's calls (primitives_seed.js) on dynoxide
in memory.

 (1) Factors are our median by the seed's best turn: emit by as many callers, drain by one poller
     that has no pause between polls, which is more than its defaults do.
 (2) A backlog does not slow its draining when the first tenth takes no less time than the last one,
     within what the machine does to either.
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
from primitives_bench import SEED, WARM_UP, Seed
from server_bench import processor

EMBEDDED = ("memory", "none")
EMIT_CALLERS = (1, 32)
HTTP_EMIT = {1: (10, 15), 32: (10, 16)}
EMBEDDED_EMIT = 40
HTTP_DRAIN = (15, 40)
EMBEDDED_DRAIN = 60
FLOW_FULL = 20000
BACKLOG = 100000


class Bench:
    def __init__(self, options, databases):
        self.options = options
        self.databases = databases
        self.cells = {}  # (database, what): what each turn measured
        self.facts = {}
        self.seeds = {}
        self.failures = []

    def turn(self, database, *arguments):
        run = self.databases.run("bench_outbox", database, "--seconds", self.options.seconds,
                                 *arguments)
        for cell in run["cells"]:
            what = cell["name"].split("/", 1)[1]
            self.cells.setdefault((database, what), []).append(cell)
            if cell["errors"]:
                self.failures.append(f"{cell['name']}: {cell['errors']} errors")
        for fact in run["facts"]:
            what = fact["name"].split("/", 1)[1]
            self.facts.setdefault((database, what), []).append(fact["value"])

    def run_seed(self):
        if "dynoxide-mem" not in self.databases.servers:
            return
        self.databases.say(SEED)
        seed = Seed(self.databases)
        try:
            for op, callers in [("emit", 1), ("emit", 32), ("drain", 1)]:
                seed.run(op, callers, WARM_UP)
                for _ in range(self.options.repeat):
                    self.seeds.setdefault((op, callers), []).append(
                        seed.run(op, callers, self.options.seconds))
        finally:
            seed.close()

    def run(self):
        for _ in range(self.options.repeat):
            for database in self.options.databases:
                self.databases.say(database)
                try:
                    self.turn(database)
                except (Failed, OSError) as error:
                    self.failures.append(str(error))
        try:
            if "none" in self.options.databases and self.options.backlog:
                self.databases.say(f"a backlog of {self.options.backlog}")
                self.turn("none", "--only", "*/drain/1", "--events", self.options.backlog)
            self.run_seed()
        except (Failed, OSError) as error:
            self.failures.append(str(error))

    def median(self, database, what, figure):
        turns = self.cells.get((database, what))
        return statistics.median(turn[figure] for turn in turns) if turns else None

    def fact(self, database, what, pick=statistics.median):
        values = self.facts.get((database, what))
        return pick(values) if values else None

    def seed(self, op, callers):
        turns = self.seeds.get((op, callers))
        return max(turn["ops_per_s"] for turn in turns) if turns else None

    def factor(self, database, what, op, callers):
        """(1)"""
        ours, seeds = self.median(database, what, "items_per_s"), self.seed(op, callers)
        return ours / seeds if ours is not None and seeds else None

    def print(self):
        print(f"\n{'on':<7} {'what':<10} {'events/s':>10} {'p50 us':>10} {'p99 us':>10} {'cpu us':>8}")
        for (database, what) in self.cells:
            events, p50, p99, cpu = (self.median(database, what, figure) for figure in
                                     ("items_per_s", "p50_us", "p99_us", "cpu_us_per_op"))
            print(f"{database:<7} {what:<10} {events:>10.0f} {p50:>10.1f} {p99:>10.1f} {cpu:>8.1f}")
        for (op, callers), turns in self.seeds.items():
            best = max(turns, key=lambda turn: turn["ops_per_s"])
            print(f"{SEED:<7} {f'{op}/{callers}':<10} {best['ops_per_s']:>10.0f} {best['p50_us']:>10.1f} "
                  f"{best['p99_us']:>10.1f} {best['cpu_us_per_op']:>8.1f}")
        print()
        for (database, what), values in self.facts.items():
            print(f"{database:<7} {what:<20} {statistics.median(values):.2f}")

    def goals(self):
        for callers, (floor, aim) in HTTP_EMIT.items():
            yield Goal(f"http emit/{callers}",
                       self.factor("http", f"emit/{callers}", "emit", callers), floor, aim)
        yield Goal("http drain", self.factor("http", "drain/1", "drain", 1), *HTTP_DRAIN)
        for who in EMBEDDED:
            for callers in EMIT_CALLERS:
                yield Goal(f"{who} emit/{callers}",
                           self.factor(who, f"emit/{callers}", "emit", callers), EMBEDDED_EMIT)
            yield Goal(f"{who} drain", self.factor(who, "drain/1", "drain", 1), EMBEDDED_DRAIN)
        yield Goal("full flow/32", self.median("full", "flow/32", "items_per_s"), FLOW_FULL, None,
                   False, "/s")
        yield Goal("http commit to handler, p50", self.median("http", "paced/20", "p50_us"), 3000,
                   1000, True, "us")
        yield Goal("http commit to handler, p99", self.median("http", "paced/20", "p99_us"), 15000,
                   None, True, "us")
        for who in EMBEDDED:
            yield Goal(f"{who} commit to handler, p50", self.median(who, "paced/20", "p50_us"), 500,
                       300, True, "us")
        for database in self.options.databases:
            yield Goal(f"{database} idle", self.fact(database, "idle"), 1, None, True, "% CPU")
            yield Goal(f"{database} refused writes", self.fact(database, "drain/4/refused", max), 0,
                       None, True, "")
        yield Goal("none drain: first to last tenth", self.fact("none", "drain/1/ends"), 0.7)


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/outbox", description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=1, help="of every cell (1)")
    p.add_argument("--repeat", type=int, default=2, help="turns of every cell (2)")
    p.add_argument("--backlog", type=int, default=BACKLOG, metavar="EVENTS",
                   help=f"of one drain more ({BACKLOG}); 0: none")
    p.add_argument("--no-seed", action="store_true", help="ours alone")
    add_options(p)
    options = p.parse_args(arguments)
    check_options(p, options)
    return options


def main():
    options = parse(sys.argv[1:])
    about = {"processor": processor(), "load": round(os.getloadavg()[0], 2),
             "seconds": options.seconds, "repeat": options.repeat,
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for database in options.databases:
        print(f"{database}: {MEANING[database]}")
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
    bench.print()
    goals = list(bench.goals())
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"about": about, "failures": bench.failures,
                       "cells": [{"on": database, "what": what, "turns": turns}
                                 for (database, what), turns in bench.cells.items()],
                       "facts": [{"on": database, "what": what, "values": values}
                                 for (database, what), values in bench.facts.items()],
                       "goals": [goal.as_json() for goal in goals]}, f, indent=1)
            f.write("\n")
    return conclude(goals, bench.failures)


if __name__ == "__main__":
    sys.exit(main())
