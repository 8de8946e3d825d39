"""What bench/server found: tables, and goals that are met or not.

A goal has up to three limits. The floor must hold, or the run fails. The goal is what we set
ourselves, and the aim what the costs of the parts say is possible. Ours counts with the median of
its runs, all others with their best, so a lucky run of ours proves nothing and an unlucky one of
theirs neither. Shares are of the echo server (H) or of a bare group commit (G) in the same run.

With "cpu" as the basis, factors and shares are those of processor time per operation, which holds
still when others use the machine; a peer then counts with its least.
"""

import statistics

OURS = ("holdfast-mem", "holdfast-none", "holdfast-full")
PEERS = ("dynoxide-mem", "dynoxide-file", "dynalite-mem", "dynalite-file", "local-mem",
         "local-file")
DURABLE = ("holdfast-full", "dynoxide-file")
COMMITS = ("commit", "commit-loop")
OPERATIONS = ("put", "get", "update-add", "query50", "transact4", "batch25", "gsi-put",
              "gsi-update-add", "gsi-query50")
MANY = 32
ITEM_BYTES = 1024
MANY_ITEMS = 100000  # with fewer, what a database needs when it is empty is most of its size


class Cell:
    """One workload with one number of connections on one server: all runs of it."""

    def __init__(self, runs):
        self.runs = runs
        self.errors = sum(run["errors"] for run in runs)
        self.ops = self.median("ops_per_s")
        self.best_ops = max(run["ops_per_s"] for run in runs)
        self.p50, self.p99 = self.median("p50_us"), self.median("p99_us")
        self.max = max(run["max_us"] for run in runs)
        self.cpu = self.median("cpu_us")
        self.least_cpu = min(run["cpu_us"] for run in runs)

    def median(self, field):
        return statistics.median(run[field] for run in self.runs)


class Results:
    """Cells by (workload, connections, server), and single figures by (server, name)."""

    def __init__(self, basis="ops"):
        self.basis = basis
        self.runs = {}
        self.facts = {}

    def add(self, workload, connections, server, run):
        self.runs.setdefault((workload, connections, server), []).append(run)

    def cell(self, workload, connections, server):
        runs = self.runs.get((workload, connections, server))
        return Cell(runs) if runs else None

    def good(self, workload, connections, server):
        """The cell if it can be judged by: it was measured, and without errors."""
        cell = self.cell(workload, connections, server)
        return cell if cell and not cell.errors and cell.ops else None

    def fact(self, server, name):
        return self.facts.get((server, name))

    def factor(self, workload, ours, other, connections=MANY, basis=None, medians=False):
        """How many times faster ours is; None if either was not measured."""
        a = self.good(workload, connections, ours)
        b = self.good(workload, connections, other)
        if not a or not b:
            return None
        if (basis or self.basis) == "cpu" and a.cpu and b.cpu:
            return (b.cpu if medians else b.least_cpu) / a.cpu
        return a.ops / (b.ops if medians else b.best_ops)


def merge(pairs):
    """The runs of all; single figures are those of the last."""
    whole = Results(pairs[-1].basis)
    whole.facts = pairs[-1].facts
    for results in pairs:
        for place, runs in results.runs.items():
            for run in runs:
                whole.add(*place, run)
    return whole


# ---- tables --------------------------------------------------------------------------------------

def print_head(servers):
    against = [name for name in OURS if name in servers]
    print(f"\n{'':<22}{'ops/s':>9}{'best':>9}{'p50 us':>9}{'p99 us':>10}{'max us':>10}{'CPU us':>9}"
          f"{'errors':>8}{'% of H':>8}{'% of G':>8}" + "".join(f"{name[9:] + ' x':>9}" for name in against))


def print_cells(results, workload, connections, servers):
    """A line per server. 'mem x', 'none x', 'full x': how many times faster ours is than a peer."""
    against = [name for name in OURS if name in servers]
    print(f"{workload}, {connections} connection{'s' if connections > 1 else ''}")
    for server in servers:
        cell = results.cell(workload, connections, server)
        if not cell:
            continue
        share = results.factor(workload, server, "echo", connections)
        line = (f"  {server:<20}{cell.ops:>9.0f}{cell.best_ops:>9.0f}{cell.p50:>9.0f}"
                f"{cell.p99:>10.0f}{cell.max:>10.0f}{cell.cpu:>9.1f}{cell.errors:>8}")
        line += f"{share * 100:>8.1f}" if share and server not in COMMITS else f"{'':>8}"
        share = results.factor(workload, server, "commit", connections, "ops")
        line += f"{share * 100:>8.1f}" if share and server in DURABLE else f"{'':>8}"
        for ours in against:
            factor = results.factor(workload, ours, server, connections)
            line += f"{factor:>9.2f}" if factor and server in PEERS else f"{'':>9}"
        print(line.rstrip())


