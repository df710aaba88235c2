"""The order of what happens: nothing is lost between an answer and the functions that the program then
gives, however much comes with the answer."""

import asyncio
import concurrent.futures
import threading
import urllib.request

import pytest

import playfield
import playfield.sync
from playfield._early import BYTES_MAX, Early
from playfield._feed import WAITING_MAX
from playfield._playfield import Event
from playfield.channels import Missed, Presence, Publication, Subscribed

from conftest import OfJson
from test_channels import ann, bob
from test_devices import post


# Kinds of messages: their first byte.
LEFT, EVENT, SNAPSHOT, PATCH, SUBSCRIBED = 0x44, 0x46, 0x47, 0x48, 0x50


class Held:
    """A core to which all that is received comes at once, in :meth:`release`."""

    def __init__(self, client):
        self._client, self._core, self._data = client, client._core, b""
        self._arrived = asyncio.Event()
        client._core = self

    def __getattr__(self, name):
        return getattr(self._core, name)

    def received(self, now, data):
        self._data += data
        self._arrived.set()

    async def until(self, wanted):
        """A message of this kind, or these bytes, have come; or the last patches and events are these."""
        while not self._has(wanted):
            self._arrived.clear()
            await self._arrived.wait()

    def _has(self, wanted):
        if isinstance(wanted, list):
            kinds = [kind for kind in self._kinds() if kind in (PATCH, EVENT)]
            return kinds[-len(wanted) :] == wanted
        return wanted in (self._data if isinstance(wanted, bytes) else self._kinds())

    def _kinds(self):
        kinds, at = [], 0
        while at + 4 < len(self._data):
            kinds.append(self._data[at + 4])
            at += 4 + int.from_bytes(self._data[at : at + 4], "little")
        return kinds

    def release(self):
        self._client._core = self._core
        self._client._received(self._client._writer, self._data)


@pytest.fixture(scope="module")
def cards(example):
    return f"tcp://{example('cards')}"


@pytest.fixture(scope="module")
def talk(example):
    return f"tcp://{example('talk')}"


@pytest.mark.parametrize("way", ["on", "events", "iteration"])
def test_what_comes_with_a_subscription_is_heard(run, talk, way):
    async def main():
        name = f"talk:order-{id(run)}"
        async with ann(talk) as one:
            async with bob(talk) as two:
                start = (await two.subscribe(name)).position
                for number in range(3):
                    await two.publish(name, number)
                held = Held(one)
                asked = asyncio.ensure_future(one.subscribe(name, since=start, presence=True))
                await held.until(SUBSCRIBED)
                await two.publish(name, "last")
                await held.until(b'"last"')
                held.release()
                here = await asked
                got = []
                if way == "on":
                    heard = asyncio.Queue()
                    here.on(heard.put_nowait)
                    while len(got) < 4:
                        got.append((await heard.get()).payload)
                    assert not here._feed._items
                elif way == "events":
                    async for event in here.events():
                        if isinstance(event, Publication):
                            got.append(event.payload)
                        if len(got) == 4:
                            break
                else:
                    async for event in here:
                        got.append(event.payload)
                        if len(got) == 4:
                            break
                assert got == [0, 1, 2, "last"]

    run(main())


def happen(client, number):
    """A publication, a presence, a loss, another publication and a new beginning, in one read."""
    handle_all(
        client,
        Event.Publication(number, 1, None, b"1"),
        Event.Presence(number, 1, True, (7, "ann", "Ann")),
        Event.PublicationsMissed(number, 3),
        Event.Publication(number, 5, None, b"5"),
        Event.Subscribed(number, (1, 5), True, 0, 2, False),
    )


def handle_all(client, *events):
    for event in events:
        client._handle(event)


ALL = [Publication, Presence, Missed, Publication, Subscribed]


