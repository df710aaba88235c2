"""gql: a query and a subscription over graphql-transport-ws."""

import asyncio
import sys

import playfield.websocket.replace  # noqa: F401  before the library

from gql import Client, gql
from gql.transport.websockets import WebsocketsTransport


async def main():
    transport = WebsocketsTransport(url=sys.argv[1] + "graphql", headers={"X-Token": "secret"})
    async with Client(transport=transport) as session:
        counted = [one["count"] async for one in session.subscribe(gql("subscription { count }"))]
        assert counted == [1, 2, 3], counted
        assert await session.execute(gql("query { count }")) == {"count": 1}
    assert transport.response_headers["X-Token"] == "secret"


asyncio.run(main())
