/*
 * bench/seed_run.js: what the seeds' sides of the benchmarks share.
 *
 *     const { serve } = require("./seed_run.js");
 *     serve("name_seed.js", { ops, fill, special }, createTables);
 *
 * Each line of the input is a run, {"op": "lock", "callers": 32, "seconds": 1}, and gets a line:
 * {"ops_per_s": ...}. The process stays between runs, so that its code is compiled and its
 * connections are open.
 *
 *     ops      functions of the caller's number, which are called again and again
 *     fill     called with an operation and how many callers it has before it first has so many
 *     special  runs of another kind: functions of the line, whose results are the answer
 */
"use strict";
const readline = require("node:readline");

const WARM_UP_PART = 5;

function quantile(sorted, part) {
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] : 0;
}

async function loop(op, caller, until, times) {
    do {
        const begin = performance.now();
        await op(caller);
        times.push(performance.now() - begin);
    } while (performance.now() < until);
}

async function together(op, callers, seconds) {
    const begin = performance.now();
    const times = [];
    await Promise.all(Array.from({ length: callers },
        (_, caller) => loop(op, caller, begin + seconds * 1000, times)));
    return { times, seconds: (performance.now() - begin) / 1000 };
}

const filled = {};

async function run({ ops, fill }, { op, callers, seconds }) {
    if ((filled[op] || 0) < callers) {
        await fill(op, callers);
        filled[op] = callers;
    }
    await together(ops[op], callers, seconds / WARM_UP_PART);
    const cpu = process.cpuUsage();
    const done = await together(ops[op], callers, seconds);
    const used = process.cpuUsage(cpu);
    const sorted = done.times.sort((a, b) => a - b);
    return {
        ops: sorted.length, ops_per_s: sorted.length / done.seconds, errors: 0,
        p50_us: quantile(sorted, 0.5) * 1000, p99_us: quantile(sorted, 0.99) * 1000,
        cpu_us_per_op: (used.user + used.system) / Math.max(1, sorted.length),
    };
}

async function answerAll(side, prepare) {
    await prepare();
    console.log(JSON.stringify({ ready: Object.keys({ ...side.ops, ...side.special }) }));
    for await (const text of readline.createInterface({ input: process.stdin })) {
        const line = JSON.parse(text);
        const special = (side.special || {})[line.op];
        console.log(JSON.stringify(special ? await special(line) : await run(side, line)));
    }
}

exports.serve = (name, side, prepare) => {
    answerAll(side, prepare).catch((error) => {
        console.error(`${name}: ${error.stack}`);
        process.exit(1);
    });
};
