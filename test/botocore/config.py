#!/usr/bin/env python3
"""Read files and find endpoints as botocore does, and compare with a program: config.py PROGRAM

Files are made up of what AWS's SDKs agree on: no setting twice, no comment behind a value. Some of
them are broken; then both have to refuse. The program reads requests from its standard input: all
texts are a length (u32, little endian) and bytes, absent ones the length 0xffffffff; numbers are
u64. It answers with a line for each thing that it found, fields in hexadecimal, and a dot.

    1: config file, credentials file      "KIND SECTION KEY SUB VALUE", or "error"
    2: service, region, FIPS, dual stack, URL, account, mode       "ORIGIN REGION", or "error"

HF_SEED=n repeats a run, HF_REQUESTS=n makes it longer.
"""
import os
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile

try:
    import botocore.session
    from botocore.configloader import load_config, raw_config_parse
    from botocore.endpoint_provider import EndpointProvider
    from botocore.exceptions import BotoCoreError
except ImportError:
    print("botocore is not installed, or has no endpoint rules yet")
    sys.exit(77)

# In the order of enum endpoint_service.
SERVICES = ["dynamodb", "dynamodbstreams", "sts", "sso", "sso-oidc", "s3", "sqs", "sns", "events"]
KINDS = ["other", "profile", "sso-session", "services"]


def put(out, value):
    if value is None:
        out += struct.pack("<I", 0xFFFFFFFF)
        return
    data = value if isinstance(value, bytes) else value.encode("utf-8")
    out += struct.pack("<I", len(data)) + data


# ---- files ------------------------------------------------------------------------------------

WORDS = ["a", "b-c", "d_e", "x.y", "r2", "\u00e4", "region", "q@h", "a/b", "p+q%"]
VALUES = ["", "v", "eu-west-1", "a=b", "x:y", "two words", "http://h:1/p", "v#w", "v;w", "\u4f60",
          "'quoted'", "[bracket]", "a\tb", "=", "%(no)s", "\\back", "\"dq"]
BLANK = ["", "", " ", "\t", "  "]


def blanks(rng):
    return rng.choice(BLANK)


def random_name(rng):
    name = rng.choice(WORDS) + rng.choice(["", rng.choice(WORDS)])
    return rng.choice([name, name, f'"{name}"', f"'{name} w'", f'{name}"x y"', f"{name}\\ z"])


def random_section(rng, credentials):
    if credentials:
        return rng.choice(["default", rng.choice(WORDS), "two words", "profile " + rng.choice(WORDS)])
    return rng.choice(["default", rng.choice(WORDS), "profile", "profile two words",
                       f"profile '{rng.choice(WORDS)}", "profilex", "sso-session",
                       "profile " + random_name(rng), "profile\t" + random_name(rng),
                       "profile  " + random_name(rng), "sso-session " + random_name(rng),
                       "services " + random_name(rng)])


def random_setting(rng, key, indent, end):
    """A setting as lines, maybe with lines below it."""
    first = key + blanks(rng) + "=" + blanks(rng)
    lines = []
    shape = rng.random()
    deeper = indent + rng.choice([" ", "\t", "    "])
    if shape < 0.6:
        lines.append(first + rng.choice(VALUES) + blanks(rng))
    elif shape < 0.75:
        lines.append(first + "v" + blanks(rng))
        for _ in range(rng.randint(1, 3)):
            more = rng.choice([v for v in VALUES if v])
            lines.append(deeper + blanks(rng) + more + blanks(rng))
    else:
        lines.append(key + blanks(rng) + "=")
        for sub in rng.sample(["x", "Y", "endpoint_url", "in valid"], rng.randint(1, 3)):
            lines.append(deeper + blanks(rng) + sub + blanks(rng) + "=" + blanks(rng) +
                         rng.choice(VALUES))
    if rng.random() < 0.2:
        lines.insert(rng.randint(0, len(lines)), rng.choice(["# c", "; c = d", "\t # c", "  ;"]))
    return [lines[0] if lines[0][:1] in "#; \t" else indent + lines[0]] + \
        [line if line[:1] in "#; \t" else indent + line for line in lines[1:]]


