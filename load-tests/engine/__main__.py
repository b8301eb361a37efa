"""Measures the local engine beside llama.cpp on the same files, in the same run: its CPU server, one thread each, or the same GPU.

    python load-tests/engine [FILE ...] [--grain lanes|cooperative] [--cut 4] [--only decode prefill step beside]

Without files it makes three: of the shape of Qwen3-0.6B in Q8_0 and in Q4_K, and the first cut to four layers, which alone is
asked for 2,048 tokens. Models stay in `--models`. Writes engine.md, engine.json and engine.svg to `--out`.

    python load-tests/engine --vulkan FOLDER

does so on a GPU, with the shape of Qwen3-8B, and writes engine-gpu.md and so on. FOLDER has the libraries of llama.cpp: what npm's
package `@node-llama-cpp/linux-x64-vulkan` has in `bins/linux-x64-vulkan`.
"""

import argparse
import json
import pathlib
import subprocess

import measure
import report

SHAPES = {"0.6b-q8_0": "0.6b:Q8_0:28", "0.6b-q4_k": "0.6b:Q4_K:28"}
SIZES = {"decode": "1,4,8,32", "prefill": "96,512", "step": "16,2048,8192"}
GPU_SHAPES = {"8b-q8_0": "8b:Q8_0:36", "8b-q4_k": "8b:Q4_K:36"}
GPU_SIZES = {"decode": "1,2,4,8,16,32", "prefill": "96,512,2048", "step": "128,2048,8192"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--grain", choices=["lanes", "cooperative", "cooperative-f32"])
    parser.add_argument("--kv", choices=["f16", "f32", "q8_0"], default="f16")
    parser.add_argument("--cut", type=int, default=4, help="layers of the model that reads 2,048 tokens")
    parser.add_argument("--vulkan", type=pathlib.Path, help="llama.cpp's libraries for GPUs")
    parser.add_argument("--decode", help="sequences that decode together, 1,4,8 for instance")
    parser.add_argument("--prefill", help="tokens of prompts")
    parser.add_argument("--step", help="positions of single steps")
    parser.add_argument("--only", nargs="+", default=["decode", "prefill", "step", "beside"])
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(".cache/models"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("load-tests/results"))
    parser.add_argument("--binary", help="the benchmark's program, where it is built already")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the head of the table")
    given = parser.parse_args()
    if given.vulkan and not any(given.vulkan.glob("libggml-vulkan*")):
        parser.error(f"{given.vulkan} has not llama.cpp's libraries for Vulkan")
    for name, sizes in (GPU_SIZES if given.vulkan else SIZES).items():
        setattr(given, name, sizes if getattr(given, name) is None else getattr(given, name))
    return given


def wanted(given, name):
    return getattr(given, name) if name in given.only else ""


def made(given, binary, name, shape):
    """A random model, made where it is not there yet."""
    given.models.mkdir(parents=True, exist_ok=True)
    path = given.models / f"{name}.gguf"
    if not path.exists():
        subprocess.run([binary, "--make", shape, path], check=True)
    return path


def runs(given, binary):
    """Files, and what is measured of each: decoding, reading, single steps, and the waits beside a prompt."""
    plan = [wanted(given, "decode"), wanted(given, "prefill"), wanted(given, "step")]
    if given.files:
        return [(file, *plan, "beside" in given.only) for file in given.files]
    wanted_shapes = GPU_SHAPES if given.vulkan else SHAPES
    shapes = [(made(given, binary, name, shape), *plan, given.vulkan and "beside" in given.only) for name, shape in wanted_shapes.items()]
    if given.vulkan or not plan[1]:
        return shapes
    cut = made(given, binary, f"0.6b-q8_0-{given.cut}-layers", f"0.6b:Q8_0:{given.cut}")
    return [*shapes, (cut, "", "96,2048", "", False)]


def main():
    given = arguments()
    binary = given.binary or measure.built()
    results = []
    for file, decode, prefill, step, beside in runs(given, binary):
        print(f"engine: {file}", flush=True)
        ours = measure.ours(binary, file, given, decode, prefill, step, beside)
        theirs = measure.llama(given, file, decode, prefill, step)
        results.append({"file": file.name, "ours": ours, "llama": theirs})
    given.out.mkdir(parents=True, exist_ok=True)
    settings = {"grain": given.grain or "the device's own", "kv": given.kv, "gpu": bool(given.vulkan)}
    whole = {"settings": settings, "note": given.note, "results": results}
    name = "engine-gpu" if given.vulkan else "engine"
    (given.out / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
    (given.out / f"{name}.md").write_text(report.table(whole))
    (given.out / f"{name}.svg").write_text(report.picture(whole))
    print(report.table(whole))


main()
