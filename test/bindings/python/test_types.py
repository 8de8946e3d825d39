"""The types of the package: mypy --strict accepts what is right, and finds the slips. Skipped without mypy."""
import os
import shutil
import subprocess
import tempfile
import unittest

import holdfast

PROGRAM = '''
import asyncio
from decimal import Decimal
from typing import Any, Dict, List, Optional

import holdfast
from holdfast import Database, Event, HoldfastError, Lock, Record, Transaction, attr, between, expr, missing


def items(db: Database) -> List[Dict[str, Any]]:
    db.create_table("orders", {"customer": "string", "day": "number"}, if_missing=True)
    db.put("orders", {"customer": "ann", "day": 2, "total": Decimal("1.5")}, condition={"customer": missing()})
    item: Optional[Dict[str, Any]] = db.get("orders", {"customer": "ann", "day": 2}, consistent=True)
    db.update("orders", {"customer": "ann", "day": 2}, set={"paid": True}, condition=expr("{} > {}", attr("total"), 1))
    with db.transaction() as tx:
        transaction: Transaction = tx
        transaction.put("orders", {"customer": "ann", "day": 3})
    for order in db.query("orders", {"customer": "ann", "day": between(1, 3)}, reverse=True):
        order["total"]
    db.get("orders")  # type: ignore[call-arg]
    db.put("orders", 7)  # type: ignore[arg-type]
    item["total"]  # type: ignore[index]
    db.scan("orders", pages=3)  # type: ignore[call-arg]
    holdfast.open(7)  # type: ignore[arg-type]
    return db.scan("orders").all()


def patterns(db: Database) -> int:
    with db.lock("nightly", timeout=10) as held:
        lock: Lock = held
        fence: int = lock.fence
    maybe: Optional[Lock] = db.try_lock("nightly")
    maybe.release()  # type: ignore[union-attr]

    @db.once(key=lambda number: f"invoice-{number}")
    def pay(number: int) -> Dict[str, int]:
        return {"paid": number}
    paid: Dict[str, int] = pay(7)
    pay("seven")  # type: ignore[arg-type]

    bus = db.outbox().bus()

    @bus.on("order.placed")
    def placed(event: Event) -> None:
        print(event.payload)
    with bus.start(workers=2, on_error=print):
        pass
    with db.records().process(lambda record: print(record)) as handling:
        handling.wait(5)
    with holdfast.timeout(2.5):
        db.counter("visits").add(1)
    holdfast.timeout("2.5")  # type: ignore[arg-type]
    try:
        return fence + paid["paid"]
    except HoldfastError as error:
        text: str = error.code
        retry: bool = error.retryable or error.may_have_happened
        raise RuntimeError(text, retry)


async def later() -> None:
    async with await holdfast.aio.open("memory:") as db:
        await db.put("orders", {"customer": "ann"})

asyncio.run(later())
'''


@unittest.skipUnless(shutil.which("mypy"), "mypy is not installed: script/bootstrap --test")
class Types(unittest.TestCase):
    def mypy(self, *args):
        site = os.path.dirname(os.path.dirname(os.path.abspath(holdfast.__file__)))
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(["mypy", "--strict", "--cache-dir", cache, *args], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False,
                                  env={"PATH": os.environ["PATH"], "MYPYPATH": site})
        self.assertEqual((done.returncode, done.stdout.count("error:")), (0, 0), done.stdout)

    def test_the_package_and_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "program.py")
            with open(file, "w", encoding="utf-8") as out:
                out.write(PROGRAM)
            self.mypy(file)  # and what it imports
