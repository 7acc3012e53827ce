"""The page starts fast: importing it loads no model library, no vector store and no data-frame library."""

from __future__ import annotations

import subprocess
import sys

from config import ROOT

HEAVY = [
    "chromadb",
    "onnxruntime",
    "torch",
    "transformers",
    "tokenizers",
    "pandas",
    "altair",
    "pypdfium2",
    "pydantic_ai",
]


def test_importing_the_page_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "import views.ask, views.library, views.retrieval, views.settings_view, views.sign_in\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
