"""Measure the event store beside the seed's in one run; started by bench/events, see README.md.

Ours runs on four databases with default options, the seed's calls (events_seed.js) on dynoxide in
memory.

 (1) Factors are our median by the seed's best turn: appends of one event by as many callers, those
     of more by however many suit the seed best; replay by one, with the better of its two sizes of
     pages.
 (2) Replay is judged with events that were appended one by one, which is the harder case.
 (3) Memory of a replay is judged by what store, reader and calls have, and over HTTP by all that the
     reading process has too: embedded, that has the database in it.
 (4) Status: 0 floors hold, 1 one does not or something failed, 2 it could not be run.
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
COUNTS = {"append1": 1, "append10": 10, "append20": 20, "new1": 1}
SEED_OPS = {"append1": "append1", "append10": "append10", "append20": "append20",
            "new1": "append-new"}
CALLERS = {"append1": (1, 32), "append10": (1, 4, 32), "append20": (1, 4, 32), "append-new": (1, 32)}
PAGES = (100, 1000)
EVENTS = 100000
MILLION = 1000000
SEED_EVENTS = 20000

HTTP_APPEND = {"append1/1": (15, 25), "append1/32": (12, 20), "append20/32": (12, 20)}
EMBEDDED_APPEND = 60
HTTP_REPLAY = (20, 50)
EMBEDDED_REPLAY = 80
EMBEDDED_REPLAY_EVENTS = 300000
FIRST_PAGE_US = 5000
DURABLE_APPENDS = 15000
REPLAY_MIB = 64


class Bench:
    def __init__(self, options, databases):
        self.options = options
        self.databases = databases
        self.cells = {}  # (database, what): what each turn measured
        self.facts = {}
        self.seeds = {}  # (op, callers) or ("replay", page)
        self.failures = []

    def turn(self, database, *arguments):
        run = self.databases.run("bench_events", database, "--seconds", self.options.seconds,
                                 "--events", self.options.events, *arguments)
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
        seed = Seed(self.databases, "events_seed.js")
        try:
            for op, counts in CALLERS.items():
                for callers in counts:
                    seed.run(op, callers, WARM_UP)
                    for _ in range(self.options.repeat):
                        self.seeds.setdefault((op, callers), []).append(
                            seed.run(op, callers, self.options.seconds))
            for page in PAGES:
                for _ in range(self.options.repeat):
                    self.seeds.setdefault(("replay", page), []).append(
                        seed.ask(op="replay", events=self.options.seed_events, page=page))
        finally:
            seed.close()

    def run(self):
        only = ["--only", self.options.only] if self.options.only else []
        for _ in range(self.options.repeat):
            for database in self.options.databases:
                self.databases.say(database)
                try:
                    self.turn(database, *only)
                except (Failed, OSError) as error:
                    self.failures.append(str(error))
        try:
            self.run_seed()
        except (Failed, OSError) as error:
            self.failures.append(str(error))

    def median(self, database, what, figure="items_per_s"):
        turns = self.cells.get((database, what))
        return statistics.median(turn[figure] for turn in turns) if turns else None

    def fact(self, database, what, pick=statistics.median):
        values = self.facts.get((database, what))
        return pick(values) if values else None

    def seed(self, op, callers):
        turns = self.seeds.get((op, callers))
        return max(turn["ops_per_s"] for turn in turns) if turns else None

    def append_factor(self, database, what):
        """(1)"""
        name, callers = what.split("/")
        op = SEED_OPS[name]
        counts = [int(callers)] if COUNTS[name] == 1 else CALLERS[op]
        ours, seeds = self.median(database, what), [self.seed(op, count) for count in counts]
        return ours / (max(seeds) * COUNTS[name]) if ours is not None and all(seeds) else None

    def replay_factor(self, database, what="replay1"):
        ours = self.median(database, what)
        seeds = [self.seed("replay", page) for page in PAGES]
        return ours / max(seeds) if ours is not None and all(seeds) else None

    def print(self):
        print(f"\n{'on':<7} {'what':<12} {'events/s':>10} {'p50 us':>10} {'p99 us':>10} "
              f"{'cpu us':>8} {'x seed':>8}")
        for (database, what), turns in self.cells.items():
            events, p50, p99, cpu = (self.median(database, what, figure) for figure in
                                     ("items_per_s", "p50_us", "p99_us", "cpu_us_per_op"))
            factor = (self.append_factor(database, what) if what.split("/")[0] in COUNTS else
                      self.replay_factor(database, what) if what.startswith("replay") else None)
            print(f"{database:<7} {what:<12} {events:>10.0f} {p50:>10.1f} {p99:>10.1f} {cpu:>8.1f} "
                  f"{'' if factor is None else f'{factor:.1f}':>8}")
        names = {op: what for what, op in SEED_OPS.items()}
        for (op, number), turns in self.seeds.items():
            best = max(turns, key=lambda turn: turn["ops_per_s"])
            events = best["ops_per_s"] * COUNTS.get(names.get(op), 1)
            print(f"{SEED:<7} {f'{names.get(op, op)}/{number}':<12} {events:>10.0f} "
                  f"{best.get('p50_us', 0):>10.1f} {best.get('p99_us', 0):>10.1f} "
                  f"{best['cpu_us_per_op']:>8.1f}")
            if "first_page_us" in best:
                print(f"{SEED:<7} first page of {number}: {best['first_page_us'] / 1000:.0f} ms")
        print()
        for (database, what), values in self.facts.items():
            print(f"{database:<7} {what:<24} {statistics.median(values):.2f}")

    def goals(self):
        for what, (floor, aim) in HTTP_APPEND.items():
            yield Goal(f"http {what}", self.append_factor("http", what), floor, aim)
        yield Goal("http replay", self.replay_factor("http"), *HTTP_REPLAY)
        yield Goal("http first page", self.fact("http", "replay1/first"), FIRST_PAGE_US, None, True,
                   "us")
        for who in EMBEDDED:
            for what in HTTP_APPEND:
                yield Goal(f"{who} {what}", self.append_factor(who, what), EMBEDDED_APPEND)
            yield Goal(f"{who} replay", self.replay_factor(who), EMBEDDED_REPLAY)
            yield Goal(f"{who} replay", self.median(who, "replay1"), EMBEDDED_REPLAY_EVENTS, None,
                       False, "/s")
        yield Goal("full append1/32", self.median("full", "append1/32"), DURABLE_APPENDS, None,
                   False, "/s")
        for database in self.options.databases:
            yield Goal(f"{database} replay, memory", self.fact(database, "replay1/memory", max),
                       REPLAY_MIB, None, True, "MiB")
        yield Goal("http replay, process", self.fact("http", "replay1/process", max), REPLAY_MIB,
                   None, True, "MiB")


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/events", description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=1, help="of every cell (1)")
    p.add_argument("--repeat", type=int, default=2, help="turns of every cell (2)")
    p.add_argument("--events", type=int, default=EVENTS, help=f"of a replay ({EVENTS})")
    p.add_argument("--million", action="store_const", dest="events", const=MILLION,
                   help="a million events for a replay")
    p.add_argument("--seed-events", type=int, default=SEED_EVENTS, metavar="EVENTS",
                   help=f"of the seed's replay ({SEED_EVENTS})")
    p.add_argument("--only", metavar="NAME", help="such cells of ours, as */append1/*")
    p.add_argument("--no-seed", action="store_true", help="ours alone")
    add_options(p)
    options = p.parse_args(arguments)
    check_options(p, options)
    return options


def main():
    options = parse(sys.argv[1:])
    about = {"processor": processor(), "load": round(os.getloadavg()[0], 2),
             "seconds": options.seconds, "repeat": options.repeat, "events": options.events,
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
                       "seed": [{"op": op, "callers_or_page": number, "turns": turns}
                                for (op, number), turns in bench.seeds.items()],
                       "facts": [{"on": database, "what": what, "values": values}
                                 for (database, what), values in bench.facts.items()],
                       "goals": [goal.as_json() for goal in goals]}, f, indent=1)
            f.write("\n")
    return conclude(goals, bench.failures)


if __name__ == "__main__":
    sys.exit(main())
