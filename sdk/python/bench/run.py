"""Measures WebSocket clients beside each other: one echo server that belongs to none of them, each
client in a process of its own, rounds interleaved. `make bench-python` runs it."""

import argparse
import json
import os
import pathlib
import platform
import resource
import select
import subprocess
import sys

import contestants
import report
import rows
from server import CERTIFICATE, Server

CLIENT = pathlib.Path(__file__).with_name("client.py")

# How many rounds a process is measured in, so that the luck of one process is not the result.
ROUNDS_A_PROCESS = 5

# How long a client may take to answer, in seconds.
PATIENCE_S = 120


class Failed(Exception):
    pass


class Client:
    """A process that connects once and is measured again and again."""

    def __init__(self, contestant, loop, target):
        said = json.dumps([contestant.style, contestant.name, loop, target])
        self.process = subprocess.Popen(
            [sys.executable, str(CLIENT), said],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SSL_CERT_FILE": str(CERTIFICATE)},
        )
        self.version = None

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            raise Failed(f"no answer within {PATIENCE_S} s" if not ready else "the process ended")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def measure(self, work, size, kind, count):
        command = {"work": work, "size": size, "kind": kind, "count": count}
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Spinners:
    """Two loops of idle priority, which keep the processors from sleeping: otherwise a round trip
    is mostly the time to wake one."""

    LOOP = "import os\np = os.getppid()\nwhile os.getppid() == p:\n for _ in range(10**6): pass"

    def __init__(self):
        processors = sorted(os.sched_getaffinity(0))
        self.processes = [self.start(one) for one in {processors[0], processors[-1]}]

    def start(self, processor):
        def prepare():
            os.setsid()
            try:
                pathlib.Path("/proc/self/autogroup").write_text("19")
            except OSError:
                pass  # A kernel without autogroups.
            os.sched_setaffinity(0, [processor])
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

        return subprocess.Popen([sys.executable, "-c", self.LOOP], preexec_fn=prepare)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Results:
    """What was measured: for each row, loop, size and client, a list with an entry a round."""

    def __init__(self):
        self.cells = {}
        self.versions = {}
        self.missing = {}
        self.failed = {}

    def add(self, key, answer):
        self.cells.setdefault(key, []).append(answer)

    def of(self, row, loop, size, contestant, what):
        found = self.cells.get((row.name, loop, size, contestant.name), [])
        return [one[what] for one in found]


class Fleet:
    """The processes that are measured."""

    def __init__(self, server, results, reuses, packages):
        self.server = server
        # Those that are measured; all if there is none.
        self.packages = packages
        self.results = results
        # Whether a process that was started for one row is used for another.
        self.reuses = reuses
        self.clients = {}

    def start(self, row, loop):
        """Starts the clients of a row that are installed, all at the same time."""
        if not self.reuses:
            self.stop()
        found, started = {}, []
        for contestant in row.contestants():
            if contestant.package in self.results.missing:
                continue
            if self.packages and contestant.package not in self.packages:
                continue
            if (row.name, loop, contestant.name) in self.results.failed:
                continue
            key = contestant.style, contestant.name, loop, row.feature
            if key not in self.clients:
                target = self.server.target(row.feature)
                self.clients[key] = Client(contestant, loop, target)
                started.append((key, contestant))
            found[contestant.name] = self.clients[key]
        for key, contestant in started:
            try:
                version = self.clients[key].answer()["ready"]
                if version:
                    self.results.versions[contestant.package] = version
            except Failed as why:
                self.drop(found.pop(contestant.name))
                if str(why).startswith("ModuleNotFoundError"):
                    why = reason(contestant.package, str(why))
                    self.results.missing[contestant.package] = why
                else:
                    self.results.failed[row.name, loop, contestant.name] = str(why)
        return found

    def drop(self, client):
        client.stop()
        self.clients = {key: one for key, one in self.clients.items() if one is not client}

    def stop(self):
        for client in self.clients.values():
            client.stop()
        self.clients = {}


def reason(package, why):
    """Why it can't be installed, as pip has said it."""
    noted = pathlib.Path(sys.prefix) / "bench" / f"{package}.missing"
    return noted.read_text().strip() if noted.exists() else why


