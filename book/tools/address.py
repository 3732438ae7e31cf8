"""Where the book is online: as `_config.yml` says, or as the run says that builds a fork's site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def online(
    configured: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the repository with its url, branch, folder of notebooks, and address of the site.

    In a workflow of GitHub the url and the branch are those of the run; those of a pull request are
    not on a branch, so it keeps the configured one. `BOOK_SITE` is the address of the site if it is
    not that of the repository's pages.
    """
    found = dict(configured)
    if name := environment.get("GITHUB_REPOSITORY", ""):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        ours = f"{server}/{name}"
        if ours != found.get("url"):
            found.pop("site", None)  # that of another repository
        found["url"] = ours
        if environment.get("GITHUB_REF", "").startswith("refs/heads/"):
            found["branch"] = environment["GITHUB_REF"].removeprefix("refs/heads/")
    if site := environment.get("BOOK_SITE", ""):
        found["site"] = site
    return found
