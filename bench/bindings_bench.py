"""Measure the packages for Node and Python beside HTTP, in one run; started by bench/bindings, see bench/README.md.

The packages are packed and installed as users get them. One process for each language asks all ways in turns, and
round again for every repetition, so that what the machine does meanwhile hits all alike; figures are medians of the
repetitions, and ratios are those of one repetition.

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


def say(text):
    print(f"bench/bindings: {text}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="bench-bindings-")
        self.places = find_places(ROOT, os.path.relpath(options.build, ROOT), None, options.peers)
        self.servers = {}
        self.failures = []
        self.results = []  # {language, operation, side_by_side, way, us: [of each repetition]}

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
                turns.setdefault(key, []).append(turn["us"])
        finally:
            if process.poll() is None and sys.exc_info()[0]:
                process.kill()
            status = process.wait()
        if status != 0:
            self.failures.append(f"{language}: status {status}")
        for (operation, side_by_side, way), us in turns.items():
            self.results.append({"language": language, "operation": operation, "side_by_side": side_by_side,
                                 "way": way, "us": us})

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

    def of(self, language, operation, side_by_side, way):
        for result in self.results:
            if [result[name] for name in ("language", "operation", "side_by_side", "way")] == \
                    [language, operation, side_by_side, way]:
                return result["us"]
        return None

    def print(self):
        print("\nMicroseconds a call, and in brackets how often the time of the SDK in process. Medians of",
              f"{self.options.repeat}.\n")
        print(f"{'':24}" + "".join(f"{way:>18}" for way in self.options.ways))
        for language in self.options.languages:
            for operation in self.options.operations:
                for side_by_side in self.options.side_by_side:
                    base = self.of(language, operation, side_by_side, BASE)
                    line = f"{language + ' ' + operation + ' x' + str(side_by_side):24}"
                    found = False
                    for way in self.options.ways:
                        us = self.of(language, operation, side_by_side, way)
                        if not us:
                            line += f"{'-':>18}"
                            continue
                        found = True
                        text = f"{statistics.median(us):.1f}"
                        if base and len(base) == len(us):
                            text += f" ({statistics.median(a / b for a, b in zip(us, base)):.2f})"
                        line += f"{text:>18}"
                    if found:
                        print(line)
        print("\n" + "\n".join(f"{way:10} {what}" for way, what in WAYS.items() if way in self.options.ways))
        for failure in self.failures:
            print(f"FAILED: {failure}")


def parse(arguments):
    p = argparse.ArgumentParser(prog="bench/bindings", description=__doc__.splitlines()[0])
    p.add_argument("--calls", type=int, default=2000, help="of every turn (2000)")
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
    if options.calls < 1 or options.repeat < 1 or min(options.side_by_side) < 1:
        p.error("--calls, --repeat and --side-by-side must be at least 1")
    if not os.path.isfile(os.path.join(options.build, "holdfast")):
        p.error(f"{options.build}/holdfast is not there")
    return options


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    about = {"calls": options.calls, "repeat": options.repeat, "load": round(os.getloadavg()[0], 2),
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
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
