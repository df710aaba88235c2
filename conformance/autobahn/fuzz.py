"""One process of the converted suite: runs some of its cases against one peer. run.py starts several, side by side.

Usage: fuzz.py URL OUT < CASES

CASES are names, separated by white space. With a URL such as ws://127.0.0.1:9001 the suite is the client, and the peer
there is tested. With `-` it is the server: its URL is printed, and it serves until SIGTERM. Then, or when the last case
is over, a report of each case is written to the folder OUT, and one line is printed: an object in JSON with `cases`,
their verdicts by name, and `faults`, errors in the suite itself: at the first it stops, and its verdicts are void.
"""

import json
import os
import signal
import socket
import sys

import txaio

txaio.use_twisted()

from autobahntestsuite import fuzzing  # noqa: E402
from twisted.internet import reactor  # noqa: E402
from twisted.python import log  # noqa: E402


# Written below, when all is over.
fuzzing.FuzzingFactory.createReports = lambda factory: None


def accept_any_certificate():
    """The peer makes its own certificate."""
    from twisted.internet.ssl import CertificateOptions

    connect = fuzzing.connectWS
    # Chopped frames, which the suite sends byte by byte, become a record each.
    fuzzing.connectWS = lambda factory, contextFactory=None: connect(factory, CertificateOptions(verify=False))


def main(url, out):
    cases = sys.stdin.read().split()
    faults = []

    def note(event):
        if event["isError"]:
            faults.append(log.textFromEventDict(event).splitlines()[-1])
            reactor.crash()

    log.addObserver(note)
    # The suite prints a line for each case.
    tell = sys.stdout
    sys.stdout = open(os.devnull, "w")

    serves = url == "-"
    if serves:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        factory = fuzzing.FuzzingServerFactory({"url": url, "cases": cases})
        reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, factory)
        listener.close()
        reactor.callWhenRunning(print, url, file=tell, flush=True)
    else:
        if url.startswith("wss:"):
            accept_any_certificate()
        factory = fuzzing.FuzzingClientFactory({"servers": [{"url": url, "agent": "playfield"}], "cases": cases})
    # Ctrl-C reaches every process of the terminal; run.py ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reactor.run(installSignalHandlers=serves)

    index = {}
    for agent, verdicts in factory.agents.items():
        for case, verdict in verdicts.items():
            factory.createAgentCaseReportJSON(agent, case, out)
            index[case] = {key: verdict[key] for key in ("behavior", "behaviorClose", "duration")}
    print(json.dumps({"cases": index, "faults": faults}), file=tell, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
