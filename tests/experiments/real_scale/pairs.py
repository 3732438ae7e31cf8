"""Two workers of a run, as torchrun starts them, and what they do in the tests.

Processes are forked. Under torchrun, a start takes ten seconds.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from forks import start
from runs import ONE_CORE, ROOT

from experiments.harness.long_run import main
from experiments.harness.training import ASKED_TO_STOP
from experiments.real_scale.training import ScaledTraining

Ended = subprocess.CompletedProcess[str]
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}
PATIENCE = 600  # seconds


def two_workers(folder: Path, act: Callable[[], None]) -> Ended:
    """Let two workers `act` in `folder`. They meet at a store of this process, on the loopback interface."""
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    settings = LOOPBACK | {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    workers = [
        start(folder, rank, act, settings=settings | {"RANK": rank, "LOCAL_RANK": rank})
        for rank in ("0", "1")
    ]
    try:
        code = max(abs(worker.wait(PATIENCE)) for worker in workers)
    finally:
        for worker in workers:
            worker.process.kill()
    return Ended(act.__name__, code, "".join(worker.printed for worker in workers))


def torchrun(folder: Path, act: Callable[[], None]) -> Ended:
    """Let two workers `act` in `folder` under torchrun itself."""
    (folder / "act.py").write_text(f"import pairs\npairs.{act.__name__}()\n")
    # With an address there is no name to look up.
    launch = ["-m", "torch.distributed.run", "--standalone"]
    launch += ["--local-addr", "127.0.0.1", "--nproc-per-node", "2", "act.py"]
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (ROOT, here, here.parent)))
    return subprocess.run(
        [sys.executable, *launch],
        cwd=folder,
        env=ONE_CORE | LOOPBACK | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )


def train(kind: type[ScaledTraining] = ScaledTraining, into: str = "two") -> None:
    """Give the command of a run."""
    main(kind, ["run.toml", into, "--save-every", "4"])


def train_apart() -> None:
    """Train in a folder of one's own, as on two machines without a shared disk."""
    train(into=os.environ["RANK"])


class UntilHalf(ScaledTraining):
    """Takes half of the steps, and prints the type of a worker's weights."""

    def step(self) -> dict[str, float]:
        if self.done == 4:
            kind = type(self.model.get_parameter("embedding.weight")).__name__
            # In one write: under torchrun, the other worker uses the same pipe.
            os.write(1, f"{kind}\n".encode())
            raise SystemExit
        return super().step()


class AskedOnce(ScaledTraining):
    """One worker gets the signal, and both must stop after the same step."""

    def step(self) -> dict[str, float]:
        if self.done == 4 and self.rank == 1:
            ASKED_TO_STOP.set()
        return super().step()


def train_half() -> None:
    train(UntilHalf)


def train_until_one_is_asked_to_stop() -> None:
    train(AskedOnce)
