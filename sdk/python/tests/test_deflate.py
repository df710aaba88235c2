"""permessage-deflate against `zlib`: whatever a server compresses arrives, and bad data ends the
connection. ``PLAYFIELD_DEFLATE_CASES`` is how many cases there are of each."""

import asyncio
import os
import random
import zlib

import pytest

from conftest import read_all, upgrade
from playfield.websocket import ConnectionClosed, connect
from playfield.websocket.sync import connect as connect_sync

CASES = int(os.environ.get("PLAYFIELD_DEFLATE_CASES", "120"))
MESSAGE_MAX = 1 << 16
TAIL = b"\0\0\xff\xff"
CLIENTS = ["blocking", "asyncio", "uvloop"]


def frame(first, payload):
    size = len(payload)
    if size < 126:
        return bytes([first, size]) + payload
    if size < 65536:
        return bytes([first, 126]) + size.to_bytes(2, "big") + payload
    return bytes([first, 127]) + size.to_bytes(8, "big") + payload


def message(choose):
    """Text or bytes, which may repeat themselves, or what other messages have said."""
    size = choose.choice([0, 1, 10, 200, 4000, choose.randrange(40_000)])
    words = ["quote", "BTCUSD", "größe", "\N{PILE OF POO}", str(choose.random())]
    if choose.random() < 0.5:
        return "".join(choose.choice(words) for _ in range(size // 6))
    return choose.choice([bytes(size), choose.randbytes(size), ("".join(words) * 9).encode()])


def in_frames(choose, opcode, payload, compressed):
    """A message in one frame, or in some, between which control frames may lie."""
    cuts = sorted(choose.randrange(len(payload) + 1) for _ in range(choose.choice([0, 0, 1, 3])))
    parts = [payload[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(payload)])]
    frames = []
    for number, part in enumerate(parts):
        first = (opcode | compressed << 6) if number == 0 else 0
        frames.append(frame(first | (number == len(parts) - 1) << 7, part))
        if number < len(parts) - 1 and choose.random() < 0.2:
            frames.append(frame(0x89, b"ping"))
    return b"".join(frames)


class Compressor:
    """A server's end. It keeps its context, unless the case is without one."""

    def __init__(self, choose):
        self.choose = choose
        self.bits = choose.choice([9, 10, 15])
        self.keeps = choose.random() < 0.8
        self.extension = "permessage-deflate" + "; server_no_context_takeover" * (not self.keeps)
        self.fresh()

    def fresh(self):
        level, strategy = self.choose.choice([0, 1, 6, 9]), self.choose.choice([0, 2, 3, 4])
        self.deflate = zlib.compressobj(level, zlib.DEFLATED, -self.bits, 8, strategy)

    def compress(self, payload):
        if not self.keeps:
            self.fresh()
        data = self.deflate.compress(payload)
        if self.choose.random() < 0.3:
            # Blocks may end inside a message.
            data += self.deflate.flush(zlib.Z_FULL_FLUSH)
        data += self.deflate.flush(zlib.Z_SYNC_FLUSH)
        assert data.endswith(TAIL)
        return data[:-4]


class Cases:
    """A server that sends the bytes of one case to each connection."""

    def __init__(self, cases):
        self.left = iter(cases)

    def __call__(self, sock):
        extension, sent = next(self.left)
        upgrade(sock, f"Sec-WebSocket-Extensions: {extension}\r\n".encode())
        sock.sendall(sent)
        read_all(sock)


def received(client, url, count):
    """What each of the connections gets, and the exception that ends it: until then, or until it
    has `wanted`."""
    options = dict(max_size=MESSAGE_MAX, max_queue=None, close_timeout=0.01, ping_interval=None)

    def blocking(wanted):
        with connect_sync(url, **options) as connection:
            return gathered(connection, wanted)

    def gathered(connection, wanted):
        got = []
        try:
            while len(got) < wanted:
                got.append(connection.recv(timeout=20))
        except ConnectionClosed as error:
            return got, error
        return got, None

    async def asynchronous(wanted):
        async with connect(url, **options) as connection:
            got = []
            try:
                while len(got) < wanted:
                    got.append(await asyncio.wait_for(connection.recv(), 20))
            except ConnectionClosed as error:
                return got, error
            return got, None

    if client == "blocking":
        return [blocking(wanted) for wanted in count]

    async def each():
        return [await asynchronous(wanted) for wanted in count]

    if client == "uvloop":
        import uvloop

        loop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(each())
    finally:
        loop.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_server_compresses_arrives(script, client):
    choose = random.Random(client)
    cases, expected = [], []
    for _ in range(CASES // 4):
        compressor = Compressor(choose)
        messages = [message(choose) for _ in range(choose.randrange(1, 12))]
        sent = b""
        for one in messages:
            payload, opcode = (one.encode(), 1) if isinstance(one, str) else (one, 2)
            compressed = choose.random() < 0.9
            payload = compressor.compress(payload) if compressed else payload
            sent += in_frames(choose, opcode, payload, compressed)
        cases.append((compressor.extension, sent))
        expected.append(messages)
    found = received(client, script(Cases(cases)), [len(messages) for messages in expected])
    assert [got for got, _ in found] == expected
    assert all(error is None for _, error in found)


def inflated(payloads):
    """What `zlib` makes of compressed messages with one context: those before the first bad one, and
    whether there is a bad one; ``None`` if a block says that it is the last, or a message ends within
    a block, of which `zlib` and RFC 7692 think differently."""
    inflate, found = zlib.decompressobj(-15), []
    for opcode, payload in payloads:
        try:
            plain = inflate.decompress(payload + TAIL, MESSAGE_MAX + 1)
        except zlib.error:
            return found, True
        if inflate.eof:
            return None
        if len(plain) > MESSAGE_MAX or inflate.unconsumed_tail:
            return found, True
        if opcode == 1:
            try:
                plain = plain.decode()
            except UnicodeDecodeError:
                return found, True
        found.append(plain)
    return found, False


def spoiled(choose, data):
    """The same with some bytes changed, removed or added."""
    data = bytearray(data)
    for _ in range(choose.choice([1, 1, 2, 8])):
        at = choose.randrange(len(data) + 1)
        how = choose.randrange(4)
        if how == 0 and at < len(data):
            data[at] ^= 1 << choose.randrange(8)
        elif how == 1:
            del data[at : at + choose.randrange(1, 8)]
        elif how == 2:
            data[at:at] = choose.randbytes(choose.randrange(1, 8))
        else:
            data = bytearray(choose.randbytes(choose.randrange(40)))
    return bytes(data)


@pytest.mark.parametrize("client", CLIENTS)
def test_bad_data_ends_the_connection(script, client):
    choose = random.Random(client)
    cases, expected = [], []
    while len(cases) < CASES:
        compressor = Compressor(choose)
        payloads = []
        for _ in range(choose.randrange(1, 5)):
            one = message(choose)
            opcode = 1 if isinstance(one, str) else 2
            data = compressor.compress(one.encode() if opcode == 1 else one)
            payloads.append((opcode, spoiled(choose, data) if choose.random() < 0.7 else data))
        if not compressor.keeps:
            continue
        sent = b"".join(in_frames(choose, opcode, data, True) for opcode, data in payloads)
        cases.append((compressor.extension, sent + frame(0x88, b"\x03\xe8")))
        expected.append(inflated(payloads))
    found = received(client, script(Cases(cases)), [1000] * len(cases))
    compared = 0
    for (got, error), known in zip(found, expected):
        # A Close frame of the server ends what is not refused before.
        refused = error is not None and error.rcvd is None
        if refused:
            assert error.sent.code in (1002, 1007, 1009), error
        if known is not None and known[1]:
            assert refused and got == known[0]
            compared += 1
        elif known is not None and not refused:
            assert got == known[0]
            compared += 1
    assert compared > CASES // 3
