"""Checks an exported file on a real llama.cpp server: same tokens, same greedy thoughts.

    python verify.py --weights out/reasoner.npz --file ../reasoner.gguf --problems 50

For every problem the server renders and tokenizes the chat itself; its ids must be ours, and its
greedy continuation must be, token for token, what the training code generates. The second half
cuts the thought in the middle, appends the hand-off and compares the answers.
"""

import argparse
import json
import sys
import urllib.request

import decode
import problems
import reasoner
import train
import vocabulary as v

PROBE = "user: 12 × 3\n\n\nassistant? hi hö system <think>"


def serve(path):
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx = reasoner.CONTEXT
    settings.n_parallel = 1
    settings.cpuparams.n_threads = 1
    settings.port = 0
    return xllamacpp.Server(settings)


def post(base, path, body):
    request = urllib.request.Request(
        base + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def continuation(base, ids, count):
    body = {"prompt": ids, "n_predict": count, "temperature": 0, "return_tokens": True}
    return post(base, "/completion", body)["tokens"]


def through(ids, stop):
    return ids[: ids.index(stop) + 1] if stop in ids else ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--problems", type=int, default=50)
    options = parser.parse_args()
    weights = train.load(options.weights, reasoner.fresh(0))
    asked = [p for level in range(1, 6)
             for p in problems.held_out_problems(level, options.problems // 5)]
    prompts = [v.prompt(p.question) for p in asked]
    server = serve(options.file)
    base = server.listening_address

    probed = post(base, "/tokenize", {"content": PROBE})["tokens"]
    differences = {"probe": int(probed != v.encode(PROBE)), "prompts": 0, "whole": 0, "cut": 0}
    whole = [through(ids, v.END) for ids in decode.generate(weights, prompts, 160, v.END)]
    cuts = [p + ids[: len(ids) // 3] + list(v.HAND_OFF) for p, ids in zip(prompts, whole)]
    after = [through(ids, v.END) for ids in decode.generate(weights, cuts, 10, v.END)]
    for problem, prompt, ours, cut, rest in zip(asked, prompts, whole, cuts, after):
        messages = [{"role": "user", "content": problem.question}]
        text = post(base, "/apply-template", {"messages": messages})["prompt"]
        differences["prompts"] += post(base, "/tokenize", {"content": text})["tokens"] != prompt
        differences["whole"] += continuation(base, prompt, 160) != ours
        differences["cut"] += continuation(base, cut, 10) != rest
    print(f"{len(asked)} problems, differences: {differences}")
    sys.exit(any(differences.values()))


if __name__ == "__main__":
    main()
