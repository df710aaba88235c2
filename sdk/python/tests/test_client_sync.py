"""The client of a node for blocking code, against the example `cards`."""

import multiprocessing
import subprocess
import sys
import threading

import pytest

import playfield
from playfield.sync import connect


@pytest.fixture(scope="module")
def node(example):
    """The address of a node that serves the room type `table`."""
    return example("cards")


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_bot_plays(node, scheme):
    with connect(f"{scheme}://{node}", name="Ann") as ann:
        assert ann.status == "connected" and ann.session > 0
        table = ann.create("table", key=f"sync {scheme}")
        own = str(table.player)
        changes = []
        table.on_change("played.**", lambda path, old, new: changes.append(new))
        card = table.state.hands[own][2]
        assert table.request("Play", {"place": 2}, timeout=10) == card
        assert table.until(lambda state: list(state.played), timeout=10) == [card]
        assert changes == [card] and "played" in repr(table)
        with pytest.raises(playfield.Refused) as refused:
            table.request("Play", {"place": 9})
        assert refused.value.text == "you have no card at this place"
        with pytest.raises(playfield.SchemaError):
            table.request("Play", {"place": "x"})
        with connect(f"{scheme}://{node}", name="Bob") as bob:
            beside = bob.join_by_key("table", table.key)
            assert (beside.id, beside.type) == (table.id, "table")
            assert own not in beside.state.hands
            assert [room.id for room in bob.list("table") if room.key == table.key] == [table.id]
            beside.leave()
            assert beside.left.code
        with pytest.raises(playfield.Refused):
            ann.join("nowhere")
        assert ann.ping() > 0
        table.leave()


def test_a_wait_is_limited(node):
    with connect(f"tcp://{node}") as client:
        table = client.create("table")
        for wait in [
            lambda: table.changed(timeout=0.01),
            lambda: table.until(lambda state: False, timeout=0.01),
            lambda: table.events().next(timeout=0.01),
        ]:
            with pytest.raises(TimeoutError):
                wait()
        assert table.request("Play", {"place": 0})


def test_callbacks_can_not_wait(node):
    with connect(f"tcp://{node}") as client:
        table = client.create("table")
        found, done = [], threading.Event()

        def on_change(path, old, new):
            for wait in [table.changed, client.close]:
                try:
                    wait()
                except RuntimeError as error:
                    found.append(str(error))
            # What needs no wait is allowed.
            table.on_change("hands.*", print)
            found.append(len(table.state.played))
            done.set()

        table.on_change("played.**", on_change)
        table.request("Play", {"place": 0})
        assert done.wait(10)
        assert found == ["a function that the client calls can't wait for the client"] * 2 + [1]
        assert table.request("Play", {"place": 0}) is not None


def test_threads_share_a_client(node):
    with connect(f"tcp://{node}") as client:
        table = client.create("table")
        cards = list(table.state.hands[table.player])
        played = []
        threads = [
            threading.Thread(target=lambda: played.append(table.request("Play", {"place": 0})))
            for _ in cards
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(played) == sorted(cards)
        table.until(lambda state: len(state.played) == len(cards), timeout=10)


FINALIZERS = """
import gc, sys
from playfield.sync import connect

with connect(sys.argv[1]) as client:
    copy = client.create("table")._copy
    expected, found = copy.state(), []

    class Watcher:
        def __init__(self):
            self.itself = self

        def __del__(self):
            found.append(copy.state())

    # One of these has the collection run within the call.
    for objects in range(1, 30):
        gc.collect()
        Watcher()
        gc.set_threshold(objects)
        found.append(copy.state())
        gc.set_threshold(0)
    gc.collect()
    assert found == [expected] * 58, found
"""


def test_a_finalizer_reads_the_state_while_it_is_made(node):
    """A garbage collection may run whenever an object is made, and finalizers with it."""
    # A process of its own can be ended if a thread of it waits for ever.
    subprocess.run([sys.executable, "-c", FINALIZERS, f"tcp://{node}"], check=True, timeout=20)


def test_mistakes(node):
    for url in ["http://x", "x"]:
        with pytest.raises(ValueError):
            connect(url)
    with pytest.raises(OSError):
        connect("tcp://127.0.0.1:9")
    client = connect(f"tcp://{node}")
    table = client.create("table")
    client.close()
    client.close()
    for use in [lambda: client.create("table"), table.changed, client.list]:
        with pytest.raises(playfield.SessionEnded, match="^the client is closed$") as ended:
            use()
        assert ended.value.code == "left"
    assert table.state.hands and repr(table)


def _in_a_child(table, results):
    try:
        table.changed()
    except RuntimeError as error:
        results.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_told_so(node):
    context = multiprocessing.get_context("fork")
    with connect(f"tcp://{node}") as client:
        table = client.create("table")
        results = context.Queue()
        child = context.Process(target=_in_a_child, args=(table, results))
        child.start()
        assert "forked" in results.get(timeout=20)
        child.join(20)
        assert table.request("Play", {"place": 0})
