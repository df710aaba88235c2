"""The asynchronous client."""

import asyncio
import queue
import random
import socket
import threading

import pytest
import websockets
from conftest import read_all, read_head, upgrade

from playfield.websocket import (
    ConcurrencyError,
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidHeader,
    InvalidHeaderValue,
    InvalidMessage,
    InvalidStatus,
    InvalidUpgrade,
    InvalidURI,
    PayloadTooBig,
    ProtocolError,
    State,
    connect,
)


def test_text_stays_text_and_bytes_stay_bytes(run, server, aiohttp_server):
    async def main(url):
        async with connect(url) as connection:
            for message in ["text", "", "ünï", b"bytes", b"", b"\xff\xfe", "x" * 70_000]:
                await connection.send(message)
                answer = await connection.recv()
                assert (type(answer), answer) == (type(message), message)
            for message in [bytearray(b"ab"), memoryview(b"ab")]:
                await connection.send(message)
                assert await connection.recv() == b"ab"
            await connection.send(b"ab", text=True)
            assert await connection.recv() == "ab"
            await connection.send("ab", text=False)
            assert await connection.recv() == b"ab"
            await connection.send("ab")
            assert await connection.recv(decode=False) == b"ab"
            await connection.send(b"ab")
            assert await connection.recv(decode=True) == "ab"
            with pytest.raises(TypeError):
                await connection.send(5)
            with pytest.raises(TypeError):
                await connection.send({})
            with pytest.raises(ValueError):
                await connection.send(b"\xff", text=True)
        assert connection.state is State.CLOSED

    run(main(server()))
    run(main(aiohttp_server))


def test_messages_keep_their_order_at_every_size(run, server):
    async def main(url):
        async with connect(url, max_size=None) as connection:
            chance = random.Random(7)
            sent = [chance.randbytes(chance.choice([0, 1, 125, 126, 1000, 65_535, 65_536, 300_000]))
                    for _ in range(200)]

            async def send():
                for message in sent:
                    await connection.send(message)

            sender = asyncio.create_task(send())
            assert [await connection.recv() for _ in sent] == sent
            await sender

    run(main(server(max_size=None)))


def test_a_message_may_be_sent_in_fragments(run, server):
    async def parts():
        yield "c"
        await asyncio.sleep(0)
        yield "d"

    async def main(url):
        async with connect(url) as connection:
            fragments = asyncio.ensure_future(connection.send(parts()))
            await asyncio.sleep(0)
            # A message may not come between fragments.
            await connection.send("e")
            await fragments
            await connection.send(["a", "b"])
            await connection.send([b"a", bytearray(b"b")])
            assert [await connection.recv() for _ in range(4)] == ["cd", "e", "ab", b"ab"]
            with pytest.raises(TypeError):
                await connection.send(["a", b"b"])
            with pytest.raises(ConnectionClosedError) as error:
                await connection.recv()
            assert error.value.sent.code == 1011

    run(main(server()))


def test_a_canceled_recv_loses_no_message(run, server):
    async def main(url):
        chance = random.Random(3)
        async with connect(url) as connection:
            total, got = 300, []

            async def send():
                for number in range(total):
                    await connection.send(str(number))
                    await asyncio.sleep(chance.choice([0, 0, 0.0005]))

            sender = asyncio.create_task(send())
            while len(got) < total:
                task = asyncio.ensure_future(connection.recv())
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                if chance.random() < 0.5:
                    task.cancel()
                try:
                    got.append(await task)
                except asyncio.CancelledError:
                    pass
            await sender
            assert got == [str(number) for number in range(total)]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(connection.recv(), 0.01)
            await connection.send("after")
            assert await connection.recv() == "after"

    run(main(server()))


def test_a_canceled_iteration_loses_no_message(run, server):
    async def main(url):
        chance = random.Random(4)
        async with connect(url, max_queue=4) as connection:
            total, got = 300, []

            async def send():
                for number in range(total):
                    await connection.send(str(number))
                    await asyncio.sleep(chance.choice([0, 0, 0.0005]))

            async def take():
                async for message in connection:
                    got.append(message)
                    if chance.random() < 0.1:
                        break
                    if chance.random() < 0.3:
                        await asyncio.sleep(0)

            sender = asyncio.create_task(send())
            while len(got) < total:
                task = asyncio.ensure_future(take())
                for _ in range(chance.randrange(6)):
                    await asyncio.sleep(0)
                if chance.random() < 0.5 or len(got) == total:
                    task.cancel()
                await asyncio.wait([task], timeout=0.1)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await sender
            assert got == [str(number) for number in range(total)]

    run(main(server()))


