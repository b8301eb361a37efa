"""Instructions, as valgrind's callgrind counts them: the real binary with one worker thread, one caller, a fixed script."""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).resolve().parent.parent / "load"))

from loader import Loader
from processes import GATEWAY_CORE, Process

from gateway import free_port  # of load-tests/fairness

# Requests of each kind before any is counted, of one batch, and batches: what runs now and then beside them falls into few.
WARM_UP, BATCH, BATCHES = 30, 40, 5
# What is written behind the answers belongs to them.
AFTER = 0.3

TOOL = {"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
# Of answers without a limit sixteen a second are streamed from their upstream; under valgrind fewer than that are asked for.
WHOLE = {"max_tokens": 200}
KINDS = {
    "plain": {"model": "m0", **WHOLE},
    "stream": {"model": "m0", "stream": True, "stream_options": {"include_usage": True}},
    "auto": {"model": "auto", **WHOLE},
    "tool": {"model": "tool", "tools": [TOOL]},
}

SETTINGS = """\
[engine]
embedded = false

[[route]]
name = "auto"
models = ["m0", "m1", "m2", "m3", "m4"]
"""
BACKEND = '\n[[backend]]\nname = "{name}"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
MODEL = """\

[[backend.model]]
name = "{name}"
price_input = "0.1{at}"
price_output = "0.4{at}"
context = 100000
thinking_max = 0
"""


def measure(options):
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        loader, ports = Loader(options.loader.resolve(), folder), (free_port(), free_port())
        for scenario, port in zip(("plain", "tools"), ports):
            running.enter_context(loader.upstream(scenario, port))
        gateway = running.enter_context(counted(options.binary.resolve(), Path(folder), *ports))
        return {"instructions": {kind: gateway.instructions(body) for kind, body in KINDS.items()}}


@contextmanager
def counted(binary, folder, usual, tool):
    """The gateway under callgrind."""
    text = SETTINGS + BACKEND.format(name="usual", port=usual) + "".join(MODEL.format(name=f"m{at}", at=at) for at in range(5))
    text += BACKEND.format(name="tool", port=tool) + MODEL.format(name="tool", at=0)
    (folder / "stint.toml").write_text(text)
    port = free_port()
    environment = {"TOKIO_WORKER_THREADS": "1", "STINT_LISTEN": f"127.0.0.1:{port}", "STINT_LEDGER": f"{folder}/ledger.db"}
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counted", binary, "serve", "--config", folder / "stint.toml"]
    with Process(command, GATEWAY_CORE, port, folder / "log", environment, patience=120) as process:
        yield Counted(process, folder)


class Counted:
    def __init__(self, process, folder):
        self.process, self.folder, self.number = process, folder, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", process.port)

    def instructions(self, body):
        """Of one request of this kind: the median of the batches."""
        self.ask(WARM_UP, body)
        return round(median(self.batch(body) for _ in range(BATCHES)))

    def batch(self, body):
        self.control("--zero")
        self.ask(BATCH, body)
        time.sleep(AFTER)
        self.control("--dump")
        newest = max(self.folder.glob("counted.*"), key=lambda path: int(path.suffix[1:]))
        return int(re.search(r"^(?:totals|summary): (\d+)", newest.read_text(), re.MULTILINE)[1]) / BATCH

    def control(self, verb):
        command = ["callgrind_control", verb, str(self.process.pid)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})

    def ask(self, times, body):
        for _ in range(times):
            self.number += 1
            # The same again would be a word on the answer before.
            question = {"role": "user", "content": f"Question {self.number:05}: how many cars crossed?"}
            self.connection.request("POST", "/v1/chat/completions", json.dumps({**body, "messages": [question]}),
                                    {"content-type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status != 200 or b"#" not in text:
                raise SystemExit(f"{answer.status}: {text[:300]}")
