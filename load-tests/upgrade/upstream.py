"""The scripted upstream: answers slowly enough that some answer always runs when a gateway stops.

    python load-tests/upgrade/upstream.py PORT

Standard library only.
"""

import asyncio
import json
import sys

WORDS = 40
PAUSE = 0.05
USAGE = {"prompt_tokens": 20, "completion_tokens": WORDS, "total_tokens": 20 + WORDS}


def head(kind, rest):
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{rest}\r\n\r\n".encode()


def event(choices, **more):
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    data = f"data: {json.dumps(body)}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def stream(writer):
    writer.write(head("text/event-stream", "transfer-encoding: chunked"))
    for at in range(WORDS):
        writer.write(event([{"index": 0, "delta": {"content": f"{at} "}, "finish_reason": None}]))
        await writer.drain()
        await asyncio.sleep(PAUSE)
    writer.write(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    writer.write(event([], usage=USAGE))
    writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def whole(writer):
    await asyncio.sleep(WORDS * PAUSE / 4)
    message = {"role": "assistant", "content": " ".join(map(str, range(WORDS)))}
    body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
                       "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    writer.write(head("application/json", f"content-length: {len(body)}") + body)


async def serve(reader, writer):
    try:
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = lines.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]
            asked = json.loads(await reader.readexactly(int(length)))
            await (stream if asked.get("stream") else whole)(writer)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.transport.abort()


async def main(port):
    server = await asyncio.start_server(serve, "127.0.0.1", int(port), backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
