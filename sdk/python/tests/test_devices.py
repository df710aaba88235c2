"""Devices, against the example `fleet`."""

import asyncio
import threading
import urllib.error
import urllib.request

import pytest

import playfield
import playfield.sync


@pytest.fixture(scope="module")
def address(example):
    """The address of the node of `fleet`."""
    return example("fleet")


def post(address, path, body):
    with urllib.request.urlopen(f"http://{address}{path}", data=body, timeout=20) as response:
        return response.read().decode().strip()


def test_a_device_reports_and_answers(run, address):
    async def main():
        async with playfield.connect(f"tcp://{address}") as client:
            changes = await client.subscribe("fleet")
            name = f"pump-{id(run)}"
            device = await client.register(name, metadata={"model": "x2"}, tags=["pump", name])
            assert device.is_new and device.id == name
            await device.report(21.5)
            await device.report_unconfirmed(22)
            values = []
            async for change in changes:
                if change.payload["id"] == name:
                    values.append(change.payload["value"])
                if values[-1:] == [22]:
                    break
            assert values == [None, 21.5, 22]
            with pytest.raises(playfield.Refused):
                await device.report("not a number")

            calling = asyncio.to_thread(post, address, f"/devices/{name}", b"40")
            answer = asyncio.create_task(calling)
            commands = device.__aiter__()
            command = await commands.__anext__()
            assert command.payload == 40 and command.wants_answer
            await command.answer(39.5)
            assert not command.wants_answer
            assert float(await answer) == 39.5

            device.on_command(lambda value: value * 2)
            assert float(await asyncio.to_thread(post, address, f"/devices/{name}", b"4")) == 8

            async def later(value):
                await asyncio.sleep(0)
                return value * 3

            device.on_command(later)
            assert float(await asyncio.to_thread(post, address, f"/devices/{name}", b"4")) == 12

            def fail(value):
                raise ValueError("the valve is stuck")

            device.on_command(fail)
            with pytest.raises(urllib.error.HTTPError) as refused:
                await asyncio.to_thread(post, address, f"/devices/{name}", b"4")
            assert "the valve is stuck" in refused.value.read().decode()

            again = await client.register(name)
            assert [command async for command in device] == [] and again.id == name

    run(main())


def test_blocking(address):
    with playfield.sync.connect(f"tcp://{address}") as client:
        device = client.register("sync-pump", tags=["sync"])
        device.report_unconfirmed(1)
        device.report(2, timeout=10)
        answers = []
        caller = threading.Thread(
            target=lambda: answers.append(post(address, "/devices/sync-pump", b"5"))
        )
        caller.start()
        command = device.next(timeout=10)
        assert command.payload == 5 and command.wants_answer
        command.answer(6)
        caller.join()
        assert float(answers[0]) == 6
        assert post(address, "/tags/sync", b"7") == "1 devices"
        assert next(device).payload == 7
        device.on_command(lambda value: value + 1)
        assert float(post(address, "/devices/sync-pump", b"5")) == 6