def measure(row, loop, fleet, rounds, share):
    results = fleet.results
    for number in range(rounds):
        if row.work == "idle" and not fleet.reuses:
            # On a new port, as those of the connections of the last round are not free yet.
            fleet.stop()
            fleet.server.restart()
        if row.work == "idle" or number % ROUNDS_A_PROCESS == 0:
            clients = fleet.start(row, loop)
        names = list(clients)
        turn = number % len(names) if names else 0
        for size, count in zip(row.sizes, row.counts, strict=True):
            # A window is the least.
            count = max(count // share, 100 if row.work in ("window", "idle") else 4)
            for name in names[turn:] + names[:turn]:
                if name not in clients:
                    continue
                try:
                    # What a process does first after the others' turns is not measured.
                    if row.work == "rr":
                        clients[name].measure("rr", size, row.kind, max(4, count // 10))
                    answer = clients[name].measure(row.work, size, row.kind, count)
                except Failed as why:
                    results.failed[row.name, loop, name] = str(why)
                    fleet.drop(clients.pop(name))
                    continue
                if row.work != "idle" and answer["verified"] != count:
                    sys.exit(f"bench-python: {name} has verified {answer['verified']} of {count}")
                results.add((row.name, loop, size, name), answer)


def options():
    names = [row.name for row in rows.ROWS]
    parser = argparse.ArgumentParser(prog="bench-python", allow_abbrev=False, add_help=False)
    parser.add_argument("--row", action="append", metavar="NAME")
    parser.add_argument("--package", action="append", metavar="NAME")
    parser.add_argument("--rounds", type=int, metavar="N")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--help", action="store_true")
    known = (
        "  --row NAME   measure this row only; may be repeated\n"
        "  --package NAME  measure this package only; may be repeated\n"
        "  --rounds N   how often each client is measured (15)\n"
        "  --quick      a few messages of each row, to see that all works\n"
        "  --json       one JSON object per line instead of tables\n"
        "rows: " + ", ".join(names)
    )
    parser.error = lambda why: sys.exit(f"bench-python: {why}; there are:\n{known}")
    chosen = parser.parse_args()
    if chosen.help:
        print(f"usage: bench-python [OPTION]...\n{known}")
        sys.exit()
    for name in chosen.row or []:
        if name not in names:
            parser.error(f"there is no row {name}")
    contestants = (contestant for row in rows.ROWS for contestant in row.contestants())
    packages = {contestant.package for contestant in contestants if contestant.package}
    for name in chosen.package or []:
        if name not in packages:
            parser.error(f"there is no package {name}, but {', '.join(sorted(packages))}")
    if chosen.rounds is not None and chosen.rounds < 1:
        parser.error(f"--rounds {chosen.rounds}: at least 1")
    return chosen


def main():
    chosen = options()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rounds = chosen.rounds or (1 if chosen.quick else 15)
    share = 100 if chosen.quick else 1
    results = Results()
    server = Server()
    fleet = Fleet(server, results, reuses=chosen.quick, packages=chosen.package)
    spinners = None if chosen.quick else Spinners()
    measured = [row for row in rows.ROWS if not chosen.row or row.name in chosen.row]
    try:
        for row in measured:
            if row.feature == "tls" and server.tls:
                continue
            # To see that all works, one loop with TLS or compression is enough.
            for loop in row.loops[:1] if chosen.quick and row.feature else row.loops:
                measure(row, loop, fleet, rounds, share)
                if not chosen.json:
                    report.table(row, loop, results, chosen.quick)
    finally:
        fleet.stop()
        server.stop()
        if spinners:
            spinners.stop()
    about = {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "rounds": rounds,
        "quick": chosen.quick,
        "tls": server.tls,
    }
    if chosen.json:
        report.as_json(measured, results, about)
    else:
        report.summary(measured, results, about)
    ours = {one.name for one in contestants.ALL if one.ours}
    if any(name in ours for _, _, name in results.failed):
        sys.exit(1)


if __name__ == "__main__":
    main()
