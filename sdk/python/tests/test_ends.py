"""How sessions, stays and subscriptions end, and what is asked of them then."""

import asyncio
import signal
import threading
import time
import urllib.request

import pytest
from conftest import gate

import playfield
import playfield.sync
from playfield import Refused, SchemaError
from playfield.status import AttemptFailed, Ended


@pytest.fixture(scope="module")
def cards(example):
    """The address of a node that serves the room type `table`."""
    return example("cards")


@pytest.fixture(scope="module")
def lab(controls):
    """The URL of a node that serves the room type `lab`, and channels."""
    with urllib.request.urlopen(controls + "/link", timeout=20) as answer:
        return f"tcp://{answer.read().decode()}"


def test_a_client_hears_why_it_is_no_longer_in_a_room(run, lab):
    async def main():
        async with playfield.connect(lab) as ann, playfield.connect(lab) as bob:
            here = await ann.create("lab")
            there = await bob.join(here.id)
            heard = []
            there.on("Ending", lambda ending: heard.append("ending"))
            dropped = there.on_left(lambda why: heard.append("dropped"))
            there.on_left(heard.append)
            there.off(dropped)
            await here.request("Kick", {"player": there.player, "text": "too loud"})
            with pytest.raises(Refused):
                await there.until(lambda state: False)
            assert heard == [there.left] and (there.left.code, there.left.text) == (
                "kicked",
                "too loud",
            )
            # Who asks late is answered too.
            late = asyncio.Queue()
            there.on_left(late.put_nowait)
            assert await late.get() is there.left

            again = await bob.join(here.id)
            again.on("Ending", lambda ending: heard.append("ending"))
            again.on_left(lambda why: heard.append(why.code))
            here.on_left(lambda why: heard.append(f"mine: {why.code}"))
            await here.send("Close", {"text": "good night"})
            for room in [here, again]:
                with pytest.raises(Refused):
                    await room.until(lambda state: False)
            assert sorted(heard[1:], key=str) == ["ending", "mine: room_closed", "room_closed"]
            assert heard.index("ending") < heard.index("room_closed")
            last = await ann.create("lab")
            last.on_left(lambda why: heard.append(f"last: {why.code}"))
        assert heard[-1] == "last: left"

    run(main())


def test_options_are_checked_before_a_room_is_asked_for(run, lab):
    """The session asks for the schema first, and again in each new session."""

    async def main():
        async with playfield.connect(lab) as client:
            for options, why in [
                ({"greting": "hi"}, 'the options has no field "greting"; its fields: greeting'),
                ({}, 'the options lacks its field "greeting"'),
                ({"greeting": 7}, "the options: "),
            ]:
                for create in [client.create, client.join_or_create]:
                    with pytest.raises(SchemaError) as wrong:
                        await create("lab", options, key=f"options {id(run)}")
                    assert str(wrong.value).startswith(why)
            assert not any(of.key == f"options {id(run)}" for of in await client.list("lab"))
            await client.create("lab", {"greeting": "hi"})

    run(main())


def test_blocking_code_hears_it_too(lab):
    with playfield.sync.connect(lab) as client:
        room, heard = client.create("lab"), threading.Event()
        room.on_left(lambda why: why.code == "left" and heard.set())
        room.leave()
        assert heard.wait(10)


def test_a_lost_connection_is_not_waited_for(run, cards):
    async def main():
        async with gate(cards) as way:
            client = await playfield.connect(f"tcp://{way.address}", backoff=(60, 60))
            table, news = await client.create("table"), asyncio.Queue()
            client.on_status(news.put_nowait)
            way.cut()
            assert await news.get() == "lost"
            began = time.monotonic()
            await client.close()
            # It would be five seconds.
            assert time.monotonic() - began < 4
            assert client.ended.code == "left" and table.left.code == "left"

    run(main())


def test_closing_ends_the_waits_of_other_threads(cards):
    client = playfield.sync.connect(f"tcp://{cards}")
    table, events = client.create("table"), client.events()
    ready, found = threading.Barrier(5), []

    def wait(doing):
        ready.wait()
        try:
            doing()
        except playfield.PlayfieldError as error:
            found.append((type(error), error.code, str(error)))

    waits = [
        table.changed,
        lambda: table.until(lambda state: False),
        lambda: table.events().next(),
        lambda: client.wait_for("lost"),
    ]
    threads = [threading.Thread(target=wait, args=[doing]) for doing in waits]
    for thread in threads:
        thread.start()
    ready.wait()
    client.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(found) == 4 and {code for _, code, _ in found} == {"left"}
    # What had come before is there to be taken.
    assert [type(event) for event in events] == [Ended]
    with pytest.raises(StopIteration):
        events.next()


