"""The client of a node, against the example `cards`."""

import asyncio
import pathlib
import subprocess

import pytest

import playfield

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def node():
    """The address of a node that serves the room type `table`."""
    command = ["cargo", "run", "--quiet", "--package", "playfield-examples", "--bin", "cards"]
    process = subprocess.Popen(
        [*command, "--", "--listen=127.0.0.1:0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    yield line.split()[-1]
    process.terminate()
    process.wait(20)
    process.stdout.close()


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


def test_a_lost_connection_is_restored(run, node):
    async def main(url):
        statuses = asyncio.Queue()
        async with playfield.connect(url) as client:
            client.on_status = statuses.put_nowait
            table = await client.create("table")
            own = str(table.player)
            client._writer.transport.abort()
            first = table.state.hands[own][0]
            assert await table.request("Play", {"place": 0}) == first
            assert [await statuses.get(), await statuses.get()] == ["lost", "resumed"]
            while len(table.state.played) == 0:
                await table.changed()
            assert table.state.played == [first]

    run(main(f"tcp://{node}"))


def test_mistakes(run, node):
    async def main():
        for url in ["http://x", "x"]:
            with pytest.raises(ValueError):
                await playfield.connect(url)
        with pytest.raises(OSError):
            await playfield.connect("tcp://127.0.0.1:9")
        client = await playfield.connect(f"tcp://{node}")
        await client.close()
        with pytest.raises((playfield.SessionEnded, playfield.Refused, RuntimeError)):
            await client.join_or_create("table")

    run(main())


def test_the_bot_of_the_documentation(node, capsys):
    text = (ROOT / "docs" / "python.md").read_text()
    bot = next(part for part in text.split("```") if part.startswith("python\nimport asyncio\n"))
    code = bot.removeprefix("python\n").replace("127.0.0.1:7350", node)
    exec(compile(code, "docs/python.md", "exec"), {"__name__": "__main__"})
    assert "played [" in capsys.readouterr().out
