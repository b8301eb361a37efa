"""HTTP/1.1 over kept-open connections, as little of it as is needed here. Standard library only."""

import asyncio
import json

JSON = "content-type: application/json\r\n"


def head(method, path, key, length=None, extra=""):
    """A request's head, with the blank line at its end."""
    body = f"{JSON}content-length: {length}\r\n" if length is not None else ""
    bearer = f"authorization: Bearer {key}\r\n" if key else ""
    return f"{method} {path} HTTP/1.1\r\nhost: stint\r\n{bearer}{extra}{body}\r\n".encode()


def post(path, key, body, extra=""):
    """A whole request with a JSON body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head("POST", path, key, len(data), extra) + data


class Connection:
    """One connection, opened when it is needed. `reopened` counts how often a kept one was found closed."""

    def __init__(self, port, source="127.0.0.1"):
        self.port, self.source, self.reopened = port, source, 0
        self.reader = self.writer = None

    async def open(self):
        local = None if self.source == "127.0.0.1" else (self.source, 0)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=local, limit=1 << 20)

    def close(self):
        if self.writer:
            self.writer.transport.abort()
        self.reader = self.writer = None

    async def send(self, request):
        """The status and the body of the answer. Where a kept connection was closed before a byte came, once more on another."""
        kept = self.writer is not None
        try:
            return await self.send_once(request)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            if not kept:
                raise
        self.reopened += 1
        return await self.send_once(request)

    async def send_once(self, request):
        if not self.writer:
            await self.open()
        self.writer.write(request)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        status = int(answer.split(b" ", 2)[1])
        if b"\r\ntransfer-encoding: chunked" in answer:
            body = await self.chunks()
        else:
            body = await self.reader.readexactly(int(answer.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]))
        if b"\r\nconnection: close" in answer:
            self.close()
        return status, body

    async def chunks(self):
        body = bytearray()
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return bytes(body)