def test_iteration_beside_another_receiver_is_refused(run, server):
    async def main(url):
        async with connect(url) as connection:
            first = asyncio.ensure_future(connection.__aiter__().__anext__())
            await asyncio.sleep(0)
            with pytest.raises(ConcurrencyError):
                async for _ in connection:
                    pass
            with pytest.raises(ConcurrencyError):
                await connection.recv()
            await connection.send(["a", "b"])
            assert await first == "ab"
        async with connect(url, on_message=print) as connection:
            with pytest.raises(RuntimeError):
                async for _ in connection:
                    pass

    run(main(server()))


def test_two_receivers_are_refused(run, server):
    async def main(url):
        async with connect(url) as connection:
            first = asyncio.ensure_future(connection.recv())
            await asyncio.sleep(0)
            with pytest.raises(ConcurrencyError) as error:
                await connection.recv()
            assert isinstance(error.value, websockets.ConcurrencyError)
            await connection.send("x")
            assert await first == "x"

    run(main(server()))


def test_iteration_ends_with_the_connection(run, server):
    async def count(connection):
        for number in range(3):
            await connection.send(str(number))

    async def fail(connection):
        await connection.send("0")
        await connection.close(1011, "why")

    async def main(good, bad):
        async with connect(good) as connection:
            assert [message async for message in connection] == ["0", "1", "2"]
        assert (connection.close_code, connection.close_reason) == (1000, "")
        async with connect(bad) as connection:
            with pytest.raises(ConnectionClosedError) as error:
                async for _ in connection:
                    pass
        assert isinstance(error.value, websockets.ConnectionClosedError)
        assert (error.value.rcvd.code, error.value.rcvd.reason) == (1011, "why")
        assert error.value.rcvd_then_sent is True

    run(main(server(count), server(fail)))


def test_closing(run, server):
    async def main(url):
        connection = await connect(url)
        assert connection.state is State.OPEN and connection.close_code is None
        with pytest.raises(ProtocolError):
            await connection.close(1005)
        with pytest.raises(ProtocolError):
            await connection.close(1000, "x" * 124)
        await connection.close(4000, "bye")
        await connection.close()
        await connection.wait_closed()
        assert connection.state is State.CLOSED and connection.close_code == 4000
        for attempt in (connection.recv, lambda: connection.send("x"), connection.ping):
            with pytest.raises(ConnectionClosedError) as error:
                await attempt()
        assert error.value.sent.code == 4000 and error.value.rcvd_then_sent is False
        assert connection.fileno() == -1

    run(main(server()))


def test_close_ends_even_if_the_server_does_not(run, script):
    def deaf(sock):
        upgrade(sock)
        read_all(sock)

    async def main(url):
        connection = await connect(url, close_timeout=0.05)
        await connection.close()
        with pytest.raises(ConnectionClosedError):
            await connection.recv()
        assert connection.close_code == 1006

    run(main(script(deaf)))


def test_pings(run, server):
    async def main(url):
        async with connect(url) as connection:
            first = await connection.ping("same")
            with pytest.raises(ConcurrencyError):
                await connection.ping("same")
            second = await connection.ping()
            assert await second >= 0 and first.done()
            assert connection.latency >= 0
            with pytest.raises(ProtocolError):
                await connection.ping("x" * 126)
            await connection.pong()

    run(main(server()))


def test_a_server_that_answers_no_ping_is_given_up(run, script):
    def deaf(sock):
        upgrade(sock)
        read_all(sock)

    async def main(url):
        async with connect(url, ping_interval=0.01, ping_timeout=0.01) as connection:
            with pytest.raises(ConnectionClosedError) as error:
                await connection.recv()
        assert error.value.sent.code == 1011 and "ping" in error.value.sent.reason

    run(main(script(deaf)))


