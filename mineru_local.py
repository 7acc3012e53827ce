"""MinerU's weights on this machine: where they are, whether they can run here, and how they get here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from config import Settings
from errors import ConfigurationError, ProviderUnavailableError

MODEL_ID = "OpenDataLab/MinerU2.5-Pro-2605-1.2B"


def weights_folder(settings: Settings) -> Path:
    """Return the folder of MinerU's weights: CRAG_MINERU_MODEL, or where `download-mineru` puts them.

    :raises ConfigurationError: there are none; nothing is downloaded here.
    """
    folder = Path(settings.mineru_model).expanduser() if settings.mineru_model else default_folder(settings)
    if not (folder / "config.json").is_file():
        raise ConfigurationError(
            f"no MinerU weights in {folder}",
            hint="run `python cli.py download-mineru`, or set CRAG_MINERU_MODEL to their folder",
            name="CRAG_MINERU_MODEL",
        )
    return folder


def default_folder(settings: Settings) -> Path:
    """Return where downloaded weights are kept: beside the store, in plain sight."""
    return settings.data_dir / "mineru" / MODEL_ID.rsplit("/", 1)[-1]


def can_run_locally(settings: Settings) -> bool:
    """Tell whether a GPU, torch and the weights are all there."""
    try:
        weights_folder(settings)
    except ConfigurationError:
        return False
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        return False
    import torch

    return bool(torch.cuda.is_available() or torch.backends.mps.is_available())


def download_weights(settings: Settings, *, target: Path | None = None, source: str = "modelscope") -> Path:
    """Download MinerU's weights once, with the hub's own progress bar, to `target` and return it.

    `source` is "modelscope" or "huggingface". An interrupted download is resumed by the next call.

    :raises ConfigurationError: the hub's package is missing, or the source is unknown.
    :raises ProviderUnavailableError: the hub cannot be reached.
    """
    folder = target or default_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        match source:
            case "modelscope":
                from modelscope import snapshot_download as from_modelscope

                from_modelscope(MODEL_ID, local_dir=str(folder))
            case "huggingface":
                from huggingface_hub import snapshot_download

                snapshot_download(MODEL_ID.replace("OpenDataLab", "opendatalab"), local_dir=str(folder))
            case _:
                raise ConfigurationError(
                    f"unknown source {source!r}", hint="modelscope or huggingface", name="--source"
                )
    except ImportError as error:
        raise ConfigurationError(
            f"{source}: {error}", hint="pip install -r requirements-mineru.txt", name=source
        ) from error
    except _hub_errors() as error:
        raise ProviderUnavailableError(f"{source}: {error}", hint="check the network", name=source) from error
    return folder


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return what the hubs' packages raise when a download fails; ModelScope's have a base of their own."""
    import httpx

    if importlib.util.find_spec("modelscope_hub") is None:
        return (OSError, httpx.HTTPError)
    from modelscope_hub.errors import HubError

    return (OSError, httpx.HTTPError, HubError)
