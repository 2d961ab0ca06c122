"""A cluster of processes that all tests of a fleet share, and an LLM on this machine for each."""

from collections.abc import Iterator

import pytest
from fleet_tools import Cluster, Server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
