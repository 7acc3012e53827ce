"""The transformers backend, end to end with a tiny model of random weights made here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from config import ROOT, load_settings
from errors import ConfigurationError
from mineru_local import can_run_locally, default_folder, download_weights, weights_folder
from tests.integration.helpers_mineru import serving

SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<|box_start|>", "<|box_end|>", "<|ref_start|>", "<|ref_end|>",
    "<|rotate_up|>", "<|rotate_right|>", "<|rotate_down|>", "<|rotate_left|>",
]  # fmt: skip
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_weights_are_looked_for_but_never_fetched(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, _env_file=None)
    with pytest.raises(ConfigurationError, match="download-mineru"):
        _raise_with_hint(settings)
    assert not can_run_locally(settings)
    folder = default_folder(settings)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    assert weights_folder(settings) == folder
    elsewhere = load_settings(data_dir=tmp_path, mineru_model=str(folder), _env_file=None)
    assert weights_folder(elsewhere) == folder
    with pytest.raises(ConfigurationError, match="unknown source"):
        download_weights(settings, target=tmp_path / "new", source="nowhere")


def _raise_with_hint(settings: Any) -> None:
    try:
        weights_folder(settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} {error.hint}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tiny_random_model_runs_through_the_transformers_backend(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    make_torchvision_importable()
    from dataclasses import replace

    from mineru_vl_utils import MinerUClient
    from mineru_vl_utils.mineru_client import DEFAULT_SAMPLING_PARAMS
    from PIL import Image

    model, processor = tiny_model(tmp_path / "tiny")
    few = {name: replace(parameters, max_new_tokens=4) for name, parameters in DEFAULT_SAMPLING_PARAMS.items()}
    client = MinerUClient(
        backend="transformers", model=model, processor=processor, sampling_params=few, use_tqdm=False, batch_size=1
    )
    page = Image.new("RGB", (280, 280), "white")
    # random weights find no layout, so the layout is given
    found = client.extract_with_layout(page, [{"type": "text", "bbox": [0.1, 0.1, 0.9, 0.4]}])
    assert [block["type"] for block in found] == ["text"]
    assert isinstance(found[0]["content"], str)


def make_torchvision_importable() -> None:
    """Declare the two operators without which a torchvision made for another build of torch cannot be imported."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        KEPT.append(library)


KEPT: list[Any] = []
"""Operators are forgotten with the library that declared them."""


def tiny_model(folder: Path) -> tuple[Any, Any]:
    """A Qwen2-VL of a few thousand parameters with a tokenizer trained on one sentence."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen2VLProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["Text Recognition: the walls of the harbour"], trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT
    )
    ids = {name: tokenizer.token_to_id(name) for name in SPECIAL}
    config = Qwen2VLConfig(
        text_config={
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0},
        },
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    torch.manual_seed(0)
    model = Qwen2VLForConditionalGeneration(config).eval()
    processor = Qwen2VLProcessor(
        image_processor=Qwen2VLImageProcessorPil(),
        tokenizer=wrapped,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT,
    )
    (folder / "config.json").write_text(json.dumps({"tiny": True}), encoding="utf-8")
    return model, processor


# --- fetching, only when asked, from a hub of our own on loopback

FILES = {
    "config.json": b'{"model_type": "qwen2_vl"}',
    "model.safetensors": b"weights" * 50_000,
    "tokenizer/vocab.json": b"{}",
}


def hub_answer(path: str, *, file: str) -> bytes:
    """What a hub answers: Hugging Face's paths first, then ModelScope's; `file` is the one asked for by name."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    if "/resolve/" in path:
        return FILES[path.split("/resolve/")[1].split("/", 1)[1]]
    if "/revision/" in path:
        return json.dumps({"id": "x/y", "sha": "0" * 40, "siblings": [{"rfilename": name} for name in FILES]}).encode()
    if "/tree/" in path:
        entries = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in FILES.items()]
        return json.dumps(entries).encode()
    if path.endswith("/repo"):
        return FILES[file]
    if path.endswith("/repo/files"):
        files = [
            {"Name": Path(name).name, "Path": name, "Type": "blob", "Size": len(data), "Sha256": hashes[name]}
            for name, data in FILES.items()
        ]
        return json.dumps({"Code": 200, "Success": True, "Data": {"Files": files}}).encode()
    revisions = {"RevisionMap": {"Branches": [{"Revision": "master", "CreatedAt": 1}], "Tags": []}}
    return json.dumps({"Code": 200, "Success": True, "Data": revisions}).encode()


@contextmanager
def model_hub(seen: list[str]) -> Iterator[str]:
    """A model hub with FILES in whatever model is asked for; it notes each request in `seen`."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self.wfile.write(self._answer())

        def _answer(self) -> bytes:
            seen.append(f"{self.command} {self.path}")
            path, _, query = self.path.partition("?")
            data = hub_answer(path, file=parse_qs(query).get("FilePath", [""])[0])
            asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            return data[start:]

        def log_message(self, *args: Any) -> None:
            return

    with serving(Handler) as address:
        yield address


def download(target: Path, *, source: str, hub: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run `cli.py download-mineru` as a person does, with its hub at `hub`."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CRAG_DATA_DIR": str(home / "data"),
        "HF_ENDPOINT": hub,
        "MODELSCOPE_ENDPOINT": hub,
    }
    command = (sys.executable, str(ROOT / "cli.py"), "download-mineru", "--json", "--source", source)
    return subprocess.run(
        (*command, "--target", str(target)), env=environment, cwd=home, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("source", ["huggingface", "modelscope"])
def test_weights_come_with_progress_and_only_once(tmp_path: Path, source: str) -> None:
    pytest.importorskip({"huggingface": "huggingface_hub"}.get(source, source))
    seen: list[str] = []
    target = tmp_path / "weights"
    with model_hub(seen) as hub:
        done = download(target, source=source, hub=hub, home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"path": str(target)}
        assert {name: (target / name).read_bytes() for name in FILES} == FILES
        assert "%" in done.stderr, "the hub's progress bar"
        fetched = [line for line in seen if line.startswith("GET") and "safetensors" in line]
        assert fetched
        again = download(target, source=source, hub=hub, home=tmp_path)
        assert again.returncode == 0
        assert [line for line in seen if line.startswith("GET") and "safetensors" in line] == fetched
    settings = load_settings(data_dir=tmp_path, mineru_model=str(target), _env_file=None)
    assert weights_folder(settings) == target


@pytest.mark.parametrize("source", ["huggingface", "modelscope"])
def test_hub_that_cannot_be_reached_is_a_typed_error(tmp_path: Path, source: str) -> None:
    pytest.importorskip({"huggingface": "huggingface_hub"}.get(source, source))
    done = download(tmp_path / "weights", source=source, hub="http://127.0.0.1:9", home=tmp_path)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "provider_unavailable"
