"""Other gateways, installed as their users install them, each in an environment of its own under .cache/peers."""

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from processes import GATEWAY_CORE, Process

from gateway import free_port  # of load-tests/fairness

ENVIRONMENTS = Path(".cache/peers")

NGINX = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  keepalive_requests 100000000;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""

LITELLM = """\
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-fake}}
litellm_settings: {{callbacks: [], num_retries: 0, request_timeout: 30}}
general_settings: {{disable_spend_logs: true}}
"""

TENSORZERO = """\
[gateway]
observability.enabled = false

[models.m]
routing = ["openai"]

[models.m.providers.openai]
type = "openai"
model_name = "m"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "none"
"""

# Its wheel holds the whole gateway and says where it listens once it does; `ready` is a file for that.
TENSORZERO_START = """\
import sys, time
from tensorzero.tensorzero import _start_http_gateway
gateway = _start_http_gateway(config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False)
port = gateway.base_url.split(":")[2].split("/")[0]
open(sys.argv[2], "w").write(port)
time.sleep(1e9)
"""


@dataclass(frozen=True)
class Peer:
    """A gateway of others: what is installed of it, and how it is started in a folder, before an upstream, on a port."""

    name: str
    package: str
    start: Callable
    model: str = "m"
    base: str = "/v1"

    @property
    def title(self):
        return self.package.replace("==", " ")

    @property
    def binaries(self):
        return ENVIRONMENTS.resolve() / self.name / "bin"

    def install(self):
        """Nothing if it is there now, or why it is not."""
        if self.name == "nginx":
            done = subprocess.run(["scripts/packages.sh", "nginx-light"], capture_output=True, text=True)
            return None if shutil.which("nginx", path="/usr/sbin:/usr/bin") else last_line(done)
        pinned = ENVIRONMENTS / f"{self.name}.txt"
        ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
        pinned.write_text(self.package + "\n")
        done = subprocess.run(["scripts/python.sh", ENVIRONMENTS / self.name, pinned], capture_output=True, text=True)
        return last_line(done) if done.returncode else None

    @contextmanager
    def run(self, folder, upstream):
        folder.mkdir(parents=True)
        with self.start(self, folder, upstream) as process:
            yield process


def last_line(done):
    return ((done.stderr or done.stdout).strip().splitlines() or ["no word"])[-1]


def nginx(_peer, folder, upstream):
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, upstream=upstream, port=port))
    command = [shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-p", folder, "-c", folder / "nginx.conf"]
    return Process(command, GATEWAY_CORE, port, folder / "log")


def vllm_router(peer, folder, upstream):
    port = free_port()
    command = [peer.binaries / "vllm-router", "--worker-urls", f"http://127.0.0.1:{upstream}", "--host", "127.0.0.1", "--port", port,
               "--policy", "round_robin", "--prometheus-port", free_port(), "--log-level", "warning"]
    return Process(command, GATEWAY_CORE, port, folder / "log")


def smg(peer, folder, upstream):
    port = free_port()
    command = [peer.binaries / "smg", "launch", "--backend", "openai", "--worker-urls", f"http://127.0.0.1:{upstream}",
               "--host", "127.0.0.1", "--port", port, "--prometheus-port", free_port(), "--disable-health-check",
               "--disable-tokenizer-autoload", "--history-backend", "none", "--log-level", "warn"]
    return Process(command, GATEWAY_CORE, port, folder / "log")


def tensorzero(peer, folder, upstream):
    (folder / "t0.toml").write_text(TENSORZERO.format(upstream=upstream))
    (folder / "start.py").write_text(TENSORZERO_START)
    command = [peer.binaries / "python", folder / "start.py", folder / "t0.toml", folder / "ready"]
    return Announced(command, folder)


def litellm(peer, folder, upstream):
    port = free_port()
    (folder / "litellm.yaml").write_text(LITELLM.format(upstream=upstream))
    command = [peer.binaries / "litellm", "--config", folder / "litellm.yaml", "--host", "127.0.0.1", "--port", port,
               "--num_workers", 1]
    environment = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                   "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}
    return Process(command, GATEWAY_CORE, port, folder / "log", environment, patience=180)


class Announced(Process):
    """A process that writes its port into a file."""

    def __init__(self, command, folder):
        self.ready = folder / "ready"
        super().__init__(command, GATEWAY_CORE, 0, folder / "log")

    def wait(self, patience):
        import time
        while not (self.ready.exists() and self.ready.read_text()):
            if self.process.poll() is not None or time.monotonic() - self.began > patience:
                break
            time.sleep(0.05)
        self.port = int(self.ready.read_text()) if self.ready.exists() else 1
        super().wait(patience)


PEERS = [
    Peer("nginx", "nginx (Debian)", nginx),
    Peer("vllm-router", "vllm-router==0.1.17", vllm_router),
    Peer("smg", "smg==1.13.0", smg),
    Peer("tensorzero", "tensorzero==2026.6.0", tensorzero, model="tensorzero::model_name::m", base="/openai/v1"),
    Peer("litellm", "litellm[proxy]==1.106.2", litellm),
]
