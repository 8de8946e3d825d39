"""Measure our server beside its peers in one run; started by bench/server, see bench/README.md.

All servers are started and filled first and then stay, idle but for their turn. A workload goes
round all of them before the next one begins, and round again for every repetition, so that what
the machine does meanwhile hits all alike.

 (1) Before every turn we wait until all servers are idle, but not for long.
 (2) A server that fails is reported and left out from there on; the others go on.
 (3) Servers are stopped by their process ids, also when we are interrupted.
 (4) Status: 0 floors hold, 1 they do not or something failed, 2 it could not be run.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import server_goals as goals
from server_procs import COMMANDS, Failed, Server, disk_bytes, find_places

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = "build/release"
STARTS = 5
IDLE_WINDOW = 0.05
IDLE_TICKS = 1
IDLE_SECONDS = 2
MILLION_CONNECTIONS = 8
LOG_ITEMS = 10000  # fit a memtable: written again and again they are in the log alone
LOG_FILLS = 10  # so many times, which is about half of the largest log that there is
KILLS = 3
BUSY_LOAD = 0.5
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
CANNOT = {("transact4", "dynalite-mem"), ("transact4", "dynalite-file")}
COMMITS = {"commit": [], "commit-loop": ["--loop"]}  # not servers: bench_server_commit


def say(text):
    print(f"bench/server: {text}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options, pair=0):
        self.options = options
        self.pair = pair  # who begins changes from one to the next
        self.only = re.compile(options.only)
        self.results = goals.Results(options.judge)
        self.failures = []
        self.servers = {}
        self.places = find_places(ROOT, BUILD, options.holdfast, options.peers,
                                  options.before)
        self.dir = tempfile.mkdtemp(prefix="bench-server-", dir=options.dir)

    # ---- what is wanted ----

    def wanted(self, name):
        return bool(self.only.search(name))

    def cells(self):
        return [(workload, connections) for workload in goals.OPERATIONS
                for connections in self.options.connections
                if self.wanted(f"{workload}/{connections}")]

    def tables(self):
        """Tables that what is wanted needs."""
        names = {"bench-gsi" if workload.startswith("gsi-") else "bench"
                 for workload, _ in self.cells()}
        if self.wanted("fill"):
            names |= {"bench", "bench-gsi"}
        return sorted(names)

    # ---- parts of the run ----

    def failed(self, server, error):
        say(f"{error}")
        self.failures.append(str(error))
        if server in self.servers:
            self.servers.pop(server).stop(signal.SIGKILL)

    def run_program(self, name, *arguments):
        command = [os.path.join(self.places["bench"], name)] + [str(a) for a in arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.stderr:
            say(done.stderr.strip())
        if done.returncode != 0:
            raise Failed(f"{' '.join([name] + command[1:])}: status {done.returncode}")
        return json.loads(done.stdout)

    def load(self, server, workload, connections, *more):
        echo = ["--echo"] if server.name == "echo" else []
        return self.run_program("bench_server_load", "--port", server.port, "--pid", server.pid,
                                "--op", workload, "--connections", connections, *echo, *more)

    def start(self, name):
        """Start a server, several times if that is measured; the last time it stays."""
        server = Server(name, self.places, self.dir)
        if not server.program():
            say(f"{name} is left out: {COMMANDS[name][0]} or a part of it is not there")
            return
        self.servers[name] = server
        times = []
        for i in range(STARTS if self.wanted("start") else 1):
            if i > 0:
                server.stop()
                server.wipe()
            times.append(server.start() * 1000)
        time.sleep(0.3)
        if self.wanted("start"):
            self.note(name, "start_ms", statistics.median(times))
            self.note(name, "start_best_ms", min(times))
        self.note_memory(server, "idle")

    def note(self, server, name, value):
        self.results.facts[(server, name)] = value

    def note_memory(self, server, when):
        rss, anonymous = server.memory()
        self.note(server.name, "rss_" + when, rss)
        self.note(server.name, "anon_" + when, anonymous)

    def fill(self, server):
        for table in self.tables():
            server.create_table(table)
            gsi = table == "bench-gsi"
            run = self.load(server, "gsi-batch25" if gsi else "batch25", 1, "--fill", "--items",
                            self.options.items)
            if run["errors"]:
                raise Failed(f"{server.name}: {run['errors']} errors while filling {table}")
            self.note(server.name, "fill_gsi" if gsi else "fill",
                      self.options.items / run["seconds"])
        self.note_memory(server, "filled")

    def settle(self):
        """(1)"""
        until = time.monotonic() + IDLE_SECONDS
        before = sum(server.cpu_ticks() for server in self.servers.values())
        while time.monotonic() < until:
            time.sleep(IDLE_WINDOW)
            now = sum(server.cpu_ticks() for server in self.servers.values())
            if now - before <= IDLE_TICKS:
                return
            before = now

    def turn(self, name, workload, connections):
        if name in COMMITS:
            if workload != "put":
                return
            run = self.run_program("bench_server_commit", "--dir", self.dir, "--writers",
                                   connections, "--seconds", self.options.seconds, *COMMITS[name])
        elif name in self.servers and (workload, name) not in CANNOT:
            run = self.load(self.servers[name], workload, connections, "--items",
                            self.options.items, "--seconds", self.options.seconds)
        else:
            return
        self.results.add(workload, connections, name, run)

    def measure(self, workload, connections):
        names = self.options.servers
        for i in range(self.pair, self.pair + self.options.repeat):
            for name in names[i % len(names):] + names[:i % len(names)]:
                try:
                    self.settle()
                    self.turn(name, workload, connections)
                except Failed as error:
                    self.failed(name, error)
        for name in names:
            cell = self.results.cell(workload, connections, name)
            if cell and cell.errors:
                self.failures.append(f"{workload}/{connections}: {name}: {cell.errors} errors")
        goals.print_cells(self.results, workload, connections, names)
        sys.stdout.flush()

    def million(self):
        """Many items in ours: memory, disk, starting after a clean stop and after a kill."""
        items = self.options.million
        server = Server("holdfast-none", self.places, os.path.join(self.dir, "million"))
        if not server.program():
            return
        os.makedirs(os.path.dirname(server.dir))
        self.servers["million"] = server
        server.start()
        server.create_table("bench")
        run = self.load(server, "batch25", MILLION_CONNECTIONS, "--fill", "--items", items)
        if run["errors"]:
            raise Failed(f"{run['errors']} errors while filling {items} items")
        facts = {"items": items, "fill_per_s": items / run["seconds"]}
        facts["rss_filled"], facts["anon_filled"] = server.memory()
        facts["stop_ms"] = server.stop() * 1000
        facts["disk_mb"] = disk_bytes(server.dir) / 1e6
        times = []
        for _ in range(STARTS):
            times.append(server.start() * 1000)
            facts["rss_idle"], facts["anon_idle"] = server.memory()
            server.stop()
        facts["start_ms"], facts["start_best_ms"] = statistics.median(times), min(times)
        server.start()
        rates = []
        log_items = min(items, LOG_ITEMS)
        log_mb = facts["killed_log_mb"] = LOG_FILLS * log_items * goals.ITEM_BYTES / 1e6
        for _ in range(KILLS):
            for _ in range(LOG_FILLS):
                self.load(server, "batch25", 1, "--fill", "--items", log_items)
            server.stop(signal.SIGKILL)
            facts["killed_start_ms"] = server.start() * 1000
            took = max(0, facts["killed_start_ms"] - facts["start_ms"]) / 1000
            rates.append(took / log_mb * 64)
            server.stop()
            server.start()
        facts["recovery_s_per_64mb"] = statistics.median(rates)
        server.stop()
        for name, value in facts.items():
            self.note("million", name, value)

    def finish(self):
        for name, server in list(self.servers.items()):
            if name in COMMANDS:
                try:
                    self.note_memory(server, "end")
                except Failed as error:
                    self.failures.append(str(error))
            stopped = server.stop()
            if name in COMMANDS:
                self.note(name, "stop_ms", stopped * 1000)
                self.note(name, "disk_end", disk_bytes(server.dir) / 1e6)
        self.servers.clear()

    def run(self):
        names = self.options.servers
        cells = self.cells()
        if cells or self.wanted("start") or self.wanted("fill"):
            for name in [name for name in names if name not in COMMITS]:
                try:
                    say(f"start and fill {name}")
                    self.start(name)
                    if name in self.servers and name != "echo":
                        self.fill(self.servers[name])
                except (Failed, OSError) as error:
                    self.failed(name, error)
        if cells:
            goals.print_head(names)
        for workload, connections in cells:
            self.measure(workload, connections)
        self.finish()
        if self.options.million and "holdfast-none" in names and self.wanted("million"):
            try:
                say(f"fill {self.options.million} items")
                self.million()
            except (Failed, OSError) as error:
                self.failed("million", error)

    def close(self):
        """(3)"""
        for server in self.servers.values():
            server.stop(signal.SIGKILL)
        if self.failures or self.options.keep:
            say(f"kept {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def file_system(path):
    """The type of the file system that a path is on."""
    best, kind = "", "?"
    path = os.path.realpath(path)
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            mount = left.split()[4]
            inside = path == mount or path.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, right.split()[0]
    return kind


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else "?"


def parse(arguments):
    everything = list(COMMITS) + [name for name in COMMANDS if not name.startswith("before-")]
    p = argparse.ArgumentParser(prog="bench/server", description=__doc__.splitlines()[0])
    p.add_argument("--only", default="", metavar="REGEX",
                   help="cells as put/32, and the parts start, fill and million")
    p.add_argument("--seconds", type=float, default=2, help="of every turn (2)")
    p.add_argument("--repeat", type=int, default=3, help="turns of every cell (3)")
    p.add_argument("--servers", default=",".join(everything), metavar="LIST",
                   help="names, or beginnings of names, with commas: " + " ".join(everything))
    p.add_argument("--connections", default="1,32", metavar="LIST")
    p.add_argument("--items", type=int, default=10000, help="in each table (10000)")
    p.add_argument("--million", type=int, default=1000000, metavar="N",
                   help="items of the part million (1000000); 0: leave it out")
    p.add_argument("--judge", choices=("ops", "cpu"), default="ops",
                   help="by operations per second, or on a busy machine by processor time")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--dir", default=os.path.join(ROOT, "build"), help="on a real disk (build)")
    p.add_argument("--holdfast", metavar="PROGRAM", help=f"ours ({BUILD}/holdfast)")
    p.add_argument("--before", metavar="PROGRAM",
                   help="another version of ours, to be compared with: each cell of --servers "
                        "that begins with holdfast- is measured with it too")
    p.add_argument("--pairs", type=int, default=1, metavar="N",
                   help="with --before: start both versions afresh so many times, and judge by pairs (1)")
    p.add_argument("--peers", default=os.path.join(ROOT, "build/bench-peers"), metavar="DIR")
    p.add_argument("--keep", action="store_true", help="keep the directory of the run")
    options = p.parse_args(arguments)
    options.connections = [int(c) for c in options.connections.split(",")]
    chosen = options.servers.split(",")
    for name in chosen:
        if not any(known.startswith(name) for known in everything):
            p.error(f"there is no server {name}")
    options.servers = [known for known in everything if any(map(known.startswith, chosen))]
    if options.before:
        options.servers += [name.replace("holdfast-", "before-") for name in options.servers
                            if name.startswith("holdfast-")]
    options.whole = not options.before and not options.only and len(options.servers) == len(everything)
    if file_system(options.dir) in IN_MEMORY:
        p.error(f"{options.dir} is in memory; --dir must be on a real disk")
    if options.items % 50 or options.million % 50:
        p.error("--items and --million must be multiples of 50")
    if options.repeat < 1 or options.pairs < 1:
        p.error("--repeat and --pairs must be at least 1")
    if options.pairs > 1 and not options.before:
        p.error("--pairs compares with another version: give --before")
    return options


def write_json(path, bench, judged, about):
    results = bench.results
    cells = []
    for (workload, connections, server), runs in results.runs.items():
        cell = goals.Cell(runs)
        cells.append({"workload": workload, "connections": connections, "server": server,
                      "ops_per_s": cell.ops, "best_ops_per_s": cell.best_ops, "p50_us": cell.p50,
                      "p99_us": cell.p99, "max_us": cell.max, "cpu_us": cell.cpu,
                      "least_cpu_us": cell.least_cpu, "errors": cell.errors, "runs": runs})
    facts = {}
    for (server, name), value in results.facts.items():
        facts.setdefault(server, {})[name] = value
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"about": about, "cells": cells, "facts": facts, "failures": bench.failures,
                   "goals": [{"name": g.name, "value": g.value, "unit": g.unit,
                              "at_most": g.at_most, "limits": g.limits,
                              "met": {which: g.met(which) for which in g.limits}}
                             for g in judged]}, f, indent=1)
        f.write("\n")


def conclude(bench, judged):
    """Say whether the floors hold; the status."""
    held = [g for g in judged if g.met("floor")]
    missed = [g for g in judged if g.met("floor") is False]
    unknown = [g for g in judged if g.value is None]
    for failure in bench.failures:
        print(f"FAILED: {failure}")
    print(f"\nfloors: {len(held)} hold, {len(missed)} do not, {len(unknown)} not measured")
    if missed or bench.failures or not judged or (bench.options.whole and unknown):
        return 1
    return 0


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    about = {"processor": processor(), "kernel": platform.release(),
             "disk": file_system(options.dir), "seconds": options.seconds,
             "repeat": options.repeat, "pairs": options.pairs, "items": options.items, "judge": options.judge,
             "load": round(os.getloadavg()[0], 2),
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    if about["load"] > BUSY_LOAD:
        say("others use this machine: figures will be low and uneven; consider --judge cpu")
    pairs = []
    for pair in range(options.pairs):
        bench = Bench(options, pair)
        if options.pairs > 1:
            say(f"pair {pair + 1} of {options.pairs}")
        try:
            bench.run()
        except KeyboardInterrupt:
            return 2
        finally:
            bench.close()
        pairs.append(bench.results)
        if pair:
            bench.failures += failures
        failures = bench.failures
    bench.results = goals.merge(pairs)
    goals.print_facts(bench.results, options.servers)
    if options.pairs > 1:
        goals.print_pairs(pairs)
    elif options.before:
        goals.print_before(bench.results)
    judged = goals.judge(bench.results)
    goals.print_goals(bench.results, judged, options.whole)
    if options.json:
        write_json(options.json, bench, judged, about)
    return conclude(bench, judged)


if __name__ == "__main__":
    sys.exit(main())
