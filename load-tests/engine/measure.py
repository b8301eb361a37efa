"""Runs the engine's benchmark and llama.cpp on one file, each in a process of its own; without a GPU with one thread."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def built():
    """The benchmark's program, built where it is older than its source."""
    command = ["cargo", "bench", "--locked", "--package", "stint-engine", "--bench", "engine", "--no-run", "--message-format", "json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    artifacts = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return next(it["executable"] for it in artifacts if it.get("executable") and it["target"]["name"] == "engine")


def lines(command, more):
    """What a program printed, line by line. A software driver does all on the thread that asks."""
    out = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "LP_NUM_THREADS": "0", **more}).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def ours(binary, file, given, decode, prefill, step, beside):
    """Steps run in a process of their own, so that memory is that of an engine alone."""
    how = ["--kv", given.kv, *(["--grain", given.grain] if given.grain else [])]
    how += ["--decoded", "64"] if given.vulkan else []
    running = [*(["--decode", decode] if decode else []), *(["--prefill", prefill] if prefill else []), *(["--beside"] if beside else [])]
    measured = lines([binary, file, *how, *running], {}) if running else []
    if given.vulkan and decode:
        sampled = lines([binary, file, *how, "--sampled", "--decode", "1"], {})
        measured += [{**line, "measure": "sampled"} for line in sampled if line["measure"] == "decode"]
    return measured + (lines([binary, file, *how, "--step", step], {}) if step else [])


def llama(given, file, decode, prefill, step):
    if given.vulkan:
        return lines([sys.executable, HERE / "vulkan.py", given.vulkan, file, decode, prefill, step], {})
    if not decode and not prefill:
        return []
    return lines([sys.executable, HERE / "llama.py", file, decode, prefill], {})
