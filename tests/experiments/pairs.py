"""Two workers of a run, as torchrun starts them, and what they do in the tests.

Processes are forked. Under torchrun, a start takes ten seconds.
"""

import faulthandler
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from forks import server
from runs import ONE_CORE, ROOT

from experiments.harness import long_run
from experiments.harness.training import ASKED_TO_STOP, Training

Ended = subprocess.CompletedProcess[str]
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}
PATIENCE = 540  # seconds, after which a worker says where it waits


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
        server().Process(
            target=work,
            args=(folder, act, settings | {"RANK": str(rank), "LOCAL_RANK": str(rank)}),
        )
        for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    waiting = []
    for worker in workers:
        worker.join(PATIENCE + 60)
        waiting += [worker] if worker.is_alive() else []
        worker.kill()
    out, err = (
        "".join((folder / f"{kind}{rank}").read_text() for rank in range(2))
        for kind in ("out", "err")
    )
    assert not waiting, f"{len(waiting)} of the workers did not end\n{err}"
    code = max(abs(worker.exitcode or 0) for worker in workers)
    return Ended(act.__name__, code, out, err)


def work(folder: Path, act: Callable[[], None], settings: dict[str, str]) -> None:
    """Be a worker: act with these settings of torchrun, and print to files of its own."""
    os.environ.update(settings)
    os.chdir(folder)
    for stream, name in ((1, "out"), (2, "err")):
        file = os.open(f"{name}{settings['RANK']}", os.O_CREAT | os.O_WRONLY)
        os.dup2(file, stream)
    faulthandler.dump_traceback_later(PATIENCE, file=2)
    try:
        act()
    except BaseException as ended:
        if isinstance(ended, SystemExit):
            code = int(ended.code is not None)
            print(ended.code or "", file=sys.stderr)
        else:
            code = 1
            traceback.print_exc()
        # Gloo's group, freed with this exception, sometimes waits for ever if the other worker has ended.
        leave(code)
    leave(0)


def leave(code: int) -> NoReturn:
    """End without the server's threads, which a fork does not have."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


# Python imports this first: workers that wait for each other for ever say where, and end.
SAY_WHERE_IT_HANGS = (
    f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE}, exit=True)"
)


def torchrun(folder: Path, act: Callable[[], None]) -> Ended:
    """Let two workers `act` in `folder` under torchrun itself."""
    (folder / "first").mkdir(exist_ok=True)
    (folder / "first" / "sitecustomize.py").write_text(SAY_WHERE_IT_HANGS)
    (folder / "act.py").write_text(f"import pairs\npairs.{act.__name__}()\n")
    # With an address there is no name to look up.
    launch = ["-m", "torch.distributed.run", "--standalone"]
    launch += ["--local-addr", "127.0.0.1", "--nproc-per-node", "2", "act.py"]
    path = os.pathsep.join(map(str, (folder / "first", ROOT, Path(__file__).parent)))
    return subprocess.run(
        [sys.executable, *launch],
        cwd=folder,
        env=ONE_CORE | LOOPBACK | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )


def train(into: str = "two") -> None:
    """Give the command of a run."""
    sys.argv = ["long_run", "run.toml", into, "--save-every", "4"]
    long_run.main()


def train_apart() -> None:
    """Train in a folder of one's own, as on two machines without a shared disk."""
    train(into=os.environ["RANK"])


def train_half() -> None:
    """Take half of the steps, and print the type of a worker's weights."""
    step = Training.step

    def until(training: Training) -> None:
        if training.done == 4:
            kind = type(training.model.get_parameter("embedding.weight")).__name__
            # In one write: under torchrun, the other worker uses the same pipe.
            os.write(1, f"{kind}\n".encode())
            raise SystemExit
        step(training)

    Training.step = until  # type: ignore[method-assign]
    train()


def train_until_one_is_asked_to_stop() -> None:
    """Train. One worker gets the signal, and both must stop after the same step."""
    step = Training.step

    def asked(training: Training) -> None:
        if training.done == 4 and os.environ["RANK"] == "1":
            ASKED_TO_STOP.set()
        step(training)

    Training.step = asked  # type: ignore[method-assign]
    train()
