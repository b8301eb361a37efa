"""Ten tenants with ordinary requests, at a steady rate whatever the gateway does, and one who asks for its health.

    python load-tests/fairness/measure.py PORT SECONDS KEY…

Prints how long each answer took from the moment at which it was due, as JSON. Standard library only.
"""

import asyncio
import gc
import json
import sys
import time

from wire import Connection, head, post

# Each tenant asks so often, on as many connections by turns, so that one slow answer holds up no other.
PAUSE = 0.1
CONNECTIONS = 4
HEALTH_PAUSE = 0.05
# What is left out at the beginning: connections are opened.
WARM = 0.5
# An answer that takes longer counts as none.
PATIENCE = 20

QUESTION = [{"role": "user", "content": "Which day comes after Monday?"}]
CHAT = ("/v1/chat/completions", {"model": "m", "messages": QUESTION})
STREAM = ("/v1/chat/completions", {"model": "m", "messages": QUESTION, "stream": True})
STORED = ("/v1/responses", {"model": "m", "input": "Which day comes after Monday?"})
# What a tenant asks, in turn.
KINDS = (CHAT, STREAM, CHAT, STREAM, STORED)


class Tally:
    def __init__(self):
        self.times, self.refused, self.began = [], [], time.monotonic()

    async def ask(self, connection, request, due):
        try:
            async with asyncio.timeout(PATIENCE):
                status, body = await connection.send(request)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            connection.close()
            status, body = 0, repr(error).encode()
        took = time.monotonic() - due
        if status != 200 or b'"error":{' in body:
            self.refused.append(f"{status} {body[:200].decode(errors='replace')}")
        elif due > self.began + WARM:
            self.times.append(took)


async def steadily(tally, connections, requests, pause, until, shift):
    """Sends each request when it is due, on the next connection; where that is busy still, once it is free."""
    free = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    running, due, turn = set(), time.monotonic() + shift, 0
    while due < until:
        await asyncio.sleep(max(0, due - time.monotonic()))
        running.add(asyncio.ensure_future(one(tally, free, requests[turn % len(requests)], due)))
        due, turn = due + pause, turn + 1
    await asyncio.gather(*running)


async def one(tally, free, request, due):
    connection = await free.get()
    await tally.ask(connection, request, due)
    free.put_nowait(connection)


async def main():
    port, seconds, keys = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    gc.disable()
    asked, health, until = Tally(), Tally(), time.monotonic() + seconds
    connections, tasks = [], []
    for at, key in enumerate(keys):
        own = [Connection(port) for _ in range(CONNECTIONS)]
        requests = [post(path, key, body) for path, body in KINDS[at % len(KINDS):] + KINDS[:at % len(KINDS)]]
        tasks.append(steadily(asked, own, requests, PAUSE, until, PAUSE * at / len(keys)))
        connections += own
    # A new connection each time, as a load balancer's checks do.
    alive = head("GET", "/healthz", None, extra="connection: close\r\n")
    tasks.append(steadily(health, [Connection(port) for _ in range(8)], [alive], HEALTH_PAUSE, until, 0.007))
    await asyncio.gather(*tasks)
    print(json.dumps({"times": sorted(asked.times), "refused": asked.refused, "health": sorted(health.times),
                      "health_refused": health.refused, "reopened": sum(one.reopened for one in connections)}))


if __name__ == "__main__":
    asyncio.run(main())