FACTS = (("start_ms", "start, ms"), ("start_best_ms", "best"), ("rss_idle", "idle MB"),
         ("anon_idle", "anon"), ("fill", "fill/s"), ("fill_gsi", "gsi/s"),
         ("rss_filled", "filled MB"), ("anon_filled", "anon"), ("rss_end", "end MB"),
         ("anon_end", "anon"), ("disk_end", "disk MB"), ("stop_ms", "stop, ms"))


def print_facts(results, servers):
    print(f"\n{'':<22}" + "".join(f"{title:>10}" for _, title in FACTS))
    for server in servers:
        values = [results.fact(server, name) for name, _ in FACTS]
        if any(value is not None for value in values):
            print(f"  {server:<20}" + "".join(
                f"{'':>10}" if value is None else
                f"{value:>10.1f}" if value < 1000 else f"{value:>10.0f}" for value in values))
    million = sorted(name for server, name in results.facts if server == "million")
    for name in million:
        print(f"  million/{name:<32}{results.fact('million', name):>12.1f}")


def spread(cell, field):
    """How far its runs are apart, in percent of the median."""
    values = [run[field] for run in cell.runs]
    return (max(values) - min(values)) / cell.median(field) * 100 if cell.median(field) else 0


def before_ratio(results, workload, connections, server):
    """Operations, and processor time turned round; None: one of the two was not measured."""
    now = results.good(workload, connections, server)
    before = results.good(workload, connections, server.replace("holdfast-", "before-"))
    if not now or not before or not now.cpu:
        return None
    return now.ops / before.ops, before.cpu / now.cpu


def print_pairs(pairs):
    """A line per cell: this version to the one before, in pairs of instances that were started afresh.

    Instances of one build differ by more than their turns do: where its memory lies is decided when it starts. So a
    pair counts once, and a cell is called slower or faster only if it is that in every pair: with five, 1 of 16 of the
    cells of two equal builds is.
    """
    print(f"\n{'pairs, to the version before':<34}{'ops x':>8}{'least':>8}{'most':>8}{'CPU x':>8}")
    medians, verdicts = [], {"slower": 0, "faster": 0, "": 0}
    for workload, connections, server in sorted({place for results in pairs for place in results.runs}):
        if not server.startswith("holdfast-"):
            continue
        ratios = [ratio for results in pairs if (ratio := before_ratio(results, workload, connections, server))]
        if not ratios:
            continue
        ops, cpu = ([ratio[i] for ratio in ratios] for i in (0, 1))
        verdict = ""
        if len(ratios) == len(pairs):
            verdict = "slower" if max(ops) < 1 else "faster" if min(ops) > 1 else ""
        verdicts[verdict] += 1
        medians.append((statistics.median(ops), statistics.median(cpu)))
        print(f"  {f'{workload}/{connections} {server[9:]}':<32}{medians[-1][0]:>8.2f}{min(ops):>8.2f}{max(ops):>8.2f}"
              f"{medians[-1][1]:>8.2f}  {verdict}".rstrip())
    if medians:
        print(f"  {'geometric mean':<32}{statistics.geometric_mean(m[0] for m in medians):>8.3f}{'':>16}"
              f"{statistics.geometric_mean(m[1] for m in medians):>8.3f}")
        print(f"  {verdicts['slower']} of {len(medians)} cells slower in all {len(pairs)} pairs, "
              f"{verdicts['faster']} faster in all")


def print_before(results):
    """A line per cell: this version to the one before. Above 1 is faster, or less processor time.
    'spread' is how far the runs of one version are apart, the wider of both: a smaller difference
    is noise."""
    print(f"\n{'to the version before':<34}{'ops x':>8}{'spread':>9}{'CPU x':>8}{'spread':>9}"
          f"{'p50 x':>8}{'p99 x':>8}")
    for (workload, connections, server) in sorted(results.runs):
        before = results.good(workload, connections, server.replace("holdfast-", "before-"))
        now = results.good(workload, connections, server)
        if not server.startswith("holdfast-") or not now or not before:
            continue
        name = f"{workload}/{connections} {server[9:]}"
        ops, cpu = (max(spread(cell, field) for cell in (now, before))
                    for field in ("ops_per_s", "cpu_us"))
        print(f"  {name:<32}{now.ops / before.ops:>8.2f}{ops:>8.0f}%"
              f"{before.cpu / now.cpu if now.cpu else 0:>8.2f}{cpu:>8.0f}%"
              f"{before.p50 / now.p50:>8.2f}{before.p99 / now.p99:>8.2f}")


