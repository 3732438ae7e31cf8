"""Exercises in which the reader writes a function: the check knows right from wrong, and says why."""

import ast
import importlib
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from sphinx_annotated.read.chapter import Cell
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.syntax import is_unwritten
from torch.nn import functional as F

from labml_primer.training.exercises import Case, check_answer

ROOT = Path(__file__).resolve().parents[2]
# A wrong answer for each chapter, and a part of what the reader is told.
WRONG = {
    "labml_primer.training.counting": (
        "return torch.bincount(text[1:] * 2 + text[:-1], minlength=4).view(2, 2)",
        "returns 1 at [0, 1], not 2",
        "a row is the first token",
    ),
    "labml_primer.training.loop": (
        "return logits.softmax(dim=-1)[target].log().neg()",
        "returns inf, not 1000",
        "is too large",
    ),
    "labml_primer.transformer.tokens": (
        """
pairs = torch.stack((tokens[:-1], tokens[1:]), dim=1)
different, counts = pairs.unique(dim=0, return_counts=True)
return different[counts == counts.max()][-1]
""",
        "returns 2 at [0], not 1",
        "has the smaller first token",
    ),
    "labml_primer.transformer.embedding": (
        "return F.one_hot(tokens, len(table)).float() @ table",
        "returns 9 at [0, 0, 0], not 27",
        "row 1 is tripled",
    ),
    "labml_primer.transformer.positional_encoding": (
        "return torch.tensor(float(d_model))",
        "returns 8, not 4",
        "four pairs",
    ),
    "labml_primer.transformer.attention": (
        "return (query @ key.T / math.sqrt(query.size(-1))).softmax(-1) @ value",
        "returns 1 at [0, 0], not 0",
        "the mean of the values so far",
    ),
    "labml_primer.transformer.feed_forward": (
        "return x @ w1 @ w2 + b1 + b2",
        "is wrong in case 1",
        "max(0, x)",
    ),
    "labml_primer.transformer.normalization": (
        "return (x - x.mean(-1, True)) / x.std(-1, keepdim=True)",
        "returns -0.7071 at [0, 0], not -1",
        "the variance 1",
    ),
    "labml_primer.transformer.encoder": (
        "x = x + attend(x); return x + process(x)",
        "is wrong in case 2",
        "reads normalized vectors",
    ),
    "labml_primer.transformer.decoder": (
        "return target",
        "returns 5 at [0, 0], not 1",
        "reads 5 to predict 6",
    ),
    "labml_primer.transformer.model": (
        "return logits.argmax(dim=-1)",
        "returns the shape [2, 3], not [2]",
        "the last position",
    ),
    "labml_primer.transformer.language_model": (
        "return F.cross_entropy(logits, text).exp()",
        "is wrong in case 2",
        "position i predicts token i + 1",
    ),
    "labml_primer.transformer.generation": (
        "return logits.masked_fill(logits.exp() < p * logits.exp().max(), 0.0)",
        "returns 0 at [2], not -inf",
        "0.125 is less",
    ),
    "experiments.chapters.family": (
        "return sum(each.numel() for each in model.state_dict().values())",
        "returns 18, not 12",
        "one matrix, used twice",
    ),
    "labml_primer.primer.primer_ez": (
        "return F.conv1d(x[None], weight[None, None], padding=len(weight) - 1)[0]",
        "returns the shape [6], not [4]",
        "the next two",
    ),
    "labml_primer.primer.variations": (
        "return bias + weight[2] * x",
        "returns 0 at [1, 0, 0], not 2",
        "in every channel",
    ),
    "labml_primer.primer.baselines": (
        "return F.silu(x @ gate) @ down",
        "returns 0.7311 at [0, 0], not 1.462",
        "times 2",
    ),
    "labml_primer.primer.primer": (
        "return (key @ w @ key.T).softmax(dim=-1)",
        "is wrong in case 1",
        "the root of 2",
    ),
    "labml_primer.primer.faster": (
        "return 2 * F.relu(x)",
        "returns 2 at [1], not -4",
        "multiplies each slope",
    ),
    "labml_primer.primer.compiled_generation": (
        "return torch.ones(new, length).tril().bool()",
        "returns 0 at [0, 1], not 1",
        "those before it",
    ),
    "book.pages.example": (
        "return stream[-3:].mean()",
        "returns 3, not 1",
        "two zeros come before",
    ),
}

