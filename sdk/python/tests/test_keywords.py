"""Names of a schema that are keywords of Python have a ``_`` behind them in Python."""

import asyncio
import dataclasses
import enum
import importlib.util
import json
import sys
import types

import pytest
from conftest import GENERATED, OfJson

import playfield
from playfield._names import attributes, wire_name
from playfield._values import made
from playfield._view import View
from playfield.room import Room, _named


def generated(name):
    """The module that ``generate python`` writes for a room of its tests."""
    path = GENERATED / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"generated_{name}", path)
    module = importlib.util.module_from_spec(spec)
    # `dataclasses` and `typing` look for the module there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def words():
    """Names that are keywords."""
    yield from generated("words")


@pytest.fixture(scope="module")
def names():
    """Names that Python or a generated file uses, and such as can't be names there."""
    yield from generated("names")


def test_a_name_stands_for_one():
    for name, wire in [
        ("from_", "from"),
        ("from__", "from_"),
        ("None_", "None"),
        ("text", "text"),
        ("text_", "text_"),
        ("match_", "match_"),
        ("_", "_"),
        ("__", "__"),
    ]:
        assert wire_name(name) == wire


def test_messages_have_the_names_of_the_schema(words):
    class Mood(enum.Enum):
        None_ = 1

    name, payload = _named(words.True_(in_=1, in__=2, mood=Mood.None_), None)
    assert (name, json.loads(payload)) == ("True", {"in": 1, "in_": 2, "mood": "None"})
    # NaN and the infinities take another way.
    name, payload = _named(words.True_(in_=float("nan"), in__=2, mood="None"), None)
    assert json.loads(payload) == {"in": "NaN", "in_": 2, "mood": "None"}
    assert _named(words.None_(), None) == ("None", b"{}")


def test_events_and_replies_are_made_of_the_names_of_the_schema(words):
    loop = types.SimpleNamespace(create_future=lambda: None, call_soon=lambda function: function())
    room = Room(types.SimpleNamespace(_loop=loop, _thread=None))
    room._copy = room._next = OfJson("False")
    heard = []
    room.on(words.False_, heard.append)
    room._event(0, b'{"from": "Ann", "text": "hello", "more": 1}')
    assert heard == [words.False_(from_="Ann", text="hello")]
    reply = made(words.True_, {"in": 1, "in_": 2, "mood": "None"})
    assert reply == words.True_(in_=1, in__=2, mood="None")


def test_the_state_is_read_by_both_names(words):
    fields = {field.name for field in dataclasses.fields(words.Line)}
    assert fields == {"from_", "text", "class_"}
    state = View({"from": "Ann", "in": 1, "in_": 2, "is_": 3})
    assert state.from_ == state["from"] == "Ann"
    assert (state.in_, state.in__) == (1, 2)
    # A hand-written name of the schema is still read as it is.
    assert state.is_ == 3
    for name in ["class_", "from__", "text_"]:
        with pytest.raises(AttributeError):
            getattr(state, name)


def test_a_name_that_can_be_none_in_python_has_another(names):
    found = attributes(
        ["from", "größe", "0", "1", "my-field", "my field", "my_field", "__x", "_abc", ""]
    )
    assert found == {
        "from_": "from",
        "größe": "größe",
        "_0": "0",
        "_1": "1",
        "my_field2": "my-field",
        "my_field3": "my field",
        "my_field": "my_field",
        "field__x": "__x",
        "field_abc": "_abc",
        "_": "",
    }
    # As the generated file has it.
    for kind, wire in [
        (names.NamesState, ["items", "größe", "place", "last", "__proto", "_typing"]),
        (names.Place, ["0", "1"]),
        (names.Any, ["int", "bytes", "count", "straße"]),
    ]:
        assert list(attributes(wire)) == [field.name for field in dataclasses.fields(kind)]
    place = View({"0": 1, "1": 2.5})
    assert (place._0, place._1) == (1, 2.5) == (made(names.Place, place.plain())._0, place["1"])
    state = View({"__proto": 1, "_typing": 2})
    assert (state.field__proto, state.field_typing) == (1, 2)


def test_what_is_sent_comes_back_as_it_was(names):
    told = names.Told(of=1)
    sent = names.Literal(
        größe=3, told=[told, names.Told(of=2)], by_name={"a": told}, best=told, pair=(told, 4)
    )
    name, payload = _named(sent, None)
    assert name == "Literal" and json.loads(payload) == {
        "größe": 3,
        "told": [{"of": 1}, {"of": 2}],
        "by_name": {"a": {"of": 1}},
        "best": {"of": 1},
        "pair": [{"of": 1}, 4],
    }
    assert made(names.Literal, json.loads(payload)) == sent
    assert made(list[names.Told], [{"of": 1}]) == [told] and made(str, 1) == "1"
    place = names.Place(_0=1, _1=2.5)
    _, payload = _named(place, None)
    assert (
        json.loads(payload) == {"0": 1, "1": 2.5}
        and made(names.Place, json.loads(payload)) == place
    )
    # Classes whose names Python writes in another way.
    assert _named(names.JoinMe(str="a", text="b"), None) == (
        "join_me",
        b'{"str": "a", "text": "b"}',
    )
    assert _named(names.StartNow(), None) == ("start_now", b"{}")
    assert made(names.Mapping, None) == names.Mapping()


@dataclasses.dataclass
class Say:
    text: str


@dataclasses.dataclass
class Trade:
    place: int
    with_: int


@dataclasses.dataclass
class Accept:
    place: int


def test_a_node_says_who_it_is_from(run, example):
    async def main():
        async with playfield.connect(f"tcp://{example('chat')}", name="Ann") as ann:
            chat = await ann.join_or_create("chat", key=f"keywords {id(run)}")
            await chat.request(Say("hello"))
            await chat.until(lambda state: len(state.lines))
            line = chat.state.lines[0]
            assert line.from_ == line["from"] == "Ann"

    run(main())


def test_a_node_takes_a_message_with_such_a_field(run, example):
    async def main():
        url = f"tcp://{example('cards')}"
        async with playfield.connect(url) as ann, playfield.connect(url) as bob:
            table = await ann.create("table")
            beside = await bob.join(table.id)
            given, taken = table.state.hands[table.player][0], beside.state.hands[beside.player][1]
            offer = asyncio.ensure_future(table.request(Trade(place=0, with_=beside.player)))
            while True:
                try:
                    assert await beside.request(Accept(1)) == given
                    break
                except playfield.Refused as refused:
                    assert refused.text == "nobody offers you a card"
            assert await offer == taken

    run(main())
