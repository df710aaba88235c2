"""The asynchronous client."""

import asyncio
import queue
import random
import socket

import pytest
import websockets
from conftest import read_all, read_head, upgrade

from playfield.websocket import (
    ConcurrencyError,
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidMessage,
    InvalidStatus,
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
    run(refused(answers(wrong + b"Sec-WebSocket-Accept: x\r\n\r\n"), InvalidMessage))


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
    import threading

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
