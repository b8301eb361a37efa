"""Codex and Claude Code as they are, through a gateway whose model is a script: whole runs, limits, money, and an end in the middle.

    python run.py STINT NODE_MODULES
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from programs import Programs

stint, modules = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# The second is a name that Codex knows: it then brings its tools in an item, in namespaces, and one that runs scripts.
MODELS = {"codex": ["coder", "gpt-6.1-sol"], "claude": ["coder", "claude-opus-5-5"]}
# A file such as agents write in one call.
LONG = "".join(f"{number:04} of the vectors: {number * number}\n" for number in range(3000))
seen = []


def plain(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def run(names, command):
    """A call of the tool that runs commands, whatever it is called."""
    if "Bash" in names:
        return "Bash", {"command": command, "description": "runs it"}
    if "exec_command" in names:
        return "exec_command", {"cmd": command}
    script = f"const ran = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(ran.output);"
    return "exec", {"input": script}


def write(names, path, text):
    """A call that writes a whole file."""
    if "Write" in names:
        return "Write", {"file_path": f"{programs.folders[-1]}/{path}", "content": text}
    return run(names, f"cat > {path} <<'END_OF_FILE'\n{text}END_OF_FILE")


def pieces(text):
    """As a model writes a long call: bit by bit."""
    return [text[at : at + 400] for at in range(0, len(text), 400)] or [""]


def play(request):
    """What the model says: a thought, a text and calls."""
    names = [tool["function"]["name"] for tool in request.get("tools", [])]
    if request.get("tool_choice") == "none" or not names:
        return "Enough.", "I have to end here.", []
    messages = request["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user" and "TASK" in plain(message))
    turns = sum(message["role"] == "assistant" for message in messages[asked:])
    task = re.search(r"TASK (\w+)", plain(messages[asked])).group(1)
    if task == "dawdle":
        return "Slowly.", "word " * 600, []
    if task == "file":
        return ("Long.", "", [write(names, "long.txt", LONG)]) if turns == 0 else ("Done.", "It is written.", [])
    if task == "forever":
        return "More.", "", [run(names, f"echo {turns} >> steps.txt")]
    if turns == 0:
        files = ["echo forty-two > a.txt", "echo done > b.txt"]
        # Some agents take one call at a time.
        files = [" && ".join(files)] if request.get("parallel_tool_calls") is False else files
        return "Both.", "I write two files.", [run(names, command) for command in files]
    if turns == 1:
        return "Read.", "", [run(names, "cat a.txt")]
    return "It is there.", "It says " + re.search("forty-two", plain(messages[-1])).group(0), []


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        seen.append(request)
        thought, text, calls = play(request)
        deltas = [{"role": "assistant", "reasoning_content": thought}]
        deltas += [{"content": word + " "} for word in text.split()]
        for index, (name, arguments) in enumerate(calls):
            call = {"index": index, "id": f"call_{len(seen)}_{index}", "type": "function"}
            first, *rest = pieces(json.dumps(arguments))
            deltas.append({"tool_calls": [call | {"function": {"name": name, "arguments": first}}]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest]
        # About what a tokenizer makes of it.
        prompt, written = len(json.dumps(request)) // 5, sum(len(json.dumps(delta)) for delta in deltas) // 6
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        ends = [([{"delta": {}, "finish_reason": "tool_calls" if calls else "stop"}], None), ([], usage)]
        try:
            for choices, used in [([{"delta": delta}], None) for delta in deltas] + ends:
                choices = [{"index": 0, "finish_reason": None} | choice for choice in choices]
                chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
                self.wfile.write(f"data: {json.dumps(chunk | {'choices': choices, 'usage': used})}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.02 if len(deltas) > 500 else 0)
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(path):
    with urllib.request.urlopen(base + path, timeout=10) as answer:
        return answer.read().decode()


def through(program, model, task, run, budget):
    """Runs it to its end; gives back what it printed, its folder, and how its run stands."""
    said, (folder, _) = programs.through(program, model, task, budget | ({"X-Episode-Id": run} if run else {}))
    return said, folder, json.loads(get(f"/v1/episodes/{run}")) if run else None


def tries(program, model):
    name = f"{program}-{model}"
    said, folder, stands = through(program, model, "TASK write", f"{name}-whole", {})
    assert "It says forty-two" in said, said
    assert open(f"{folder}/a.txt").read() == "forty-two\n" and open(f"{folder}/b.txt").read() == "done\n"
    assert (stands["state"], stands["turns"]["used"]) == ("answered", 3) and stands["tool_calls"]["used"] in (2, 3), stands

    said, folder, stands = through(program, model, "TASK file", f"{name}-file", {})
    assert "It is written." in said, said
    assert open(f"{folder}/long.txt").read() == LONG, "a file of 3,000 lines, whole"

    said, folder, stands = through(
        program, model, "TASK forever", f"{name}-calls", {"X-Budget-Tool-Calls": '{"*": 3}', "X-Budget-Turns": "20"}
    )
    assert "I have to end here." in said, said
    assert len(open(f"{folder}/steps.txt").readlines()) == 3
    assert (stands["state"], stands["tool_calls"]["used"], stands["tool_calls"]["left"]) == ("capped", 3, 0), stands
    assert "<budget>" in json.dumps(seen[-1]["messages"]), "the model was told"

    limit = json.dumps({"id": f"{name}-money", "cost_usd": "0.40"})
    said, folder, _ = through(program, model, "TASK forever", None, {"X-Budget-Episode": limit})
    stands = json.loads(get(f"/v1/episodes/{name}-money"))
    assert "I have to end here." in said and stands["state"] == "capped", (said, stands)
    assert float(stands["cost_usd"]) <= 0.40 and stands["tool_calls"]["used"] > 0, stands

    before = len(seen)
    child, _, _ = programs.start(program, model, "TASK dawdle", {})
    while len(seen) == before:
        assert child.poll() is None, child.stdout.read()
        time.sleep(0.1)
    time.sleep(1)
    assert "\nstint_money_reserved_usd 0\n" not in get("/metrics"), "it is at work"
    child.send_signal(signal.SIGINT)
    child.wait(timeout=30)
    ends = time.monotonic() + 10
    while "\nstint_money_reserved_usd 0\n" not in get("/metrics"):
        assert time.monotonic() < ends, "nothing stays reserved"
        time.sleep(0.1)
    print(f"{program} {model}: a whole run, a file of 3,000 lines, {stands['turns']['used']} turns for $0.40, limits held, hung up", flush=True)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    model.daemon_threads = True
    threading.Thread(target=model.serve_forever, daemon=True).start()
    listen = f"127.0.0.1:{port()}"
    base = f"http://{listen}"
    programs = Programs(modules, base, data)
    routes = "".join(f'[[route]]\nname = "{names[1]}"\nmodels = ["coder"]\n' for names in MODELS.values())
    with open(f"{data}/stint.toml", "w") as config:
        config.write(f"""[server]