# ---- goals ---------------------------------------------------------------------------------------

class Goal:
    def __init__(self, name, value, unit, floor, goal=None, aim=None, at_most=False, note=""):
        self.name, self.value, self.unit, self.note = name, value, unit, note
        self.limits = {"floor": floor, "goal": goal, "aim": aim}
        self.at_most = at_most

    def met(self, which):
        """True, False, or None when it was not measured or there is no such limit."""
        limit = self.limits[which]
        if limit is None or self.value is None:
            return None
        return self.value <= limit if self.at_most else self.value >= limit


def goals_against_peers(r):
    """Floor, goal and aim of each factor; the first number of a row is the floor."""
    rows = (
        ("get", "holdfast-none", "dynoxide-mem", 5, 7, 7),
        ("put", "holdfast-none", "dynoxide-mem", 8, 13, 13),
        ("put", "holdfast-none", "dynalite-mem", 6, None, None),
        ("put", "holdfast-full", "dynoxide-file", 11, 19, 19),
        ("put", "holdfast-full", "dynoxide-mem", 6, None, None),
        ("update-add", "holdfast-none", "dynoxide-mem", 8, 13, 13),
        ("update-add", "holdfast-none", "dynalite-mem", 5, None, 8),
        ("transact4", "holdfast-none", "dynoxide-mem", 7, 11, 11),
        ("batch25", "holdfast-none", "dynoxide-mem", 9, 15, 15),
        ("batch25", "holdfast-none", "dynalite-mem", 5, None, 8),
        ("gsi-put", "holdfast-none", "dynoxide-mem", 7, 11, 11),
        ("gsi-put", "holdfast-none", "dynalite-mem", 4, None, 6),
        ("get", "holdfast-none", "local-mem", 30, None, 90),
        ("put", "holdfast-none", "local-mem", 30, None, 90),
        ("update-add", "holdfast-none", "local-mem", 30, None, 90),
        ("query50", "holdfast-none", "local-mem", 15, None, None),
        ("transact4", "holdfast-none", "local-mem", 30, None, None),
        ("batch25", "holdfast-none", "local-mem", 8, None, None),
        ("gsi-put", "holdfast-none", "local-mem", 30, None, None),
        ("gsi-update-add", "holdfast-none", "local-mem", 30, None, None),
        ("gsi-query50", "holdfast-none", "local-mem", 15, None, None),
    )
    for workload, ours, peer, floor, goal, aim in rows:
        yield Goal(f"{workload}/{MANY}: {ours} to {peer}", r.factor(workload, ours, peer), "x",
                   floor, goal, aim, note=other_basis(r, workload, ours, peer))
    for workload in ("query50", "gsi-query50"):
        factors = {peer: r.factor(workload, "holdfast-none", peer, medians=True)
                   for peer in PEERS}
        factors = {peer: factor for peer, factor in factors.items() if factor}
        best = min(factors, key=factors.get) if factors else None
        yield Goal(f"{workload}/{MANY}: holdfast-none to the best peer", factors.get(best), "x",
                   14, 20, 20, note=best or "")


def other_basis(r, workload, ours, peer):
    other = "ops" if r.basis == "cpu" else "cpu"
    factor = r.factor(workload, ours, peer, basis=other)
    return f"by {other} {factor:.1f} x" if factor else ""


def goals_against_ceilings(r):
    rows = (
        ("get", "holdfast-none", "echo", 35, 45, 45),
        ("put", "holdfast-none", "echo", 18, 28, 28),
        ("query50", "holdfast-none", "echo", 10, None, 16),
        ("gsi-query50", "holdfast-none", "echo", 10, None, 16),
        ("transact4", "holdfast-none", "echo", 8, None, 12),
        ("get", "holdfast-mem", "echo", 55, None, 65),
        ("put", "holdfast-mem", "echo", 40, None, 50),
    )
    for workload, ours, other, floor, goal, aim in rows:
        factor = r.factor(workload, ours, other)
        yield Goal(f"{workload}/{MANY}: {ours}, share of H", factor and factor * 100, "%",
                   floor, goal, aim)
    factor = r.factor("put", "holdfast-full", "commit", basis="ops")
    yield Goal(f"put/{MANY}: holdfast-full, share of G", factor and factor * 100, "%", 27, None, 45)
    batch = r.good("batch25", MANY, "holdfast-none")
    yield Goal(f"batch25/{MANY}: holdfast-none, items", batch and batch.ops * 25, "/s", 35000)