def test_each_function_of_a_subscription_hears_what_came_before(run, talk):
    async def main():
        async with ann(talk) as client:
            here = await client.subscribe(f"talk:one-{id(run)}")
            happen(client, here._number)
            heard = []
            here.on_subscribed(heard.append)
            await asyncio.sleep(0)
            assert [type(event) for event in heard] == [Subscribed]
            here.on_presence(heard.append)
            here.on_missed(heard.append)
            here.on(heard.append)
            assert len(heard) == 1
            happen(client, here._number)
            await asyncio.sleep(0)
            kinds = [3 if event == 3 else type(event) for event in heard[1:]]
            rest = [Publication, Presence, 3, Publication]
            # The new beginning is passed on at once: it was heard before.
            assert kinds == [Subscribed, *rest, *rest]
            assert here._early._items == here._feed._items and not here._feed._items

            again = await client.subscribe(f"talk:two-{id(run)}")
            happen(client, again._number)
            events = again.events()
            await asyncio.sleep(0)
            assert [type(await events.__anext__()) for _ in ALL] == ALL
            assert not again._feed._items

            third = await client.subscribe(f"talk:three-{id(run)}")
            happen(client, third._number)
            feed = third.__aiter__()
            assert [(await feed.__anext__()).payload for _ in range(2)] == [1, 5]
            events = third.events()
            await asyncio.sleep(0)
            # The publications were iterated.
            assert [type(event) for event in events.take_all()] == [Presence, Missed, Subscribed]

    run(main())


def test_a_subscription_that_ends_at_once(run, talk):
    async def main():
        async with playfield.connect(talk) as client:
            here = await client.subscribe("talk:news")
            happen(client, here._number)
            handle_all(client, Event.Unsubscribed(here._number, "kicked", "out"))
            ends, heard = [], []
            here.on_unsubscribed(ends.append)
            here.on(heard.append)
            assert not ends and not heard
            await asyncio.sleep(0)
            assert [why.code for why in ends] == ["kicked"] and ends[0] is here.ended
            assert [publication.payload for publication in heard] == [1, 5]

    run(main())


def test_events_wait_for_who_listens_for_them(run, cards):
    async def main():
        async with playfield.connect(cards) as client:
            table = await client.create("table")
            table._copy = table._next = OfJson(*"ABC")
            table._schema, number = None, table._number

            def happen(first):
                events = [Event.Emitted(number, of, b"%d" % first) for of in range(3)]
                handle_all(client, *events, *events)

            heard = []
            happen(1)
            table.on("A", lambda value: heard.append(("A", value)))
            await asyncio.sleep(0)
            assert heard == [("A", 1)] * 2
            happen(2)
            table.on("B", lambda value: heard.append(("B", value)))
            await asyncio.sleep(0)
            assert heard == [("A", 1)] * 2 + [("A", 2)] * 2 + [("B", 1)] * 2 + [("B", 2)] * 2
            events = table.events()
            await asyncio.sleep(0)
            assert events.take_all() == [("C", 1)] * 2 + [("C", 2)] * 2
            happen(3)
            assert [name for name, _ in events.take_all()] == ["A", "B", "C"] * 2
            assert heard[8:] == [("A", 3), ("B", 3)] * 2

    run(main())


def test_what_waits_is_bounded(run):
    async def main():
        heard = []
        early = Early(asyncio.get_running_loop(), lambda kind, item: heard.append(item))
        for number in range(WAITING_MAX + 1):
            early.put("a", number)
        for _ in range(2):
            early.put("b", "large", BYTES_MAX)
        early.listen("a")
        early.release()
        assert heard == []
        early.listen("b")
        early.release()
        assert heard == ["large"]
        for number in range(WAITING_MAX + 1):
            early.put("c", number, 1)
        early.listen(None)
        early.release()
        assert heard[1:] == [*range(1, WAITING_MAX + 1)] and early._bytes == 0

    run(main())


def test_functions_are_given_one_by_one_in_blocking_code(cards, talk):
    with playfield.sync.connect(cards) as client:
        table = client.create("table")
        table._copy = table._next = OfJson(*"AB")
        table._schema, number = None, table._number

        def speak():
            events = [Event.Emitted(number, of, b"1") for of in range(2)]
            client._thread.run(handle_all, client, *events)

        heard = []
        speak()
        table.on("A", lambda value: heard.append("A"))
        speak()
        table.on("B", lambda value: heard.append("B"))
        client.ping()
        assert heard == ["A", "A", "B", "B"]
    with playfield.sync.connect(talk) as client:
        here = client.subscribe("talk:news")
        client._thread.run(happen, client, here._number)
        # The first that is iterated is the first that came.
        assert next(here).payload == 1
        here.on_presence(heard.append)
        client.ping()
        assert isinstance(heard[-1], Presence)
        assert here.next(timeout=10).payload == 5


