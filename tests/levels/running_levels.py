# SPDX-License-Identifier: Apache-2.0
"""Workers that are kept for the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from client import Worker


@pytest.fixture(scope="module")
def running(bundles, artefacts):
    """running(level, bundle name) -> (worker, its answer to load); prepared, loaded, and kept for
    the tests of this file."""
    workers: dict[tuple[str, str], tuple[Worker, dict]] = {}

    def get(level: str, name: str) -> tuple[Worker, dict]:
        if (level, name) not in workers:
            worker = Worker(level, bundles(name), artefacts(level, name))
            workers[level, name] = worker, {}
            workers[level, name] = worker, worker.load()
        return workers[level, name]

    yield get
    for worker, _ in workers.values():
        worker.__exit__()


@pytest.fixture(scope="module")
def running_variant(bundles, tmp_path_factory):
    """running_variant(level or level@variant, bundle name) -> (worker, its answer to load), kept
    for the tests of this file."""
    workers: dict[tuple[str, str], tuple[Worker, dict]] = {}
    cache = tmp_path_factory.mktemp("cache")

    def get(level: str, name: str) -> tuple[Worker, dict]:
        if (level, name) not in workers:
            plain, _, variant = level.partition("@")
            worker = Worker(plain, bundles(name), cache, threads=1, variant=variant or "default")
            workers[level, name] = worker, {}
            workers[level, name] = worker, worker.load()
        return workers[level, name]

    yield get
    for worker, _ in workers.values():
        worker.__exit__()


@pytest.fixture
def fresh(bundles):
    """fresh(level) -> a worker on the MNIST bundle that nothing was loaded into."""
    started: list[Worker] = []

    def get(level: str, bundle: Path | None = None) -> Worker:
        started.append(Worker(level, bundle or bundles("mnist")))
        return started[-1]

    yield get
    for worker in started:
        worker.__exit__()


@pytest.fixture(scope="module")
def graph_bundle(tmp_path_factory):
    """graph_bundle(name) -> the bundle, captured once."""
    from graph_training import make  # loads PyTorch

    bundles: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in bundles:
            bundles[name] = make(tmp_path_factory.mktemp(name) / "bundle", name)
        return bundles[name]

    return get


@pytest.fixture(scope="module")
def graph_worker(level, graph_bundle, tmp_path_factory):
    """graph_worker(bundle name) -> a worker of the file's `level` with the network, dropout off,
    started afresh by `weights` and the case's optimiser."""
    from graph_training import prepared
    from train_bundle import SGD, start

    workers: dict[str, Worker] = {}

    def get(name: str) -> Worker:
        if name not in workers:
            workers[name] = Worker(
                level,
                graph_bundle(name),
                prepared(level, graph_bundle(name), tmp_path_factory.mktemp(f"{level}-{name}")),
                threads=1,
            )
            start(workers[name])
        worker = workers[name]
        worker.ask("set_optimiser", optimiser=SGD)
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask("weights", weights="timed")
        return worker

    yield get
    for worker in workers.values():
        worker.__exit__()
