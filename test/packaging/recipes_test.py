#!/usr/bin/env python3
"""Recipes and files of packaging/, against the real command: recipes_test.py COMMAND SOURCE [unittest arguments].

Command lines, variables, probes and health checks in docs/cookbook/containers.md, the Containerfile, the units and the
action have to be those that the command knows. The action is run with an archive made of the command.
"""
import ast
import hashlib
import http.client
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import yaml

COMMAND, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WAIT_S = 60
NOBODY = "--no-such-option"


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def clean_env(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "AWS_", "GITHUB_", "INPUT_", "RUNNER_"))}
    env.update(HOLDFAST_CONFIG="/dev/null", **more)
    return env


def blocks(kind):
    found = re.findall(rf"^```{kind}\n(.*?)^```$", read("docs/cookbook/containers.md"), re.M | re.S)
    assert found, kind
    return found


def version():
    return re.search(r"^project\(holdfast VERSION ([0-9.]+)", read("CMakeLists.txt"), re.M).group(1)


class Recipes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="recipes")
        self.addCleanup(shutil.rmtree, self.folder)
        self.variables = set("HOLDFAST_SERVE_" + name.upper().replace("-", "_") for name in re.findall(
            r"^ {2,6}(?:-\w, )?--([a-z][a-z-]*)", self.run_command("serve", "--help").stdout, re.M))
        self.assertGreater(len(self.variables), 35)

    def run_command(self, *args, **more):
        return subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=WAIT_S, env=clean_env(),
                              cwd=self.folder, check=False, **more)

    def accepts(self, words):
        """All words are understood: the one behind them is what is wrong."""
        if isinstance(words, str):
            words = shlex.split(words)
        said = self.run_command(*words, NOBODY).stderr
        self.assertIn(f"unknown option '{NOBODY}'", said, words)

    def knows(self, variables):
        for name in variables:
            if name.startswith("HOLDFAST_"):
                self.assertIn(name, self.variables)

    def test_compose_files(self):
        services = [service for block in blocks("yaml") for service in (yaml.safe_load_all(block))
                    if service and "services" in service]
        self.assertEqual(len(services), 2)
        for file in services:
            for name, service in file["services"].items():
                if "holdfast" not in service["image"]:
                    self.assertEqual(service["environment"]["AWS_ENDPOINT_URL_DYNAMODB"], "http://dynamodb:8000")
                    self.assertIn("dynamodb", file["services"])
                    continue
                self.assertEqual(service["image"], f"localhost/holdfast:{version()}")
                self.accepts(service["command"])
                self.assertTrue(all(port.endswith("8000:8000") for port in service["ports"]), name)
                self.knows(service.get("environment", {}))

    def test_kubernetes(self):
        documents = [d for block in blocks("yaml") for d in yaml.safe_load_all(block) if d and "kind" in d]
        self.assertEqual([d["kind"] for d in documents], ["Service", "StatefulSet"])
        pod = documents[1]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self.accepts(container["args"])
        self.knows(item["name"] for item in container["env"])
        self.assertEqual(container["image"], f"localhost/holdfast:{version()}")
        self.assertEqual(documents[0]["spec"]["selector"], documents[1]["spec"]["template"]["metadata"]["labels"])
        # What Kubernetes would compare, or find out when the pod starts: ports, the image's user, its volume.
        image = re.sub(r"\\\n", " ", read("packaging/image/Containerfile"))
        port = int(re.search(r"(?m)^EXPOSE (\d+)$", image).group(1))
        self.assertEqual([p["port"] for p in documents[0]["spec"]["ports"]], [port])
        self.assertEqual([p["containerPort"] for p in container["ports"]], [port])
        self.assertEqual({container[probe]["httpGet"]["port"] for probe in
                          ("startupProbe", "readinessProbe", "livenessProbe")}, {port})
        user, group = re.search(r"(?m)^USER (\d+):(\d+)$", image).groups()  # by number, for runAsNonRoot
        self.assertGreater(int(user), 0)
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(pod["securityContext"]["fsGroup"], int(group))
        self.assertIn(re.search(r"(?m)^VOLUME (\S+)$", image).group(1), [m["mountPath"] for m in container["volumeMounts"]])
        keys = next(m["mountPath"] for m in container["volumeMounts"] if m["name"] == "keys")
        self.assertTrue(container["args"][container["args"].index("--credentials") + 1].startswith(keys + "/"))
        spec = documents[1]["spec"]
        self.assertEqual((spec["replicas"], spec["serviceName"], spec["selector"]["matchLabels"]),
                         (1, documents[0]["metadata"]["name"], spec["template"]["metadata"]["labels"]))
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 10)  # more than --drain-timeout
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        mounts = {m["name"] for m in container["volumeMounts"]}
        self.assertEqual(mounts, {v["name"] for v in pod["volumes"]} |
                         {v["metadata"]["name"] for v in documents[1]["spec"]["volumeClaimTemplates"]})
        process = subprocess.Popen([COMMAND, "serve", "--in-memory", "--port", "0"], stdout=subprocess.PIPE, text=True,
                                   env=clean_env(), stderr=subprocess.DEVNULL)
        try:
            line = process.stdout.readline()
            self.assertIn("serves on", line)  # for the wait of Testcontainers
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                connection = http.client.HTTPConnection("127.0.0.1", int(line.rsplit(":", 1)[1]), timeout=WAIT_S)
                connection.request("GET", container[probe]["httpGet"]["path"], headers={"Host": "10.1.2.3:8000"})
                self.assertEqual(connection.getresponse().status, 200, probe)
                connection.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=WAIT_S)

    def test_testcontainers(self):
        found = 0
        for kind in ("java", "js", "python", "go", "csharp"):
            for block in blocks(kind):
                self.assertIn(f'"localhost/holdfast:{version()}"', block)
                for words in re.findall(r"[wW]ith_?[cC]ommand\(\[?([^)\]]*)", block):
                    found += 1
                    self.accepts(" ".join(ast.literal_eval(f"[{words}]")))
                for path in re.findall(r'forHttp\("([^"]*)"', block):
                    self.assertEqual(path, "/readyz")
        self.assertEqual(found, 3)
        for block in blocks("python"):
            ast.parse(block)
        self.accepts("-jar DynamoDBLocal.jar -inMemory -sharedDb")  # of the modules for Go and .NET
        self.accepts("-jar DynamoDBLocal.jar -inMemory")

    def test_the_containerfile(self):
        text = re.sub(r"\\\n", " ", read("packaging/image/Containerfile"))
        variables = dict(re.findall(r"(HOLDFAST_\w+)=(\S+)", text))
        self.assertEqual(len(variables), 4)
        self.knows(variables)
        self.assertRegex(text, r"(?m)^USER 65532")
        self.assertRegex(text, r"(?m)^EXPOSE 8000$")
        program, *check = ast.literal_eval(re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.M).group(1))
        self.assertEqual([program], ast.literal_eval(re.search(r"^ENTRYPOINT (\[.*\])$", text, re.M).group(1)))
        self.accepts(check)
        self.accepts(ast.literal_eval(re.search(r"^CMD (\[.*\])$", text, re.M).group(1)))

    def test_the_units(self):
        line = re.search(r"^ExecStart=\S+/holdfast (.*) \$HOLDFAST_OPTIONS$",
                         read("packaging/systemd/holdfast.service.in"), re.M).group(1)
        self.accepts(line.replace("%S", "/var/lib"))

    def test_the_action(self):
        action = yaml.safe_load(read("packaging/action/action.yml"))
        env = action["runs"]["steps"][0]["env"]
        self.assertEqual({name for name in env if name.startswith("INPUT_")},
                         {"INPUT_" + name.upper().replace("-", "_") for name in action["inputs"]})
        script = read("packaging/action/start")
        for name in env:
            self.assertIn("${" + name, script)
        for block in blocks("yaml"):
            for step in (yaml.safe_load(block) if "- uses: OWNER" in block else {}).get("steps", []):
                if "packaging/action" in step.get("uses", ""):
                    self.assertLessEqual(set(step["with"]), set(action["inputs"]))
                    self.accepts("serve " + step["with"]["options"])

        # A release of the command as it is.
        name = f"holdfast-{version()}-linux-x64"
        release, runner = os.path.join(self.folder, "release"), os.path.join(self.folder, "runner")
        os.makedirs(os.path.join(release, name, "bin"))
        os.mkdir(runner)
        os.symlink(COMMAND, os.path.join(release, name, "bin", "holdfast"))
        subprocess.run(["tar", "-czf", f"{name}.tar.gz", name], cwd=release, check=True)
        with open(os.path.join(release, f"{name}.tar.gz"), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        seed = os.path.join(self.folder, "seed")
        os.mkdir(seed)
        with open(os.path.join(seed, "things.schema.json"), "w", encoding="utf-8") as file:
            file.write('{"TableName":"things","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":'
                       '"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}')
        files = {variable: os.path.join(runner, variable) for variable in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
        env = clean_env(RUNNER_TEMP=runner, INPUT_BASE_URL="file://" + release, INPUT_PORT="0", INPUT_INIT=seed,
                        INPUT_OPTIONS="--access-log --region eu-west-1", **files)

        def start(**more):
            return subprocess.run([os.path.join(SOURCE, "packaging/action/start")], env={**env, **more}, text=True,
                                  capture_output=True, timeout=WAIT_S, check=False, cwd=self.folder)

        with open(os.path.join(release, "SHA256SUMS"), "w", encoding="utf-8") as file:
            file.write(f"{'0' * 64}  {name}.tar.gz\n")
        done = start()
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not have the checksum", done.stdout)
        with open(os.path.join(release, "SHA256SUMS"), "w", encoding="utf-8") as file:
            file.write(f"{digest}  {name}.tar.gz\n")
        done = start(INPUT_OPTIONS="--no-such-option")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown option", done.stdout)
        done = start()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(runner, "holdfast/pid"), encoding="utf-8") as file:
            server = int(file.read())
        try:
            with open(files["GITHUB_ENV"], encoding="utf-8") as file:
                told = dict(line.rstrip("\n").split("=", 1) for line in file)
            with open(files["GITHUB_OUTPUT"], encoding="utf-8") as file:
                self.assertEqual(file.read(), f"endpoint={told['HOLDFAST_DB']}\n")
            listed = subprocess.run([COMMAND, "table", "ls"], env=clean_env(**told), capture_output=True, text=True,
                                    timeout=WAIT_S, check=True)
            self.assertEqual(listed.stdout, "things\n")
        finally:
            os.kill(server, signal.SIGTERM)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
