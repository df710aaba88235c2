"""A cluster, as its clients see it: rooms are at other nodes than the one that is asked."""

import asyncio
import contextlib
import socket

import pytest
from conftest import gate
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

import playfield
import playfield.sync
from playfield import Refused, _nodes

HELLO, JOIN, JOIN_OR_CREATE, GOODBYE = 0x01, 0x02, 0x04, 0x0D
WELCOME, ERROR, REDIRECT = 0x41, 0x4B, 0x59
ROOM_FULL, SHUTTING_DOWN, BAD_RESERVATION = 12, 23, 33


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(value):
    data = value.encode()
    return varint(len(data)) + data


def texts(values):
    return varint(len(values)) + b"".join(map(text, values))


class Message:
    """A message of a client: its kind, and the rest as far as it was read."""

    def __init__(self, data):
        self.kind, self.rest = data[0], data[1:]
        if self.kind in (JOIN, JOIN_OR_CREATE):
            self.request, self.room = self.varint(), self.text()
        if self.kind == HELLO:
            self.varint(), self.varint()
            self.name, self.token, self.rest = self.text(), self.text(), self.rest[1:]
            self.has_resume, self.rest = self.rest[0] == 1, self.rest[1:]
            self.resume = self.text() if self.has_resume else None
            # It ends with whether the client follows redirects.
            self.redirects = self.rest[-1] == 1

    def varint(self):
        value = shift = 0
        while True:
            byte, self.rest = self.rest[0], self.rest[1:]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self):
        size = self.varint()
        value, self.rest = self.rest[:size], self.rest[size:]
        # Tokens of sessions are bytes.
        return value.decode("latin-1")


class Node:
    """A node that welcomes its clients, and answers their joins as a test has it."""

    def __init__(self, answer=None, addresses=(), resume="", hello=None):
        self.answer, self.hello = answer, hello
        self.addresses, self.resume = addresses, resume
        self.hellos, self.joins, self.sockets = asyncio.Queue(), asyncio.Queue(), []
        self.goodbyes = asyncio.Queue()

    async def _serve(self, socket):
        self.sockets.append(socket)
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._take(socket, Message(await socket.recv()))

    async def _take(self, socket, message):
        if message.kind == HELLO:
            self.hellos.put_nowait(message)
            if self.hello is not None and message.has_resume:
                await socket.send(self.hello)
                await socket.close()
            else:
                await socket.send(self.welcome(message.has_resume and self.resume == "resumed"))
        elif message.kind in (JOIN, JOIN_OR_CREATE):
            self.joins.put_nowait(message)
            await socket.send(self.answer(message))
        elif message.kind == GOODBYE:
            self.goodbyes.put_nowait(message)
            await socket.close()

    def welcome(self, is_resumed):
        grace = 60_000 if self.resume else 0
        head = bytes([WELCOME, 1, 1]) + text(self.resume)
        times = varint(30_000) + varint(65_536) + varint(grace)
        resumed = b"\1\0\0" if is_resumed else b"\0"
        return head + times + resumed + texts(self.addresses)

    def cut(self):
        for one in self.sockets:
            one.transport.abort()


@contextlib.asynccontextmanager
async def started(*nodes):
    """Has nodes listen, each at its ``address``."""
    async with contextlib.AsyncExitStack() as stack:
        for node in nodes:
            server = await stack.enter_async_context(serve(node._serve, "127.0.0.1", 0))
            node.address = "ws://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        yield


def redirect(addresses, reservation="", request=None):
    def answer(message):
        number = message.request if request is None else request
        return bytes([REDIRECT]) + varint(number) + texts(addresses) + text(reservation)

    return answer


def refuse(code):
    def answer(message):
        return bytes([ERROR, 1]) + varint(message.request) + bytes([0, code]) + text("no") + b"\0"

    return answer


def in_turn(*answers):
    left = list(answers)
    return lambda message: left.pop(0)(message)


def connect(node, **how):
    return playfield.connect(node.address, backoff=(0.01, 0.05), **how)


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return "ws://127.0.0.1:%d" % listener.getsockname()[1]


def test_a_room_at_another_node_is_joined_there(run, example):
    async def main():
        a = Node(redirect([f"ws://{example('cards', 9)}"]))
        async with started(a), connect(a, name="Ann") as client:
            tables = await asyncio.gather(*[client.join_or_create("table") for _ in range(2)])
            await tables[0].request("Play", {"place": 0})
            assert (await a.hellos.get()).redirects
            # Both are in one session.
            assert len(client._nodes._others) == 1 and client.status == "connected"
            await tables[0].leave()
        assert [table.left.code for table in tables] == ["left", "left"]

    run(main())


def test_blocking_code_joins_there_too(run, example):
    def play(address):
        with playfield.sync.connect(address) as client:
            table = client.join_or_create("table")
            table.request("Play", {"place": 0})
            table.leave()

    async def main():
        a = Node(redirect([f"ws://{example('cards', 9)}"]))
        async with started(a):
            await asyncio.to_thread(play, a.address)

    run(main())


