"""Checks an exported file on a real llama.cpp server: same tokens, same greedy thoughts.

    python verify.py --weights out/reasoner.npz --file ../reasoner.gguf --problems 50

For every problem the server renders and tokenizes the chat itself; its ids must be ours, and its
greedy continuation must be, token for token, what the training code generates, and so must the
answer after a thought cut at a third of it. The file's weights have eight bits, so where the model
itself wavers between two tokens (a guessed digit after an early cut) either may come first: a
difference counts only where its preference was clear.
"""

import argparse
import json
import sys
import urllib.request

import numpy as np

import decode
import problems
import reasoner
import train
import vocabulary as v

CLEAR = 0.5  # difference of logits
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


class Comparison:
    def __init__(self, weights):
        self.weights = weights
        self.equal, self.wavering, self.different = 0, 0, 0

    def add(self, prompt, ours, theirs):
        if ours == theirs:
            self.equal += 1
        elif self._preference(prompt, ours, theirs) < CLEAR:
            self.wavering += 1
        else:
            self.different += 1

    def _preference(self, prompt, ours, theirs):
        """How much more we like our token than theirs, where the two first part."""
        same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
        if same is None:
            return np.inf
        tokens = np.array([prompt + ours[:same]])
        length = tokens.shape[1]
        visible = np.tril(np.ones((1, length, length), bool))
        scores = reasoner.logits(self.weights, tokens, np.arange(length)[None], visible)[0, -1]
        return float(scores[ours[same]] - scores[theirs[same]])

    def __str__(self):
        return f"{self.equal} equal, {self.wavering} wavering, {self.different} different"


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
    misread = int(probed != v.encode(PROBE))
    whole = [through(ids, v.END) for ids in decode.generate(weights, prompts, 160, v.END)]
    cuts = [p + ids[: len(ids) // 3] + list(v.HAND_OFF) for p, ids in zip(prompts, whole)]
    after = [through(ids, v.END) for ids in decode.generate(weights, cuts, 10, v.END)]
    full, cut_short = Comparison(weights), Comparison(weights)
    for problem, prompt, ours, cut, rest in zip(asked, prompts, whole, cuts, after):
        messages = [{"role": "user", "content": problem.question}]
        text = post(base, "/apply-template", {"messages": messages})["prompt"]
        misread += post(base, "/tokenize", {"content": text})["tokens"] != prompt
        full.add(prompt, ours, continuation(base, prompt, 160))
        cut_short.add(cut, rest, continuation(base, cut, 10))
    print(f"texts tokenized differently: {misread}\nwhole replies: {full}\ncut replies: {cut_short}",
          flush=True)
    sys.exit(bool(misread or full.different or cut_short.different))


if __name__ == "__main__":
    main()
