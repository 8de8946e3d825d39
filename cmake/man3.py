#!/usr/bin/env python3
"""Manual pages of section 3 from the installed headers.

  man3.py HEADERS OUTPUT VERSION

A header x.h becomes hf_x.3: its opening comment is the description, then come its types as they
stand there, then each function with the comment before it. Each function has a page of its name,
which refers to that one. Nothing is written twice: the header is the source.
"""
import os
import re
import sys
import textwrap


def fail(text):
    sys.exit("man3.py: " + text)


# ---- reading a header ---------------------------------------------------------------------------

TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|[{};]|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*|[^{};/\"#\n]+|.|\n",
                   re.S | re.M)


def comment_lines(comment):
    """The text of a comment, without its frame."""
    lines = [re.sub(r"^\s*\*( |$)", "", line) for line in comment[2:-2].strip("\n").split("\n")]
    lines = [line.rstrip() for line in lines]
    lines[0] = lines[0].lstrip()
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def statements(text):
    """(comment before it or None, statement) of everything at the top of a header."""
    depth, statement, comment = 0, "", None
    for match in TOKEN.finditer(text):
        token = match[0]
        if not statement.strip() and token.startswith("/*"):
            comment, statement = token, ""
        elif not statement.strip() and token.lstrip().startswith("#"):
            yield None if comment is None else comment, token
            comment, statement = None, ""
        elif not statement.strip() and token == "\n":
            statement = ""
        else:
            statement += token
            depth += {"{": 1, "}": -1}.get(token, 0)
            body = statement.strip()
            if depth == 0 and (token == ";" or token == "}" and "inline" in body):
                yield comment, body
                comment, statement = None, ""
            elif body == 'extern "C" {':
                depth, statement = 0, ""
            elif depth < 0:  # the end of extern "C"
                depth, statement = 0, ""


def wrap(prototype):
    """A declaration for a page of 78 columns."""
    return textwrap.fill(" ".join(prototype.split()), 70, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)


class Header:
    def __init__(self, path):
        text = open(path).read()
        self.name = os.path.basename(path)[:-2]
        opening = re.match(r"\s*(/\*.*?\*/)", text, re.S)
        if not opening:
            fail("%s has no opening comment" % path)
        self.essay = comment_lines(opening[1])
        self.types, self.functions = [], []  # (comment lines, text), (name, comment lines, text)
        said = []  # a comment may hold for the functions that follow it directly
        for comment, statement in statements(text[opening.end():]):
            lines = comment_lines(comment) if comment else []
            if lines and re.match(r"---- .* -+$", lines[0]):
                lines = []
            if statement.startswith("HF_API"):
                name = re.search(r"\b(hf_\w+)\(", statement)
                said = lines or said
                prototype = re.sub(r"^HF_API\s+(HF_NODISCARD\s+)?", "", statement)
                prototype = re.sub(r"\s*HF_PRINTF\(.*?\)", "", prototype)
                self.functions.append((name[1], said, wrap(prototype)))
            elif re.match(r"(struct|enum|typedef|union)\b", statement) and (
                    "{" in statement or statement.startswith("typedef")):
                self.types.append((lines, statement))
                said = lines or said
            elif re.match(r"#\s*define HF_\w+\(", statement) and lines:
                self.types.append((lines, statement.strip()))
            elif statement.startswith("struct"):
                said = lines or said
            else:
                said = []


# ---- writing a page -----------------------------------------------------------------------------

def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def paragraphs(lines):
    """Lines of a comment as roff: text is filled, what is indented and lists stay as they are."""
    out, mode = [], None
    for line in lines:
        status = re.match(r"(HF_[A-Z_]+)(?:\s{2,}(.*))?$", line)
        if not line.strip():
            if mode == "code":
                out.append("")
                continue
            mode = None
            continue
        if line.startswith("    ") and mode not in ("text", "list") or \
                line.startswith("    ") and mode == "code":
            if mode != "code":
                out += [".PP", ".nf", ".RS 4"]
            mode = "code"
            out.append(escape(line[4:]))
            continue
        if mode == "code":
            while out[-1] == "":
                out.pop()
            out += [".RE", ".fi"]
            mode = None
        if status:
            out += [".TP", ".B " + status[1]]
            out.append(escape((status[2] or "").strip()) or "\\&")
            mode = "list"
        elif re.match(r"\s*(- |\(\d+\) )", line):
            out += [".PP", escape(line.strip())]
            mode = "text"
        else:
            if mode is None:
                out.append(".PP")
                mode = "text"
            out.append(escape(line.strip()))
    if mode == "code":
        while out[-1] == "":
            out.pop()
        out += [".RE", ".fi"]
    return out


def verbatim(text):
    return [".PP", ".nf", ".RS 4"] + [escape(line) for line in text.split("\n")] + [".RE", ".fi"]


def summary(header):
    text = " ".join(header.essay)
    text = re.split(r"(?<=[a-z)])[.](?: |$)", text)[0]
    return escape(text[0].lower() + text[1:] if text[1:2] != text[1:2].upper() or
                  text.startswith("A ") else text)


def page(header, version, others):
    title = "hf_" + header.name
    names = [name for name, _, _ in header.functions if name != title]
    out = ['.\\" Made from include/holdfast/%s.h by cmake/man3.py.' % header.name,
           '.TH %s 3 "" "holdfast %s" "Library functions"' % (title.upper(), version), ".SH NAME",
           ", ".join([title] + names) + " \\- " + summary(header), ".SH SYNOPSIS", ".nf",
           ".B #include <holdfast/%s.h>" % header.name, ".PP"]
    for _, _, prototype in header.functions:
        out += [escape(line) for line in prototype.split("\n")] + [""]
    while out[-1] == "":
        out.pop()
    out += [".fi", ".SH DESCRIPTION"] + paragraphs(header.essay)
    if header.types:
        out.append(".SH TYPES")
        for lines, text in header.types:
            out += paragraphs(lines) + verbatim(text)
    if header.functions:
        out.append(".SH FUNCTIONS")
        for name, lines, prototype in header.functions:
            out += [".SS %s()" % name] + verbatim(prototype) + paragraphs(lines)
    out += [".SH SEE ALSO",
            ",\n".join("\\fB%s\\fP(3)" % other for other in others if other != title)]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4:
        fail("usage: man3.py HEADERS OUTPUT VERSION")
    folder, output, version = sys.argv[1:]
    headers = [Header(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
               if name.endswith(".h")]
    titles = ["hf_" + header.name for header in headers]
    os.makedirs(output, exist_ok=True)
    for old in os.listdir(output):
        if old.endswith(".3"):
            os.remove(os.path.join(output, old))
    for header in headers:
        for name, lines, _ in header.functions:
            if not lines:
                fail("%s.h: %s() has no comment" % (header.name, name))
            if name in titles:
                if name != "hf_" + header.name:
                    fail("%s() of %s.h has the name of another header's page" % (name, header.name))
                continue
            with open(os.path.join(output, name + ".3"), "w") as out:
                out.write(".so man3/hf_%s.3\n" % header.name)
        with open(os.path.join(output, "hf_%s.3" % header.name), "w") as out:
            out.write(page(header, version, titles))
    return 0


sys.exit(main())
