"""Callers that go on asking while gateways come and go, and remember what came of every request."""

import http.client
import json
import threading
from collections import Counter
from decimal import Decimal
from itertools import count

KEY = "sk-upgrade"


class Rotation:
    """The gateways that are asked, in turn: what a load balancer knows."""

    def __init__(self):
        self.ports, self.turn, self.lock = [], count(), threading.Lock()

    def add(self, port):
        with self.lock:
            self.ports = [*self.ports, port]

    def remove(self, port):
        with self.lock:
            self.ports = [other for other in self.ports if other != port]

    def next(self):
        with self.lock:
            return self.ports[next(self.turn) % len(self.ports)]


class Answer:
    """What came of one request. `fault` is empty where all of it came."""

    def __init__(self, port, body, headers=()):
        self.port, self.fault, self.cost, self.id = port, "", Decimal(0), None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body),
                               {"authorization": f"Bearer {KEY}", "content-type": "application/json", **dict(headers)})
            answer = connection.getresponse()
            text, self.headers = answer.read().decode(), answer.headers
            self.read(answer.status, text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.fault = f"{type(error).__name__}: {error}"
        finally:
            connection.close()

    def read(self, status, text):
        if status != 200:
            self.fault = f"{status}: {text[:120]}"
            return
        if text.startswith("data:"):
            events = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            if events[-1] != "[DONE]":
                self.fault = f"the stream broke off: {events[-1][:120]}"
                return
            bodies = [json.loads(event) for event in events[:-1]]
            budget = next(body["budget"] for body in bodies if "budget" in body)
            words = "".join(body["choices"][0]["delta"].get("content") or "" for body in bodies if body.get("choices"))
        else:
            body = json.loads(text)
            budget, words = body["budget"], body["choices"][0]["message"]["content"]
        self.id, self.cost = budget["id"], Decimal(budget["cost_usd"])
        if words.split() != [str(at) for at in range(40)]:
            self.fault = f"the answer is not whole: {words[:60]}"


class Callers:
    """So many threads that ask one request after the other, every other one as a stream."""

    def __init__(self, rotation, number):
        self.rotation, self.answers, self.stopping = rotation, [], threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(at,)) for at in range(number)]
        for thread in self.threads:
            thread.start()

    def ask(self, caller):
        for turn in count():
            if self.stopping.is_set():
                return
            body = {"model": "m", "messages": [{"role": "user", "content": f"{caller} asks for the {turn}th time"}],
                    "stream": (caller + turn) % 2 == 0, "max_completion_tokens": 100}
            self.answers.append(Answer(self.rotation.next(), body))

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def by_port(self):
        return Counter(answer.port for answer in self.answers)

    def faults(self):
        return Counter(answer.fault for answer in self.answers if answer.fault)
