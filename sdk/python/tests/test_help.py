"""What `help` says of the classes that a program uses."""

import inspect
import pydoc

import pytest

import playfield
import playfield.status
import playfield.sync
from playfield import channels, client, devices, room

#: Attributes by class, with their types.
ATTRIBUTES = {
    (client.Client, playfield.sync.Client): {
        "session": "int", "status": "str", "ended": "Exception | None",
    },
    (room.Room, playfield.sync.Room): {
        "id": "str", "type": "str", "key": "str | None", "player": "int", "version": "int",
        "state": "View", "left": "Refused | None", "status": "str",
    },
    (channels.Subscription, playfield.sync.Subscription): {
        "channel": "str", "recovered": "bool", "missed": "int", "dropped": "int",
        "members_count": "int", "position": "Position | None", "ended": "Exception | None",
    },
    (devices.Device, playfield.sync.Device): {"id": "str", "is_new": "bool"},
    (devices.Command, playfield.sync.Command): {"payload": "Any", "wants_answer": "bool"},
}  # fmt: skip


@pytest.mark.parametrize("kinds", ATTRIBUTES, ids=lambda kinds: kinds[0].__name__)
def test_the_attributes_have_types_and_a_sentence(kinds):
    for kind in kinds:
        text = " ".join(pydoc.plain(pydoc.render_doc(kind)).replace("|  ", " ").split())
        for name, of in ATTRIBUTES[kinds].items():
            listed = (
                f"- ``{name}`` (``{of}``): " in text or f"- ``{name}`` (:class:`{of}`): " in text
            )
            if not listed:
                assert f"{name} ``{of}``: " in text, (kind, name)


@pytest.mark.parametrize("asynchronous, blocking", ATTRIBUTES)
def test_both_clients_have_the_same(asynchronous, blocking):
    def names(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    attributes = set(ATTRIBUTES[asynchronous, blocking])
    # What is iterated waits by `next`.
    assert (names(blocking) | attributes) - {"next", "dropped"} == (
        names(asynchronous) | attributes
    ) - {"dropped"}
    for name in names(asynchronous) - attributes:
        theirs = inspect.signature(getattr(asynchronous, name))
        ours = inspect.signature(getattr(blocking, name))
        assert list(theirs.parameters) == [one for one in ours.parameters if one != "timeout"]
    for connect in [playfield.sync.connect, playfield.connect]:
        assert list(inspect.signature(connect).parameters) == [
            "url", "name", "token", "ssl", "open_timeout", "reconnect_timeout", "backoff",
            "again",
        ]  # fmt: skip


def public():
    for module in [playfield, playfield.sync, playfield.status]:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("value", list(public()))
def test_everything_says_what_it_is(value):
    assert value.__doc__ and not value.__doc__.startswith(value.__name__ + "(")
    fields = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", ())
    for name in fields:
        assert f"- ``{name}`` (``" in value.__doc__
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        if not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        ):
            assert member.__doc__, (value, name)
