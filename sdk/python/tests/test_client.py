"""The client of a node for asyncio, against the example `cards`."""

import asyncio
import dataclasses

import pytest
from conftest import ROOT

import playfield
from playfield.channels import Subscription


@pytest.fixture(scope="module")
def node(example):
    """The address of a node that serves the room type `table`."""
    return example("cards")


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_bot_plays(run, node, scheme):
    async def main(url):
        async with playfield.connect(url, name="Ann") as ann:
            table = await ann.create("table", key=f"game {scheme} {id(run)}")
            own = str(table.player)
            assert len(table.state.hands[own]) == 5 and len(table.state.played) == 0
            changes = []
            table.on_change("played.**", lambda path, old, new: changes.append((path, new)))
            card = table.state.hands[own][2]
            assert await table.request("Play", {"place": 2}) == card
            while len(table.state.played) == 0:
                await table.changed()
            assert table.state.played == [card] and changes
            assert "played" in repr(table)
            with pytest.raises(playfield.Refused) as refused:
                await table.request("Play", {"place": 9})
            assert refused.value.text == "you have no card at this place"

            async with playfield.connect(url, name="Bob") as bob:
                beside = await bob.join_by_key("table", table.key)
                assert beside.id == table.id
                assert own not in beside.state.hands
                await beside.leave()
                assert (await bob.join_or_create("table", key=table.key)).id == table.id
            await table.leave()
            with pytest.raises(playfield.Refused):
                await table.request("Play", {"place": 0})
            with pytest.raises(playfield.Refused) as refused:
                await ann.join("nowhere")
            assert refused.value.code

    run(main(f"{scheme}://{node}"))


def test_mistakes(run, node):
    async def main():
        for url in ["http://x", "x"]:
            with pytest.raises(ValueError):
                await playfield.connect(url)
        with pytest.raises(OSError):
            await playfield.connect("tcp://127.0.0.1:9")
        client = await playfield.connect(f"tcp://{node}")
        table, talk = await client.create("table"), Subscription(client, 1, "talk")
        asked = asyncio.ensure_future(table.until(lambda state: False))
        await asyncio.sleep(0)
        await client.close()
        await client.close()
        for use in [
            lambda: client.join_or_create("table"),
            lambda: client.create("table", {"a": 1}),
            lambda: client.schema("table"),
            lambda: client.subscribe("talk"),
            lambda: client.register("pump"),
            lambda: client.publish_unconfirmed("talk", 1),
            lambda: client.wait_for("connected"),
            lambda: talk.members(),
            lambda: table.request("Play", {"place": 0}),
            lambda: table.send("Play", {"place": 0}),
            table.changed,
            client.list,
            client.ping,
        ]:
            with pytest.raises(playfield.SessionEnded, match="^the client is closed$") as ended:
                await use()
            assert ended.value.code == "left"
        with pytest.raises(playfield.Refused, match="the client is closed"):
            await asked
        assert table.left.code == "left" and table.state.hands

    run(main())


def test_the_bot_of_the_documentation(node, capsys):
    text = (ROOT / "docs" / "python.md").read_text()
    start = "python\nimport asyncio\nimport playfield\n"
    bot = next(part for part in text.split("```") if part.startswith(start))
    code = bot.removeprefix("python\n").replace("127.0.0.1:7350", node)
    exec(compile(code, "docs/python.md", "exec"), {"__name__": "__main__"})
    assert "played [" in capsys.readouterr().out
    start = "python\nimport playfield.sync"
    bot = next(part for part in text.split("```") if part.startswith(start))
    code = bot.removeprefix("python\n").replace("127.0.0.1:7350", node)
    exec(compile(code, "docs/python.md", "exec"), {})
    assert "<Room table" in capsys.readouterr().out


@dataclasses.dataclass
class Play:
    place: object


