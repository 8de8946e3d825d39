#!/usr/bin/env python3
"""boto3 against the holdfast command.

    HOLDFAST=build/dev/holdfast test/clients/py/run.py [-v] [NAME...]
    ENDPOINT=http://127.0.0.1:8000 test/clients/py/run.py [-v] [NAME...]

With HOLDFAST, servers are started as the cases need them. With ENDPOINT, that server is asked, and
cases that need one of their own, or /_holdfast/, are left out. NAME takes the cases that have it in
their names; -v prints a line per case and its time.

A failed case prints a line; with -v or a NAME also where. The last line is "N passed, N failed".
"""
import sys
import time
import unittest

try:
    import boto3  # noqa: F401, only to know
except ImportError:
    print("boto3 is not installed")
    sys.exit(77)

sys.dont_write_bytecode = True  # sources stay as they were
import support  # noqa: E402

MODULES = ["case_" + name for name in (
    "tables", "values", "items", "updates", "conditions", "reads", "indexes", "batches",
    "transactions", "transfers", "statements", "backups", "resource", "streams", "expiry",
    "faults", "snapshots", "raw", "access", "starts", "restarts", "crowds", "emitting")]


class Result(unittest.TestResult):
    def __init__(self, verbose, traces):
        super().__init__()
        self.verbose = verbose
        self.traces = traces
        self.passed = 0
        self.failed = 0
        self.left_out = 0
        self.begin = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def addSuccess(self, test):
        self.passed += 1
        if self.verbose:
            print(f"ok      {time.monotonic() - self.begin:6.2f} s  {test.id()}", flush=True)

    def addSkip(self, test, reason):
        self.left_out += 1
        if self.verbose:
            print(f"left out: {test.id()}: {reason}", flush=True)

    def _bad(self, test, error):
        self.failed += 1
        text = str(error[1]).strip().splitlines() or [""]
        print(f"FAILED  {test.id()}: {error[0].__name__}: {' '.join(text)[:500]}", flush=True)
        if self.traces:
            print(self._exc_info_to_string(error, test), flush=True)

    def addFailure(self, test, err):
        self._bad(test, err)

    def addError(self, test, err):
        self._bad(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(subtest, err)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main():
    if not support.HOLDFAST and not support.ENDPOINT:
        print("HOLDFAST or ENDPOINT must be in the environment")
        return 2
    verbose = "-v" in sys.argv[1:]
    names = [word for word in sys.argv[1:] if word != "-v"]
    loader = unittest.TestLoader()
    tests = flatten(loader.loadTestsFromNames(MODULES))
    if names:
        tests = [test for test in tests if any(name in test.id() for name in names)]
    result = Result(verbose, verbose or bool(names))
    unittest.TestSuite(tests).run(result)
    for complaint in support.finish():
        result.failed += 1
        print(f"FAILED  {complaint}")
    if result.left_out:
        print(f"{result.left_out} left out")
    print(f"{result.passed} passed, {result.failed} failed")
    return 0 if result.passed and not result.failed else 1


if __name__ == "__main__":
    sys.exit(main())
