#!/usr/bin/env python3
"""The bindings of docs/binding.md, run as they stand there: document.py LIBRARY SOURCE-DIRECTORY

That in Ruby only where Ruby is installed.
"""
import os
import re
import shutil
import subprocess
import sys


def run(text, language, program, expected):
    [code] = re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
    done = subprocess.run([*program, code], env={**os.environ, "HOLDFAST_LIBRARY": sys.argv[1]},
                          stdout=subprocess.PIPE, text=True, timeout=120)
    if done.returncode or done.stdout != expected:
        sys.exit(f"{language}: ended with {done.returncode}; expected {expected!r}, got {done.stdout!r}")


with open(os.path.join(sys.argv[2], "docs/binding.md"), encoding="utf-8") as file:
    document = file.read()
run(document, "python", [sys.executable, "-c"], "1\norder.placed {}\n0\n")
if shutil.which("ruby"):
    run(document, "ruby", ["ruby", "-e"], "1\n")
