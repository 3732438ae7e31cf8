"""What each preset supports: the record is whole, and a part of it comes out again."""

import json

import pytest
import torch

from benchmarks.supported import measure
from labml_primer import PRESETS

RECORD = json.loads(measure.RECORD.read_text(encoding="utf-8"))


def test_the_record_has_every_preset_and_every_way() -> None:
    assert list(RECORD["presets"]) == list(PRESETS)
    for name, found in RECORD["presets"].items():
        assert list(found) == list(measure.WAYS), name


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", PRESETS)
def test_pickle_and_export_are_as_recorded(name: str) -> None:
    model, found = measure.model_of(name), RECORD["presets"][name]
    with torch.no_grad():
        assert measure.pickled(model) == found["pickle"]
        assert measure.exported(model) == found["export"]
        assert measure.exported_free(model) == found["export, free length"]
