"""The sections of NumPy and Google docstrings as fields of reStructuredText, by Napoleon.

Napoleon loses text: the titles that it does not know, what follows a section without a title of its own, the
words around a name in "See Also". These are read here.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.ext.napoleon import Config, GoogleDocstring, NumpyDocstring

from sphinx_annotated.read.manners.rest import indentation, titles

SETTINGS = {
    "napoleon_attr_annotations": False,
    "napoleon_use_admonition_for_examples": False,
    "napoleon_use_admonition_for_notes": False,
    "napoleon_use_admonition_for_references": False,
    "napoleon_use_ivar": True,
    "napoleon_use_keyword": True,
    "napoleon_use_param": True,
    "napoleon_use_rtype": True,
}
# Sections of text, for which Napoleon writes directives of other extensions.
PLAIN = ["Todo"]
ENTERED = [("Call arguments", "params_style")]  # sections of names, as Keras has them
NAMES = re.compile(r"[\w.*]+(, *[\w.*]+)+")
SENTENCE = re.compile(r"(\S+ ){3,}\S+")  # where a name or a type is expected
BULLET = re.compile(r"[-*+] ")
REFERENCE = r"(:[\w:+.-]+:)?`~?[\w.-]+`|~?[\w.-]+"
SEE = re.compile(rf"({REFERENCE})\s*(:(\s.*)?)?")
SEE_ALL = re.compile(rf"({REFERENCE})(\s*,\s*({REFERENCE}))+,?")
# In these, what is not indented is a name or a type.
ENTRIES = re.compile(
    r"(?i)(other |keyword )?(param(eter)?s|arg(ument)?s)|attributes|methods"
    r"|raises|receives?|returns?|warns?|yields?"
)
Fields = list[tuple[str, str, list[str]]]


class _Fields(GoogleDocstring):
    """Sections with the fields that ``written.py`` knows."""

    def _consume_fields(
        self, parse_type: bool = True, prefer_type: bool = False, multiple: bool = False
    ) -> Fields:
        fields: Fields = []
        for name, kind, text in super()._consume_fields(parse_type, prefer_type):
            name = re.sub(r"(?<=\w)_(?!\w)", r"\\_", name)  # coef_ is no reference
            if SENTENCE.fullmatch(name) and not kind and not any(text):
                if fields:  # the line above goes on
                    fields[-1] = (*fields[-1][:2], [*fields[-1][2], name])
                else:
                    fields.append(("", "", [name]))
            elif multiple and NAMES.fullmatch(name.replace("\\", "")):
                fields += [(each.strip(), kind, text) for each in name.split(",")]
            else:
                fields.append((name, kind, text))
        return fields

    def _format_docutils_params(
        self, fields: Fields, field_role: str = "param", type_role: str = "type"
    ) -> list[str]:
        named = [(_field_name(name), kind, text) for name, kind, text in fields]
        lines = super()._format_docutils_params(named, field_role, type_role)
        return [
            line.replace(f":{field_role} :", f":{field_role}:", 1) for line in lines
        ]

    def _parse_other_parameters_section(self, section: str) -> list[str]:
        fields = self._consume_fields(multiple=True)
        return self._format_docutils_params(fields, "otherparam", "othertype")

    def _parse_methods_section(self, section: str) -> list[str]:
        fields = self._consume_fields(parse_type=False)
        return self._format_docutils_params(fields, "method", "methodtype")

    def _parse_receives_section(self, section: str) -> list[str]:
        return self._described("receives", self._consume_fields())

    def _parse_yields_section(self, section: str) -> list[str]:
        return self._described("yields", self._consume_returns_section())

    def _parse_warns_section(self, section: str) -> list[str]:
        return self._described("warns", self._consume_fields())

    def _described(self, field: str, fields: Fields) -> list[str]:
        """Return fields that say name, type and description in their text."""
        lines: list[str] = []
        for each in fields:
            lines += self._format_block(f":{field}: ", self._format_field(*each))
        return [*lines, ""]


def _field_name(name: str) -> str:
    """Return a name as docutils and ``written.py`` take it for one: without colons and blanks."""
    return re.sub(r":(?=\s|$)", r"\:", name).replace(" ", "\u00a0")


class Google(_Fields):
    """A docstring in Google style."""

    def __init__(self, lines: list[str], config: Any = None):
        super().__init__(lines, config or _config([*PLAIN, *ENTERED]), what="function")

    def _consume_returns_section(self, preprocess_types: bool = False) -> Fields:
        fields: Fields = []
        for name, kind, text in super()._consume_returns_section(preprocess_types):
            if SENTENCE.fullmatch(kind):  # a colon in a sentence, and no type
                text = text[1:] if text[:1] == [""] else text
                blank = [""] if text and BULLET.match(text[0]) else []
                first = [] if blank else text[:1]
                text = [" ".join([f"{kind}:", *first]), *blank, *text[len(first) :]]
                kind = ""
            fields.append((name, kind, text))
        return fields


class Numpy(_Fields, NumpyDocstring):
    """A docstring in NumPy style."""

    def __init__(self, lines: list[str], config: Any = None):
        if config is None:
            lines = _apart(_without_overlines(lines))
            config = _config([*PLAIN, *(title.text for title in titles(lines))])
        super().__init__(lines, config, what="function")

    def _load_custom_sections(self) -> None:
        known = {
            name: parse for name, parse in self._sections.items() if name != "todo"
        }
        super()._load_custom_sections()
        self._sections |= known

    def _consume_returns_section(self, preprocess_types: bool = False) -> Fields:
        lines = self._dedent(self._consume_to_next_section())
        entry = any(" : " in line or line.startswith(" ") for line in lines)
        text = lines and (SENTENCE.fullmatch(lines[0]) or BULLET.match(lines[0]))
        if text and not entry:
            return [("", "", self.__class__(lines, self._config).lines())]
        self._lines.extendleft(reversed(lines))
        return self._consume_fields(prefer_type=True)

    def _parse_see_also_section(self, section: str) -> list[str]:
        lines = self._consume_to_next_section()
        one, names = False, True  # so that an indented line describes it
        for line in filter(str.strip, lines):
            if not line.startswith(" "):
                one = SEE.fullmatch(line) is not None
            names = names and (one or SEE_ALL.fullmatch(line) is not None)
        if names:
            return self._parse_numpydoc_see_also_section(lines)
        as_typed = [f"| {line}".rstrip() for line in self._strip_empty(lines)]
        return self._format_admonition("seealso", as_typed)


DIALECTS = {"google": Google, "numpy": Numpy}


def _config(sections: list[Any]) -> Any:
    return Config(**SETTINGS, napoleon_custom_sections=sections)


def _without_overlines(lines: list[str]) -> list[str]:
    """Return lines without those above titles."""
    over = {title.at for title in titles(lines) if title.end - title.at == 3}
    return ["" if at in over else line for at, line in enumerate(lines)]


def _apart(lines: list[str]) -> list[str]:
    """Return lines with two blank ones, which end a section, above text that is none of its entries."""
    named = {title.end: title.text for title in titles(lines) if not title.indent}
    out: list[str] = []
    entries, first = False, 0
    for at, line in enumerate(lines):
        if at in named:
            entries, first = ENTRIES.fullmatch(named[at]) is not None, at
        after_blank = at > first and not lines[at - 1].strip()
        text = SENTENCE.fullmatch(line) and " : " not in line
        prose = after_blank and text and not _has_more(lines, at)
        if entries and any(lines[first:at]) and (prose or line.startswith(".. ")):
            out += ["", ""]
            entries = False
        out.append(line)
    return out


def _has_more(lines: list[str], at: int) -> bool:
    """Return whether the line below this one is indented more."""
    below = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(below.strip()) and indentation(below) > indentation(lines[at])
