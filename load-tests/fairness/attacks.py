"""What one tenant does to a gateway, one attack at a time, as fast as it is let.

    python load-tests/fairness/attacks.py NAME PORT KEY SECONDS

Prints how often it was answered with which status, as JSON. It comes from several addresses where that helps it. Standard
library only.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter

from wire import Connection, head, post

SOURCES = [f"127.0.0.{last}" for last in range(2, 6)]
# More than there is place for.
CROWD = 1200
MEGABYTE = 1 << 20
TEXT = "All work and no play makes a dull day. "
CHAT = "/v1/chat/completions"


def question(text):
    return {"model": "s", "messages": [{"role": "user", "content": text}]}


def words(size):
    return (TEXT * (size // len(TEXT) + 1))[:size]


class Attacker:
    """Runs one attack until its time is up."""

    def __init__(self, port, key, until):
        self.port, self.key, self.until, self.statuses = port, key, until, Counter()

    async def send(self, connection, request):
        try:
            status, body = await connection.send(request)
        except (OSError, asyncio.IncompleteReadError) as error:
            connection.close()
            self.statuses[type(error).__name__] += 1
            await asyncio.sleep(0.02)
            return b""
        self.statuses[status] += 1
        return body if status == 200 else b""

    async def repeat(self, workers, requests):
        """So many connections that send the next request as soon as the last one is answered."""
        async def work(connection):
            while time.monotonic() < self.until:
                await self.send(connection, next(requests))
        await self.crowd(workers, work)

    async def crowd(self, count, work):
        """So many connections, by turns from each address, each doing this again and again."""
        async def again(at):
            connection = Connection(self.port, SOURCES[at % len(SOURCES)])
            while time.monotonic() < self.until:
                try:
                    await work(connection)
                except (OSError, asyncio.IncompleteReadError) as error:
                    self.statuses[type(error).__name__] += 1
                connection.close()
                # Python is the slower side here: a loop that only fails would measure the attacker.
                await asyncio.sleep(0.05)
        await asyncio.gather(*(again(at) for at in range(count)))

    async def drip(self, data, piece, pause):
        """Connections that send the first bytes at once and then, slowly, others until they are closed."""
        async def work(connection):
            await connection.open()
            connection.writer.write(data)
            gone = asyncio.ensure_future(connection.reader.read(4096))
            while time.monotonic() < self.until and not gone.done():
                connection.writer.write(piece)
                await asyncio.wait([gone], timeout=pause)
            self.statuses["closed" if gone.done() else "held"] += 1
            gone.cancel()
        await self.crowd(CROWD, work)

    async def half_heads(self):
        await self.drip(b"POST /v1/chat/completions HTTP/1.1\r\nhost: stint\r\n", b"x", 3)

    async def slow_heads(self):
        await self.drip(b"POST /v1/chat/completions HTTP/1.1\r\nhost: stint\r\n", b"x-padding: x\r\n", 0.5)

    async def dripping_bodies(self):
        await self.drip(head("POST", CHAT, self.key, 32 * MEGABYTE) + b'{"', b" ", 1)

    async def steady_bodies(self):
        """As slow as a body may be, and so for as long as it may take."""
        await self.drip(head("POST", CHAT, self.key, 32 * MEGABYTE) + b'{"', b" " * 1100, 1)

    async def tiny_chunks(self):
        chunks = b"1\r\n \r\n" * 8192
        start = head("POST", CHAT, self.key, None, "content-type: application/json\r\ntransfer-encoding: chunked\r\n") + b"1\r\n{\r\n"
        async def work(connection):
            await connection.open()
            connection.writer.write(start)
            while time.monotonic() < self.until:
                connection.writer.write(chunks)
                await connection.writer.drain()
        await self.crowd(16, work)

    async def huge_bodies(self):
        body = json.dumps({**question(words(30 * MEGABYTE)), "model": "unknown"})
        await self.repeat(8, itertools.repeat(post(CHAT, self.key, body.encode())))

    async def huge_prompts(self):
        body = json.dumps(question(words(30 * MEGABYTE)))
        await self.repeat(8, itertools.repeat(post(CHAT, self.key, body.encode())))

    async def unread_events(self, size):
        await self.unread(post(CHAT, self.key, {**question(f"EVENTS {size}"), "stream": True}))

    async def unread(self, request):
        async def work(connection):
            await connection.open()
            connection.writer.transport.pause_reading()
            connection.writer.write(request)
            await asyncio.sleep(max(0, self.until - time.monotonic()))
            self.statuses["held"] += 1
        await self.crowd(CROWD, work)

    async def unread_small(self):
        await self.unread_events(20)

    async def unread_large(self):
        await self.unread_events(100_000)

    async def conversations(self):
        content = [{"type": "input_text", "text": words(3 * MEGABYTE)}]
        body = json.dumps({"items": [{"type": "message", "role": "user", "content": content}]}).encode()
        await self.repeat(8, itertools.repeat(post("/v1/conversations", self.key, body)))

    async def stored_responses(self):
        body = json.dumps({"model": "s", "input": words(3 * MEGABYTE)}).encode()
        await self.repeat(8, itertools.repeat(post("/v1/responses", self.key, body)))

    async def stored(self):
        """The id of a stored response of 3 MB."""
        body = json.dumps({"model": "s", "input": words(3 * MEGABYTE)}).encode()
        stored = await self.send(Connection(self.port), post("/v1/responses", self.key, body))
        return json.loads(stored or b'{"id": "none"}')["id"]

    async def read_responses(self):
        request = head("GET", f"/v1/responses/{await self.stored()}/input_items", self.key)
        await self.repeat(16, itertools.repeat(request))

    async def unread_responses(self):
        await self.unread(head("GET", f"/v1/responses/{await self.stored()}/input_items", self.key))

    async def continued_responses(self):
        body = {"model": "s", "input": "And then?", "previous_response_id": await self.stored()}
        await self.repeat(8, itertools.repeat(post("/v1/responses", self.key, body)))

    async def bombs_within(self):
        body = b'{"model":"s","messages":[' + b"1," * 262_000 + b"1]}"
        await self.repeat(16, itertools.repeat(post(CHAT, self.key, body)))

    async def bombs_beyond(self):
        body = b'{"model":"s","messages":[' + b"1," * (15 * MEGABYTE) + b"1]}"
        await self.repeat(8, itertools.repeat(post(CHAT, self.key, body)))

    async def deep_bombs(self):
        body = b'{"model":"s","messages":' + (b"[" * 100 + b"]" * 100 + b",") * 1 + b'"x":[' + b",".join(
            [b"[" * 100 + b"]" * 100] * 2600) + b"]}"
        await self.repeat(16, itertools.repeat(post(CHAT, self.key, body)))

    async def many_idempotency_keys(self):
        requests = (post(CHAT, self.key, question("Which day is it?"), f"idempotency-key: {time.time()}-{at}\r\n")
                    for at in itertools.count())
        await self.repeat(32, requests)

    async def one_idempotency_key(self):
        request = post(CHAT, self.key, question("Which day is it?"), f"idempotency-key: {time.time()}\r\n")
        await self.repeat(64, itertools.repeat(request))

    async def many_texts(self):
        body = json.dumps({"model": "e", "input": [TEXT] * 2048}).encode()
        await self.repeat(8, itertools.repeat(post("/v1/embeddings", self.key, body)))

    async def token_ids(self):
        body = b'{"model":"e","input":[' + b",".join([b"[" + b",".join([b"17"] * 500) + b"]"] * 2000) + b"]}"
        await self.repeat(4, itertools.repeat(post("/v1/embeddings", self.key, body)))

    async def feedback(self):
        answer = await self.send(Connection(self.port), post(CHAT, self.key, question("Which day is it?")))
        name = json.loads(answer or b'{"id": "none"}')["id"]
        await self.repeat(32, itertools.repeat(post("/v1/feedback", self.key, {"id": name, "correct": True})))

    async def connections(self):
        async def work(connection):
            held = [Connection(self.port, connection.source) for _ in range(16)]
            await asyncio.gather(*(one.open() for one in held))
            self.statuses["opened"] += len(held)
            for one in held:
                one.close()
        await self.crowd(64, work)

    async def quotes(self):
        body = json.dumps(question(words(MEGABYTE))).encode()
        await self.repeat(16, itertools.repeat(post("/v1/plan", self.key, body)))

    async def requests(self):
        await self.repeat(32, itertools.repeat(post(CHAT, self.key, question("Which day is it?"))))


# By the names that the table has.
ATTACKS = {
    "half heads": Attacker.half_heads, "slow heads": Attacker.slow_heads, "connections": Attacker.connections,
    "dripping bodies": Attacker.dripping_bodies, "steady bodies": Attacker.steady_bodies, "tiny chunks": Attacker.tiny_chunks,
    "huge bodies": Attacker.huge_bodies, "huge prompts": Attacker.huge_prompts,
    "unread small events": Attacker.unread_small, "unread large events": Attacker.unread_large,
    "conversations of 3 MB": Attacker.conversations, "responses of 3 MB": Attacker.stored_responses,
    "responses read": Attacker.read_responses, "responses unread": Attacker.unread_responses, "responses continued": Attacker.continued_responses,
    "JSON within limits": Attacker.bombs_within, "JSON beyond limits": Attacker.bombs_beyond, "deep JSON": Attacker.deep_bombs,
    "idempotency keys": Attacker.many_idempotency_keys, "one idempotency key": Attacker.one_idempotency_key,
    "2,048 texts": Attacker.many_texts, "a million token ids": Attacker.token_ids, "feedback": Attacker.feedback,
    "plan quotes": Attacker.quotes, "plain requests": Attacker.requests,
}


async def main():
    name, port, key, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    attacker = Attacker(port, key, time.monotonic() + seconds)
    try:
        async with asyncio.timeout(seconds + 2):
            await ATTACKS[name](attacker)
    except TimeoutError:
        pass
    print(json.dumps(attacker.statuses))


if __name__ == "__main__":
    asyncio.run(main())
