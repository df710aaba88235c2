"""The client plays the conformance scenarios; ``conformance/README.md`` says how."""

import asyncio
import base64
import collections
import itertools
import json
import math
import os
import re
import ssl
import urllib.request

import pytest
from conftest import ROOT

import playfield
import playfield.sync
from playfield._view import plain_json as plain

CONFORMANCE = ROOT / "conformance"
STEP_MAX = 20

LEFT_OUT = json.loads((CONFORMANCE / "clients" / "python.json").read_text())
SCENARIOS = [
    scenario
    for file in sorted((CONFORMANCE / "scenarios").glob("*.json"))
    for scenario in json.loads(file.read_text())["scenarios"]
]
RUNS = itertools.count(1)


@pytest.mark.parametrize("transport", LEFT_OUT["transports"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_scenario(run, controls, scenario, transport):
    run(play(controls, scenario, transport, playfield.connect))


@pytest.mark.parametrize("transport", LEFT_OUT["transports"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_scenario_of_blocking_code(controls, scenario, transport):
    asyncio.run(play(controls, scenario, transport, connect_blocking))


@pytest.mark.parametrize("transport", LEFT_OUT["transports"])
def test_random_plays(run, controls, transport):
    for plays in random_plays(controls):
        run(play_at_once(controls, plays, transport, playfield.connect))


@pytest.mark.parametrize("transport", LEFT_OUT["transports"])
def test_random_plays_of_blocking_code(controls, transport):
    for plays in random_plays(controls):
        asyncio.run(play_at_once(controls, plays, transport, connect_blocking))


def random_plays(controls):
    """Some plays at a time."""
    cuts = os.environ.get("PLAYFIELD_CUTS", "200")
    with urllib.request.urlopen(f"{controls}/generated/{cuts}/tls", timeout=STEP_MAX) as answer:
        plays = json.load(answer)["scenarios"]
    return (plays[first : first + 4] for first in range(0, len(plays), 4))


async def play_at_once(controls, plays, transport, connect_by):
    await asyncio.gather(*(play(controls, one, transport, connect_by) for one in plays))


def skip_what_is_left_out(scenario):
    why = LEFT_OUT["scenarios"].get(scenario["name"])
    for step in scenario["steps"]:
        if step.get("do", "watch") != "watch":
            why = why or LEFT_OUT["steps"].get(step["do"])
    if why:
        pytest.skip(why)


async def play(controls, scenario, transport, connect_by):
    skip_what_is_left_out(scenario)
    number, clients = f"p{next(RUNS)}", {}
    try:
        for place, raw in enumerate(scenario["steps"], 1):
            kind = raw.get("do") or raw.get("expect")
            if kind in LEFT_OUT["steps"]:
                continue
            step = filled(raw, number, clients)
            if kind == "connect":
                doing = connect(controls, step, transport, clients, connect_by)
            else:
                doing = getattr(clients[step["client"]], kind)(step)
            try:
                await asyncio.wait_for(doing, STEP_MAX)
            except Exception as error:
                raise AssertionError(f"step {place}, {raw}: {error!r}") from error
    finally:
        for client in clients.values():
            await client.client.close()


def filled(value, number, clients):
    """A value with its references replaced."""

    def fill(match):
        if match[1] == "run":
            return number
        client, room, member = match[1].split(".")
        return str(getattr(clients[client].rooms[room], member))

    if isinstance(value, str):
        return re.sub(r"\$\{([^}]*)\}", fill, value)
    if isinstance(value, list):
        return [filled(element, number, clients) for element in value]
    if isinstance(value, dict):
        return {name: filled(element, number, clients) for name, element in value.items()}
    return value


async def control(controls, path):
    """Asks the scenario server for something."""

    def ask():
        with urllib.request.urlopen(controls + path, timeout=STEP_MAX) as answer:
            return answer.read().decode()

    return await asyncio.get_running_loop().run_in_executor(None, ask)


async def connect(controls, step, transport, clients, connect_by):
    node = "/" + step["link"] if "link" in step else ""
    link = await control(controls, f"/link{node}")
    how = {"name": step.get("name", step["client"]), "token": step.get("token", "")}
    if not step.get("reconnects", True):
        how["reconnect_timeout"] = 0
    if "tokens" in step:
        tokens = itertools.chain(step["tokens"], itertools.repeat(step["tokens"][-1]))
        how["token"] = lambda: next(tokens)
    if step.get("tls"):
        transport = {"tcp": "tls", "ws": "wss"}[transport]
        how["ssl"] = ssl.create_default_context()
        if step.get("trusts", True):
            certificate = base64.b64decode(await control(controls, f"/certificate{node}"))
            how["ssl"].load_verify_locations(cadata=certificate)
    connecting = connect_by(f"{transport}://{link}", backoff=(0.005, 0.02), **how)
    client = await taken(step, connecting)
    if client is not None:
        clients[step["client"]] = Player(controls, link, client)


async def taken(step, doing):
    """What was done, or ``None`` if it was refused as the step says."""
    if "refused" not in step:
        return await doing
    kinds = (
        playfield.Refused,
        playfield.SchemaError,
        playfield.ConnectionFailed,
        ssl.SSLError,
    )
    with pytest.raises(kinds[:1] if step["refused"] else kinds) as refused:
        await doing
    if step["refused"]:
        is_refused(step["refused"], refused.value)


def is_refused(expected, error):
    assert expected.get("code", error.code) == error.code, error
    assert expected.get("text", error.text) == error.text


def is_equal(expected, found):
    """Whether values are equal, however their integers and bytes are written."""
    if isinstance(found, bytes):
        found = base64.b64encode(found).decode()
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, dict) and isinstance(found, dict):
        found = {str(key): value for key, value in found.items()}
        return expected.keys() == found.keys() and all(
            is_equal(value, found[name]) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(is_equal, expected, found))
    if isinstance(found, float) and isinstance(expected, str):
        names = {"Infinity": math.inf, "-Infinity": -math.inf}
        return math.isnan(found) if expected == "NaN" else found == names.get(expected)
    if isinstance(expected, int) and isinstance(found, str):
        return str(expected) == found
    if isinstance(expected, str) and isinstance(found, int):
        return expected == str(found)
    if isinstance(expected, float) and isinstance(found, float):
        return math.isclose(expected, found, rel_tol=2**-24)
    return expected == found


def equal(expected, found):
    assert is_equal(expected, found), f"it is {found!r}"


class InThreads:
    """What blocking code has, to be awaited: each call waits in a thread. Functions that are given
    are called on this loop."""

    def __init__(self, of):
        self._of, self._loop = of, asyncio.get_running_loop()

    def __getattr__(self, name):
        value = getattr(self._of, name)
        if not callable(value):
            return value
        if name.startswith("on"):
            return lambda *given: value(*map(self._here, given))
        if name == "until":
            return self._until

        async def wait(*given, **named):
            result = await asyncio.to_thread(value, *given, **named)
            return InThreads(result) if type(result).__module__ == "playfield.sync" else result

        return wait

    async def _until(self, condition):
        return await asyncio.to_thread(self._of.until, condition)

    def _here(self, value):
        if not callable(value):
            return value
        return lambda *given: self._loop.call_soon_threadsafe(value, *given)


async def connect_blocking(url, **settings):
    return InThreads(await asyncio.to_thread(playfield.sync.connect, url, **settings))


Missed = collections.namedtuple("Missed", "missed")


class Player:
    """A client of a scenario. Its methods are the steps."""

    def __init__(self, controls, link, client):
        self.controls, self.port, self.client = controls, link.split(":")[1], client
        self.statuses = asyncio.Queue()
        client.on_status(self.statuses.put_nowait)
        self.rooms, self.events, self.changed, self.answers = {}, {}, {}, {}
        self.channels = {}

    async def _action(self, action):
        await control(self.controls, f"/links/{self.port}/{action}")

    async def _join(self, step, joining):
        name = step.get("room", "room")
        room = await taken(step, joining)
        if room is not None:
            happened = asyncio.Queue()
            room.on(None, lambda event, payload: happened.put_nowait((event, payload)))
            room.on_missed(lambda events: happened.put_nowait((None, events)))
            room.on_refused(lambda error: happened.put_nowait((None, error.code)))
            self.rooms[name], self.events[name] = room, happened

    def _room(self, step):
        return self.rooms[step.get("room", "room")]

    async def join(self, step):
        if "ticket" in step:
            path = "/ticket/{type}/{key}/{name}".format(**step["ticket"])
            step = {**step, "id": await control(self.controls, path)}
        await self._join(step, self.client.join(step["id"]))

    async def join_by_key(self, step):
        await self._join(step, self.client.join_by_key(step["type"], step["key"]))

    async def create(self, step):
        how = {name: step[name] for name in ("key", "private", "code") if name in step}
        await self._join(step, self.client.create(step["type"], step.get("options"), **how))

    async def join_or_create(self, step):
        joining = self.client.join_or_create(step["type"], step.get("options"), key=step.get("key"))
        await self._join(step, joining)

    async def leave(self, step):
        await taken(step, self._room(step).leave())
        del self.rooms[step.get("room", "room")]

    async def send(self, step):
        await taken(step, self._room(step).send(step["message"], step.get("payload")))

    async def request(self, step):
        asking = self._room(step).request(step["message"], step.get("payload"))
        if "as" in step:
            asked = getattr(self.client, "_of", self.client)._asked
            before = set(asked)
            answer = self.answers[step["as"]] = asyncio.ensure_future(asking)
            # It is queued before the next step begins. Answers to earlier ones may come meanwhile.
            while not set(asked) - before and not answer.done():
                await asyncio.sleep(0)
            return
        reply = await taken(step, asking)
        if "reply" in step:
            equal(step["reply"], reply)

    async def watch(self, step):
        changes = self.changed[step.get("room", "room")] = asyncio.Queue()
        self._room(step).on_change(
            "**", lambda path, old, new: changes.put_nowait((list(path), old, new))
        )

    async def close(self, step):
        await self.client.close()

    async def cut(self, step):
        await self._action("cut")

    async def cut_after(self, step):
        await self._action("cut_after/" + step["bytes"])

    async def all_cut(self, step):
        await self._action("all_cut")

    async def played(self, step):
        await self._action("played")

    async def restore(self, step):
        await self._action("restore")

    async def hold(self, step):
        await self._action("hold")

    async def move(self, step):
        await self._action("move")

    async def alone(self, step):
        await self._action("alone")

    async def stop(self, step):
        await self._action("stop")

    async def lose_patch(self, step):
        await self._action("lose_patch")

    async def spoil_check(self, step):
        await self._action("spoil_check")

    async def spoiled_check(self, step):
        await self._action("spoiled_check")

    async def snapshot(self, step):
        await self._action("snapshot")

    async def list(self, step):
        found = self.client.list(
            step.get("type"), limit=step.get("limit", 0), **step.get("filter", {})
        )
        found = await taken(step, found)
        if found is None:
            return
        rooms = [{"room_type": room.type, **room._asdict()} for room in found]
        assert len(rooms) == len(step["rooms"]), rooms
        for expected in step["rooms"]:
            fits = [
                room
                for room in rooms
                if all(is_equal(value, room[name]) for name, value in expected.items())
            ]
            assert fits, f"{expected} is not in {rooms}"
            rooms.remove(fits[0])

    async def subscribe(self, step):
        subscribing = self.client.subscribe(step["channel"], presence=step.get("presence", False))
        subscription = await taken(step, subscribing)
        if subscription is not None:
            happened = asyncio.Queue()
            subscription.on(lambda publication: happened.put_nowait(publication.payload))
            subscription.on_presence(
                lambda presence: happened.put_nowait((presence.member.name, presence.joined))
            )
            self.channels[step["channel"]] = (subscription, happened)
            subscription.on_subscribed(happened.put_nowait)
            subscription.on_missed(lambda missed: happened.put_nowait(Missed(missed)))
            subscription.on_unsubscribed(lambda why: happened.put_nowait(why.code))

    async def subscribed(self, step):
        news = await self.channels[step["channel"]][1].get()
        assert news.recovered is step["recovered"]

    async def unsubscribed(self, step):
        assert await self.channels[step["channel"]][1].get() == step["code"]

    async def schema(self, step):
        found = await taken(step, self.client.schema(step["type"]))
        for member, names in step.get("has", {}).items():
            assert [one["name"] for one in found[member]] == names

    async def unsubscribe(self, step):
        await self.channels.pop(step["channel"])[0].unsubscribe()

    async def publish(self, step):
        await taken(step, self.client.publish(step["channel"], step["payload"]))

    async def register(self, step):
        """A device that answers each command by the number after it."""
        how = {name: step[name] for name in ("metadata", "tags") if name in step}
        device = await taken(step, self.client.register(step["device"], **how))
        if device is not None:
            assert device.is_new == step.get("is_new", device.is_new)
            self.device, self.commands = device, asyncio.Queue()
            # Of blocking code it is called in the client's thread, for the answer.
            put, loop = self.commands.put_nowait, asyncio.get_running_loop()

            def on_command(number):
                loop.call_soon_threadsafe(put, number)
                return number + 1

            getattr(device, "_of", device).on_command(on_command)

    async def report(self, step):
        reply = await taken(step, self.device.report(step["payload"]))
        if "reply" in step:
            equal(step["reply"], reply)

    async def push(self, step):
        await control(self.controls, f"/devices/{step['device']}/push/{step['payload']}")

    async def end_sessions(self, step):
        await control(self.controls, f"/users/{step['user']}/end/{step['text']}")

    async def take_out(self, step):
        await control(self.controls, f"/users/{step['user']}/take_out/{step['channel']}")

    async def command(self, step):
        path = f"/devices/{step['device']}/request/{step['payload']}"
        assert await control(self.controls, path) == str(step["answer"])

    async def commanded(self, step):
        equal(step["payload"], await self.commands.get())

    async def members(self, step):
        found = await taken(step, self.client.members(step["channel"]))
        if found is not None:
            assert sorted(step["names"]) == sorted(member.name for member in found.members)

    async def history(self, step):
        found = await taken(step, self.client.history(step["channel"], limit=step.get("limit", 0)))
        if found is not None:
            equal(step["payloads"], [publication.payload for publication in found.publications])

    async def lost_patch(self, step):
        await self._action("lost_patch")

    async def state(self, step):
        room = self._room(step)

        def is_so(state):
            found = plain(state)
            for place in step.get("at", ()):
                if isinstance(found, dict):
                    found = {str(key): value for key, value in found.items()}
                try:
                    found = found[place]
                except (KeyError, IndexError, TypeError):
                    return "absent" in step
            return "absent" not in step and is_equal(step["is"], found)

        try:
            await asyncio.wait_for(room.until(is_so), STEP_MAX - 1)
        except asyncio.TimeoutError:
            raise AssertionError(f"the state is {room.state!r}") from None

    async def info(self, step):
        equal(step["is"], self._room(step).info.get(step["member"]))

    async def event(self, step):
        name, payload = await self.events[step.get("room", "room")].get()
        assert name == step["event"], payload
        if "payload" in step:
            equal(step["payload"], payload)

    async def missed(self, step):
        name, events = await self.events[step.get("room", "room")].get()
        assert name is None and events == step.get("events", events)

    async def error(self, step):
        assert await self.events[step.get("room", "room")].get() == (None, step["code"])

    async def answer(self, step):
        asking = self.answers.pop(step["as"])
        if step.get("lost"):
            with pytest.raises(playfield.Refused) as refused:
                await asking
            assert refused.value.code == "connection_lost", refused.value
            return
        reply = await taken(step, asking)
        if "reply" in step:
            equal(step["reply"], reply)

    async def changes(self, step):
        changes = self.changed[step.get("room", "room")]
        found = [await changes.get() for _ in step["are"]]
        # It does not tell what kind of change it was.
        expected = [[one["path"], one.get("old"), one.get("new")] for one in step["are"]]
        if step.get("in_any_order"):
            for one in expected:
                fits = [two for two in found if is_equal(one, list(two))]
                assert fits, f"{one} is not in {found}"
                found.remove(fits[0])
        else:
            equal(expected, [list(one) for one in found])

    async def left(self, step):
        room = self._room(step)
        with pytest.raises(playfield.Refused) as refused:
            while True:
                await room.changed()
        is_refused(step, refused.value)

    async def status(self, step):
        assert await self.statuses.get() == step["status"]
        if step["status"] == "ended" and "code" in step:
            assert self.client.ended.code == step["code"], self.client.ended

    async def publication(self, step):
        equal(step["payload"], await self.channels[step["channel"]][1].get())

    async def publications(self, step):
        happened, place = self.channels[step["channel"]][1], 0
        while place < len(step["payloads"]):
            one = await happened.get()
            if isinstance(one, (playfield.Subscribed, Missed)):
                # It has subscribed again, or could not follow.
                assert one.missed == 0 or step["some_missed"], one
                place += one.missed
            else:
                equal(step["payloads"][place], one)
                place += 1

    async def presence(self, step):
        assert await self.channels[step["channel"]][1].get() == (step["name"], step["joined"])
