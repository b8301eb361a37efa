"""The engine's figures as a table and a picture."""

import datetime
import pathlib
import sys
import textwrap

sys.path.append(str(pathlib.Path(__file__).parent.parent / "load"))
import pictures  # noqa: E402

HEAD = """\
# The local engine

Written by `make bench-engine` on {day}. {note}

Tokens per second of processor time, one thread each, on the same files. Weights of files that are made (`0.6b-…`) are random.
The engine's cache: {kv}; its grain: {grain}. llama.cpp is the CPU server of `xllamacpp`.

| file | what | engine, tokens per CPU second | llama.cpp | ratio |
|---|---|---|---|---|
"""

GPU_HEAD = """\
# The local engine on a GPU

Written by `make bench-engine ARGS='--vulkan …'` on {day}. {note}

Tokens per second by the clock, on the same files and the same card, whose weights are random. The engine's cache: {kv}. llama.cpp is its
Vulkan library; it is timed after it has compiled what it needs.

| file | what | engine, tokens per second | llama.cpp | ratio |
|---|---|---|---|---|
"""


def rate(line, gpu):
    seconds = line["seconds" if gpu else "cpu_seconds"]
    return line["tokens"] / seconds if seconds > 0 else None


def find(lines, measure, size=None):
    return next((it for it in lines if it["measure"] == measure and it.get("size") == size), None)


NAMES = {"decode": "decode, batch {size}", "prefill": "prefill {size:,}", "step": "decode at {size:,}",
         "sampled": "decode, temperature .6, top-k 20, top-p .95"}


def compared(whole):
    """File, what, our rate and theirs."""
    gpu = whole["settings"].get("gpu", False)
    for it in whole["results"]:
        for line in it["ours"]:
            if line["measure"] in NAMES and (gpu or line["measure"] != "step"):
                theirs = find(it["llama"], line["measure"], line["size"])
                yield it["file"], NAMES[line["measure"]].format(**line), rate(line, gpu), theirs and rate(theirs, gpu)


def more(it, gpu):
    """Sentences about one file: memory, steps, what the device was given, and the waits beside a prompt."""
    memory = {line["when"]: line for line in it["ours"] if line["measure"] == "memory"}
    if memory and gpu:
        yield f"Memory of the process: {memory['loaded']['resident'] / 1e6:.0f} MB loaded, {memory['last']['resident'] / 1e6:.0f} MB at the end."
    elif memory:
        begin, loaded, first = memory["before"], memory["loaded"], memory["first request"]
        yield (f"Memory: {loaded['resident'] / 1e6:.0f} MB loaded, {first['resident'] / 1e6:.0f} MB after the first request, of which weights "
               f"and cache are {first['weights_and_cache'] / 1e6:.0f}: {(first['resident'] - first['weights_and_cache']) / 1e6:.0f} MB above them "
               f"({begin['resident'] / 1e6:.0f} MB before the start).")
    steps = [line for line in it["ours"] if line["measure"] == "step"]
    if steps:
        costs = [line["seconds" if gpu else "cpu_seconds"] / line["tokens"] for line in steps]
        times = [f" ({cost / costs[0]:.2f} ×)" if at else "" for at, cost in enumerate(costs)]
        shown = [f"{cost * 1e3:.{2 if gpu else 0}f} ms at {line['size']:,}{more}" for line, cost, more in zip(steps, costs, times)]
        yield f"{'Time' if gpu else 'CPU time'} of a step by position: {', '.join(shown)}."
    device = [line for line in it["ours"] if line["measure"] == "device"]
    if device:
        shown = [f"batch {line['size']}: {line['submissions']:.1f} and {line['dispatches']:.0f}" for line in device]
        yield f"Submissions and dispatches of a step, {'; '.join(shown)}."
        ahead = [f"batch {line['size']}: {line['ahead'] / line['submissions']:.0%}" for line in device if "ahead" in line]
        if ahead:
            yield f"Submissions that were recorded while the device did the step before, {'; '.join(ahead)}."
    gap = find(it["ours"], "gap")
    if gap:
        first = find(it["ours"], "first token beside", 512)
        yield (f"Nineteen in twenty tokens of four texts come within {gap['alone'] * 1e3:.0f} ms, beside a prompt of 512 tokens within "
               f"{gap['beside'] * 1e3:.0f} ms: {gap['beside'] / gap['alone']:.1f} times. "
               f"The prompt's own first token came after {first['seconds']:.1f} s.")


def number(value):
    return "–" if value is None else f"{value:,.1f}"


def table(whole):
    gpu = whole["settings"].get("gpu", False)
    rows = [f"| {file} | {what} | {number(ours)} | {number(theirs)} | {'–' if not theirs else f'{ours / theirs:.2f}'} |"
            for file, what, ours, theirs in compared(whole)]
    notes = [textwrap.fill(f"* {it['file']}. {sentence}", 130, subsequent_indent="  ") for it in whole["results"] for sentence in more(it, gpu)]
    head = (GPU_HEAD if gpu else HEAD).format(day=datetime.date.today(), note=whole["note"], **whole["settings"])
    return head + "\n".join(rows) + "\n\n" + "\n".join(notes) + "\n"


def picture(whole):
    groups = [(f"{file.removesuffix('.gguf')}, {what}", [ours, theirs]) for file, what, ours, theirs in compared(whole)]
    gpu = whole["settings"].get("gpu", False)
    title = "Tokens per second on a GPU" if gpu else "Tokens per CPU second, one thread"
    series = ["engine", "llama.cpp, Vulkan"] if gpu else ["engine on lavapipe", "llama.cpp on the CPU"]
    return pictures.bars(title, "", groups, series) if groups else ""
