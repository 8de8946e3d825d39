"""The side of bench/bindings in Python. Its argument is JSON, see settings() there; it prints a line of JSON for
every turn: operation, side_by_side (threads), way, us, cpu_us, times_us: microseconds of wall time and of this process's
processors a call, and the quantiles of the times that calls took."""

import json
import sys
import threading
import time

import boto3
import botocore.config

import holdfast

ITEMS = 100
TABLE = "bench"
SETTINGS = json.loads(sys.argv[1])


def item(n):
    """About 1 KiB, with eleven attributes."""
    return {"pk": f"key-{n % ITEMS}", "sk": 1, "name": "Ann Example", "street": "Long Street 12", "city": "Springfield",
            "zip": "01234", "total": 12, "paid": True, "count": n, "tags": ["a", "b", "c"], "text": "x" * 800}


def key(n):
    return {"pk": f"key-{n % ITEMS}", "sk": 1}


def attribute(value):
    """As boto3's client takes it."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    return {"N": str(value)} if isinstance(value, int) else {"L": [attribute(each) for each in value]}


def attributes(plain):
    return {name: attribute(value) for name, value in plain.items()}


def by_sdk(client):
    return {"get": lambda n: client.get_item(TableName=TABLE, Key=attributes(key(n))),
            "put": lambda n: client.put_item(TableName=TABLE, Item=attributes(item(n)))}


def turn(call, side_by_side, calls):
    times = [0.0] * calls

    def work(first):
        for n in range(first, calls, side_by_side):
            before = time.perf_counter()
            call(n)
            times[n] = time.perf_counter() - before
    threads = [threading.Thread(target=work, args=(first,)) for first in range(side_by_side)]
    cpu, begin = time.process_time(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    times.sort()
    return {"us": wall * 1e6 / calls, "cpu_us": cpu * 1e6 / calls,
            "times_us": [times[min(calls - 1, int(q * calls))] * 1e6 for q in SETTINGS["quantiles"]]}


def main():
    with holdfast.open("memory:") as db:
        db.create_table(TABLE, {"pk": "string", "sk": "number"})
        many = botocore.config.Config(max_pool_connections=64)
        ways = {}
        for way in SETTINGS["ways"]:
            if way == "api":
                ways[way] = {"get": lambda n: db.get(TABLE, key(n)), "put": lambda n: db.put(TABLE, item(n))}
            elif way == "sdk":
                ways[way] = by_sdk(holdfast.boto3_client(db, config=many))
            else:
                ways[way] = by_sdk(boto3.client("dynamodb", endpoint_url=SETTINGS["endpoints"][way], config=many))
        for calls in ways.values():
            for n in range(ITEMS):
                calls["put"](n)
        for operation in SETTINGS["operations"]:
            for side_by_side in SETTINGS["side_by_side"]:
                for calls in ways.values():  # connections, and memory that is taken once
                    turn(calls[operation], side_by_side, SETTINGS["warm"])
                for rotate in range(SETTINGS["repeat"]):
                    names = SETTINGS["ways"]
                    for i in range(len(names)):
                        way = names[(i + rotate) % len(names)]
                        figures = turn(ways[way][operation], side_by_side, SETTINGS["calls"])
                        print(json.dumps({"operation": operation, "side_by_side": side_by_side, "way": way, **figures}),
                              flush=True)


main()
