"""A visitor without a browser: speaks the page's own live connection on loopback, so that many fit on one machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import ChatInputValue
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect
from websockets.typing import Subprotocol

PATIENCE = 180.0
"""Seconds a visitor waits for a run to end."""


@dataclass
class Run:
    """What one run of the page drew, and how long it took; `errors` are exceptions and error boxes."""

    seconds: float = 0.0
    texts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take(self, element: Element) -> None:
        match element.WhichOneof("type"):
            case "markdown":
                self.texts.append(element.markdown.body)
            case "heading":
                self.texts.append(element.heading.body)
            case "exception":
                self.errors.append(element.exception.message)
            case "alert":
                wrong = element.alert.format == Alert.ERROR
                (self.errors if wrong else self.texts).append(element.alert.body)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


class SocketVisitor:
    """One session of the page at `url`, with the parameters of its address in `query`."""

    def __init__(self, url: str, *, query: str = "") -> None:
        self._address = url.replace("http://", "ws://") + "/_stcore/stream"
        self._query = query
        self._stack = ExitStack()
        self._field = ""

    def __enter__(self) -> Self:
        spoken = [Subprotocol("streamlit")]
        opened = connect(self._address, subprotocols=spoken, max_size=None, open_timeout=PATIENCE)
        self._socket = self._stack.enter_context(opened)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def open(self) -> Run:
        """Draw the page as it first is."""
        return self._run([])

    def ask(self, question: str) -> Run:
        """Ask, and wait until the answer is drawn for good."""
        assert self._field, "the page has no field for questions"
        return self._run([WidgetState(id=self._field, chat_input_value=ChatInputValue(data=question))])

    def _run(self, states: Sequence[WidgetState]) -> Run:
        order = BackMsg()
        order.rerun_script.query_string = self._query
        order.rerun_script.widget_states.widgets.extend(states)
        run, began = Run(), time.perf_counter()
        self._socket.send(order.SerializeToString())
        while True:
            message = ForwardMsg()
            data = self._socket.recv(timeout=PATIENCE)
            assert isinstance(data, bytes)
            message.ParseFromString(data)
            match message.WhichOneof("type"):
                case "delta" if message.delta.WhichOneof("type") == "new_element":
                    element = message.delta.new_element
                    if element.WhichOneof("type") == "chat_input":
                        self._field = element.chat_input.id
                    run.take(element)
                case "script_finished" if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    run.seconds = time.perf_counter() - began
                    return run