def random_file(rng, credentials):
    end = rng.choice(["\n", "\n", "\r\n"])
    lines, seen = [], set()
    for _ in range(rng.randint(0, 5)):
        section = random_section(rng, credentials)
        # What the two readings differ in: sections that come twice.
        try:
            same = " ".join(shlex.split(section))
        except ValueError:
            same = section
        if {same, section} & seen or same == "profile default":
            continue
        seen |= {same, section}
        lines.append("[" + section + "]")
        indent = rng.choice(["", "", "", "  "])
        keys = rng.sample(["a", "Region", "s3", "x_y-z", "in valid", "\u00e4"], rng.randint(0, 4))
        for key in keys:
            lines += random_setting(rng, key, indent, end)
            if rng.random() < 0.2:
                lines.append(blanks(rng))
    if rng.random() < 0.15:
        broken = rng.choice(["word", "[open", "= value", "profile x]"])
        lines.insert(rng.randint(0, len(lines)), broken)
    return end.join(lines) + rng.choice(["", end])


def names_of(found, kind, parsed):
    for name, values in parsed.items():
        for key, value in values.items():
            if isinstance(value, dict):
                found[kind, name, key, None] = ""
                for sub, text in value.items():
                    found[kind, name, key, sub] = text
            else:
                # Lines that are empty belong to a value in configparser's eyes only.
                found[kind, name, key, None] = re.sub("\n+", "\n", value).rstrip("\n")


def read_botocore(directory, config, credentials):
    """All settings as botocore has them; None when it refuses."""
    paths = [os.path.join(directory, name) for name in ("config", "credentials")]
    for path, text in zip(paths, (config, credentials)):
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    found = {}
    try:
        full = load_config(paths[0])
        for name, values in raw_config_parse(paths[1]).items():  # as its sessions put them together
            full["profiles"].setdefault(name, {}).update(values)
    except BotoCoreError:
        return None
    names_of(found, "profile", full["profiles"])
    names_of(found, "sso-session", full.get("sso_sessions", {}))
    services = full.get("services")
    if services is None:  # before botocore knew them
        services = {}
        for section, values in full.items():
            if re.match(r"services\s", section):
                parts = shlex.split(section)
                if len(parts) == 2:
                    services[parts[1]] = values
    names_of(found, "services", services)
    return found


def read_answer(lines):
    found = {}
    for line in lines:
        if line == "error":
            return None
        kind, *fields = line.split(" ")
        fields = [None if f == "-" else bytes.fromhex(f).decode("utf-8") for f in fields]
        section, key, sub, value = fields
        found[KINDS[int(kind)], section, key.lower() if key else key, sub] = value
    return {k: v for k, v in found.items() if k[0] != "other"}


# ---- endpoints --------------------------------------------------------------------------------

def load_rules():
    loader = botocore.session.Session().get_component("data_loader")
    partitions = loader.load_data("partitions")
    rules = {}
    for service in SERVICES:
        data = loader.load_service_model(service, "endpoint-rule-set-1")
        rules[service] = (data, EndpointProvider(data, partitions), str(data))
    return rules, partitions["partitions"]


def is_known(case, rules, partitions):
    """Whether this botocore has the rules of today for it."""
    service, region, fips, dual, url, _, mode = case
    text = rules[service][2]
    home = next((p for p in partitions if re.match(p["regionRegex"], region)), partitions[0])
    if dual and not url and not home["outputs"]["supportsDualStack"]:
        return False
    if region == "local" and (fips or dual) and "and local endpoint" not in text:
        return False
    if service == "dynamodbstreams" and not url:
        if region == "local" and "localhost" not in text:
            return False
        if dual and "streams-dynamodb" not in text:
            return False
    if service.startswith("sso") and fips and home["id"] == "aws-us-gov" and \
            "aws-us-gov" not in text:
        return False
    if service == "s3" and url and (fips or dual) and "cannot be combined with FIPS" not in text:
        return False
    return not mode or "AccountIdEndpointMode" in text


