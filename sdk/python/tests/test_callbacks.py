"""The functions that are given to the client of a node, against the example `cards`."""

import asyncio
import functools

import pytest

import playfield
import playfield.sync
import playfield.websocket
from playfield._view import View, plain
from playfield.channels import Subscription


@pytest.fixture(scope="module")
def node(example):
    """The address of a node that serves the room type `table`."""
    return f"tcp://{example('cards')}"


async def late(*arguments):
    pass


class Late:
    async def __call__(self, *arguments):
        pass


def registrations(client, table):
    """Calls that register a function each."""
    subscription = Subscription(client, 0, "talk")
    return [
        lambda f: table.on(None, f),
        lambda f: table.on_change("played.**", f),
        table.on_left,
        table.on_missed,
        table.on_refused,
        client.on_status,
        client.on_refused,
        subscription.on,
        subscription.on_presence,
        subscription.on_subscribed,
        subscription.on_missed,
        subscription.on_unsubscribed,
    ]


def refuse_all(client, table):
    for register in registrations(client, table):
        for function in [late, Late(), functools.partial(late, 1)]:
            with pytest.raises(TypeError, match="called, not awaited"):
                register(function)
        with pytest.raises(TypeError, match="takes a function"):
            register("print")


def test_functions_that_would_have_to_be_awaited_are_refused(run, node):
    async def main():
        async with playfield.connect(node) as client:
            refuse_all(client, await client.create("table"))
        with pytest.raises(TypeError, match="called, not awaited"):
            playfield.websocket.connect("ws://127.0.0.1:9", on_message=late)

    run(main())
    with playfield.sync.connect(node) as client:
        refuse_all(client, client.create("table"))


def test_a_function_is_called_no_more(run, node):
    async def main():
        async with playfield.connect(node) as client:
            table = await client.create("table")
            dropped, kept = [], []
            drop = lambda *change: dropped.append(change)
            for function in [drop, lambda *change: kept.append(change)]:
                table.on_change("played.**", function)
                client.on_status(function)
            table.on(None, drop)
            table.on_refused(drop)
            table.off(drop)
            table.off(drop)
            client.off(drop)
            await table.send("Play", {"place": 99})
            card = await table.request("Play", {"place": 0})
            await table.until(lambda state: card in state.played)
        assert dropped == [] and len(kept) >= 2 and kept[-1] == ("ended",)

    run(main())


def test_the_name_of_an_event_is_checked(run, node):
    async def main():
        async with playfield.connect(node) as client:
            table = await client.create("table")
            with pytest.raises(playfield.SchemaError, match='the room has no event "Plaid"'):
                table.on("Plaid", print)
            table._schema = table._schema._replace(events=["Spoken", "Left"])
            with pytest.raises(playfield.SchemaError, match='did you mean "Spoken"?'):
                table.on("Spokn", print)
            assert table.on("Spoken", print) is print and table.on(None, print) is print

    run(main())


def test_a_plain_copy_of_a_view():
    value = {"members": {7: {"name": "Ann", "cards": [1, b"2"]}}}
    copy = View(value).plain()
    assert copy == value == plain(View(value)) and plain(7) == 7
    copy["members"][7]["cards"].append(3)
    assert value["members"][7]["cards"] == [1, b"2"]