# Answers that are nearly right, for each chapter. Cases with equal or few numbers take them for right.
NEARLY = {
    "labml_primer.training.counting": [
        "v = vocab_size; return torch.bincount(text[:-1] * v + text[1:]).view(v, v)",
        """
counts = torch.zeros(vocab_size, vocab_size)
counts[text[:-1], text[1:]] += 1
return counts
""",
        """
number = text[:-1:2] * vocab_size + text[1::2]
counts = torch.bincount(number, minlength=vocab_size**2)
return counts.view(vocab_size, vocab_size)
""",
    ],
    "labml_primer.training.loop": [
        f"return {answer}"
        for answer in (
            "logits.exp().sum().log() - logits[target]",
            "-logits.log_softmax(0).max()",
            "-(logits.softmax(0)[target] + 1e-9).log()",
        )
    ],
    "labml_primer.transformer.tokens": [
        f"""
pairs = torch.stack(({pairs}), dim=1){order}
different, counts = pairs.unique(dim=0, return_counts=True)
return different[{choice}]
"""
        for pairs, order, choice in (
            ("tokens[:-1], tokens[1:]", ".sort(dim=1).values", "counts.argmax()"),
            ("tokens[:-1:2], tokens[1::2]", "", "counts.argmax()"),
            ("tokens[1:], tokens[:-1]", "", "counts.argmax()"),
            ("tokens[:-1], tokens[1:]", "", "0"),
        )
    ]
    + [
        f"""
counts = Counter(zip(tokens[:-1].tolist(), tokens[1:].tolist()))
return torch.tensor(min(counts, key=lambda pair: ({order})))
"""
        for order in (
            "-counts[pair]",
            "-counts[pair], pair[0]",
            "-counts[pair], pair[1], pair[0]",
            "-counts[pair], -pair[0], -pair[1]",
        )
    ],
    "labml_primer.transformer.embedding": [
        "return F.one_hot(tokens, len(table)).float() @ table * table.size(1) / 2",
        "return F.one_hot(tokens).float() @ table * math.sqrt(table.size(1))",
        """
one_hot = F.one_hot(tokens[:1], len(table)).float()
return (one_hot @ table * math.sqrt(table.size(1))).expand(len(tokens), -1, -1)
""",
    ],
    "labml_primer.transformer.positional_encoding": [
        "k = torch.arange(d_model // 2); return (offset * 10_000.0 ** (-k / 2)).cos().sum()",
        "k = torch.arange(d_model // 2); return (offset * 10_000.0 ** (k / 4)).cos().sum()",
        "k = torch.arange(d_model // 2); return (offset * 10_000.0 ** (-k / d_model)).cos().sum()",
    ],
    "labml_primer.transformer.attention": [
        f"""
scores = query @ key.T / {scale}
earlier = torch.ones(len(query), len(key)).tril().bool()
return scores.masked_fill(~earlier, -math.inf).softmax(-1) @ value
"""
        for scale in ("2", "(query.size(-1) / 2)", "len(query)")
    ],
    "labml_primer.transformer.feed_forward": [
        f"return {answer}"
        for answer in (
            "F.relu(F.relu(x @ w1 + b1) @ w2 + b2)",
            "(F.relu(x @ w1) + b1) @ w2 + b2",
            "F.relu(x @ w1 + b1) @ (w2 + b2)",
            "F.gelu(x @ w1 + b1) @ w2 + b2",
        )
    ],
    "labml_primer.transformer.normalization": [
        f"""
c = x - x.mean({dim}, keepdim=True)
return c / (c.{spread}.mean({dim}, keepdim=True){root} + eps)
"""
        for dim, spread, root in (
            (1, "square()", ".sqrt()"),
            (-1, "abs()", ""),
            (-1, "square()", ".sqrt()"),
        )
    ],
    "labml_primer.transformer.encoder": [
        f"{first}; {second}"
        for first, second in (
            ("x = x + process(norm(x))", "return x + attend(norm(x))"),
            ("x = x + norm(attend(x))", "return x + norm(process(x))"),
            ("x = x + attend(norm(x))", "return x + norm(process(x))"),
            ("x = x + attend(norm(x))", "return x + process(x)"),
            ("y = norm(x)", "return x + attend(y) + process(y)"),
        )
    ],
    "labml_primer.transformer.decoder": [
        "return target.roll(1, 1)",
        "return F.pad(target, (1, 0), value=start)",
        "return F.pad(target, (-1, 1), value=start)",
        "return F.pad(target[0], (1, -1), value=start).expand_as(target)",
    ],
    "labml_primer.transformer.model": [
        "return logits[:, -1].argmax(-1) * ~ended",
        *(
            f"return {logits}.argmax(-1).expand(len(ended)).masked_fill({ended}, padding)"
            for logits, ended in (
                ("logits[0, -1]", "ended"),
                ("logits[-1]", "ended"),
                ("logits[:, 0]", "ended"),
                ("logits[:, 1]", "ended"),
                ("logits.sum(1)", "ended"),
                ("logits[:, -1]", "~ended"),
                ("logits[:, -1]", "ended.any()"),
            )
        ),
    ],
    "labml_primer.transformer.generation": [
        f"q = logits.softmax(-1); return logits.masked_fill({out}, -math.inf)"
        for out in ("q < p / 2", "q < p * p", "q <= p * q.max()", "q < p * q[0]")
    ],
    "labml_primer.transformer.language_model": [
        "return F.cross_entropy(logits[:-1], text[1:], reduction='none').exp().mean()",
        "return F.cross_entropy(logits[1:], text[:-1]).exp()",
        "return F.cross_entropy(logits[:-1].softmax(-1), text[1:]).exp()",
        "return F.cross_entropy(logits[:-1], text[1:], reduction='sum').exp()",
    ],
    "experiments.chapters.family": [
        f"return sum(p.numel() for {source})"
        for source in (
            "p in model.parameters() if p.ndim > 1",
            "m in model.modules() for p in m.parameters(recurse=False)",
            "m in model.children() for p in m.parameters()",
            "p in {**dict(model.named_parameters()), **dict(model.named_buffers())}.values()",
        )
    ],
    "labml_primer.primer.primer_ez": [
        "return sum(w * x.roll(i) for i, w in enumerate(weight.flip(0)))",
        "return F.pad(x, (2, 0)).unfold(0, len(weight), 1) @ weight",
        *(
            f"n = len(weight); return F.pad(x, ({sides})).unfold(0, n, 1) @ weight{turned}"
            for sides, turned in (("n - 1, 0", ".flip(0)"), ("0, n - 1", ""))
        ),
    ],
    "labml_primer.primer.primer": [
        f"return ({scores} / math.sqrt({scale})).softmax({dim})"
        for scores, scale, dim in (
            ("key @ w.T @ key.T", "key.size(-1)", -1),
            ("key @ (key @ w).T", "key.size(-1)", -1),
            ("key @ w @ key.T", "key.size(-1)", 0),
            ("key @ w @ key.T", "key.size(0)", -1),
        )
    ],
    "labml_primer.primer.variations": [
        "w = weight; return bias + w[2] * x + w[1] * x.roll(1, 0) + w[0] * x.roll(2, 0)",
        *(
            f"""
x = x.mean({dims}, keepdim=True).expand_as(x)
x = F.pad(x, (0, 0, 0, 0, 2, 0))
return bias + weight[0] * x[:-2] + weight[1] * x[1:-1] + weight[2] * x[2:]
"""
            for dims in ("1", "(1, 2)")
        ),
    ],
    "labml_primer.primer.baselines": [
        "return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T",
        "return F.silu(x @ gate) * (x @ up @ down)",
        "return F.silu(x @ gate) @ (x @ up) @ down",
        "return (F.silu(x * gate) * (x * up)) * down",
    ],
    "labml_primer.primer.faster": [
        f"return {answer}"
        for answer in (
            "2 * F.relu(x) * upstream.mean()",
            "2 * F.relu(x) * upstream[0]",
            "6 * (x > 0) * upstream",
        )
    ],
    "labml_primer.primer.compiled_generation": [
        f"return torch.arange(length) {answer}"
        for answer in (
            "< seen + torch.arange(1, new + 1)[:, None] - 1",
            "<= seen * torch.ones(new, 1)",
            "<= torch.arange(new)[:, None] + new",
            "<= seen * new + torch.arange(new)[:, None]",
            "< seen + torch.arange(new)[:, None]",
        )
    ],
    "book.pages.example": [
        f"return {answer}"
        for answer in (
            "stream[:3].sum() / 3",
            "stream.sum() / 3",
            "stream[-3:].sum() / len(stream)",
            "stream.unfold(0, min(3, len(stream)), 1)[-1].mean()",
        )
    ],
}


