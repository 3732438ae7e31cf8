"""Processes of the tests, forked from one server that has imported everything once.

A new Python would take four CPU seconds to import torch and labml.
"""

import multiprocessing
import os
from functools import cache
from multiprocessing import forkserver
from pathlib import Path

from runs import ONE_CORE, ROOT, TINY

from experiments.harness import command

SERVER = "FORKS_PROCESSES"

if SERVER in os.environ:
    # In the server, once for all processes.
    import torch._dynamo

    from experiments.harness.fingerprint import fingerprint

    torch.set_num_threads(1)
    fingerprint(TINY)


@cache
def server() -> "multiprocessing.context.ForkServerContext":
    """Start the server from which processes are forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forks"])
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    with command.environment(ONE_CORE | {"PYTHONPATH": path, SERVER: "1"}):
        forkserver.ensure_running()
    return context
