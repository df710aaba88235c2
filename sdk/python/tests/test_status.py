"""What a client does when its connection is lost, and says of it: against the example `cards`."""

import asyncio
import base64
import json
import time

import pytest
from conftest import ROOT, gate

import playfield
import playfield.sync
from playfield.status import AttemptFailed, Ended, Lost, NewSession, Resumed


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_node_that_restarts_is_survived(run, example, scheme):
    async def main():
        async with gate(example("cards")) as way:
            url = f"{scheme}://{way.address}"
            async with playfield.connect(url, backoff=(0.01, 0.05)) as client:
                events = client.events()
                table = await client.create("table")
                waiting = asyncio.ensure_future(client.wait_for("new_session"))
                await asyncio.sleep(0)
                way.cut()
                lost = await anext(events)
                assert isinstance(lost, Lost) and lost.error.code == "connection_lost"
                assert client.status == "lost"
                asked = asyncio.ensure_future(table.request("Play", {"place": 0}))
                for _ in range(3):
                    assert isinstance(await anext(events), AttemptFailed)
                # Another process, which knows nothing of the session.
                way.target = example("cards", 2)
                while isinstance(news := await anext(events), AttemptFailed):
                    pass
                assert isinstance(news, NewSession) and news.away > 0 and news.unconfirmed == 0
                await waiting
                await client.wait_for("connected")
                with pytest.raises(playfield.Refused) as refused:
                    await asked
                assert refused.value.code == "connection_lost"
                assert table.left.code == "connection_lost"
                # The last copy stays, though nobody has read it before.
                assert len(table.state.hands[str(table.player)]) == 5
                again = await client.create("table")
                assert await again.request("Play", {"place": 0})

    run(main())


def test_the_bot_of_the_documentation_outlasts_a_node_that_is_stopped(run, example):
    text = (ROOT / "docs" / "python.md").read_text()
    code = next(part for part in text.split("```") if "await play(table)" in part)

    async def main():
        tables = asyncio.Queue()

        async def play(table):
            assert await table.request("Play", {"place": 0})
            tables.put_nowait(table)
            await table.until(lambda state: False)

        number = f"stopped {id(run)}"
        async with gate(example("cards", number)) as way:
            bot = {"asyncio": asyncio, "playfield": playfield, "play": play}
            url = code.removeprefix("python\n").replace("127.0.0.1:7350", way.address)
            exec(compile(url, "docs/python.md", "exec"), bot)
            playing = asyncio.ensure_future(bot["main"]())
            table = await tables.get()
            statuses, old = asyncio.Queue(), table.id
            table.on_status(statuses.put_nowait)
            async with playfield.connect(f"tcp://{way.address}") as other:
                once = await other.join(old)
                example.stop("cards", number)
                with pytest.raises(playfield.Refused):
                    await once.until(lambda state: False)
                assert once.left.code == "shutting_down"
                assert "left: shutting_down" in repr(once)
                way.target = await asyncio.to_thread(example, "cards", number)
            assert [await statuses.get(), await statuses.get()] == ["lost", "joined"]
            assert not playing.done() and table.left is None and table.id != old
            assert await table.request("Play", {"place": 0})
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    run(main())


def test_a_session_that_goes_on_is_told_with_what_is_lost(run, example):
    async def main():
        async with gate(example("cards")) as way:
            async with playfield.connect(f"tcp://{way.address}") as client:
                table = await client.create("table")
                events = client.events()
                target = way.target
                way.cut()
                assert isinstance(await anext(events), Lost)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.wait_for("connected"), 0)
                way.target = target
                while isinstance(news := await anext(events), AttemptFailed):
                    pass
                assert isinstance(news, Resumed) and news.away > 0 and news.lost == []
                assert await table.request("Play", {"place": 0})
            last = [event async for event in events]
            assert isinstance(last[-1], Ended) and client.ended is last[-1].error
            assert [event async for event in client.events()] == []

    run(main())


