"""The scripted upstream: answers at once, whatever it is asked. It looks at as little of a request as it can.

    python load-tests/fairness/upstream.py PORT

A prompt with `EVENTS 20` in it is answered with events of twenty bytes without end, as fast as they are taken. Standard library only.
"""

import asyncio
import json
import re
import sys

EVENTS = re.compile(rb"EVENTS (\d+)")
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "s"}
USAGE = {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12}
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(delta, finish=None):
    return b"data: " + json.dumps({**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def chunked(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def whole(body):
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


WORDS = b"".join(event({"content": word}) for word in ("It ", "is ", "Tuesday", "."))
ANSWER = event({"role": "assistant"}) + WORDS + event({}, "stop") + b"data: " + json.dumps(
    {**CHUNK, "choices": [], "usage": USAGE}).encode() + b"\n\ndata: [DONE]\n\n"
STREAMED = STREAM + chunked(ANSWER) + b"0\r\n\r\n"
MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "It is Tuesday."}, "finish_reason": "stop"}
PLAIN = whole(json.dumps({**CHUNK, "object": "chat.completion", "choices": [MESSAGE], "usage": USAGE}).encode())


def vectors(body):
    """One small vector for each text or list of token ids."""
    given = json.loads(body)["input"]
    count = len(given) if isinstance(given, list) and not isinstance(given[0], int) else 1
    data = [{"object": "embedding", "index": at, "embedding": [0.5]} for at in range(count)]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return whole(json.dumps({"object": "list", "model": "e", "data": data, "usage": usage}).encode())


async def endless(writer, size):
    piece = chunked(event({"content": "x" * size})) * max(1, 4096 // size)
    writer.write(STREAM + chunked(event({"role": "assistant"})))
    while True:
        writer.write(piece)
        await writer.drain()


async def serve(reader, writer):
    writer.transport.set_write_buffer_limits(64 << 10)
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]
            body = await reader.readexactly(int(length))
            if asked := EVENTS.search(body, 0, 4096):
                await endless(writer, int(asked[1]))
            elif b"/embeddings" in head.split(b"\r\n", 1)[0]:
                writer.write(vectors(body))
            else:
                writer.write(STREAMED if b'"stream":true' in body[:2048] + body[-2048:] else PLAIN)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 20, backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
