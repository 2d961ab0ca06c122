"""A cluster of processes that all tests of a fleet share, and an LLM on this machine for each."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from fleet_tools import Cluster, Server
from forked_command import ForkedCommand

MODULES = (
    "code_commit.fleet.dispatcher",
    "code_commit.fleet.page",
    *(f"distributed.cli.dask_{name}" for name in ("scheduler", "worker")),
)
AS_A_LOCAL_CLUSTER = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""A cluster that waits takes a quarter of the time then."""


@pytest.fixture(scope="session")
def forked_fleet() -> Iterator[ForkedCommand]:
    with closing(ForkedCommand(os.environ | AS_A_LOCAL_CLUSTER, *MODULES)) as forked:
        yield forked


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, forked_fleet: ForkedCommand) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path_factory.mktemp("cluster"), forked_fleet)) as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