def test_a_channel_takes_one_kind_of_payload(run, lab):
    async def main():
        async with playfield.connect(lab) as client:
            name = f"bytes:{id(run)}"
            # The client asks for the kind.
            await client.publish(name, b"one")
            await client.publish_unconfirmed(name, b"two")
            async with await client.subscribe(name) as here:
                history = await here.history()
                assert [past.payload for past in history.publications] == [b"one", b"two"]
                with pytest.raises(SchemaError, match="takes bytes, not a JSON value"):
                    await here.publish("AAAA")
            name = f"talk:{id(run)}"
            for publish in [client.publish, client.publish_unconfirmed]:
                with pytest.raises(
                    SchemaError, match=f"channel {name} takes JSON values, not bytes"
                ):
                    await publish(name, b"one")
            async with await client.subscribe(name) as here:
                with pytest.raises(SchemaError):
                    await here.publish(bytearray(b"one"))
                assert (await here.history()).publications == []
            # Who may not ask does not guess.
            with pytest.raises(SchemaError, match="publish their base64 as a str"):
                await client.publish("sealed:x", b"one")
            await client.publish("sealed:x", "b25l")
            with pytest.raises(Refused) as refused:
                await client.publish("nothing", b"one")
            assert refused.value.code == "unknown_channel"

    run(main())


def test_what_was_missed_is_unknown_after_a_restart(run, example):
    async def main():
        async with gate(example("talk")) as way:
            name, token = {"name": "ann", "token": "apple"}, f"talk:again-{id(run)}"
            async with playfield.connect(
                f"tcp://{way.address}", backoff=(0.01, 0.05), **name
            ) as one:
                talk, heard = await one.subscribe(token), asyncio.Queue()
                talk.on_subscribed(heard.put_nowait)
                target = way.target
                way.cut()
                way.target = target
                assert await heard.get() == playfield.Subscribed(True, 0, 1)
                way.cut()
                way.target = example("talk", 2)
                news = await heard.get()
                assert (news.recovered, news.missed) == (False, None) and talk.missed == 0

    run(main())


#: What a node says at its end, and what a client makes of it if it says nothing.
CODES = {signal.SIGTERM: {"shutting_down", "room_closed"}, signal.SIGKILL: {"connection_lost"}}


@pytest.fixture(params=list(CODES))
def ending(request):
    """How a node ends."""
    return request.param


async def restart(way, example, number, ending):
    """Ends the node, and starts another, which knows nothing of it. Returns its address."""
    way.target = None
    example.stop("cards", number, ending)
    return await asyncio.to_thread(example, "cards", number)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_request_ends_with_the_node(run, example, scheme, ending):
    async def main():
        number = f"restart {scheme} {ending} {id(run)}"
        async with gate(example("cards", number)) as way:
            url, backoff = f"{scheme}://{way.address}", (0.01, 0.05)
            async with (
                playfield.connect(url, backoff=backoff) as client,
                playfield.connect(url, backoff=backoff) as other,
            ):
                events = client.events()
                table = await client.create("table")
                beside = await other.join(table.id)
                # It is answered once the other player accepts, so never.
                trade = {"place": 0, "with": beside.player}
                asked = asyncio.ensure_future(table.request("Trade", trade))
                await client.ping()
                later = await restart(way, example, number, ending)
                while not isinstance(await anext(events), AttemptFailed):
                    pass
                # It may wait for the connection to be restored, and then ends too.
                late = asyncio.ensure_future(table.request("Play", {"place": 0}))
                await asyncio.sleep(0)
                way.target = later
                for request in [asked, late]:
                    with pytest.raises(Refused) as refused:
                        await request
                    assert {refused.value.code, table.left.code} <= CODES[ending]
                await client.wait_for("connected")
                assert await (await client.create("table")).request("Play", {"place": 0})

    run(main())


def test_a_request_of_blocking_code_ends_with_the_node(example, ending):
    async def main():
        number = f"restart sync {ending}"
        async with gate(example("cards", number)) as way:
            url, backoff = f"tcp://{way.address}", (0.01, 0.05)
            connect = asyncio.to_thread(playfield.sync.connect, url, backoff=backoff)
            async with playfield.connect(url, backoff=backoff) as other:
                client = await connect
                table = await asyncio.to_thread(client.create, "table")
                beside = await other.join(table.id)
                trade = {"place": 0, "with": beside.player}
                asked = asyncio.ensure_future(asyncio.to_thread(table.request, "Trade", trade))
                while not client._asked:
                    await asyncio.sleep(0)
                await asyncio.to_thread(client.ping)
                way.target = await restart(way, example, number, ending)
                with pytest.raises(Refused) as refused:
                    await asked
                assert {refused.value.code, table.left.code} <= CODES[ending]

                def go_on():
                    with client:
                        client.wait_for("connected", timeout=20)
                        assert client.create("table").request("Play", {"place": 0}, timeout=20)

                await asyncio.to_thread(go_on)

    asyncio.run(asyncio.wait_for(main(), 60))
