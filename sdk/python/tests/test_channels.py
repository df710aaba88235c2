"""Channels, against the example `talk`."""

import asyncio
import queue

import pytest

import playfield
import playfield.sync
from playfield._feed import WAITING_MAX, Feed


@pytest.fixture(scope="module")
def node(example):
    """The address of a node with the channels of `talk`."""
    return f"tcp://{example('talk')}"


def ann(node):
    return playfield.connect(node, name="ann", token="apple")


def bob(node):
    return playfield.connect(node, name="bob", token="banana")


def test_publications_and_members(run, node):
    async def main():
        async with ann(node) as one, bob(node) as two:
            name = f"talk:room-{id(run)}"
            seen = asyncio.Queue()
            async with await one.subscribe(name, presence=True) as here:
                assert (here.recovered, here.missed, here.members_count) == (True, 0, 1)
                here.on_presence(seen.put_nowait)
                there = await two.subscribe(name)
                joined = await seen.get()
                assert joined.joined and (joined.member.user, joined.member.name) == ("bob", "bob")
                members = await here.members()
                assert members.count == 2
                assert sorted(member.user for member in members.members) == ["ann", "bob"]
                assert await here.publish({"text": "hi"}) == 1
                assert await two.publish(name, "ho") == 2
                got = [await there.__aiter__().__anext__() for _ in range(2)]
                assert [(p.offset, p.user, p.payload) for p in got] == [
                    (1, "ann", {"text": "hi"}),
                    (2, "bob", "ho"),
                ]
                await there.unsubscribe()
                await there.unsubscribe()
                assert not (await seen.get()).joined
                assert [p async for p in there] == [] and there.position.offset == 2
            assert one._subscriptions == {}

    run(main())


def test_a_subscription_begins_where_another_ended(run, node):
    async def main():
        async with ann(node) as one:
            name = f"talk:history-{id(run)}"
            async with await one.subscribe(name) as first:
                start = first.position
            for number in range(60):
                await one.publish_unconfirmed(name, number)
            assert await one.publish(name, 60) == 61
            history = await one.history(name, limit=3)
            assert history.last.offset == 61
            assert [p.payload for p in history.publications] == [11, 12, 13]
            since = playfield.Position(start.epoch, 59)
            past = await one.history(name, since=since)
            assert [p.payload for p in past.publications] == [59, 60]
            async with await one.subscribe(name, since=since) as again:
                assert again.recovered and again.missed == 0
                feed = again.__aiter__()
                assert [(await feed.__anext__()).payload for _ in range(2)] == [59, 60]
            # The channel keeps 50.
            async with await one.subscribe(name, since=start) as late:
                assert not late.recovered and late.missed == 11

    run(main())


def test_what_the_node_refuses(run, node):
    async def main():
        async with playfield.connect(node) as guest, ann(node) as one:
            here = await guest.subscribe("talk:news")
            with pytest.raises(playfield.Refused):
                await here.publish("I may not")
            with pytest.raises(playfield.Refused):
                await guest.subscribe("inbox:ann")
            with pytest.raises(playfield.Refused, match="already"):
                await guest.subscribe("talk:news")
            await one.publish("talk:news", "now")
            assert (await here.__aiter__().__anext__()).payload == "now"
        with pytest.raises(playfield.SessionEnded):
            await here.__aiter__().__anext__()

    run(main())


def test_too_many_that_wait_are_dropped(run):
    async def main():
        dropped = []
        feed = Feed(dropped.append)
        for number in range(WAITING_MAX + 1):
            feed.put(number)
        assert feed.dropped == 1 and dropped == [0]
        feed.end(KeyError("over"))
        feed.put("late")
        with pytest.raises(KeyError):
            got = []
            async for number in feed:
                got.append(number)
        assert got == list(range(1, WAITING_MAX + 1))

        # Each that waits gets one, also if the one before was canceled.
        feed = Feed()
        waiting = [asyncio.ensure_future(feed.__anext__()) for _ in range(3)]
        await asyncio.sleep(0)
        feed.put("a")
        waiting[0].cancel()
        feed.put("b")
        assert await asyncio.wait_for(asyncio.gather(*waiting[1:]), 10) == ["a", "b"]

    run(main())


def test_blocking(node):
    with playfield.sync.connect(node, name="ann", token="apple") as one:
        seen = queue.Queue()
        with one.subscribe("talk:sync", presence=True) as here:
            here.on_presence(seen.put)
            assert here.publish({"n": 1}) == 1
            assert here.next(timeout=10).payload == {"n": 1}
            one.publish_unconfirmed("talk:sync", 2)
            assert next(here).payload == 2
            with pytest.raises(TimeoutError):
                here.next(timeout=0.01)
            assert here.members().count == 1 and here.position.offset == 2
            assert [p.payload for p in here.history().publications] == [{"n": 1}, 2]
            with playfield.sync.connect(node, name="bob", token="banana") as two:
                got = two.subscribe("talk:sync", since=playfield.Position(here.position.epoch, 0))
                assert got.recovered and [next(got).payload for _ in range(2)] == [{"n": 1}, 2]
            assert seen.get(timeout=10).member.user == "bob"
        assert list(here) == [] and here.dropped == 0
