"""Where the book is online: as `_config.yml` says, or as the run says that builds a fork's site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def online(
    configured: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the repository with its url, branch, folder of notebooks, and address of the site.

    In a workflow of GitHub or Forgejo, and in a pipeline of GitLab, the url and the branch are those of
    the run; those of a pull request are not on a branch, so it keeps the configured one. `BOOK_SITE` is
    the address of the site if it is not that of the repository's pages.
    """
    found = dict(configured)
    url, branch = _of_run(environment)
    if url:
        if url != found.get("url"):
            found.pop("site", None)  # that of another repository
        found["url"] = url
        found["branch"] = branch or found.get("branch", "main")
    if site := environment.get("BOOK_SITE", ""):
        found["site"] = site
    return found


def _of_run(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the address and the branch of the repository that a run is of, as far as it names them."""
    if url := environment.get("CI_PROJECT_URL", ""):
        return url, environment.get("CI_COMMIT_BRANCH", "")
    if name := environment.get("GITHUB_REPOSITORY", ""):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        kind, _, branch = environment.get("GITHUB_REF", "").partition("refs/heads/")
        return f"{server}/{name}", "" if kind else branch
    return "", ""
