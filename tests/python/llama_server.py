"""Serves a GGUF file with a real llama.cpp server until standard input closes; prints its address first.

    python llama_server.py models/reasoner.gguf [--endless] [--plain] [--chat]

An endless one never ends a text by itself, for tests that want to leave in the middle of one.
A plain one has a chat template that knows of no thoughts, as that of a model which has none.
One for chats has one slot, which keeps nothing of a prompt: a greedy answer is the same each time only where all of it is
computed in the same steps.
"""

import sys

import xllamacpp

PLAIN = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
SLOTS = 4
CONTEXT = 512  # of each slot


def main():
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.sampling.ignore_eos = params.ctx_shift = "--endless" in sys.argv
    if "--chat" in sys.argv:
        params.n_parallel, params.n_ctx, params.cache_prompt = 1, 2048, False
    if "--plain" in sys.argv:
        params.chat_template = PLAIN
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
