"""python-binance: a stream of trades that is cut, and goes on."""

import asyncio
import sys

import playfield.websocket.replace  # noqa: F401  before the library

from binance import AsyncClient, BinanceSocketManager


async def main():
    client = AsyncClient()
    sockets = BinanceSocketManager(client)
    sockets.STREAM_URL = sys.argv[1]
    got = []
    async with sockets.trade_socket("BTCUSDT") as trades:
        # The server ends the stream after three trades, and the library connects again.
        while got.count(1) < 2:
            message = await trades.recv()
            if message["e"] == "trade":
                got.append(message["t"])
    # What had not been read by then is lost, as it is with `websockets`.
    assert got[0] == 1 and set(got) <= {1, 2, 3} and len(got) > 2, got
    await client.close_connection()


asyncio.run(main())
