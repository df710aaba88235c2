"""The SDK of OpenAI: a realtime session, awaited and blocking, and a redirect to another origin."""

import asyncio
import sys

import playfield.websocket.replace  # noqa: F401  before the library

import openai
from websockets.exceptions import SecurityError

url = sys.argv[1]
options = {"api_key": "secret", "base_url": url.replace("ws://", "http://") + "v1"}
expected = ["session.created", "response.output_text.delta", "response.output_text.delta"]


def take(event, got, text):
    got.append(event.type)
    if event.type == "response.output_text.delta":
        text.append(event.delta)
    return event.type == "response.done"


async def awaited():
    client = openai.AsyncOpenAI(**options)
    got, text = [], []
    async with client.realtime.connect(model="test") as connection:
        await connection.response.create()
        async for event in connection:
            if take(event, got, text):
                break
    assert (got, "".join(text)) == ([*expected, "response.done"], "hello"), got

    away = openai.AsyncOpenAI(api_key="secret", base_url=options["base_url"] + "/away")
    try:
        async with away.realtime.connect(model="test"):
            raise AssertionError("a token was taken to another origin")
    except SecurityError as error:
        assert "Cross-origin" in str(error)


def blocking():
    client = openai.OpenAI(**options)
    got, text = [], []
    with client.realtime.connect(model="test") as connection:
        connection.response.create()
        for event in connection:
            if take(event, got, text):
                break
    assert (got, "".join(text)) == ([*expected, "response.done"], "hello"), got


asyncio.run(awaited())
blocking()
