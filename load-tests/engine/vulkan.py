"""Measures llama.cpp on a GPU by its library, as npm's `@node-llama-cpp/linux-x64-vulkan` has it:
python vulkan.py LIBRARIES FILE 1,8 512 128,8192. Prints one JSON object a line."""

import ctypes
import json
import pathlib
import sys
import time

DECODED = 64  # tokens that each sequence decodes
CHUNK = 512  # tokens of a prompt that are read at once
GPU = 1  # `GGML_BACKEND_DEVICE_TYPE_GPU`

# Parameters are handed over by value: their first members as llama.h has them, and room for all that may follow.
ROOM = ("more", ctypes.c_byte * 512)


class ModelParams(ctypes.Structure):
    _fields_ = [("devices", ctypes.c_void_p), ("overrides", ctypes.c_void_p), ("n_gpu_layers", ctypes.c_int32), ROOM]


class ContextParams(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_uint32) for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max")), ROOM]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


def library(folder):
    """llama.cpp, with the functions that are used here and the devices that it finds."""
    def load(pattern):
        path = next(folder.glob(pattern), None)
        if path is None:
            sys.exit(f"{folder} has no {pattern}: it wants what npm's @node-llama-cpp/linux-x64-vulkan has in bins/linux-x64-vulkan")
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)

    load("libggml-base.so")
    ggml, llama = load("libggml.vulkan*.so"), load("libllama.vulkan*.so")
    llama.silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *line: None)
    llama.llama_log_set(llama.silent, None)
    ggml.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
    ggml.ggml_backend_load_all_from_path(str(folder).encode())
    ggml.ggml_backend_dev_by_type.restype = ctypes.c_void_p
    if not ggml.ggml_backend_dev_by_type(GPU):
        sys.exit("llama.cpp finds no GPU by Vulkan")
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in [
        ("llama_model_default_params", ModelParams, []), ("llama_context_default_params", ContextParams, []),
        ("llama_model_load_from_file", pointer, [ctypes.c_char_p, ModelParams]),
        ("llama_init_from_model", pointer, [pointer, ContextParams]), ("llama_free", None, [pointer]),
        ("llama_batch_init", Batch, [number] * 3), ("llama_decode", number, [pointer, Batch]),
        ("llama_synchronize", None, [pointer]), ("llama_get_memory", pointer, [pointer]),
        ("llama_memory_clear", None, [pointer, ctypes.c_bool])]:
        function = getattr(llama, name)
        function.restype, function.argtypes = result, arguments
    llama.llama_backend_init()
    return llama


class Runner:
    """A model on the GPU."""

    def __init__(self, folder, path):
        self.llama = library(folder)
        params = self.llama.llama_model_default_params()
        params.n_gpu_layers = 999
        self.model = self.llama.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            sys.exit(f"llama.cpp does not load {path}")
        self.batch = self.llama.llama_batch_init(CHUNK, 0, 1)

    def open(self, tokens, sequences):
        params = self.llama.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = tokens, CHUNK, CHUNK, sequences
        self.context = self.llama.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit(f"llama.cpp has no room for {sequences} sequences of {tokens // sequences} tokens")

    def close(self):
        self.llama.llama_free(self.context)

    def step(self, rows):
        """Rows of position, sequence, and whether its logits are wanted."""
        batch = self.batch
        batch.n_tokens = len(rows)
        for n, (position, sequence, wanted) in enumerate(rows):
            batch.token[n], batch.pos[n], batch.logits[n] = 10 + (position + sequence) % 50, position, wanted
            batch.n_seq_id[n], batch.seq_id[n][0] = 1, sequence
        if self.llama.llama_decode(self.context, batch):
            sys.exit("llama.cpp failed")
        self.llama.llama_synchronize(self.context)

    def read(self, length):
        for first in range(0, length, CHUNK):
            self.step([(at, 0, at == length - 1) for at in range(first, min(first + CHUNK, length))])

    def decode(self, sequences, first):
        """Seconds for DECODED steps from a position on; a few before them are not counted."""
        for position in range(first, first + 4):
            self.step([(position, sequence, 1) for sequence in range(sequences)])
        begin = time.monotonic()
        for position in range(first + 4, first + 4 + DECODED):
            self.step([(position, sequence, 1) for sequence in range(sequences)])
        return time.monotonic() - begin


def show(measure, size, tokens, seconds):
    print(json.dumps({"measure": measure, "size": size, "tokens": tokens, "seconds": round(seconds, 4)}), flush=True)


def main():
    decode, prefill, step = [[int(n) for n in text.split(",") if n] for text in sys.argv[3:6]]
    runner = Runner(pathlib.Path(sys.argv[1]), sys.argv[2])
    for sequences in decode:
        runner.open(128 * sequences, sequences)
        show("decode", sequences, sequences * DECODED, runner.decode(sequences, 0))
        runner.close()
    for length in prefill:
        runner.open(length + 64, 1)
        runner.read(length)  # a driver compiles first
        runner.llama.llama_memory_clear(runner.llama.llama_get_memory(runner.context), True)
        begin = time.monotonic()
        runner.read(length)
        show("prefill", length, length, time.monotonic() - begin)
        runner.close()
    for position in step:
        runner.open(position + 128, 1)
        runner.read(position)
        show("step", position, DECODED, runner.decode(1, position))
        runner.close()


main()
