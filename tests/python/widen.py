"""Copies a GGUF file with its Q8_0 tensors as F32: the same numbers in a wider type.

    python widen.py models/reasoner.gguf wide.gguf

llama.cpp rounds *activations* to eight bits where weights are Q8_0. On a wide copy it computes as our engine does, so
that both can be compared token by token. Standard library only.
"""

import struct
import sys
from array import array
from math import prod

F32, Q8_0 = 0, 8
BLOCK, BLOCK_BYTES = 32, 34
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Reader:
    def __init__(self, data):
        self.data, self.place = data, 0

    def take(self, form):
        values = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.take("Q")
        self.place += length
        return self.data[self.place - length:self.place]

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            item, count = self.take("IQ")
            for _ in range(count):
                self.skip(item)
        else:
            self.place += SIZES[kind]


def widened(data, kind, count):
    """The tensor's data as F32; what is no Q8_0 stays."""
    if kind != Q8_0:
        return kind, data[:4 * count]
    values = array("f")
    for place in range(0, count // BLOCK * BLOCK_BYTES, BLOCK_BYTES):
        scale, *whole = struct.unpack_from("<e32b", data, place)
        values.extend(scale * value for value in whole)
    return F32, values.tobytes()


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read()
    reader = Reader(data)
    _magic, _version, tensors, pairs = reader.take("4sIQQ")
    alignment = 32
    for _ in range(pairs):
        key, kind = reader.text(), reader.take("I")
        if key == b"general.alignment":
            alignment = struct.unpack_from("<I", data, reader.place)[0]
        reader.skip(kind)
    head, infos = data[:reader.place], []
    for _ in range(tensors):
        name, dimensions = reader.text(), reader.take("I")
        shape = [reader.take("Q") for _ in range(dimensions)]
        infos.append((name, shape, *reader.take("IQ")))
    begin = -(-reader.place // alignment) * alignment

    out, body = bytearray(head), bytearray()
    for name, shape, kind, offset in infos:
        body.extend(bytes(-len(body) % alignment))
        kind, values = widened(data[begin + offset:], kind, prod(shape))
        if kind != F32:
            sys.exit(f"{name.decode()} is neither F32 nor Q8_0")
        out += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}QIQ", *shape, kind, len(body))
        body.extend(values)
    out.extend(bytes(-len(out) % alignment))
    with open(target, "wb") as file:
        file.write(out + body)


if __name__ == "__main__":
    main()