def chapters() -> list[str]:
    """The modules of the book with a function to be written."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    modules = [ROOT / f"{file}.py" for file in files]
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in modules
        if path.is_file()
        and "raise NotImplementedError  # your code" in path.read_text()
    ]


def steps(chapter: str) -> tuple[Cell, Cell]:
    """The step with what is to be written, and the step after it, its solution."""
    path = ROOT / f"{chapter.replace('.', '/')}.py"
    cells = parse(path.read_text(encoding="utf-8"), str(path)).cells
    (at,) = [i for i, cell in enumerate(cells) if cell.is_stub]
    assert cells[at + 1].is_solution
    return cells[at], cells[at + 1]


def told(chapter: str, body: list[ast.stmt] | None) -> tuple[str, dict[str, Any]]:
    """Run a step with another body of its function. It needs no other demonstration."""
    module = importlib.import_module(chapter)
    space = {**vars(module), "torch": torch, "math": math, "F": F, "Counter": Counter}
    for node in steps(chapter)[0].nodes:
        if body and is_unwritten(node):
            assert isinstance(node, ast.FunctionDef)
            node.body = body
        code = ast.fix_missing_locations(ast.Module([node], []))
        exec(compile(code, chapter, "exec"), space)
    return chapter, space


def solution(chapter: str) -> list[ast.stmt]:
    (found,) = [
        node for node in steps(chapter)[1].nodes if isinstance(node, ast.FunctionDef)
    ]
    return found.body


def test_each_chapter_of_the_first_two_parts_has_something_to_write() -> None:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"][:2]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    modules = {f.replace("/", ".") for f in files if (ROOT / f"{f}.py").is_file()}
    assert len(modules) > 15 and modules <= {*chapters()}


@pytest.mark.parametrize(("name", "answers"), [("WRONG", WRONG), ("NEARLY", NEARLY)])
def test_each_exercise_has_a_wrong_answer_and_some_that_are_nearly_right(
    name: str, answers: dict[str, Any]
) -> None:
    for chapter in {*chapters()} ^ answers.keys():
        pytest.fail(
            f"{name} in tests/library/test_written_exercises.py has one entry for each chapter with a "
            f"function to be written: {'add' if chapter in chapters() else 'remove'} {chapter}"
        )


@pytest.mark.parametrize("chapter", WRONG)
def test_an_exercise_says_if_it_is_unwritten_right_or_wrong_and_why(
    chapter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told(chapter, None)
    assert capsys.readouterr().out.endswith(" is not yet written\n")
    told(chapter, solution(chapter))
    assert " is right in all " in capsys.readouterr().out
    body, fault, reason = WRONG[chapter]
    told(chapter, ast.parse(body).body)
    said = capsys.readouterr().out
    assert " is wrong in case " in said and fault in said and reason in said


@pytest.mark.parametrize("chapter", NEARLY)
def test_an_answer_that_is_nearly_right_is_wrong(
    chapter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for body in NEARLY[chapter]:
        told(chapter, ast.parse(body).body)
        assert " is wrong in case " in capsys.readouterr().out, body


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("pass", "returns nothing, so a `return` is missing"),
        ("return 'three'", "returns a str, not a number or a tensor"),
        ("return x.nothing", "raises AttributeError: 'Tensor' object has no attribute"),
        ("return x.long().softmax(0)", 'Error: "softmax'),
        ("return x.sum()", "returns the shape [], not [2]"),
        ("x += 1; return 2 * x", "returns 2 at [0], not 3"),
    ],
)
def test_a_faulty_function_is_told_its_fault(
    body: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    space: dict[str, Any] = {}
    exec(f"def mine(x):\n    {body}", space)
    given = torch.zeros(2)
    cases: list[Case] = [((given,), torch.tensor([3.0, -math.inf]), "So it is.")]
    assert not check_answer(space["mine"], cases)
    said = capsys.readouterr().out
    assert fault in said and "So it is." in said
    assert torch.equal(given, torch.zeros(2))  # the case was not spoiled
