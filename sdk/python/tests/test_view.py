"""Views of a state: attributes are fields, and maps have the methods of a dict."""

import copy
import pickle
import rlcompleter

import pytest

import playfield
from playfield import SchemaError
from playfield._shape import check_pattern, state_shape
from playfield._view import MapView, View, view

TEXT, INT = "text", "u32"


def struct(name, /, **fields):
    return {"struct": name, "fields": [{"name": name, "type": of} for name, of in fields.items()]}


ITEM = struct("Item", name=TEXT, values={"list": INT})
POSITION = {
    "struct": "Position",
    "fields": [{"name": "0", "type": INT}, {"name": "1", "type": INT}],
}
SCHEMA = {
    "state": {
        "struct": "Lab",
        "fields": [
            *struct(
                "",
                items={"map": ITEM, "key": INT},
                keys={"list": TEXT},
                get=INT,
                plain=TEXT,
                bag={"map": INT, "key": TEXT},
                tags={"set": TEXT},
                at=POSITION,
                best={"option": ITEM},
                größe=INT,
                phase={
                    "enum": "Phase",
                    "variants": [
                        {"name": "Waiting", "fields": []},
                        {"name": "Turn", "fields": [{"name": "of", "type": INT}]},
                        {"name": "Over", "fields": [{"name": "0", "type": INT}]},
                    ],
                },
                board={"array": {"quantized": "f32", "step": 0.1}, "length": 2},
            )["fields"],
            {"name": "from", "type": TEXT},
            {"name": "secret", "policy": "owner", "type": ITEM},
        ],
    },
}
STATE = {
    "items": {7: {"name": "x", "values": [1, 2]}},
    "keys": ["a"],
    "get": 3,
    "plain": "no",
    "bag": {"items": 1, "a": 2},
    "tags": {"get": True},
    "at": {"0": 4, "1": 5},
    "best": None,
    "größe": 6,
    "phase": {"Turn": {"of": 1}},
    "board": [1.0, 2.0],
    "from": "Ann",
}
SHAPE = state_shape(SCHEMA)


@pytest.fixture(params=["with the schema", "without"])
def state(request):
    return view(STATE, SHAPE if request.param == "with the schema" else None)


def test_attributes_are_fields(state):
    assert state.items[7].name == state["items"]["7"]["name"] == "x"
    assert list(state.keys) == ["a"] and state.get == 3 and state.plain == "no"
    assert state.from_ == state["from"] == "Ann"
    assert state.größe == state["größe"] == 6
    assert (state.at._0, state.at["1"]) == (4, 5)
    assert state.phase.Turn.of == 1 and list(state.board) == [1.0, 2.0] and state.best is None
    assert playfield.plain(state) == STATE and playfield.plain(state) is not STATE
    assert state.items[7].plain() == {"name": "x", "values": [1, 2]}
    with pytest.raises(TypeError):
        state["items"] = 1
    for name in ["secret", "rond", "from__", "_0"]:
        with pytest.raises(AttributeError):
            getattr(state, name)
    assert copy.copy(state.at) == pickle.loads(pickle.dumps(state.at)) == state.at


def test_the_methods_of_a_map_are_its_own():
    bag = view(STATE, SHAPE).bag
    # Whatever its keys are.
    assert list(bag.items()) == [("items", 1), ("a", 2)] and bag["items"] == 1
    assert list(bag.keys()) == ["items", "a"] and list(bag.values()) == [1, 2]
    assert (bag.get("a"), bag.get("b"), bag.get("b", 0), bag.a) == (2, None, 0, 2)
    assert list(view(STATE, SHAPE).tags) == ["get"] and view(STATE, SHAPE).tags.get("get") is True
    assert isinstance(bag, MapView) and not isinstance(view(STATE, SHAPE).at, MapView)
    # A struct has no such methods, so a field of that name may be added to it.
    for name in ["get", "keys", "values", "items"]:
        with pytest.raises(AttributeError, match="it has _0, _1"):
            getattr(view(STATE, SHAPE).at, name)


def test_a_field_that_is_not_there_is_explained():
    state = view(STATE, SHAPE)
    with pytest.raises(AttributeError, match="this client does not see 'secret'"):
        state.secret
    with pytest.raises(AttributeError, match="no 'itms' here; it has .*did you mean \"items\"?"):
        state.itms
    with pytest.raises(AttributeError, match="its elements are in brackets"):
        state.board.first
    assert getattr(state, "itms", None) is None and not hasattr(state.bag, "c")


def test_names_are_completed():
    state = view(STATE, SHAPE)
    fields = {
        "at",
        "bag",
        "best",
        "board",
        "from_",
        "get",
        "größe",
        "items",
        "keys",
        "phase",
        "plain",
        "tags",
    }
    assert set(dir(state)) == fields
    assert dir(state.bag) == ["get", "items", "keys", "plain", "values"]
    assert dir(state.at) == ["_0", "_1", "plain"] and dir(state.board) == ["plain"]
    for place in [state, state.bag, state.at, view(STATE), view({1: 2, "a b": 3, "class": 4})]:
        assert all(name.isidentifier() for name in dir(place))
        assert all(hasattr(place, name) for name in dir(place))
    completer = rlcompleter.Completer({"state": state})
    found = [name.removeprefix("state.") for name in completer.attr_matches("state.b")]
    assert {"bag", "best", "board"} <= {name.rstrip("(") for name in found}
    assert state._ipython_key_completions_() == list(STATE)
    assert state.items._ipython_key_completions_() == [7]


