"""The title block of a chapter's page, as data for the theme."""

from __future__ import annotations

import time
from typing import Any

from sphinx.builders import Builder

from annotated.page.contents import Entry
from annotated.page.state import Head
from annotated.read.parse import Chapter
from annotated.run.execute import Record


def title_block(
    builder: Builder,
    entry: Entry,
    head: Head,
    chapter: Chapter,
    record: Record,
    packages: list[str],
) -> dict[str, Any]:
    """Return the title, the summary, the facts of the last run and the definitions.

    Of the versions that the chapter ran with, those of ``packages`` are shown.
    """
    render = builder.render_partial  # type: ignore[attr-defined]
    facts = []
    if head.source is not None:
        facts.append({"name": "Source", "html": render(head.source)["fragment"]})
    seconds = max(1, round(record.seconds))
    facts.append({"name": "Runs in", "html": f"{seconds} s of CPU time"})
    facts.append({"name": "Last run", "html": _last_run(record, packages)})
    return {
        "number": entry.number,
        "part": entry.part,
        "title": entry.title,
        "summary": render(head.summary)["fragment"] if head.summary else "",
        "facts": facts,
        "glance": [
            {"title": name.qualname, "href": f"#{name.qualname}", "line": line}
            for name, line in chapter.names()
            if name.level == 1
        ],
    }


def _last_run(record: Record, packages: list[str]) -> str:
    """The packages with their versions, and the day."""
    versions = [
        f"{name} {record.versions[name].partition('+')[0]}"
        for name in packages
        if name in record.versions
    ]
    date = time.strptime(record.date, "%Y-%m-%d")
    day = f"{date.tm_mday} {time.strftime('%b %Y', date)}"
    return ", ".join([*versions, f'<time datetime="{record.date}">{day}</time>'])
