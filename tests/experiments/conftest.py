"""What the tests of the experiments read once."""

import pytest

from experiments.harness import sweep
from experiments.harness.plan import Plan, read_plans
from experiments.records.runs import RESULTS, RunRecord, read_records, read_results


@pytest.fixture(scope="session", autouse=True)
def workers_do_not_stand_back() -> None:
    """Behind the other tests they would wait for minutes."""
    sweep.NICENESS = "0"


@pytest.fixture(scope="session")
def plans() -> dict[str, Plan]:
    """All plans by name."""
    return read_plans()


@pytest.fixture(scope="session")
def recorded() -> dict[str, dict[str, RunRecord]]:
    """What each plan has recorded itself, by the names of its runs."""
    return read_records(RESULTS)


@pytest.fixture(scope="session")
def known() -> dict[str, RunRecord]:
    """All records of all plans, by the digests of their configurations."""
    return read_results()
