"""Measures the reasoner's card through a running gateway and writes its table as markdown.

    python models/card.py --base-url http://127.0.0.1:8080 --key sk-… --per-level 2000 > table.md

Every cell asks the same held-out problems (`train/problems.py`). Beside the divided budget stand
three others at the same cap on total tokens, thought + hand-off + solution:

    undivided     one limit for everything. Greedy decoding makes the start of an unlimited reply
                  equal to the reply under a limit, so it is read off the unlimited transcripts:
                  right if all its tokens, tags and end of turn included, fit under the cap
    no thinking   the best that can be had with no thought at all: budget 0
    uncut         the same budget on the model that was not trained on cut thoughts

Standard library only, so that nothing has to be installed to check the claim.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROBLEMS = Path(__file__).parent / "train" / "problems.py"
BUDGETS = (0, 8, 16, 32, 64, 128, None)  # None is unlimited
UNLIMITED_TOKENS = 400
HAND_OFF_TOKENS = 3
SOLUTION_TOKENS = 8
TRIES = 5


def ask(gateway, model, problem, budget):
    """One problem under one budget: was it right, and what did it cost in tokens?"""
    thinking = UNLIMITED_TOKENS if budget is None else budget
    reply = gateway.post({
        "model": model, "temperature": 0,
        "messages": [{"role": "user", "content": problem["question"]}],
        "budget": {"thinking_tokens": thinking, "solution_tokens": SOLUTION_TOKENS},
    })
    content = reply["choices"][0]["message"]["content"] or ""
    spent = reply["budget"]
    return {
        "level": problem["level"], "right": content.strip() == problem["answer"],
        "thought": spent["thinking"]["used"],
        "total": reply["usage"]["completion_tokens"],
    }


class Gateway:
    """One kept-open connection per thread: a card is some hundred thousand requests."""

    def __init__(self, base, key):
        self.base, self.key, self.local = urllib.parse.urlsplit(base), key, threading.local()

    def post(self, body):
        """A busy or restarted gateway is asked again; a wrong request ends the run."""
        for attempt in range(TRIES):
            try:
                status, answer = self._send(json.dumps(body))
            except (http.client.HTTPException, OSError) as error:
                self.local.connection = None
                status, answer = 0, str(error)
            if status == 200:
                return json.loads(answer)
            if status not in (0, 429, 502, 503, 504):
                break
            time.sleep(0.5 * 2**attempt)
        raise RuntimeError(f"the gateway answered {status}: {answer[:500]}")

    def _send(self, body):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            connection = kind[self.base.scheme](self.base.netloc, timeout=120)
            self.local.connection = connection
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        path = f"{self.base.path.rstrip('/')}/v1/chat/completions"
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def share(flags):
    flags = list(flags)
    return f"{100 * sum(flags) / len(flags):.1f}"


def mean(numbers):
    numbers = list(numbers)
    return f"{sum(numbers) / len(numbers):.1f}"


def write_table(levels, ours, uncut):
    print("| thinking budget | " + " | ".join(f"level {n}" for n in levels)
          + " | all | thought | total | undivided | no thinking | uncut |")
    print("|---" * (len(levels) + 7) + "|")
    for budget in BUDGETS:
        cells = ours[budget]
        cap = float("inf") if budget is None else budget + HAND_OFF_TOKENS + SOLUTION_TOKENS
        row = [share(o["right"] for o in cells if o["level"] == n) for n in levels]
        row += [f"**{share(o['right'] for o in cells)}**"]
        row += [mean(o["thought"] for o in cells), mean(o["total"] for o in cells)]
        row += [share(o["right"] and o["total"] <= cap for o in ours[None])]
        row += [share(o["right"] for o in ours[0])]
        row += [share(o["right"] for o in uncut[budget]) if uncut else "–"]
        print(f"| {'unlimited' if budget is None else budget} | " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8080")
    parser.add_argument("--key", default=os.environ.get("STINT_KEY", ""))
    parser.add_argument("--per-level", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--model", default="reasoner")
    parser.add_argument("--uncut-model", default="reasoner-uncut", help="empty: leave that column out")
    options = parser.parse_args()

    made = subprocess.run([sys.executable, PROBLEMS, "--per-level", str(options.per_level)],
                          check=True, capture_output=True, text=True).stdout
    problems = [json.loads(line) for line in made.splitlines()]
    gateway = Gateway(options.base_url, options.key)

    def measure(model):
        outcomes = {}
        for budget in BUDGETS:
            began = time.time()
            with ThreadPoolExecutor(options.concurrency) as pool:
                outcomes[budget] = list(pool.map(lambda p: ask(gateway, model, p, budget), problems))
            print(f"{model} at {budget}: {len(problems)} problems in {time.time() - began:.0f} s",
                  file=sys.stderr)
        return outcomes

    ours = measure(options.model)
    uncut = measure(options.uncut_model) if options.uncut_model else None
    write_table(sorted({p["level"] for p in problems}), ours, uncut)


if __name__ == "__main__":
    main()
