"""The examples of docs/python.md run as they stand there."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import boto3
except ImportError:
    boto3 = None


class Document(unittest.TestCase):
    def test_examples(self):
        with open("python.md", encoding="utf-8") as file:
            examples = re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)
        self.assertGreater(len(examples), 3)
        for example in examples:
            if "boto3" in example and not boto3:
                continue
            wanted = re.findall(r"^ *print\(.*\)  # (.*)$", example, re.M)
            with self.subTest(example=example), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", example], cwd=folder, env=dict(os.environ), text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr, "")
                for line in wanted:
                    self.assertIn(line, done.stdout.splitlines())