def test_the_last_state_stays(run, cards):
    async def main():
        async with playfield.connect(cards) as ann, playfield.connect(cards) as bob:
            key = f"order {id(run)}"
            table = await ann.create("table", key=key)
            beside = await bob.join_by_key("table", key)
            assert len(beside.state.played) == 0
            held = Held(bob)
            card = await table.request("Play", {"place": 0})
            await held.until(PATCH)
            leaving = asyncio.ensure_future(beside.leave())
            await held.until(LEFT)
            # Nobody has read the state since the card was played.
            held.release()
            await leaving
            assert beside.left.code == "left" and beside.state.played == [card]

    run(main())


def test_the_state_in_a_function_is_that_of_its_moment(run, controls):
    """All of one read was decoded before the first function was called."""

    async def main():
        with urllib.request.urlopen(controls + "/link", timeout=20) as answer:
            lab = f"tcp://{answer.read().decode()}"
        async with playfield.connect(lab) as ann, playfield.connect(lab) as bob:
            here = await ann.create("lab")
            there = await bob.join(here.id)
            heard, changes = [], []
            here.on("Said", lambda said: heard.append((said["text"], here.state.int)))
            here.on_change("int", lambda path, old, new: changes.append((new, here.state.int)))
            held, come = Held(ann), []
            for number in range(1, 4):
                await there.request("Do", {"changes": [{"Int": number}]})
                await held.until(come := [*come, PATCH])
                await there.request("Say", {"text": f"{number}", "to": None})
                await held.until(come := [*come, EVENT])
            held.release()
            assert heard == [("1", 1), ("2", 2), ("3", 3)]
            assert changes == [(1, 1), (2, 2), (3, 3)]

    run(main())


def test_an_event_that_cant_be_read_ends_nothing(run, cards, caplog):
    async def main():
        async with playfield.connect(cards) as client:
            table, heard = await client.create("table"), []
            copy, table._copy = table._copy, OfJson("A")
            table._schema, table._next = None, table._copy
            table.on("A", heard.append)
            await asyncio.sleep(0)
            handle_all(client, *(Event.Emitted(table._number, 0, data) for data in [b"{", b"1"]))
            assert heard == [1] and "an event A of the room" in caplog.text
            table._copy = table._next = copy
            assert await table.request("Play", {"place": 0})

    run(main())


@pytest.mark.parametrize("turns", range(4))
def test_a_join_that_is_canceled_is_taken_back(run, cards, turns):
    async def main():
        async with playfield.connect(cards) as client:
            await client.schema("table")
            held = Held(client)
            asked = asyncio.ensure_future(client.create("table"))
            await held.until(SNAPSHOT)
            held.release()
            for _ in range(turns):
                await asyncio.sleep(0)
            if not asked.done():
                asked.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asked
                while client._rooms:
                    await client._news()

    run(main())


def test_a_subscription_that_is_canceled_is_taken_back(run, talk):
    async def main():
        async with playfield.connect(talk) as client:
            held = Held(client)
            name = f"talk:canceled-{id(run)}"
            asked = asyncio.ensure_future(client.subscribe(name))
            await held.until(SUBSCRIBED)
            held.release()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            # It is on its way, before anything else is sent.
            assert not client._subscriptions and client._core.take_output() == b""
            async with playfield.connect(talk) as other:
                while (await other.members(name)).count:
                    pass

    run(main())


def test_commands_that_came_before_are_carried_out(run, example):
    address = example("fleet")

    async def main():
        async with playfield.connect(f"tcp://{address}") as client:
            name = f"early-{id(run)}"
            device = await client.register(name)
            answer = asyncio.create_task(asyncio.to_thread(post, address, f"/devices/{name}", b"4"))
            while not device._feed._items:
                await client._news()
            device.on_command(lambda value: value * 2)
            assert float(await answer) == 8

    run(main())


def test_what_comes_as_a_wait_ends_is_kept(talk, monkeypatch):
    """The item, or the answer, came between the end of the time and the end of the wait."""
    begin = asyncio.run_coroutine_threadsafe

    def begin_late(coroutine, loop):
        future = begin(coroutine, loop)
        result = future.result

        def late(timeout=None):
            value = result()
            if timeout is not None:
                raise concurrent.futures.TimeoutError
            return value

        future.result = late
        return future

    with playfield.sync.connect(talk) as client:
        here = client.subscribe("talk:news")
        publication = Event.Publication(here._number, 1, None, b"1")
        timer = threading.Timer(0, client._thread.run, [client._handle, publication])
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", begin_late)
        timer.start()
        assert here.next(timeout=10).payload == 1
        timer.join()
        assert client._thread.call(playfield.Client.ping(client), timeout=10) > 0