def test_messages_are_checked_before_they_are_sent(run, node):
    async def main():
        async with playfield.connect(f"tcp://{node}") as client:
            table = await client.create("table")
            hand = list(table.state.hands[table.player])
            for message, text in [
                (("Pley", {"place": 0}), "the room has no message 'Pley'"),
                (("Play", {"plase": 0}), "Play has no field 'plase'; its fields: place"),
                (("Play", {}), "Play lacks its field 'place'"),
                (("Play", None), "Play"),
                (("Play", {"place": "first"}), "place"),
                (("Play", {"place": -1}), "place"),
                ((Play("first"),), "place"),
            ]:
                with pytest.raises(playfield.SchemaError) as wrong:
                    await table.request(*message)
                assert text.replace("'", '"') in str(wrong.value)
                with pytest.raises(playfield.SchemaError):
                    await table.send(*message)
            with pytest.raises(playfield.SchemaError):
                await client.create("table", {"no": "options"})
            for message in [(1,), (Play,), (Play(0), {"place": 0}), ("Play", {"place": object()})]:
                with pytest.raises(TypeError):
                    await table.request(*message)
            assert await table.request(Play(0)) == hand[0]
            assert await table.request("Play", {"place": 0}, reply=str) == str(hand[1])

    run(main())


def test_rooms_are_listed(run, node):
    async def main():
        async with playfield.connect(f"tcp://{node}") as client:
            table = await client.create("table", key=f"list {id(run)}")
            found = [room for room in await client.list("table") if room.id == table.id]
            assert (found[0].key, found[0].players, found[0].type) == (table.key, 1, "table")
            assert found[0].capacity >= 1 and not found[0].locked and found[0].metadata == {}
            assert await client.list("table", no="such") == []
            assert len(await client.list(limit=1)) == 1
            assert 0 < await client.ping() < 10

    run(main())


def test_a_condition_is_waited_for(run, node):
    async def main():
        async with playfield.connect(f"tcp://{node}") as client:
            table = await client.create("table")
            card = await table.request("Play", {"place": 1})
            assert await table.until(lambda state: list(state.played)) == [card]
            waiting = asyncio.ensure_future(table.until(lambda state: False))
            await asyncio.sleep(0)
            await table.leave()
            with pytest.raises(playfield.Refused):
                await waiting
            events = table.events()
            with pytest.raises(playfield.Refused):
                await events.__anext__()

    run(main())


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_what_was_sent_before_close_arrives(run, node, caplog, scheme):
    async def main(url):
        async with playfield.connect(url) as ann:
            table = await ann.create("table", key=f"close {scheme} {id(run)}")
            async with playfield.connect(url) as bob:
                beside = await bob.join_by_key("table", table.key)
                # Each refusal is an answer that may be unread when the connection is closed.
                for _ in range(200):
                    await beside.send("Play", {"place": 99})
                # Whoever leaves plays the other cards, from the first.
                card = beside.state.hands[str(beside.player)][4]
                await beside.send("Play", {"place": 4})
            await table.until(lambda state: len(state.played) == 5)
            assert table.state.played[0] == card

    run(main(f"{scheme}://{node}"))
    assert "unknown" not in caplog.text


def test_what_waits_for_a_lost_connection_arrives_before_close(run, node):
    async def main(url):
        async with playfield.connect(url) as ann:
            table = await ann.create("table", key=f"lost {id(run)}")
            async with playfield.connect(url) as bob:
                beside = await bob.join_by_key("table", table.key)
                statuses = asyncio.Queue()
                bob.on_status = statuses.put_nowait
                bob._writer.transport.abort()
                assert await statuses.get() == "lost"
                # Whoever leaves plays the other cards, from the first.
                card = beside.state.hands[str(beside.player)][4]
                await beside.send("Play", {"place": 4})
            await table.until(lambda state: len(state.played) == 5)
            assert table.state.played[0] == card

    run(main(f"tcp://{node}"))


def test_a_send_waits_while_too_much_is_unconfirmed(run, node):
    async def main(url):
        async with playfield.connect(url) as client:
            table = await client.create("table")
            statuses = asyncio.Queue()
            client.on_status(statuses.put_nowait)
            client._writer.transport.abort()
            assert await statuses.get() == "lost"
            client._core = Full(client._core)
            waiting = asyncio.ensure_future(table.request("Play", {"place": 0}))
            await asyncio.sleep(0)
            assert not client._core.asked
            client._core.is_full = False
            await waiting
            assert client._core.asked

    run(main(f"tcp://{node}"))


class Full:
    """A core that says that too much is unconfirmed."""

    def __init__(self, core):
        self._core = core
        self.is_full = True
        self.asked = False

    def __getattr__(self, name):
        self.asked |= name == "request"
        return getattr(self._core, name)