def test_the_reservation_is_the_room_there_and_other_refusals_are_the_answer(run):
    async def main():
        b = Node(refuse(ROOM_FULL))
        async with started(b):
            a = Node(redirect([b.address], "seat"))
            async with started(a), connect(a, name="Ann", token="secret") as client:
                with pytest.raises(Refused) as refused:
                    await client.join_or_create("table")
                assert refused.value.code == "room_full"
                hello, join = await b.hellos.get(), await b.joins.get()
                assert (hello.name, hello.token) == ("Ann", "secret")
                assert (join.kind, join.room) == (JOIN, "seat")

    run(main())


@pytest.mark.parametrize("code", [BAD_RESERVATION, SHUTTING_DOWN])
def test_a_seat_that_is_over_is_asked_for_again(run, example, code):
    async def main():
        b = Node(refuse(code))
        async with started(b):
            there = redirect([f"ws://{example('cards', 9)}"])
            a = Node(in_turn(redirect([b.address], "seat"), there))
            async with started(a), connect(a) as client:
                table = await client.join_or_create("table")
                assert table.state.hands and a.joins.qsize() == 2

    run(main())


def test_a_node_that_can_not_be_reached_is_named_after_three_attempts(run):
    async def main():
        away = closed_port()
        a = Node(redirect([away], "seat"))
        async with started(a), connect(a) as client:
            with pytest.raises(Refused, match=away) as refused:
                await client.join_or_create("table")
            assert refused.value.code == "unreachable" and a.joins.qsize() == 3
            assert client.status == "connected"

    run(main())


@pytest.mark.parametrize(
    "addresses", [[], [""], ["ws://"], ["udp://b"], [f"udp://{n}" for n in range(5000)]]
)
def test_absurd_addresses_do_no_harm(run, addresses):
    async def main():
        a = Node(redirect(addresses), addresses=addresses)
        async with started(a), connect(a) as client:
            with pytest.raises(Refused) as refused:
                await client.join_or_create("table")
            assert refused.value.code == "unreachable" and client.status == "connected"

    run(main())


def test_a_loop_ends_after_three_redirects(run):
    async def main():
        b = Node()
        async with started(b):
            b.answer = redirect([b.address], "seat")
            a = Node(redirect([b.address], "seat"))
            async with started(a), connect(a) as client:
                with pytest.raises(Refused, match=b.address) as refused:
                    await client.join_or_create("table")
                assert refused.value.code == "unreachable"
                assert (a.joins.qsize(), b.joins.qsize(), b.hellos.qsize()) == (1, 3, 1)

    run(main())


def test_a_session_goes_on_at_the_node_that_a_redirect_names(run):
    async def main():
        b = Node(resume="resumed")
        async with started(b):
            # The request of the answer to a hello is 0.
            a = Node(resume="token", hello=redirect([b.address], request=0)(None))
            async with started(a), connect(a) as client:
                a.cut()
                await client.wait_for("resumed")
                assert (await b.hellos.get()).resume == "token"

    run(main())


def test_a_lost_connection_is_restored_at_the_nodes_own_address(run):
    async def main():
        b = Node(resume="resumed")
        async with started(b):
            a = Node(resume="token", addresses=["udp://b", b.address])
            async with started(a), connect(a) as client:
                a.cut()
                await client.wait_for("resumed")
                assert (await b.hellos.get()).resume == "token" and a.hellos.qsize() == 1

    run(main())


def test_a_session_without_rooms_is_closed_after_a_while(run, monkeypatch):
    async def main():
        def answer(message):
            # It is long enough for a room to come.
            monkeypatch.setattr(_nodes, "IDLE", 0.0)
            return refuse(ROOM_FULL)(message)

        b = Node(answer)
        async with started(b):
            a = Node(redirect([b.address], "seat"))
            async with started(a), connect(a) as client:
                for count in (1, 2):
                    monkeypatch.undo()
                    with pytest.raises(Refused):
                        await client.join_or_create("table")
                    await b.goodbyes.get()
                    while client._nodes._others:
                        await asyncio.sleep(0)
                    assert b.hellos.qsize() == count
                assert client.status == "connected"

    run(main())


@pytest.mark.parametrize("how", ["close", "lose"])
def test_the_end_of_the_first_session_ends_all(run, how):
    async def main():
        b = Node(refuse(ROOM_FULL))
        async with started(b):
            a = Node(redirect([b.address], "seat"))
            async with started(a), connect(a, reconnect_timeout=0) as client:
                with pytest.raises(Refused):
                    await client.join_or_create("table")
                [other] = client._nodes._others
                if how == "close":
                    await client.close()
                    assert a.goodbyes.qsize() == b.goodbyes.qsize() == 1
                else:
                    a.cut()
                    await client.wait_for("ended")
                    await asyncio.wait({other._task})
                assert other.ended is not None

    run(main())


def test_a_room_whose_node_is_gone_is_joined_again_where_the_first_node_says(run, example):
    async def main():
        async with gate(example("cards", 9)) as way:
            there = redirect([f"ws://{way.address}"])
            here = redirect([f"ws://{example('cards', 10)}"])
            # The room is asked for by its id, and then one as at first.
            a = Node(in_turn(there, here, here), resume="new")
            async with started(a), connect(a, again=True) as client:
                table, statuses = await client.join_or_create("table"), asyncio.Queue()
                table.on_status(statuses.put_nowait)
                old = table.id
                way.cut()
                assert [await statuses.get(), await statuses.get()] == ["lost", "joined"]
                await table.request("Play", {"place": 0})
                assert table.id != old and client.status == "connected"

    run(main())