def test_a_slice_of_a_list_is_a_list_of_views():
    items = view([{"a": 1}, {"a": 2}, {"a": 3}])
    assert [item.a for item in items[1:]] == [2, 3] and isinstance(items[:1][0], View)


@pytest.mark.parametrize(
    "pattern",
    [
        "**",
        "*",
        "items.*",
        "items.7",
        "items.**",
        "items.*.name",
        "items.7.values.*",
        "get",
        "bag.any",
        "tags.*",
        "at.*",
        "at.0",
        "best",
        "best.name",
        "best.**",
        "phase",
        "phase.Turn.of",
        "phase.Over",
        "phase.**",
        "board.1",
        "board.*",
        "secret",
        "secret.name",
        "from",
        "from.**",
        "at.**",
        "*.*",
    ],
)
def test_a_pattern_that_can_match_is_taken(pattern):
    check_pattern(SHAPE, pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("itms.*", 'the state has no field "itms"; it has items, .*; did you mean "items"?'),
        ("items.*.nam", 'items.* has no field "nam"; it has name, values; did you mean "name"?'),
        ("from_", 'did you mean "from"'),
        ("items.x", 'the keys of items are of type u32: write a number, or "*" for any'),
        ("keys.first", "keys is a list, whose elements have numbers"),
        ("get.x", "get is one value (u32), which has nothing below it"),
        ("items", 'what changes are the entries of items: "items.*", or "items.**" for all below'),
        ("keys", 'the elements of keys: "keys.*", or "keys.**" for all below'),
        ("at", 'the fields of at: "at.*", or "at.**" for all below'),
        (
            "phase.Trun",
            'phase has no variant "Trun"; it has Waiting, Turn, Over; did you mean "Turn"?',
        ),
        ("phase.Waiting", "phase.Waiting has nothing in it"),
        ("**.name", "only the last step may be it"),
        ("items..name", "a step is empty"),
        ("", "a step is empty"),
        ("board.*.x", "board.* is one value (float)"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(pattern, why):
    with pytest.raises(SchemaError) as refused:
        check_pattern(SHAPE, pattern)
    text = str(refused.value)
    assert text.startswith(f'the pattern "{pattern}" matches nothing: ')
    for part in why.split(".*"):
        assert part.rstrip("?") in text
    with pytest.raises(TypeError):
        check_pattern(SHAPE, 7)


def test_a_map_that_is_decided_by_entry_is_always_there():
    def field(name, policy, key):
        return {"name": name, "policy": policy, "type": {"map": "u8", "key": key}}

    fields = [
        field("hands", "owner", "player"),
        field("tiles", "view", "u32"),
        field("bag", "owner", "u32"),
    ]
    shape = state_shape({"state": {"struct": "Cave", "fields": fields}})
    for name in ["hands", "tiles"]:
        with pytest.raises(SchemaError, match=f"the entries of {name}"):
            check_pattern(shape, name)
        check_pattern(shape, f"{name}.*")
    # This one comes and goes as a whole.
    check_pattern(shape, "bag")


def test_a_node_tells_what_a_pattern_may_be(run, example):
    async def main():
        async with playfield.connect(f"tcp://{example('cards')}") as client:
            table = await client.create("table")
            for pattern in ["plaid.*", "played", "hands.x"]:
                with pytest.raises(SchemaError, match="matches nothing"):
                    table.on_change(pattern, print)
            heard = []
            table.on_change("played.*", lambda path, old, new: heard.append((path, old, new)))
            table.on_change("played.**", lambda path, old, new: heard.append((path, old, new)))
            card = await table.request("Play", {"place": 0})
            await table.until(lambda state: list(state.played))
            assert heard == [(("played", 0), None, card)] * 2

    run(main())


def test_a_condition_that_would_have_to_be_awaited_is_refused(run, example):
    async def later(state):
        return False

    async def main():
        async with playfield.connect(f"tcp://{example('cards')}") as client:
            table = await client.create("table")
            for condition in [later, lambda state: later(state)]:
                with pytest.raises(TypeError, match="the condition .*called, not awaited"):
                    await table.until(condition)

    run(main())
    with playfield.sync.connect(f"tcp://{example('cards')}") as client:
        table = client.create("table")
        for condition in [later, lambda state: later(state)]:
            with pytest.raises(TypeError, match="the condition .*called, not awaited"):
                table.until(condition)


def test_a_callback_that_returns_a_coroutine_is_reported(run, example, caplog):
    async def later(*arguments):
        raise AssertionError("this is not awaited")

    async def main():
        async with playfield.connect(f"tcp://{example('cards')}") as client:
            table = await client.create("table")
            table.on_change("played.*", lambda *change: later(*change))
            await table.request("Play", {"place": 0})
            await table.until(lambda state: list(state.played))

    run(main())
    assert "a callback returned a coroutine, which is not awaited" in caplog.text
