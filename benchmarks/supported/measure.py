"""What each preset can be: pickled, compiled, exported, converted to ONNX.

    .venv/bin/python -m benchmarks.supported.measure

Every preset is small and untrained here, and gives the same logits afterwards, or the entry is empty. With a
length that is free, the entry is the shortest length that a program works at. The table is recorded in
`supported.json`, from where the page "Use it" has it.
"""

import io
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import ROOT, commit
from labml_primer.presets import PRESETS, LanguageModel

RECORD = Path(__file__).with_name("supported.json")
SMALL: dict[str, Any] = {
    "d_model": 32,
    "heads": 4,
    "d_ff": 64,
    "layers": 1,
    "max_seq": 64,
}
TOKENS = 96
LENGTH, LONGEST, SHORTEST = 16, 64, 12
SAME: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-3}


def model_of(name: str) -> LanguageModel:
    """Return a small model of a preset."""
    torch.manual_seed(0)
    config = replace(PRESETS[name], vocab_size=TOKENS, **SMALL)
    return LanguageModel(config).eval()


def some_tokens(length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(TOKENS, (2, length), generator=generator)


def same(
    model: LanguageModel, other: Callable[[Tensor], Tensor], length: int = LENGTH
) -> bool:
    """Return whether both give the same logits."""
    tokens = some_tokens(length)
    return torch.allclose(other(tokens), model(tokens), **SAME)


def pickled(model: LanguageModel) -> bool:
    return same(model, pickle.loads(pickle.dumps(model)))


def compiled(model: LanguageModel) -> bool:
    torch.compiler.reset()
    return same(model, torch.compile(model, fullgraph=True))


def exported(model: LanguageModel) -> bool:
    return same(model, torch.export.export(model, (some_tokens(),)).module())


def exported_free(model: LanguageModel) -> int:
    """Return the shortest length of a program whose length is free, or 0 if there is none."""
    for shortest in range(1, SHORTEST + 1):
        length = torch.export.Dim("length", min=shortest, max=LONGEST - 1)
        shapes = {"tokens": {1: length}}
        try:
            program = torch.export.export(
                model, (some_tokens(),), dynamic_shapes=shapes
            )
        except Exception:  # it says for which lengths alone it could be one
            continue
        if all(same(model, program.module(), n) for n in (shortest, LONGEST - 1)):
            return shortest
    return 0


def onnx(model: LanguageModel) -> bool:
    """Return whether ONNX Runtime gives the same logits."""
    import onnxruntime  # type: ignore[import-not-found]

    program = torch.onnx.export(model, (some_tokens(),), dynamo=True, verbose=False)
    assert program is not None
    file = io.BytesIO()
    program.save(file)  # type: ignore[arg-type]  # it takes files, too
    session = onnxruntime.InferenceSession(file.getvalue())
    name = session.get_inputs()[0].name

    def run(tokens: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {name: tokens.numpy()})[0])

    return same(model, run)


WAYS: dict[str, Callable[[LanguageModel], bool | int]] = {
    "pickle": pickled,
    "compile": compiled,
    "export": exported,
    "export, free length": exported_free,
    "ONNX": onnx,
}


def measure(name: str) -> dict[str, bool | int]:
    """Return what one preset can be."""
    found: dict[str, bool | int] = {}
    for way, check in WAYS.items():
        try:
            with torch.no_grad():
                found[way] = check(model_of(name))
        except Exception as error:
            print(f"{name}, {way}: {type(error).__name__}: {error}", file=sys.stderr)
            found[way] = False
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    sys.path.append(str(ROOT / "_build" / "onnx"))
    presets = {}
    for name in PRESETS:
        presets[name] = measure(name)
        print(name, presets[name], flush=True)
    record = {
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {each: version(each) for each in ("torch", "onnx", "onnxruntime")},
        "presets": presets,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