listen = "{listen}"
[ledger]
path = "ledger.db"
[engine]
embedded = false
[[backend]]
name = "script"
base_url = "http://127.0.0.1:{model.server_port}/v1"
[[backend.model]]
name = "coder"
capabilities = ["tools", "schema", "images"]
context = 200000
thinking_max = 30000
efforts = [{{ word = "low", usual = 400 }}, {{ word = "medium", usual = 1200 }}, {{ word = "high", usual = 4000 }}]
price_input = "1"
price_output = "5"
{routes}""")
    log = open(f"{data}/stint.log", "w+")
    gateway = subprocess.Popen([stint, "serve", "--config", f"{data}/stint.toml"], stderr=log, stdout=log)
    try:
        for _ in range(120):
            try:
                get("/readyz")
                break
            except OSError:
                assert gateway.poll() is None, open(f"{data}/stint.log").read()
                time.sleep(0.5)
        else:
            raise TimeoutError("the gateway is not ready after a minute")
        for program, names in MODELS.items():
            for name in names:
                tries(program, name)
        # Whatever they sent was taken.
        refused = [line for line in get("/metrics").splitlines() if "stint_requests_total{" in line and '"refused"' in line]
        assert not refused, refused
    finally:
        programs.stop()
        gateway.terminate()
        gateway.wait(timeout=60)
