"""Measure the packages for Node and Python beside HTTP, in one run; started by bench/bindings, see bench/README.md.

The packages are packed and installed as users get them. One process for each language asks all ways in turns, and
round again for every repetition, so that what the machine does meanwhile hits all alike; figures are medians of the
repetitions, and ratios are those of one repetition. Before that each way is called as often as the others until what
compiles programs while they run has done so.

 (1) A server or a package that is not there is left out, and said so.
 (2) Servers are stopped by their process ids, also when we are interrupted.
 (3) Status: 0 everything was measured that is there, 1 something failed, 2 it could not be run.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from server_procs import Failed, Server, find_places

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVERS = {"http": "holdfast-mem", "local": "local-mem", "dynalite": "dynalite-mem"}
WAYS = {
    "sdk": "AWS's SDK, in this process",
    "api": "our interface, in this process",
    "http": "AWS's SDK, over HTTP to holdfast serve",
    "local": "AWS's SDK, over HTTP to DynamoDB Local",
    "dynalite": "AWS's SDK, over HTTP to dynalite",
}
BASE = "sdk"  # ratios are to this
QUANTILES = [0.5, 0.9, 0.99]
API_US = 12  # a call by our interface, of which the call in C is one: bench_engine
SDK_TIMES = 3  # how often as fast the SDK is in this process as over HTTP to any server


def say(text):
    print(f"bench/bindings: {text}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="bench-bindings-")
        self.places = find_places(ROOT, os.path.relpath(options.build, ROOT), None, options.peers)
        self.servers = {}
        self.failures = []
        self.results = []  # {language, operation, side_by_side, way, us, cpu_us, times_us: lists of each repetition}

    # ---- what is measured ----

    def start(self):
        """(1)"""
        for way, name in SERVERS.items():
            if way not in self.options.ways:
                continue
            server = Server(name, self.places, self.dir)
            if not server.program():
                say(f"{name} is left out: it is not there")
                continue
            try:
                self.servers[way] = server
                server.start()
                server.create_table("bench")
            except Failed as error:
                self.failures.append(str(error))
                self.servers.pop(way).stop(signal.SIGKILL)

    def settings(self):
        ways = [way for way in self.options.ways if way in ("sdk", "api") or way in self.servers]
        return {"ways": ways, "operations": self.options.operations, "calls": self.options.calls,
                "repeat": self.options.repeat, "side_by_side": self.options.side_by_side,
                "warm": self.options.warm, "quantiles": QUANTILES,
                "endpoints": {way: f"http://127.0.0.1:{server.port}" for way, server in self.servers.items()}}

    def ask(self, language, command, folder, env):
        """A process that prints a line of JSON for every turn."""
        env = {**{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HOLDFAST_"))},
               "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1",
               "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", **env}
        process = subprocess.Popen([*command, json.dumps(self.settings())], cwd=folder, env=env, text=True,
                                   stdout=subprocess.PIPE)
        turns = {}
        try:
            for line in process.stdout:
                turn = json.loads(line)
                key = (turn["operation"], turn["side_by_side"], turn["way"])
                turns.setdefault(key, []).append(turn)
        finally:
            if process.poll() is None and sys.exc_info()[0]:
                process.kill()
            status = process.wait()
        if status != 0:
            self.failures.append(f"{language}: status {status}")
        for (operation, side_by_side, way), those in turns.items():
            self.results.append({"language": language, "operation": operation, "side_by_side": side_by_side,
                                 "way": way, **{name: [turn[name] for turn in those]
                                                for name in ("us", "cpu_us", "times_us")}})

    def node(self):
        if not (shutil.which("node") and shutil.which("npm")):
            return say("Node is left out: there is no node, or no npm")
        if not os.path.isfile(os.path.join(self.options.build, "bindings/node/holdfast.node")):
            return say(f"Node is left out: {self.options.build} has no addon")
        folder = os.path.join(self.dir, "node")
        os.mkdir(folder)
        subprocess.run([os.path.join(ROOT, "bindings/node/pack"), self.options.build, os.path.join(folder, "packages")],
                       check=True, stdout=subprocess.DEVNULL)
        packages = [os.path.join(folder, "packages", name) for name in os.listdir(os.path.join(folder, "packages"))]
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
            f.write('{"name": "bench", "private": true}')
        subprocess.run(["npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", "--cache",
                        os.path.join(folder, "cache"), *packages], cwd=folder, check=True)
        modules = self.places["peers"]
        if not os.path.isdir(os.path.join(modules, "@aws-sdk/client-dynamodb")):
            return say("Node is left out: the SDK is not there")
        for name in os.listdir(modules):  # the SDK and what it needs
            target = os.path.join(folder, "node_modules", name)
            if not os.path.exists(target) and not name.startswith("."):
                os.symlink(os.path.join(modules, name), target)
        shutil.copy(os.path.join(ROOT, "bench/bindings_node.js"), folder)
        return self.ask("node", ["node", "--preserve-symlinks", "bindings_node.js"], folder, {})

    def python(self):
        if not importlib.util.find_spec("boto3"):
            return say("Python is left out: there is no boto3 (python3-boto3)")
        if not os.path.isfile(os.path.join(self.options.build, "bindings/python/libholdfast.so")):
            return say(f"Python is left out: {self.options.build} has no library")
        site = os.path.join(self.dir, "python")
        packed = subprocess.run([sys.executable, os.path.join(ROOT, "bindings/python/pack"), self.options.build,
                                 self.dir], stdout=subprocess.PIPE, text=True, check=True)
        with zipfile.ZipFile(packed.stdout.strip()) as files:
            files.extractall(site)
        return self.ask("python", [sys.executable, os.path.join(ROOT, "bench/bindings_python.py")], self.dir,
                        {"PYTHONPATH": site})

    def run(self):
        self.start()
        for language in self.options.languages:
            getattr(self, language)()

    def close(self):
        """(2)"""
        for server in self.servers.values():
            server.stop(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- what comes out ----

    def of(self, language, operation, side_by_side, way, what="us"):
        for result in self.results:
            if [result[name] for name in ("language", "operation", "side_by_side", "way")] == \
                    [language, operation, side_by_side, way]:
                return result[what]
        return None

    def rows(self):
        return [(language, operation, side_by_side) for language in self.options.languages
                for operation in self.options.operations for side_by_side in self.options.side_by_side
                if any(self.of(language, operation, side_by_side, way) for way in self.options.ways)]

    def table(self, title, cell):
        print(f"\n{title}\n")
        print(f"{'':20}" + "".join(f"{way:>22}" for way in self.options.ways))
        for row in self.rows():
            print(f"{row[0] + ' ' + row[1] + ' x' + str(row[2]):20}" + "".join(
                f"{cell(row, way) if self.of(*row, way) else '-':>22}" for way in self.options.ways))

    def ratios(self, row, way, what):
        us, base = self.of(*row, way, what), self.of(*row, BASE, what)
        return [a / b for a, b in zip(us, base)] if base and us and len(base) == len(us) else []

    def with_ratio(self, what):
        def cell(row, way):
            ratios = self.ratios(row, way, what)
            return f"{statistics.median(self.of(*row, way, what)):.1f}" + (
                f" ({statistics.median(ratios):.2f})" if ratios else "")
        return cell

    def spread(self, row, way):
        us = self.of(*row, way)
        return f"{min(us):.0f} to {max(us):.0f}"

    def quantiles(self, row, way):
        return " ".join(f"{statistics.median(each):.0f}" for each in zip(*self.of(*row, way, "times_us")))

    def goals(self):
        for row in self.rows():
            name = f"{row[0]} {row[1]} x{row[2]}"
            api = self.of(*row, "api")
            if api:
                yield statistics.median(api) <= API_US, f"{name}: our interface at most {API_US} us", \
                    f"{statistics.median(api):.1f}"
            others = [statistics.median(self.ratios(row, way, "us")) for way in SERVERS if self.ratios(row, way, "us")]
            if others:
                yield min(others) >= SDK_TIMES, f"{name}: the SDK at least {SDK_TIMES} times as fast as over HTTP", \
                    f"{min(others):.2f}"

    def print(self):
        self.table(f"Microseconds a call, and in brackets how often the time of the SDK in process. Medians of "
                   f"{self.options.repeat}.", self.with_ratio("us"))
        self.table("The same of the processors of the program that calls; a server's own come on top of it.",
                   self.with_ratio("cpu_us"))
        self.table("Microseconds a call, of the fastest and of the slowest repetition.", self.spread)
        self.table("How long a call takes: quantiles " + ", ".join(f"{q:g}" for q in QUANTILES) +
                   ", medians of the repetitions.", self.quantiles)
        print("\n" + "\n".join(f"{way:10} {what}" for way, what in WAYS.items() if way in self.options.ways) + "\n")
        for met, what, figure in self.goals():
            print(f"{'met   ' if met else 'MISSED'} {what}: {figure}")
        for failure in self.failures:
            print(f"FAILED: {failure}")


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/bindings", description=__doc__.splitlines()[0])
    p.add_argument("--calls", type=int, default=2000, help="of every turn (2000)")
    p.add_argument("--warm", type=int, default=3000, help="calls of every way before the turns of an operation (3000)")
    p.add_argument("--repeat", type=int, default=7, help="turns of every way (7)")
    p.add_argument("--side-by-side", default="1,16", metavar="LIST",
                   help="how many calls are under way at a time (1,16); Python: threads")
    p.add_argument("--languages", default="node,python", metavar="LIST")
    p.add_argument("--operations", default="get,put", metavar="LIST")
    p.add_argument("--ways", default=",".join(WAYS), metavar="LIST", help=f"of {' '.join(WAYS)}")
    p.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="DIR",
                   help="another build, which has to be there (build/release)")
    p.add_argument("--peers", default=os.path.join(ROOT, "build/bench-peers"), metavar="DIR")
    p.add_argument("--json", metavar="FILE")
    options = p.parse_args(arguments)
    options.build = os.path.abspath(options.build)
    for name, known in (("languages", ("node", "python")), ("operations", ("get", "put")), ("ways", tuple(WAYS))):
        chosen = getattr(options, name).split(",")
        strange = [each for each in chosen if each not in known]
        if strange:
            p.error(f"--{name}: there is no {strange[0]}; there are {', '.join(known)}")
        setattr(options, name, [each for each in known if each in chosen])
    try:
        options.side_by_side = [int(each) for each in options.side_by_side.split(",")]
    except ValueError:
        p.error("--side-by-side: numbers with commas")
    if options.calls < 1 or options.warm < 1 or options.repeat < 1 or min(options.side_by_side) < 1:
        p.error("--calls, --warm, --repeat and --side-by-side must be at least 1")
    if not os.path.isfile(os.path.join(options.build, "holdfast")):
        p.error(f"{options.build}/holdfast is not there")
    return options


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    about = {"calls": options.calls, "warm": options.warm, "repeat": options.repeat, "load": round(os.getloadavg()[0], 2),
             "nproc": os.cpu_count(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    if about["load"] > 0.5:
        say("others use this machine: figures will be uneven")
    bench = Bench(options)
    try:
        bench.run()
    except KeyboardInterrupt:
        return 2
    finally:
        bench.close()
    bench.print()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"about": about, "results": bench.results, "failures": bench.failures}, f, indent=1)
            f.write("\n")
    return 1 if bench.failures or not bench.results else 0


if __name__ == "__main__":
    sys.exit(main())
