#!/usr/bin/env python3
"""The package for Python, packed, installed into an empty folder and tested there: run.py BUILD [WORD...]

With words, only the files whose names have one of them in it. pip installs the wheel without a network; where there
is no pip it is unpacked. HF_ASAN_RUNTIME names the sanitizer's library, of a build that has it.
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


def use_sanitizer(runtime, build, work, site, env):
    """Python has no sanitizer, so it is preloaded; the command has its own, and is started without. What Python itself
    leaves behind is no leak of ours, and a library that is loaded with DEEPBIND would not find the sanitizer. A
    symbolizer would be started with the sanitizer, too, and would wait for itself."""
    command = os.path.join(work, "command")
    with open(command, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nunset LD_PRELOAD\nexec {os.path.join(build, "holdfast")} "$@"\n')
    os.chmod(command, 0o755)
    with open(os.path.join(site, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write("import os\n\nos.RTLD_DEEPBIND = 0\n")
    env.update(LD_PRELOAD=runtime, ASAN_OPTIONS="detect_leaks=0:symbolize=0", HOLDFAST_COMMAND=command)


def main():
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="holdfast-python.") as work:
        runtime = os.environ.get("HF_ASAN_RUNTIME")
        places = {"LD_LIBRARY_PATH": os.path.dirname(runtime)} if runtime else {}
        packed = subprocess.run([sys.executable, os.path.join(ROOT, "bindings/python/pack"), build, work],
                                env={**os.environ, **places}, stdout=subprocess.PIPE, text=True, check=True)
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
        if runtime:
            use_sanitizer(runtime, build, work, site, env)
        sys.exit(subprocess.run([sys.executable, "-m", "unittest", *names], cwd=tests, env=env,
                                check=False).returncode)


main()