BAD_FRAMES = {
    "text that is not UTF-8": (b"\x81\x01\xff", 1007),
    "a reserved bit": (b"\xc1\x01x", 1002),
    "a reserved opcode": (b"\x83\x00", 1002),
    "a mask": (b"\x81\x81\x00\x00\x00\x00x", 1002),
    "a close code that may not be sent": (b"\x88\x02\x03\xed", 1002),
    "half a close code": (b"\x88\x01\x03", 1002),
    "a close reason that is not UTF-8": (b"\x88\x03\x03\xe8\xff", 1007),
    "a long ping": (b"\x89\x7e\x00\x7e" + b"x" * 126, 1002),
    "a fragmented ping": (b"\x09\x00", 1002),
    "a continuation of nothing": (b"\x80\x01x", 1002),
    "a message inside a message": (b"\x01\x01x\x81\x01y", 1002),
    "a length with its top bit": (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff12", 1002),
    "a length beyond all memory": (b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff12", 1009),
    "a length not in the shortest form": (b"\x82\x7e\x00\x01x", 1002),
    "a message over max_size": (b"\x82\x7e\x04\x01", 1009),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_server_that_breaks_the_protocol(run, script, name):
    frame, code = BAD_FRAMES[name]
    closes = queue.Queue()

    def broken(sock):
        upgrade(sock)
        sock.sendall(b"\x81\x02ok" + frame)
        closes.put(read_all(sock))

    async def main(url):
        connection = await connect(url, max_size=1024, close_timeout=0.05)
        assert await connection.recv() == "ok"
        with pytest.raises(ConnectionClosedError) as error:
            await connection.recv()
        assert error.value.sent.code == code and error.value.rcvd is None
        kind = PayloadTooBig if code == 1009 else ProtocolError
        assert isinstance(error.value.__cause__, kind)
        await connection.wait_closed()

    run(main(script(broken)))
    frame = closes.get(timeout=10)
    mask, masked = frame[2:6], frame[6:8]
    assert frame[0] == 0x88 and bytes(a ^ b for a, b in zip(mask, masked)) == code.to_bytes(2, "big")


def test_messages_of_max_size_pass(run, script):
    def largest(sock):
        upgrade(sock)
        sock.sendall(b"\x82\x7e\x04\x00" + b"x" * 1024 + b"\x88\x02\x03\xe8")
        read_all(sock)

    async def main(url):
        async with connect(url, max_size=1024, close_timeout=0.05) as connection:
            assert len(await connection.recv()) == 1024
            with pytest.raises(ConnectionClosedOK):
                await connection.recv()

    run(main(script(largest)))


def test_headers_can_not_be_injected(run, script):
    heads = []

    def refuse(sock):
        heads.append(read_head(sock))

    async def main(url):
        for headers in [{"X": "a\r\nEvil: 1"}, {"X\r\nEvil": "1"}, [("X", "a\nb")]]:
            with pytest.raises(ValueError):
                await connect(url, additional_headers=headers)
        with pytest.raises(ValueError):
            await connect(url, origin="http://a\r\nEvil: 1")
        with pytest.raises(ValueError):
            await connect(url, subprotocols=["a\r\nEvil: 1"])
        with pytest.raises(InvalidMessage):
            await connect(url + "a%0d%0aEvil: 1?x=\u20ac", proxy=None)

    run(main(script(refuse)))
    assert len(heads) == 1 and b"\nEvil" not in heads[0]


def test_handshakes(run, server, script):
    async def main(url, plain):
        async with connect(
            url, subprotocols=["b", "a"], additional_headers={"X-Test": "1"}, origin="http://o"
        ) as connection:
            assert connection.subprotocol == "a"
            assert "deflate" in connection.response.headers["Sec-WebSocket-Extensions"]
            assert connection.remote_address[1] == int(url.split(":")[2][:-1])
        async with connect(plain, compression=None) as connection:
            assert "Sec-WebSocket-Extensions" not in connection.response.headers
        for uri in ["http://x", "ws://", "ws://x/#f", "ws://x:port"]:
            with pytest.raises(InvalidURI):
                await connect(uri)
        with pytest.raises(ValueError):
            await connect(url, ssl=True)

    run(main(server(subprotocols=["a"]), server()))

    def answers(text):
        def answer(sock):
            read_head(sock)
            sock.sendall(text)

        return script(answer)

    async def refused(url, error):
        with pytest.raises(error) as raised:
            await connect(url, open_timeout=5)
        return raised.value

    full = b"HTTP/1.1 503 Busy\r\nX: 1\r\nContent-Length: 2\r\n\r\nno"
    error = run(refused(answers(full), InvalidStatus))
    assert (error.response.status_code, error.response.body) == (503, b"no")
    assert error.response.headers["x"] == "1"
    assert isinstance(error, websockets.InvalidStatus)
    run(refused(answers(b""), InvalidMessage))
    run(refused(answers(b"SSH-2.0\r\n\r\n"), InvalidMessage))
    wrong = b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    run(refused(answers(wrong + b"Sec-WebSocket-Accept: x\r\n\r\n"), InvalidHeaderValue))
    run(refused(answers(wrong + b"\r\n"), InvalidHeader))
    run(refused(answers(b"HTTP/1.1 101 S\r\nUpgrade: h2c\r\n\r\n"), InvalidUpgrade))
    asked = wrong + b"Sec-WebSocket-Protocol: z\r\nSec-WebSocket-Accept: x\r\n\r\n"
    run(refused(answers(asked), InvalidHandshake))


def test_a_server_that_does_not_answer(run, script):
    async def main(url):
        with pytest.raises(TimeoutError):
            await connect(url, open_timeout=0.05)

    run(main(script(read_all)))


def test_redirects_keep_credentials_from_others(run, server, script):
    seen = []

    async def echo(connection):
        seen.append(connection.request.headers.get("Authorization"))
        await connection.wait_closed()

    target = server(echo)

    def redirect(sock):
        seen.append(b"Authorization: secret" in read_head(sock))
        sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: " + target.encode() + b"\r\n\r\n")

    async def main(url):
        async with connect(url, additional_headers={"Authorization": "secret"}):
            pass

    run(main(script(redirect)))
    assert seen == [True, None]


def test_an_http_proxy(run, server, script):
    url = server()
    heads = []

    def proxy(sock):
        heads.append(read_head(sock))
        port = int(url.rstrip("/").rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as to:
            sock.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            to.sendall(read_head(sock))
            sock.sendall(to.recv(65536))

    async def main(proxy):
        connection = await connect(url, proxy=proxy.replace("ws://", "http://u:p@"))
        assert connection.response.status_code == 101
        await connection.wait_closed()

    run(main(script(proxy)))
    assert heads[0].startswith(b"CONNECT localhost:")
    assert b"Proxy-Authorization: Basic dTpw\r\n" in heads[0]


def test_a_full_queue_stops_the_server(run, script):
    sent = []
    message = b"\x82\x7e\x40\x00" + b"x" * 0x4000

    def flood(sock):
        upgrade(sock)
        sock.settimeout(0.5)
        try:
            while len(sent) < 10_000:
                sock.sendall(message)
                sent.append(None)
        except TimeoutError:
            pass
        sock.settimeout(20)
        read_all(sock)

    async def main(url):
        connection = await connect(url, max_queue=4, close_timeout=0.2)
        while len(sent) == 0 or len(sent) != await asyncio.sleep(0.6, len(sent)):
            pass
        # The rest is in the buffers of the kernel.
        assert len(sent) < 10_000
        for _ in range(len(sent)):
            assert len(await connection.recv()) == 0x4000
        connection.abort()

    run(main(script(flood)))


def test_send_waits_for_a_server_that_does_not_read(run, script):
    reads = threading.Event()

    def slow(sock):
        upgrade(sock)
        reads.wait(20)
        read_all(sock)

    async def main(url):
        connection = await connect(url, close_timeout=0.2)
        big = b"x" * 1_000_000

        async def send():
            for _ in range(64):
                await connection.send(big)

        sender = asyncio.create_task(send())
        done, _ = await asyncio.wait([sender], timeout=0.3)
        assert not done
        reads.set()
        await sender
        connection.abort()
        with pytest.raises(ConnectionClosedError):
            await connection.send("x")

    try:
        run(main(script(slow)))
    finally:
        reads.set()


def test_on_message(run, server):
    async def main(url):
        got, done = [], asyncio.Event()

        def take(message):
            got.append(message)
            if len(got) == 3:
                done.set()

        async with connect(url, on_message=take) as connection:
            for message in ["a", b"b", "c"]:
                await connection.send(message)
            await done.wait()
        assert got == ["a", b"b", "c"]

    run(main(server()))


def test_reconnecting(run, server):
    async def once(connection):
        await connection.send("hello")

    async def main(url):
        count = 0
        async for connection in connect(url, reconnect_delays=lambda: iter([0, 0, 0])):
            assert [message async for message in connection] == ["hello"]
            count += 1
            if count == 3:
                break
        closed = "ws://127.0.0.1:9/"
        with pytest.raises(RuntimeError):
            async for _ in connect(closed, reconnect_delays=lambda: iter([0, 0])):
                pass
        with pytest.raises(OSError):
            async for _ in connect(closed, process_exception=lambda error: error):
                pass

    run(main(server(once)))


def test_a_lost_connection(run, script):
    def cut(sock):
        upgrade(sock)
        sock.sendall(b"\x81\x01a\x81")

    async def main(url):
        connection = await connect(url)
        assert await connection.recv() == "a"
        with pytest.raises(ConnectionClosedError) as error:
            await connection.recv()
        assert error.value.rcvd is None and error.value.sent is None
        assert connection.close_code == 1006

    run(main(script(cut)))


def test_frames_that_come_with_the_handshake(run, script):
    def early(sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)

        class Joined:
            recv = sock.recv

            def sendall(self, data):
                sock.sendall(data + b"\x81\x05early\x88\x02\x03\xe8")

        upgrade(Joined())
        read_all(sock)

    async def main(url):
        connection = await connect(url, close_timeout=0.05)
        assert await connection.recv() == "early"
        with pytest.raises(ConnectionClosedOK):
            await connection.recv()
        await connection.wait_closed()

    run(main(script(early)))


def test_a_unix_socket(run, tmp_path):
    async def main():
        async def echo(connection):
            await connection.send(await connection.recv())

        path = str(tmp_path / "socket")
        async with websockets.unix_serve(echo, path):
            async with connect("ws://localhost/", unix=path) as connection:
                await connection.send("x")
                assert await connection.recv() == "x"

    run(main())


@pytest.mark.parametrize("how", ["raises", "cancel", "mixed"])
def test_an_interrupted_message_closes_the_connection(run, server, how):
    async def main(url):
        begun = asyncio.Event()

        async def parts():
            yield "a"
            begun.set()
            if how == "raises":
                raise KeyError("disk")
            if how == "cancel":
                await asyncio.Event().wait()
            yield b"b"

        async with connect(url) as connection:
            sending = asyncio.ensure_future(connection.send(parts()))
            await begun.wait()
            if how == "cancel":
                sending.cancel()
            with pytest.raises((KeyError, asyncio.CancelledError, TypeError)):
                await sending
            for message in ["x", ["x"]]:
                with pytest.raises(ConnectionClosedError) as closed:
                    await connection.send(message)
                assert closed.value.sent.code == 1011

    run(main(server()))


def test_the_close_is_known_in_except(run, server):
    async def close(connection):
        await connection.recv()
        await connection.close(4001, "why")

    async def main(url):
        async with connect(url) as connection:
            await connection.send("x")
            with pytest.raises(ConnectionClosedError):
                await connection.recv()
            assert connection.state is State.CLOSED
            assert (connection.close_code, connection.close_reason) == (4001, "why")

    run(main(server(close)))


def test_the_close_is_known_after_a_long_message(run, server):
    async def big(connection):
        await connection.send("x" * 100)
        await connection.wait_closed()

    async def main(url):
        async with connect(url, max_size=10) as connection:
            with pytest.raises(ConnectionClosedError):
                await connection.recv()
            assert (connection.state, connection.close_code) == (State.CLOSED, 1006)

    run(main(server(big)))


def test_on_message_is_a_plain_function_and_takes_all(run, server):
    async def wrong(message):
        pass

    async def main(url):
        with pytest.raises(TypeError):
            connect(url, on_message=wrong)
        async with connect(url, on_message=print) as connection:
            with pytest.raises(RuntimeError):
                await connection.recv()

    run(main(server()))


def test_the_program_may_replace_host_and_origin(run, server):
    async def main(url):
        headers = {"Host": "other.example", "Origin": "https://a"}
        async with connect(url, additional_headers=headers, origin="https://b") as connection:
            assert connection.request.headers.get_all("Host") == ["other.example"]
            assert connection.request.headers.get_all("Origin") == ["https://a"]
        with pytest.raises(ValueError):
            connect(url, additional_headers={"Host": "a\r\nb: c"})

    run(main(server()))


@pytest.mark.parametrize("how", ["abort", "transport.close"])
def test_an_abort_ends_the_recv_of_another_task(run, server, how):
    async def main(url):
        connection = await connect(url)
        receiving = asyncio.create_task(connection.recv())
        await asyncio.sleep(0)
        (connection.abort if how == "abort" else connection.transport.close)()
        with pytest.raises(ConnectionClosedError):
            await receiving

    run(main(server()))


def test_a_send_inside_the_fragments_of_the_same_task_raises(run, server):
    async def main(url):
        for inner in ["inner", ["inner"]]:
            async with connect(url) as connection:

                async def parts():
                    yield "a"
                    await connection.send(inner)

                with pytest.raises(ConcurrencyError):
                    await connection.send(parts())

            async with connect(url) as connection:

                def parts_at_once():
                    yield "a"
                    connection.send(inner)

                with pytest.raises(ConcurrencyError):
                    await connection.send(parts_at_once())

    run(main(server()))


def test_messages_of_other_tasks_wait_for_the_last_fragment(run, server):
    async def main(url):
        async with connect(url) as connection:
            begun, go = asyncio.Event(), asyncio.Event()

            async def parts(first, last):
                yield first
                begun.set()
                await go.wait()
                yield last

            first = asyncio.create_task(connection.send(parts("a", "b")))
            await begun.wait()
            second = asyncio.create_task(connection.send(parts("c", "d")))
            third = asyncio.create_task(connection.send("e"))
            connection.send("f")  # Not awaited.
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(first, second, third)
            got = [await connection.recv() for _ in range(4)]
            assert got[0] == "ab" and sorted(got) == ["ab", "cd", "e", "f"]

    run(main(server()))


def frames(data):
    """The opcodes and the payloads of a client's frames."""
    found, place = [], 0
    while place < len(data):
        length = data[place + 1] & 0x7F
        begin = place + 2
        if length == 126:
            length = int.from_bytes(data[begin : begin + 2], "big")
            begin += 2
        mask, payload = data[begin : begin + 4], data[begin + 4 : begin + 4 + length]
        plain = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        found.append((data[place] & 0x0F, plain))
        place = begin + 4 + length
    return found


def test_pings_of_a_server_that_does_not_read_pile_up_nothing(run, script):
    read, pings = threading.Event(), 10_000
    got = queue.Queue()

    def flood(sock):
        upgrade(sock)
        many = [b"\x89\x7d" + b"%0125d" % number for number in range(pings)]
        for place in range(0, pings, 1000):
            sock.sendall(b"".join(many[place : place + 1000]))
        sock.sendall(b"\x81\x03all")
        read.wait(20)
        got.put(read_all(sock))

    async def main(url):
        sock = socket.create_connection(("127.0.0.1", int(url.rstrip("/").rsplit(":", 1)[1])))
        # So that the kernel takes little of what the server does not read.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        connection = await connect(url, sock=sock, compression=None, close_timeout=0.2)
        assert await connection.recv() == "all"
        assert connection._ending[4] < 10_000
        read.set()
        # The answer to the last one leaves, too.
        while connection._ending[4] > 0:
            await asyncio.sleep(0.01)
        await connection.close()

    try:
        run(main(script(flood)))
    finally:
        read.set()
    pongs = [payload for opcode, payload in frames(got.get(timeout=20)) if opcode == 0x0A]
    assert pongs == sorted(pongs) and pongs[0] == b"%0125d" % 0
    assert pongs[-1] == b"%0125d" % (pings - 1)


def test_a_send_that_was_lost_raises(run, script):
    import struct

    go = threading.Event()

    def reset(sock):
        upgrade(sock)
        go.wait(20)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def main(url):
        connection = await connect(url, compression=None)
        sending = asyncio.create_task(connection.send(b"x" * 30_000_000))
        await asyncio.sleep(0.05)
        go.set()
        with pytest.raises(ConnectionClosedError):
            await sending
        with pytest.raises(ConnectionClosedError):
            await connection.send("x")

    run(main(script(reset)))


def test_a_send_that_waits_while_another_task_aborts_raises(run, script):
    def deaf(sock):
        upgrade(sock)
        go.wait(20)

    go = threading.Event()

    async def main(url):
        connection = await connect(url, compression=None)
        sending = asyncio.create_task(connection.send(b"x" * 30_000_000))
        await asyncio.sleep(0)
        connection.abort()
        with pytest.raises(ConnectionClosedError):
            await sending

    try:
        run(main(script(deaf)))
    finally:
        go.set()


def test_a_queue_of_no_message_gives_messages(run, server):
    async def main(url):
        async with connect(url, max_queue=0) as connection:
            for number in range(3):
                await connection.send(str(number))
            assert [await connection.recv() for _ in range(3)] == ["0", "1", "2"]
        with pytest.raises(ValueError):
            connect(url, max_queue=-1)
        async with connect(url, write_limit=None) as connection:
            await connection.send("x")
            assert await connection.recv() == "x"

    run(main(server()))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes_on_message(run, script, kind):
    def two(sock):
        upgrade(sock)
        sock.recv(100)
        sock.sendall(b"\x81\x01a\x81\x01b")
        read_all(sock)

    got = []

    def take(message):
        got.append(message)
        if message == "a":
            raise kind

    async def main(url):
        async with connect(url, on_message=take, close_timeout=0.1) as connection:
            await connection.send("go")
            await asyncio.sleep(20)

    with pytest.raises(kind):
        run(main(script(two)))
    # While the loop ends its tasks, it goes on.
    assert got == ["a", "b"]


def test_a_callback_that_fails_is_reported_and_the_next_message_comes(run, server):
    async def main(url):
        reports, got, done = [], [], asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reports.append(context["exception"])
        )

        def take(message):
            got.append(message)
            if message == "a":
                raise KeyError(message)
            done.set()

        async with connect(url, on_message=take) as connection:
            for message in "ab":
                await connection.send(message)
            await done.wait()
        assert got == ["a", "b"] and [type(report) for report in reports] == [KeyError]

    run(main(server()))


def test_hosts_and_ports_that_can_not_be(run):
    async def main():
        for uri in ["ws://x:0/", "ws://\u20ac..x/", "ws://" + "\u00fc" * 80 + "/", "ws://a b/"]:
            with pytest.raises(InvalidURI):
                await connect(uri)

    run(main())


def test_fragments_are_received_as_they_arrive(run, script):
    go = threading.Event()

    def parts(sock):
        upgrade(sock)
        sock.sendall(b"\x01\x02ab\x89\x01p\x00\x00\x00\x03c\xe2\x82")
        go.wait(20)
        sock.sendall(b"\x80\x03\xacde\x02\x01x\x80\x01y\x82\x01z\x01\x01q\x80\x01r")
        read_all(sock)

    async def main(url):
        connection = await connect(url, close_timeout=0.1)
        fragments = connection.recv_streaming()
        assert [await fragments.__anext__() for _ in range(3)] == ["ab", "", "c"]
        # The rest is for who has received the start.
        others = [connection.recv(), connection.recv_streaming().__anext__()]
        for other in [*others, connection.__aiter__().__anext__()]:
            with pytest.raises(ConcurrencyError):
                await other
        go.set()
        assert [fragment async for fragment in fragments] == ["\u20acde"]
        assert [fragment async for fragment in connection.recv_streaming()] == [b"x", b"y"]
        assert [fragment async for fragment in connection.recv_streaming()] == [b"z"]
        assert await connection.recv() == "qr"
        await connection.close()

    try:
        run(main(script(parts)))
    finally:
        go.set()


def test_fragments_may_be_converted(run, script):
    def parts(sock):
        upgrade(sock)
        sock.sendall(b"\x02\x02a\xe2\x80\x02\x82\xac" + b"\x01\x01a\x80\x01b" + b"\x82\x01\xff")
        read_all(sock)

    async def main(url):
        connection = await connect(url, close_timeout=0.1)
        assert [part async for part in connection.recv_streaming(decode=True)] == ["a", "\u20ac"]
        assert [part async for part in connection.recv_streaming(decode=False)] == [b"a", b"b"]
        with pytest.raises(ValueError):
            [part async for part in connection.recv_streaming(decode=True)]
        connection.abort()

    run(main(script(parts)))


def test_compressed_fragments_arrive_one_by_one(run, server):
    parts = [f"part {number} ".encode() * 500 for number in range(4)]

    async def main(url):
        async with connect(url) as connection:
            got = []
            async for fragment in connection.recv_streaming():
                got.append(fragment)
                # The server sends the next one when it is told to.
                await connection.send("next")
            assert b"".join(got) == b"".join(parts) and len(got) >= 4

    async def handler(connection):
        async def each():
            for part in parts:
                yield part
                await connection.recv()

        await connection.send(each())
        await connection.recv()

    run(main(server(handler)))


def test_more_fragments_than_the_queue_holds_are_one_message(run, script):
    def parts(sock):
        upgrade(sock)
        sock.sendall(b"\x02\x01a" + b"\x00\x01b" * 50_000 + b"\x00\x00" * 50_000 + b"\x80\x01c")
        sock.sendall(b"\x82\x01d")
        read_all(sock)

    async def main(url, streams):
        connection = await connect(url, max_queue=2, close_timeout=0.1)
        whole = b"a" + b"b" * 50_000 + b"c"
        if streams:
            assert b"".join([part async for part in connection.recv_streaming()]) == whole
        else:
            assert await connection.recv() == whole
        assert await connection.recv() == b"d"
        await connection.close()

    for streams in [False, True]:
        run(main(script(parts), streams))


def test_a_slow_reader_of_fragments_stops_the_server(run, script):
    sent, fragment = [], b"\x00\x7e\x40\x00" + b"x" * 0x4000

    def flood(sock):
        upgrade(sock)
        sock.sendall(b"\x02\x00")
        sock.settimeout(0.5)
        try:
            while len(sent) < 10_000:
                sock.sendall(fragment)
                sent.append(None)
        except TimeoutError:
            pass
        sock.settimeout(20)
        read_all(sock)

    async def main(url):
        connection = await connect(url, max_queue=4, max_size=None, close_timeout=0.2)
        fragments = connection.recv_streaming()
        assert await fragments.__anext__() == b""
        while len(sent) == 0 or len(sent) != await asyncio.sleep(0.6, len(sent)):
            pass
        assert len(sent) < 10_000
        for _ in range(len(sent) // 2):
            assert len(await fragments.__anext__()) == 0x4000
        connection.abort()

    run(main(script(flood)))


def test_a_message_that_ends_early_is_not_received(run, script):
    def cut(sock):
        upgrade(sock)
        sock.sendall(b"\x02\x01a\x00\x01b")

    async def main(url):
        connection = await connect(url)
        got = []
        with pytest.raises(ConnectionClosedError):
            async for part in connection.recv_streaming():
                got.append(part)
        assert got == [b"a", b"b"]
        with pytest.raises(ConnectionClosedError):
            await connection.recv()
        connection = await connect(url)
        with pytest.raises(ConnectionClosedError):
            await connection.recv()

    run(main(script(cut)))


def test_large_messages_arrive_whole_however_they_are_cut(run, script):
    chance = random.Random(5)
    sizes = [0, 1, 65_535, 65_536, 131_072, 200_000, 262_144, 1 << 20, 3_000_001, 40]
    messages = [chance.randbytes(size) for size in sizes * 2]

    def send(sock):
        upgrade(sock)
        stream = bytearray()
        for message in messages:
            size = len(message)
            stream += b"\x82"
            if size < 126:
                stream += bytes([size])
            elif size < 65_536:
                stream += b"\x7e" + size.to_bytes(2, "big")
            else:
                stream += b"\x7f" + size.to_bytes(8, "big")
            stream += message
        place = 0
        while place < len(stream):
            end = place + chance.choice([1, 9, 5_000, 70_000, 400_000, 2_000_000])
            sock.sendall(stream[place:end])
            place = end
        read_all(sock)

    async def main(url):
        connection = await connect(url, max_size=None, max_queue=2, close_timeout=0.1)
        for message in messages:
            got = await connection.recv()
            assert type(got) is bytes and got == message
        await connection.close()

    run(main(script(send)))


def test_a_large_message_that_is_cut_short_ends_the_connection(run, script):
    def cut(sock):
        upgrade(sock)
        sock.sendall(b"\x82\x7f" + (1 << 20).to_bytes(8, "big") + b"x" * 500_000)

    async def main(url):
        connection = await connect(url, max_size=None)
        with pytest.raises(ConnectionClosedError):
            await connection.recv()

    run(main(script(cut)))


def test_a_header_alone_reserves_little(run, script):
    def claim(sock):
        upgrade(sock)
        sock.sendall(b"\x82\x7f" + (1 << 40).to_bytes(8, "big") + b"x" * 300_000)
        read_all(sock)

    async def main(url):
        connection = await connect(url, max_size=None, close_timeout=0.1)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(connection.recv(), 0.2)
        connection.abort()

    run(main(script(claim)))