def random_endpoint(rng, regions):
    service = rng.choice(SERVICES)
    region = rng.choice(regions)
    if service in SERVICES[:2] and rng.random() < 0.05:
        region = "local"
    url = rng.choice([None] * 5 + ["http://localhost:8000", "https://x.example.com"])
    account = mode = None
    if service == "dynamodb" and rng.random() < 0.5:
        account = rng.choice([None, "111122223333", "222233334444"])
        mode = rng.choice(["preferred", "required", "disabled"])
    return service, region, rng.random() < 0.3, rng.random() < 0.3, url, account, mode


def find_botocore(case, rules):
    service, region, fips, dual, url, account, mode = case
    data, provider, _ = rules[service]
    params = {"Region": region, "UseFIPS": fips, "UseDualStack": dual, "Endpoint": url,
              "AccountId": account, "AccountIdEndpointMode": mode or "preferred",
              "UseGlobalEndpoint": False}
    params = {k: v for k, v in params.items() if k in data["parameters"] and v is not None}
    try:
        found = provider.resolve_endpoint(**params)
    except BotoCoreError:
        return None
    schemes = found.properties.get("authSchemes", [{}])
    if region == "local":  # signed for us-east-1 wherever it is, here as there
        return found.url, "us-east-1"
    return found.url, schemes[0].get("signingRegion", region)


# ---- both -------------------------------------------------------------------------------------

def main():
    seed = int(os.environ.get("HF_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    count = int(os.environ.get("HF_REQUESTS", "800"))
    rng = random.Random(seed)
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ["AWS_CONFIG_FILE"] = os.devnull
    rules, partitions = load_rules()
    regions = [r for p in partitions for r in p["regions"] if not r.endswith("global")]
    regions += ["xy-new-7", "il-central-1", "mx-central-1"]
    out, cases = bytearray(), []
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(count):
            files = random_file(rng, False), random_file(rng, True)
            cases.append((files, read_botocore(directory, *files)))
            out += struct.pack("<Q", 1)
            for text in files:
                put(out, text)
    files_len = len(cases)
    for _ in range(count):
        case = random_endpoint(rng, regions)
        if not is_known(case, rules, partitions):
            continue
        cases.append((case, find_botocore(case, rules)))
        service, region, fips, dual, url, account, mode = case
        out += struct.pack("<QQ", 2, SERVICES.index(service))
        put(out, region)
        out += struct.pack("<QQ", fips, dual)
        for text in (url, account, mode):
            put(out, text)
    done = subprocess.run([sys.argv[1]], input=bytes(out), stdout=subprocess.PIPE, check=False)
    answers = done.stdout.decode("ascii").split(".\n")[:-1]
    failed = done.returncode or len(answers) != len(cases)
    refused = 0
    for number, ((case, expected), answer) in enumerate(zip(cases, answers)):
        lines = answer.splitlines()
        if number < files_len:
            got = read_answer(lines)
        else:
            got = None if lines == ["error"] else tuple(
                bytes.fromhex(field).decode() for field in lines[0].split(" "))
        refused += expected is None
        if got != expected:
            print(f"{case!r}\n  botocore {expected!r}\n  here     {got!r}")
            failed = True
            break
    if failed:
        print(f"{len(answers)} answers to {len(cases)} questions, status {done.returncode}; "
              f"repeat with HF_SEED={seed}")
        return 1
    print(f"{files_len} pairs of files and {len(cases) - files_len} endpoints are the same as "
          f"botocore's, {refused} of them refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
