"""Values are what the schema says they are: against the scenario server's room `lab`."""

import math
import urllib.request

import pytest

import playfield
import playfield.sync
from playfield._view import view

EVERYTHING = {
    "flag": True,
    "small": -8,
    "int": -(2**31),
    "wide": -(2**63),
    "huge": 2**64 - 1,
    "single": math.inf,
    "double": 3.0,
    "text": "NaN",
    "data": b"\x00\xff",
    "maybe": None,
    "shape": {"Box": {"width": 2, "label": "12"}},
    "list": [1, 2],
}


@pytest.fixture(scope="module")
def address(controls):
    with urllib.request.urlopen(controls + "/link", timeout=20) as answer:
        return answer.read().decode()


def same(one, two):
    assert one == two and type(one) is type(two), (one, two)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_reply(run, address, scheme):
    async def main():
        async with playfield.connect(f"{scheme}://{address}") as client:
            lab = await client.create("lab")
            found = await lab.request("Echo", {"all": EVERYTHING})
            for name, value in EVERYTHING.items():
                same(value, found[name])
            for value in [math.nan, "NaN"]:
                found = await lab.request("Echo", {"all": {**EVERYTHING, "single": value}})
                assert math.isnan(found["single"])
            with pytest.raises(ValueError):
                await client.publish("talk:values", math.nan)

    run(main())


def test_the_state_and_its_changes(run, address):
    async def main():
        async with playfield.connect(f"tcp://{address}") as client:
            lab = await client.create("lab")
            changes = []
            lab.on_change("**", lambda *change: changes.append(change))
            await lab.request(
                "Do",
                {
                    "changes": [
                        {"Huge": 2**53 + 1},
                        {"Wide": -(2**60)},
                        {"Data": b"\x01\x02"},
                        {"Item": {"id": 7, "unit": {"name": "x", "count": 1}}},
                        {"Double": 2.0},
                        {"Shape": {"Pair": [1, 2]}},
                    ]
                },
            )
            await lab.until(lambda state: 7 in state["items"])
            state = lab.state
            same(2**53 + 1, state.huge)
            same(-(2**60), state.wide)
            same(b"\x01\x02", state.data)
            same(2.0, state.double)
            same([7], list(state["items"]))
            assert state.items[7].name == state["items"]["7"].name == "x"
            assert "7" in state["items"] and 8 not in state["items"] and "8" not in state["items"]
            assert list(state.players) == [lab.player]
            assert state["items"].get("x") is None and state.shape == {"Pair": [1, 2]}
            assert "x01" in repr(lab)
            by_path = {path: (old, new) for path, old, new in changes}
            same(by_path["huge",], (0, 2**53 + 1))
            same(by_path["data",], (b"", b"\x01\x02"))
            assert by_path["items", 7] == (None, {"name": "x", "count": 1})
            changes.clear()
            await lab.request("Do", {"changes": [{"CountItem": {"id": 7, "count": 2}}]})
            await lab.until(lambda state: state["items"][7].count == 2)
            assert changes == [(("items", 7, "count"), 1, 2)]

    run(main())


def test_events(run, address):
    async def main():
        async with playfield.connect(f"tcp://{address}") as client:
            lab = await client.create("lab", {"greeting": "hello"})
            name, payload = await anext(lab.events())
            assert name == "Greeting" or payload is not None

    run(main())


def test_blocking_code_gets_the_same(address):
    with playfield.sync.connect(f"tcp://{address}") as client:
        lab = client.create("lab")
        same(2**64 - 1, lab.request("Echo", {"all": EVERYTHING}, timeout=10)["huge"])
        schema = client.schema("lab")
        assert "Echo" in [message["name"] for message in schema["messages"]]


def test_a_key_that_is_almost_a_number_is_only_missing():
    state = view({"1": 2, 3: 4})
    assert state.get("--5") is None and "5-" not in state
    assert state[1] == 2 and state["3"] == 4
