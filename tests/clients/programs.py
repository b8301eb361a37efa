"""Codex and Claude Code as they are, each started in a folder of its own and pointed at a gateway."""

import glob
import json
import os
import signal
import subprocess
import tempfile


class Programs:
    """Both programs, as their packages below `modules` have them."""

    def __init__(self, modules, base, data, key="none-needed"):
        self.modules, self.base, self.data, self.key = modules, base, data, key
        self.children, self.folders = [], []

    def command(self, program, model, task, home, headers, goes_on=False):
        """The program's command, as the pages have it, and what its environment is to have."""
        path = {"codex": "@openai/codex-*/vendor/*/bin/codex", "claude": "@anthropic-ai/claude-code-*/claude"}[program]
        binary = glob.glob(f"{self.modules}/{path}")[0]
        if program == "claude":
            lines = "\n".join(f"{name}: {value}" for name, value in headers.items())
            more = {"ANTHROPIC_BASE_URL": self.base, "ANTHROPIC_API_KEY": self.key, "ANTHROPIC_CUSTOM_HEADERS": lines}
            more |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
            again = ["--continue"] if goes_on else []
            return [binary, *again, "-p", task, "--model", model, "--dangerously-skip-permissions"], more
        told = ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in headers.items())
        with open(f"{home}/config.toml", "w") as config:
            config.write(f"""model = "{model}"
model_provider = "stint"
[model_providers.stint]
name = "Stint"
base_url = "{self.base}/v1"
env_key = "STINT_KEY"
wire_api = "responses"
http_headers = {{ {told} }}
""")
        flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        again = ["resume", "--last"] if goes_on else []
        return [binary, "exec", *again, *flags, task], {"CODEX_HOME": home, "STINT_KEY": self.key}

    def start(self, program, model, task, headers, places=None):
        """Starts one, in new folders or where it was before, to go on from there."""
        folder, home = places or (tempfile.mkdtemp(dir=self.data), tempfile.mkdtemp(dir=self.data))
        self.folders.append(folder)
        words, more = self.command(program, model, task, home, headers, places is not None)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        piped = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        child = subprocess.Popen(words, cwd=folder, env=kept | {"HOME": home} | more, start_new_session=True, **piped)
        self.children.append(child)
        return child, folder, home

    def through(self, program, model, task, headers, places=None):
        """Runs one to its end; gives back what it printed, and its folders."""
        child, folder, home = self.start(program, model, task, headers, places)
        said, _ = child.communicate(timeout=180)
        assert child.returncode == 0, said
        for path in glob.glob(f"{home}/**/*", recursive=True, include_hidden=True):
            if path.endswith((".jsonl", ".json")):
                assert "<budget>" not in open(path, errors="replace").read(), f"{path} tells of the budget"
        assert "<budget>" not in said, said
        return said, (folder, home)

    def stop(self):
        """All of them, and whatever they have started."""
        for child in self.children:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait(timeout=30)
