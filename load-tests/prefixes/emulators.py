"""The providers, on real sockets: each checks a request, bills its prompt by its cache, and answers as the script says, event by event.

A dialect is a module with `check`, which gives back the prompt as blocks or raises `Refused`, and `events`, which writes an answer.
"""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import completions
import messages
import responses
import script
from models import MODELS

# Between two events of an answer on whose end its caller does not wait.
PAUSE = 0.03


class Refused(Exception):
    """What a provider refuses, with its status and its body."""

    def __init__(self, status, body):
        super().__init__(status, body)
        self.status, self.body = status, body


@dataclass
class Call:
    """One request that came to a provider."""

    at: int
    model: str
    name: str
    bill: object = None
    # What it wrote, in tokens.
    wrote: int = 0
    refused: str = ""
    # Thoughts that were left out since they stand behind another beginning, and since another model thought them.
    dropped: tuple = ()
    foreign: int = 0
    # What the prompt's cache depends on besides its words.
    manner: str = ""
    turns: int = 0
    # What is not the same as when the first dropped thought was thought, where that can be told.
    why: str = ""
    is_taken: bool = False


class Emulators(ThreadingHTTPServer):
    """All providers at one port, each below a path of its own. `asked` has every call, in the order in which they came."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, seed, checks_betas=False, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.seed, self.checks_betas, self.lock = seed, checks_betas, threading.Lock()
        self.asked, self.by_name, self.prefixes, self.binds = [], {}, {}, True
        self.caches = {name: model.cache() for name, model in MODELS.items()}
        # What a model says, by what it sees and the request.
        self.said = lambda view, _: script.said(seed, view)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self, model, name, turns):
        with self.lock:
            before = self.by_name.setdefault(name, [])
            call = Call(len(self.asked), model, name, turns=turns)
            self.asked.append(call)
            before.append(call)
            return call, len(before) - 1

    def taken(self, name):
        """The calls of a task that were not taken before."""
        with self.lock:
            calls = self.by_name.get(name, [])
            taken = [call for call in calls if not call.is_taken]
            for call in taken:
                call.is_taken = True
            return taken


DIALECTS = {"messages": messages, "completions": completions, "responses": responses}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model = MODELS[body["model"]]
        dialect = DIALECTS[self.path.rsplit("/", 1)[-1]]
        name = script.name_of(dialect.first_words(body))
        turns, since = dialect.turns(body)
        call, before = self.server.begin(model.name, name, turns)
        try:
            prompt = dialect.check(self.server, model, body, self.headers, call)
        except Refused as refused:
            call.refused = json.dumps(refused.body)
            return self._send(refused.status, "application/json", json.dumps(refused.body).encode())
        call.bill = dialect.bill(self.server.caches[model.name], prompt)
        call.manner = dialect.manner(body)
        view = script.View(name, turns, since, before, dialect.offered(body), dialect.is_told_final(body), dialect.thinks(body))
        blocks = self.server.said(view, body)
        events, call.wrote, _ = dialect.events(self.server, model, body, blocks, call, prompt)
        if not body.get("stream"):
            return self._send(200, "application/json", json.dumps(dialect.whole(events)).encode())
        self._stream(events, PAUSE if ".hang_up." in name else 0)

    def _stream(self, events, pause):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            if not pause:
                self.wfile.write("".join(events).encode())
                return
            for event in events:
                self.wfile.write(event.encode())
                time.sleep(pause)
        except OSError:
            pass

    def _send(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
