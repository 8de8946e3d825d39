#!/usr/bin/env python3
"""The package for Python, packed, installed into an empty folder and tested there: run.py BUILD [WORD...]

With words, only the files whose names have one of them in it. pip installs the wheel without a network; where there
is no pip it is unpacked.
"""
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def install(wheel, folder):
    if importlib.util.find_spec("pip"):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile",
                        "--disable-pip-version-check", "--root-user-action", "ignore", "--target", folder, wheel],
                       check=True)
        return
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
        for entry in files.infolist():
            os.chmod(os.path.join(folder, entry.filename), entry.external_attr >> 16 & 0o777)


def main():
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="holdfast-python.") as work:
        packed = subprocess.run([sys.executable, os.path.join(ROOT, "bindings/python/pack"), build, work],
                                stdout=subprocess.PIPE, text=True, check=True)
        site = os.path.join(work, "site")
        install(packed.stdout.strip(), site)
        tests = os.path.join(work, "tests")
        os.mkdir(tests)
        for file in glob.glob(os.path.join(HERE, "test_*.py")):
            shutil.copy(file, tests)
        shutil.copy(os.path.join(ROOT, "docs/python.md"), tests)
        names = sorted(os.path.basename(file)[:-3] for file in glob.glob(os.path.join(tests, "test_*.py")))
        names = [name for name in names if not words or any(word in name for word in words)]
        if not names:
            sys.exit(f"run.py: no file of tests has {' or '.join(words)} in its name")
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("AWS_", "HOLDFAST_", "PYTHON"))}
        env.update(PYTHONPATH=site, PYTHONDONTWRITEBYTECODE="1", PYTHONFAULTHANDLER="1", HOME=work,
                   AWS_EC2_METADATA_DISABLED="true")
        sys.exit(subprocess.run([sys.executable, "-m", "unittest", *names], cwd=tests, env=env,
                                check=False).returncode)


main()
