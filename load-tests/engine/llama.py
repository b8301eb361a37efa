"""Measures llama.cpp's CPU server on a file, one thread: python llama.py FILE 1,8 96,512. Prints one JSON object a line."""

import concurrent.futures
import json
import sys
import time
import urllib.request

import xllamacpp

DECODED = 16  # tokens that each sequence decodes


def serve(path, sequences, context):
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = sequences
    params.n_ctx = sequences * context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.ignore_eos = True
    params.cache_prompt = False
    return xllamacpp.Server(params)


def ask(base, seed, prompt, tokens):
    body = {"prompt": [10 + (n * 31 + seed * 17) % 50 for n in range(prompt)], "n_predict": tokens, "temperature": 0,
            "cache_prompt": False, "ignore_eos": True}
    request = urllib.request.Request(base + "/completion", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        answer.read()


def together(base, sequences, prompt, tokens):
    """Seconds by the clock and of the processor until so many requests at once are answered."""
    begin, before = time.monotonic(), time.process_time()
    with concurrent.futures.ThreadPoolExecutor(sequences) as pool:
        list(pool.map(lambda seed: ask(base, seed, prompt, tokens), range(sequences)))
    return time.monotonic() - begin, time.process_time() - before


def show(measure, size, tokens, seconds, cpu):
    print(json.dumps({"measure": measure, "size": size, "tokens": tokens, "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 3)}))


def main():
    path, decode, prefill = sys.argv[1], *[[int(n) for n in text.split(",") if n] for text in sys.argv[2:4]]
    for sequences in decode:
        server = serve(path, sequences, 64)
        together(server.listening_address, sequences, 4, 1)
        first = together(server.listening_address, sequences, 4, 1)
        whole = together(server.listening_address, sequences, 4, DECODED + 1)
        show("decode", sequences, sequences * DECODED, whole[0] - first[0], whole[1] - first[1])
        del server
    if prefill:
        server = serve(path, 1, max(prefill) + 64)
        together(server.listening_address, 1, 20, 1)
        for length in prefill:
            show("prefill", length, length, *together(server.listening_address, 1, length, 1))


main()
