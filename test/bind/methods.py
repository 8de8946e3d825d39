#!/usr/bin/env python3
"""docs/methods.md has all methods, as they are: methods.py COMMAND SOURCE-DIRECTORY [--update]

The list is also what programs in other languages rely on: what goes from it, or changes its type,
breaks them, and so does an argument that becomes required.
"""
import json
import os
import subprocess
import sys
import textwrap

HEAD = """# Methods

Every method that [other languages](binding.md) have, from `bind.methods`. A `*` marks an argument that has to be there. Lists are in
brackets, objects in braces. Every method also takes `deadline_ms` and `cancel`.

Written by `script/methods --update`.
"""


def member(of):
    name = of["name"] + ("*" if of.get("required") else "")
    inner = ", ".join(member(m) for m in of.get("members", []))
    if of["type"] == "enum":
        return name + ": " + "|".join(of["values"])
    if of["type"] == "objects":
        return f"{name}: [{{{inner}}}]" if inner else name + ": [...]"
    if of["type"] == "object":
        return f"{name}: {{{inner}}}" if inner else name + ": {...}"
    if of["type"] in ("texts", "values", "u64s"):
        return f"{name}: [{of['type'][:-1]}]"
    return f"{name}: {of['type']}"


def lines(label, members):
    text = ", ".join(member(m) for m in members) or "none"
    return textwrap.fill(text, 116, initial_indent=f"    {label:<8}", subsequent_indent=" " * 12,
                         break_long_words=False, break_on_hyphens=False)


def document(methods):
    text, shown = HEAD, None
    for method in methods:
        head = method["name"].split(".")[0]
        if head != shown:
            text += f"\n## {head}\n"
            shown = head
        text += f"\n`{method['name']}`{' (writes)' if method['writes'] else ''}: {method['what']}\n\n"
        text += lines("takes", method["arguments"]) + "\n" + lines("gives", method["result"]) + "\n"
    return text


def main():
    command, source = sys.argv[1:3]
    out = subprocess.run([command, "call", "--db", "memory:", "bind.methods"], check=True, stdout=subprocess.PIPE)
    methods = sorted(json.loads(out.stdout)["methods"], key=lambda method: method["name"])
    path, text = os.path.join(source, "docs/methods.md"), document(methods)
    if "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(path, encoding="utf-8") as file:
        was = file.read()
    if was == text:
        return 0
    for line in sorted(set(was.splitlines()) ^ set(text.splitlines())):
        print(("- " if line in was.splitlines() else "+ ") + line)
    print("docs/methods.md is not what the methods are: see docs/abi.md, then run script/methods --update")
    return 1


sys.exit(main())
