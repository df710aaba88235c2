"""A client of the Chrome DevTools Protocol: opens a page in Chromium, and asks it something."""

import asyncio
import subprocess
import sys
import tempfile

import playfield.websocket.replace  # noqa: F401  before the library

from cdp_use import CDPClient

chromium = sys.argv[2]


async def main(address):
    async with CDPClient(address) as client:
        page = "data:text/html,<title>here</title>" + "<p>long</p>" * 20_000
        target = await client.send.Target.createTarget(params={"url": "about:blank"})
        attached = await client.send.Target.attachToTarget(
            params={"targetId": target["targetId"], "flatten": True}
        )
        session = attached["sessionId"]
        loaded = asyncio.Event()
        client.register.Page.loadEventFired(lambda event, session: loaded.set())
        await client.send.Page.enable(session_id=session)
        await client.send.Page.navigate(params={"url": page}, session_id=session)
        await asyncio.wait_for(loaded.wait(), 30)
        found = await client.send.Runtime.evaluate(
            params={"expression": "[document.title, document.body.innerHTML.length].join()"},
            session_id=session,
        )
        assert found["result"]["value"] == "here,220000", found


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    process = subprocess.Popen(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if line.startswith("DevTools listening on "):
                asyncio.run(main(line.split()[-1]))
                break
        else:
            raise SystemExit("Chromium did not start")
    finally:
        process.terminate()
        process.wait(20)
