"""Fixtures, which pytest finds by itself where holdfast is installed.

holdfast_db         a database in memory, new for each test
holdfast_server     a server in a process of its own, for all tests of the session
holdfast_endpoint   its URL; what a test has changed is undone after it. AWS SDKs find it in the environment

To have tables in each test, override `holdfast_setup`, a session fixture that gets the server's URL:

    @pytest.fixture(scope="session")
    def holdfast_setup(holdfast_server):
        boto3.client("dynamodb", **holdfast_server.client_config()).create_table(...)
"""
from typing import Any, Iterator

import pytest

from .api import Database, open as _open
from .server import Server, start_server


@pytest.fixture
def holdfast_db() -> Iterator[Database]:
    with _open("memory:") as db:
        yield db


@pytest.fixture(scope="session")
def holdfast_server() -> Iterator[Server]:
    with start_server() as server:
        yield server


@pytest.fixture(scope="session")
def holdfast_setup(holdfast_server: Server) -> None:
    """Override it to make what every test begins with."""


@pytest.fixture(scope="session")
def _holdfast_snapshot(holdfast_server: Server, holdfast_setup: Any) -> None:
    holdfast_server.snapshot("pytest")


@pytest.fixture
def holdfast_endpoint(holdfast_server: Server, _holdfast_snapshot: None, monkeypatch: Any) -> Iterator[str]:
    for name, value in holdfast_server.env.items():
        monkeypatch.setenv(name, value)
    yield holdfast_server.endpoint
    holdfast_server.restore("pytest")
