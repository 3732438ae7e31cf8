"""The engine knows nothing of the book or its theme. Contracts in ``pyproject.toml`` say what it imports."""

from builds import ENGINE

FOLDER = ENGINE / "sphinx_annotated"


def test_the_engine_does_not_name_torch_or_the_theme() -> None:
    for path in FOLDER.rglob("*"):
        if path.suffix in (".py", ".js"):
            text = path.read_text(encoding="utf-8")
            assert "torch" not in text and "primer" not in text.lower(), path


def test_the_engines_script_asks_only_for_files_of_the_engine() -> None:
    text = (FOLDER / "static" / "annotated.js").read_text(encoding="utf-8")
    asked = [part for part in text.split('"') if part.endswith((".js", ".css", ".svg"))]
    assert asked == ["curves.js"]
    assert all((FOLDER / "static" / name).is_file() for name in asked)
