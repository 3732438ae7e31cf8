"""Ray in one process: tasks run one after another."""

from collections.abc import Callable
from typing import Any


class WorkerError(Exception):
    """The end of a worker, as Ray reports it."""


class TaskError(WorkerError):
    """An error in the code that a worker runs, as Ray reports it."""

    def __init__(self, cause: Exception):
        super().__init__(str(cause))
        self.cause = cause


class InlineRay:
    """What a search and a sweep need of Ray. The youngest task ends first, or the oldest."""

    def __init__(self, cores: int = 1, youngest_first: bool = False):
        self.cores, self.at = cores, -1 if youngest_first else 0
        self.exceptions = type(
            "exceptions", (), {"RayTaskError": TaskError, "RayError": WorkerError}
        )

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cores)}

    def remote(self, **options: Any) -> Callable[..., Any]:
        def task(function: Callable[..., Any]) -> Any:
            def start(*arguments: Any) -> Callable[[], Any]:
                return lambda: function(*arguments)

            return type("task", (), {"remote": staticmethod(start)})

        return task

    def wait(self, futures: list[Any]) -> tuple[list[Any], list[Any]]:
        left = list(futures)
        return [left.pop(self.at)], left

    def get(self, future: Callable[[], Any]) -> Any:
        try:
            return future()
        except WorkerError:
            raise
        except Exception as error:
            raise TaskError(error) from error
