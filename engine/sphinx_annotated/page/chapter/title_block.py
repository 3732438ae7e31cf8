"""The title block of a chapter's page, as data for the theme."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from babel.dates import format_date
from sphinx.builders import Builder
from sphinx.config import Config
from sphinx.locale import _

from sphinx_annotated.page.build.contents import Entry
from sphinx_annotated.page.build.state import Head
from sphinx_annotated.read.chapter import Chapter, Name
from sphinx_annotated.run.store import Record


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
        facts.append(
            {
                "name": _("Source"),
                "source": True,
                "html": render(head.source)["fragment"],
            }
        )
    if record.date:
        seconds = _("{} s of CPU time").format(max(1, round(record.seconds)))
        facts.append({"name": _("Runs in"), "html": seconds})
        last = _last_run(record, packages, builder.config)
        facts.append({"name": _("Last run"), "html": last})
    return {
        "number": entry.number,
        "part": entry.part,
        "title": entry.title,
        "summary": render(head.summary)["fragment"] if head.summary else "",
        "facts": facts,
        "glance": [
            {"title": name.qualname, "href": f"#{name.qualname}", "line": line}
            for name, line in _definitions(chapter)
        ],
    }


def _definitions(chapter: Chapter) -> Iterator[tuple[Name, int]]:
    """Yield the definitions at the top, each name once, where its anchor is: it may have overloads."""
    seen = {"_"}
    for name, line in chapter.names():
        if name.level == 1 and name.qualname not in seen:
            seen.add(name.qualname)
            yield name, line


def _last_run(record: Record, packages: list[str], config: Config) -> str:
    """The packages with their versions, and the day."""
    versions = [
        f"{name} {record.versions[name].partition('+')[0]}"
        for name in packages
        if name in record.versions
    ]
    date = datetime.date.fromisoformat(record.date)
    language = config.language if config.language != "en" else "en_GB"
    day = format_date(date, "d MMM y" if language == "en_GB" else "medium", language)
    return ", ".join([*versions, f'<time datetime="{record.date}">{day}</time>'])
