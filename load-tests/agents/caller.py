"""A client of the gateway: one kept-open connection per thread, whole answers and streamed ones."""

import json
import threading
import urllib.parse
from http.client import HTTPConnection


# The key in load-tests/agents.toml.
HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-agents"}


class Caller:
    """Posts to one gateway."""

    def __init__(self, base):
        self.host, self.local = urllib.parse.urlsplit(base).netloc, threading.local()

    def _ask(self, method, path, body=None):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = HTTPConnection(self.host, timeout=300)
        connection.request(method, path, body and json.dumps(body), HEADERS)
        response = connection.getresponse()
        return response.status, response.read()

    def get(self, path):
        """A page, which must be there. Between two of them the gateway may have closed a connection that was idle."""
        self.local.connection = None
        status, body = self._ask("GET", path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:500]}")
        return json.loads(body)

    def chat(self, body):
        """A status with the whole answer's object, put together from its chunks where it was streamed, or with the error's."""
        status, said = self._ask("POST", "/v1/chat/completions", body)
        if status != 200 or not body.get("stream"):
            return status, json.loads(said)
        return together(said)


def together(said):
    """One answer from a stream's events. An error in it is one."""
    message, answer, last = {"role": "assistant", "content": None}, {}, None
    for event in said.decode().split("\n\n"):
        if not event.startswith("data: "):
            continue
        last = event[6:]
        if last == "[DONE]":
            break
        chunk = json.loads(last)
        if "error" in chunk:
            return 599, chunk
        answer.update({name: chunk[name] for name in ("id", "model", "usage", "budget") if chunk.get(name) is not None})
        for choice in chunk.get("choices", []):
            delta(message, choice["delta"])
            if choice.get("finish_reason"):
                answer["choices"] = [{"index": 0, "message": message, "finish_reason": choice["finish_reason"]}]
    if last != "[DONE]" or "choices" not in answer:
        return 598, {"error": {"message": "the stream broke off", "code": "broken"}}
    return 200, answer


def delta(message, given):
    if given.get("content"):
        message["content"] = (message["content"] or "") + given["content"]
    for piece in given.get("tool_calls") or []:
        calls = message.setdefault("tool_calls", [])
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "type": "function", "function": {"name": piece["function"]["name"], "arguments": ""}})
        calls[piece["index"]]["function"]["arguments"] += piece["function"].get("arguments") or ""
