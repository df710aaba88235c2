"""The workloads. Each echo is compared with what was sent."""

import asyncio
import contextlib
import time

WINDOW = 100
WARM_UP = 200


class Plan:
    """Which sizes, how many messages, and what was measured."""

    def __init__(self, sizes, messages):
        self.sizes = sizes
        self.messages = messages
        self.results = []

    @contextlib.contextmanager
    def measured(self, work, size, messages):
        begun, cpu = time.perf_counter(), time.process_time()
        yield
        seconds = (time.perf_counter() - begun) / messages
        cpu = (time.process_time() - cpu) / messages
        self.results.append({"work": work, "size": size, "us": seconds * 1e6, "cpu_us": cpu * 1e6})

    def windows(self, size):
        return max(1, (self.messages if size < 65536 else self.messages // 4) // WINDOW)


def _check(message, sent):
    if message != sent:
        raise AssertionError(f"an echo of {len(sent)} bytes differs")


def drive_sync(plan, send, recv, cork=contextlib.nullcontext):
    for size in plan.sizes:
        payload = b"x" * size
        for warm_up in (True, False):
            messages = WARM_UP if warm_up else plan.messages
            with contextlib.nullcontext() if warm_up else plan.measured("rr", size, messages):
                for _ in range(messages):
                    send(payload)
                    _check(recv(), payload)
        windows = plan.windows(size)
        with plan.measured("pipelined", size, windows * WINDOW):
            for _ in range(windows):
                with cork():
                    for _ in range(WINDOW):
                        send(payload)
                for _ in range(WINDOW):
                    _check(recv(), payload)


async def drive_async(plan, send, recv):
    for size in plan.sizes:
        payload = b"x" * size
        for warm_up in (True, False):
            messages = WARM_UP if warm_up else plan.messages
            with contextlib.nullcontext() if warm_up else plan.measured("rr", size, messages):
                for _ in range(messages):
                    await send(payload)
                    _check(await recv(), payload)
        windows = plan.windows(size)
        with plan.measured("pipelined", size, windows * WINDOW):
            for _ in range(windows):
                for _ in range(WINDOW):
                    await send(payload)
                for _ in range(WINDOW):
                    _check(await recv(), payload)


async def drive_callbacks(plan, start):
    payload, window, missing, left = b"", 1, 0, 0
    done = None

    def on_message(message):
        nonlocal missing, left
        _check(message, payload)
        missing -= 1
        if missing == 0:
            left -= 1
            if left == 0:
                done.set_result(None)
            else:
                go()

    def go():
        nonlocal missing
        missing = window
        for _ in range(window):
            send(payload)

    async def run(size, rounds, in_window):
        nonlocal payload, window, left, done
        payload, window, left = b"x" * size, in_window, rounds
        done = asyncio.get_running_loop().create_future()
        go()
        await done

    send = await start(on_message)
    for size in plan.sizes:
        await run(size, WARM_UP, 1)
        with plan.measured("rr", size, plan.messages):
            await run(size, plan.messages, 1)
        windows = plan.windows(size)
        with plan.measured("pipelined", size, windows * WINDOW):
            await run(size, windows, WINDOW)