def goals_of_latency(r):
    judged = [(workload, "holdfast-none") for workload in OPERATIONS] + [("put", "holdfast-full")]
    for workload, ours in judged:
        cell = r.good(workload, MANY, ours)
        yield Goal(f"{workload}/{MANY}: {ours}, p99 to p50", cell and cell.p99 / cell.p50, "x",
                   5, 4, 3, at_most=True)
    for workload, floor, aim in (("get", 1.4, 1.2), ("put", 1.6, 1.3)):
        cell, echo = r.good(workload, 1, "holdfast-none"), r.good(workload, 1, "echo")
        yield Goal(f"{workload}/1: holdfast-none, p50 to H's",
                   cell.p50 / echo.p50 if cell and echo else None, "x", floor, None, aim,
                   at_most=True)
    cell, echo, sync = (r.good("put", 1, name) for name in ("holdfast-full", "echo", "commit"))
    known = bool(cell and echo and sync)
    yield Goal("put/1: holdfast-full, p50; limits from H's and fdatasync's",
               cell.p50 if known else None, "us",
               echo.p50 + 1.5 * sync.p50 + 60 if known else 0, None,
               echo.p50 + 1.2 * sync.p50 + 30 if known else 0, at_most=True)


def goals_of_process(r):
    start = r.fact("holdfast-none", "start_ms")
    yield Goal("start to first answer, empty, holdfast-none", start, "ms", 30, 25, 15, True)
    yield Goal("start to first answer, holdfast-mem", r.fact("holdfast-mem", "start_ms"), "ms",
               30, 25, 15, True)
    for peer, floor in (("dynoxide-file", 2), ("dynalite-file", 1 / 7), ("local-file", 1 / 60)):
        other = r.fact(peer, "start_ms")
        yield Goal(f"start to first answer, holdfast-none to {peer}",
                   start / other if start and other else None, "x", floor, at_most=True)
    yield Goal("start to first answer, many items after a clean stop",
               r.fact("million", "start_ms"), "ms", 60, 60, 20, True,
               note=items_note(r))
    yield Goal("recovery after a kill, per 64 MB of log", r.fact("million", "recovery_s_per_64mb"),
               "s", 1, at_most=True)
    yield Goal("RSS idle, holdfast-none", r.fact("holdfast-none", "rss_idle"), "MB", 25, 25, 18,
               True)
    yield Goal("anonymous memory, many items written", r.fact("million", "anon_filled"), "MB",
               200, None, 120, True, note=items_note(r))
    disk, items = r.fact("million", "disk_mb"), r.fact("million", "items") or 0
    yield Goal("disk to data, many items",
               disk * 1e6 / (items * ITEM_BYTES) if items >= MANY_ITEMS else None, "x", 1.3, None,
               0.75, True, note=items_note(r))


def items_note(r):
    items = r.fact("million", "items")
    return f"{items:.0f} items" if items else ""


def judge(results):
    return [goal for part in (goals_against_peers, goals_against_ceilings, goals_of_latency,
                              goals_of_process) for goal in part(results)]


def plain(number):
    return f"{number:.0f}" if number >= 1000 else f"{number:.4g}"


def print_goals(results, goals, whole):
    """Those that were not measured only when they should have been."""
    by = "processor time per operation" if results.basis == "cpu" else "operations per second"
    print(f"\nGoals, judged by {by}")
    for goal in goals:
        if goal.value is None and not whole:
            continue
        value = "not measured" if goal.value is None else f"{plain(goal.value)} {goal.unit}"
        said = []
        for which in ("floor", "goal", "aim"):
            if goal.limits[which] is not None and goal.value is not None:
                word = "met" if goal.met(which) else "NOT MET"
                sign = "<=" if goal.at_most else ">="
                said.append(f"{which} {sign} {plain(goal.limits[which])} {word}")
        note = f"  ({goal.note})" if goal.note else ""
        print(f"  {goal.name:<58}{value:>14}  {', '.join(said)}{note}")
