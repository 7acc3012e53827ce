"""A real Chroma server on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """Run `chroma run` on a free port; yield its address."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--path", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    )
    try:
        wait_for(f"http://127.0.0.1:{port}", process=process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(url: str, *, process: subprocess.Popen[bytes]) -> None:
    """Return when the server answers."""
    for _ in range(600):
        assert process.poll() is None, "chroma run ended"
        try:
            httpx.get(f"{url}/api/v2/heartbeat")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("chroma run does not answer")
