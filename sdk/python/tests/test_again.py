"""Rooms that are joined again by themselves: one object, whatever becomes of sessions and nodes."""

import asyncio
import signal
import threading
import urllib.request

import pytest
from conftest import gate

import playfield
import playfield.sync
from playfield import Refused


@pytest.fixture(scope="module")
def lab(controls):
    """The URL of a node that serves the room types of the scenarios."""
    with urllib.request.urlopen(controls + "/link", timeout=20) as answer:
        return f"tcp://{answer.read().decode()}"


def heard_by(room):
    """What becomes of the stay."""
    statuses = asyncio.Queue()
    room.on_status(statuses.put_nowait)
    return statuses


WAYS = {
    "join_or_create": lambda client: client.join_or_create("table"),
    "create": lambda client: client.create("table"),
}


@pytest.mark.parametrize("way_in", list(WAYS))
def test_a_session_that_is_lost_is_another_player_in_the_same_object(run, example, way_in):
    async def main():
        async with gate(example("cards")) as way:
            async with playfield.connect(
                f"tcp://{way.address}", backoff=(0.01, 0.05), again=True
            ) as client:
                table = await WAYS[way_in](client)
                statuses, gone, old = heard_by(table), [], table.id
                table.on_left(gone.append)
                hand = list(table.state.hands[table.player])
                waits = asyncio.create_task(
                    table.until(lambda state: table.id != old and state.hands)
                )
                way.cut()
                await client.wait_for("lost")
                assert table.status == "joined" and list(table.state.hands[table.player]) == hand
                way.target = example("cards", 2)
                assert await statuses.get() == "lost"
                assert client.status == "connected" and table.left is None
                assert list(table.state.hands[table.player]) == hand
                # It waits for the room.
                card = await table.request("Play", {"place": 0})
                assert await statuses.get() == "joined" and table.status == "joined"
                await waits
                await table.until(lambda state: card in state.played)
                assert gone == [] and table.id != old
            assert await statuses.get() == "left" and [why.code for why in gone] == ["left"]

    run(main())


def test_what_changes_after_a_room_is_joined_again_is_heard(run, lab):
    async def main():
        async with playfield.connect(lab, again=True) as ann, playfield.connect(lab) as bob:
            here = await ann.create("lab", key=f"fails-{id(run)}")
            statuses, changes, events = heard_by(here), asyncio.Queue(), asyncio.Queue()
            here.on_change("int", lambda path, old, new: changes.put_nowait(new))
            here.on("Said", lambda said: events.put_nowait(said["text"]))
            there = await bob.join(here.id)
            with pytest.raises(Refused):
                await there.request("Panic", None)
            assert [await statuses.get(), await statuses.get()] == ["lost", "joined"]
            assert here.key == f"fails-{id(run)}"
            await here.request("Do", {"changes": [{"Int": 7}]})
            assert await changes.get() == 7
            await here.request("Say", {"text": "back", "to": None})
            assert await events.get() == "back"

    run(main())


def test_a_stay_ends_where_coming_back_makes_no_sense(run, lab):
    async def main():
        async with playfield.connect(lab, again=True) as ann, playfield.connect(lab) as bob:
            here = await ann.create("lab")
            there = await bob.join(here.id)
            statuses, theirs = heard_by(here), heard_by(there)
            await there.request("Kick", {"player": here.player, "text": "too loud"})
            assert await statuses.get() == "left" and here.left.code == "kicked"
            # A room that is joined by its id has no other like it.
            again = await ann.join(there.id)
            statuses = heard_by(again)
            await there.send("Panic", None)
            assert [await statuses.get(), await statuses.get()] == ["lost", "left"]
            assert again.left.code == "room_not_found"
            assert await theirs.get() == "left", "it is a wish"

    run(main())


@pytest.mark.parametrize("end", ["leave", "close"])
def test_a_room_that_is_away_can_be_given_up(run, lab, end):
    async def main():
        async with playfield.connect(lab, again=True) as ann:
            here = await ann.create("lab")
            given_up = asyncio.Queue()

            def give_up(status):
                if status == "lost":
                    ending = here.leave() if end == "leave" else ann.close()
                    given_up.put_nowait(asyncio.create_task(ending))

            here.on_status(give_up)
            await here.send("Panic", None)
            await (await given_up.get())
            assert (here.status, here.left.code) == ("left", "left")
            with pytest.raises(playfield.PlayfieldError):
                await here.request("Nothing", None)
            assert not ann._away

    run(main())


def test_blocking_code_joins_again_too(lab):
    with playfield.sync.connect(lab, again=True) as ann:
        here = ann.create("lab")
        statuses, joined = [], threading.Event()

        @here.on_status
        def hear(status):
            statuses.append(status)
            if status == "joined":
                joined.set()

        here.send("Panic", None)
        assert joined.wait(20)
        assert here.request("Do", {"changes": []}) == 0
        assert (statuses, here.status) == (["lost", "joined"], "joined")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stop", "kill"])
def test_a_restart_of_the_node_is_another_stay(run, example, how):
    async def main():
        async with gate(example("cards", 3)) as way:
            async with playfield.connect(
                f"tcp://{way.address}", backoff=(0.01, 0.05), again=True
            ) as client:
                table = await client.join_or_create("table", key="42")
                statuses, old = heard_by(table), table.id
                way.target = None
                example.stop("cards", 3, how)
                way.target = await asyncio.to_thread(example, "cards", 3)
                assert [await statuses.get(), await statuses.get()] == ["lost", "joined"]
                assert (table.key, table.left) == ("42", None) and table.id != old
                await table.request("Play", {"place": 0})

    run(main())