@pytest.mark.parametrize("reconnect_timeout", [0, 0.2])
def test_it_gives_up_in_the_end(run, example, reconnect_timeout):
    async def main():
        async with gate(example("cards")) as way:
            client = await playfield.connect(
                f"tcp://{way.address}", reconnect_timeout=reconnect_timeout, backoff=(0.01, 0.01)
            )
            table = await client.create("table")
            events = client.events()
            changed = asyncio.ensure_future(table.changed())
            way.cut()
            await client.wait_for("ended")
            assert client.status == "ended" and client.ended.code == "connection_lost"
            found = [event async for event in events]
            assert isinstance(found[-1], Ended)
            if reconnect_timeout:
                # However many attempts there was time for; why the last failed is in the error.
                kinds = [type(event) for event in found[:-1]]
                assert kinds == [Lost] + [AttemptFailed] * (len(found) - 2)
                assert "could not be restored in 0 s" in str(client.ended)
            with pytest.raises(playfield.Refused) as refused:
                await changed
            assert refused.value.code == "connection_lost"
            for status in ["connected", "resumed"]:
                with pytest.raises(playfield.SessionEnded):
                    await client.wait_for(status)
            with pytest.raises(playfield.SessionEnded):
                await client.join_or_create("table")
            with pytest.raises(ValueError):
                await client.wait_for("lsot")
            await client.close()

    run(main())


def test_a_token_is_asked_for_when_it_is_about_to_expire_and_not_for_each_connection(run, example):
    async def main():
        asked = []

        def expires():
            """A JSON Web Token that is to be renewed in a moment."""
            claims = json.dumps({"exp": time.time() + 10.05}).encode()
            return f"a.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.b"

        async def fails_once():
            asked.append(1)
            if len(asked) == 2:
                raise LookupError("no token now")
            return expires()

        def plain():
            asked.append(1)
            return b"secret"

        for token in [fails_once, plain, lambda: fails_once()]:
            asked.clear()
            async with gate(example("cards")) as way:
                url, target = f"tcp://{way.address}", way.target
                async with playfield.connect(url, token=token, backoff=(0.01, 0.01)) as client:
                    events = client.events()
                    assert len(asked) == 1
                    renewed_at = time.time() + 0.06
                    while time.time() < renewed_at:
                        await asyncio.sleep(0.01)
                    way.cut()
                    assert isinstance(await anext(events), Lost)
                    way.target = target
                    failures = []
                    while isinstance(news := await anext(events), AttemptFailed):
                        failures.append(str(news.error))
                    assert isinstance(news, Resumed)
                    assert ("no token now" in failures) == (token is not plain)
                    assert len(asked) == 1 if token is plain else len(asked) >= 2

        async def never():
            await asyncio.sleep(3600)

        url = f"tcp://{example('cards')}"
        with pytest.raises(ZeroDivisionError):
            await playfield.connect(url, token=lambda: 1 / 0)
        with pytest.raises(TimeoutError):
            await playfield.connect(url, token=never, open_timeout=0.05)

    run(main())


def test_blocking_code_waits_for_a_status(example):
    with playfield.sync.connect(f"tcp://{example('cards')}", reconnect_timeout=30) as client:
        client.wait_for("connected")
        table, events = client.create("table"), client.events()
        with pytest.raises(TimeoutError):
            client.wait_for("lost", timeout=0.01)
        client._thread.run(lambda: client._writer.transport.abort())
        assert isinstance(events.next(10), Lost)
        while isinstance(news := events.next(10), AttemptFailed):
            pass
        assert isinstance(news, Resumed)
        assert table.request("Play", {"place": 0})
    assert client.ended is not None


def test_refusals_are_not_written_to_the_console(run, example, capfd):
    async def main():
        async with playfield.connect(f"tcp://{example('cards')}") as client:
            table = await client.create("table")
            refused = asyncio.Queue()
            table.on_refused(refused.put_nowait)
            await table.send("Play", {"place": 99})
            assert (await refused.get()).text == "you have no card at this place"
            news = asyncio.Queue()
            client.on_refused(news.put_nowait)
            await client.publish_unconfirmed("nothing:here", 1)
            assert (await news.get()).code == "unknown_channel"
            # It is no reason for the end.
            await client.close()
            assert isinstance(client.ended, playfield.SessionEnded)

    run(main())
    assert capfd.readouterr() == ("", "")
