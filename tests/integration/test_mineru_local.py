"""The transformers backend, end to end with a tiny model of random weights made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config import load_settings
from errors import ConfigurationError
from mineru_local import can_run_locally, default_folder, download_weights, weights_folder

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


def tiny_model(folder: Path) -> tuple[Any, Any]:
    """A Qwen2-VL of a few thousand parameters with a tokenizer trained on one sentence."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen2VLProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

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
        image_processor=Qwen2VLImageProcessorPil(), tokenizer=wrapped, video_processor=None, chat_template=CHAT
    )
    (folder / "config.json").write_text(json.dumps({"tiny": True}), encoding="utf-8")
    return model, processor
