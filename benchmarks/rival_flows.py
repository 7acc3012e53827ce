"""Corrective RAG as two frameworks' tutorials describe it, and plain RAG: written here from the descriptions.

LangGraph's flow: four passages by vector; each is graded yes or no by a model, one after the other; the ones that
pass are kept; when any fails, the question is rewritten by the model and the web is searched; the model answers from
what is left and the web results. LlamaIndex's flow differs in taking two passages, and in searching when a grade is
the very word "no". Neither handles a failing call, cites, or refuses in code. Prompts are our own words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

Retrieve = Callable[[str, int], list[str]]


@dataclass(frozen=True, slots=True)
class Services:
    """A chat model and a web search over HTTP, without retries: what fails raises httpx.HTTPError."""

    model_url: str
    search_url: str

    def chat(self, model: str, *, prompt: str) -> str:
        """The model's reply."""
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        reply = httpx.post(f"{self.model_url}/chat/completions", json=body, timeout=30, trust_env=False)
        reply.raise_for_status()
        text: str = reply.json()["choices"][0]["message"]["content"]
        return text

    def search(self, query: str) -> list[str]:
        """The contents of the results."""
        reply = httpx.post(f"{self.search_url}/search", json={"query": query}, timeout=30, trust_env=False)
        reply.raise_for_status()
        return [row["content"] for row in reply.json()["results"]]


@dataclass(frozen=True, slots=True)
class PlainFlow:
    """Retrieve four passages, answer."""

    retrieve: Retrieve
    services: Services

    def answer(self, question: str) -> str:
        """The model's answer."""
        return _answer(self.services, question=question, context=self.retrieve(question, 4))


@dataclass(frozen=True, slots=True)
class LangGraphFlow:
    """Retrieve, grade each, search the web when any is irrelevant, answer."""

    retrieve: Retrieve
    services: Services

    def answer(self, question: str) -> str:
        """The model's answer; what any call raises is raised."""
        passages = self.retrieve(question, 4)
        grades = [_grade(self.services, question=question, passage=passage) for passage in passages]
        context = [passage for passage, grade in zip(passages, grades, strict=True) if grade == "yes"]
        if len(context) < len(passages):
            query = _rewrite(self.services, question=question)
            context.append("\n".join(self.services.search(query)))
        return _answer(self.services, question=question, context=context)


@dataclass(frozen=True, slots=True)
class LlamaIndexFlow:
    """Retrieve, grade each, search the web when a grade is "no", answer."""

    retrieve: Retrieve
    services: Services

    def answer(self, question: str) -> str:
        """The model's answer; what any call raises is raised."""
        passages = self.retrieve(question, 2)
        grades = [_grade(self.services, question=question, passage=passage) for passage in passages]
        context = [passage for passage, grade in zip(passages, grades, strict=True) if grade == "yes"]
        if "no" in grades:
            query = _rewrite(self.services, question=question)
            context.append("\n".join(self.services.search(query)))
        return _answer(self.services, question=question, context=context)


def _grade(services: Services, *, question: str, passage: str) -> str:
    prompt = (
        "Judge whether the document below is relevant to the question. Reply 'yes' or 'no'.\n\n"
        f"Document:\n{passage}\n\nQuestion: {question}"
    )
    return services.chat("grade", prompt=prompt).strip().lower()


def _rewrite(services: Services, *, question: str) -> str:
    return services.chat("rewrite", prompt=f"Rewrite this question for a web search:\n{question}")


def _answer(services: Services, *, question: str, context: Sequence[str]) -> str:
    joined = "\n\n".join(context)
    prompt = f"Answer the question from the context; say so when you do not know.\n\n{joined}\n\nQuestion: {question}"
    return services.chat("answer", prompt=prompt)
