"""Runs the converted suite, shared out to several processes, against the echo examples; says what came of it.

`run` beside it starts it, in the environment that has the suite.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autobahntestsuite import case as suite
from autobahntestsuite.caseset import CaseSet

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPORTS = ROOT / "target/conformance/reports"

# The role is that of the end that is tested: the crate and the example of each, and its arguments. `node` and
# `node-tls` are a whole node, with its listener, its limits and its TLS.
EXAMPLES = {
    "server": ("playfield-websocket", "echo_server", []),
    "client": ("playfield-websocket", "echo_client", []),
    "node": ("playfield-server", "echo_node", []),
    "node-tls": ("playfield-server", "echo_node", ["--tls"]),
}

# More shares of the cases than processes: they differ in what they take, by how well a file deflates.
SHARES_PER_JOB = 4
# A share takes minutes. The suite ends a case that hangs by itself, but not a peer that does.
SHARE_SECONDS_MAX = 1800

# The verdicts of a case and of how its connection was closed that are none of these are failures.
PASSING = ("OK", "NON-STRICT", "INFORMATIONAL")


def complain(text):
    print(f"playfield: {text}", file=sys.stderr)
    sys.exit(2)


class Children:
    """The processes started here, to end them and no others."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.ended = False

    def start(self, command, **options):
        with self.lock:
            if self.ended:
                raise RuntimeError("interrupted")
            child = subprocess.Popen(command, text=True, **options)
            self.running.add(child)
            return child

    def end(self, child):
        if child.poll() is None:
            child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        with self.lock:
            self.running.discard(child)

    def end_all(self):
        with self.lock:
            self.ended = True
            running = list(self.running)
        for child in running:
            self.end(child)


CHILDREN = Children()


def select(patterns):
    """The names of the cases that match, those that take longest first."""
    cases = CaseSet(suite.CaseSetname, suite.CaseBasename, suite.Cases, suite.CaseCategories, suite.CaseSubCategories)
    names = cases.parseSpecCases({"cases": patterns})
    for name in names:
        if name not in cases.CasesById:
            complain(f"the suite has no case {name}.")
    if not names:
        complain(f"the suite has no case like {', '.join(patterns)}.")

    def octets(name):
        kind = cases.CasesById[name]
        return getattr(kind, "LEN", 0) * getattr(kind, "COUNT", 0)

    return sorted(names, key=octets, reverse=True)


def build(roles):
    """Builds the examples; the command of each role."""
    commands = {}
    for role in roles:
        package, example, arguments = EXAMPLES[role]
        command = ["cargo", "build", "--release", "-p", package, "--example", example]
        command.append("--message-format=json-render-diagnostics")
        done = subprocess.run(command, check=False, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            complain(f"the example {example} of {package} doesn't build; the reason is above.")
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        found = {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}
        if example not in found:
            complain(f"{package} has no example {example}.")
        commands[role] = [found[example], *arguments]
    return commands


def fuzz(url, out, cases, drive=lambda url: None):
    """Runs one process of the suite to its end; what it found. `drive` is called with its URL, if it is a server."""
    command = [sys.executable, HERE / "fuzz.py", url, out]
    child = CHILDREN.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    # Ends the reading below, too.
    alarm = threading.Timer(SHARE_SECONDS_MAX, child.terminate)
    alarm.start()
    try:
        child.stdin.write(" ".join(cases))
        child.stdin.close()
        if url == "-":
            drive(child.stdout.readline().strip())
            child.terminate()
        line = child.stdout.readline()
        return json.loads(line) if line else {"cases": {}, "faults": ["a process of the suite ended without a word"]}
    finally:
        alarm.cancel()
        CHILDREN.end(child)


def test(role, command, cases, jobs):
    """Tests one role; the verdicts by case, and what went wrong in the suite itself."""
    out = REPORTS / role
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    count = min(len(cases), jobs * SHARES_PER_JOB)
    shares = [cases[start::count] for start in range(count)]

    with open(out / "peer.log", "w") as peer_log:

        def run_client(url):
            peer = CHILDREN.start([*command, url], stdout=peer_log, stderr=peer_log)
            try:
                peer.wait(SHARE_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                pass
            finally:
                CHILDREN.end(peer)

        if role != "client":
            peer = CHILDREN.start([*command, "0"], stdout=subprocess.PIPE, stderr=peer_log)
            address = peer.stdout.readline().strip()
            if not address:
                complain(f"{shlex.join(command)} printed no address to connect to; see {peer_log.name}.")
            url = address if "://" in address else f"ws://{address}"
            test_share = lambda share: fuzz(url, out, share)
        else:
            peer = None
            test_share = lambda share: fuzz("-", out, share, run_client)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                results = list(pool.map(test_share, shares))
            except BaseException:
                CHILDREN.end_all()
                raise
        if peer:
            CHILDREN.end(peer)

    verdicts = {case: verdict for result in results for case, verdict in result["cases"].items()}
    verdicts = {case: verdicts[case] for case in sorted(verdicts, key=key)}
    (out / "index.json").write_text(json.dumps(verdicts, indent=1) + "\n")
    return verdicts, [fault for result in results for fault in result["faults"]]


def key(case):
    return [int(part) for part in case.split(".")]


def judge(verdict):
    """The word that a case counts under: of how it was closed, if the rest is right and that isn't."""
    if verdict is None:
        return "NOT RUN"
    if verdict["behavior"] in PASSING and verdict["behaviorClose"] not in PASSING:
        return verdict["behaviorClose"]
    return verdict["behavior"]


def shorten(cases):
    """Names in words: 12.1.1 12.1.2 12.1.3 are 12.1.1-3."""
    runs = []
    for *group, last in map(key, sorted(cases, key=key)):
        if runs and runs[-1][0] == group and runs[-1][2] == last - 1:
            runs[-1][2] = last
        else:
            runs.append([group, last, last])
    return " ".join(".".join(map(str, [*group, first])) + f"-{last}" * (last > first) for group, first, last in runs)


def tell(results, cases, strict):
    """Prints the table; true if nothing failed."""
    words = ("OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED")
    print("\nrole      cases run    ok  non-strict  informational  unimplemented  failed")
    names, bad = [], False
    for role, (verdicts, faults) in results.items():
        by_word = {}
        for case in cases:
            by_word.setdefault(judge(verdicts.get(case)), []).append(case)
        ok, non_strict, informational, unimplemented = (len(by_word.get(word, [])) for word in words)
        failed = len(cases) - ok - non_strict - informational - unimplemented
        print(f"{role:8}  {len(verdicts):9}  {ok:4}  {non_strict:10}", end="")
        print(f"  {informational:13}  {unimplemented:13}  {failed:6}")
        told = sorted(by_word.keys() - {"OK", "INFORMATIONAL"})
        names += [f"{role}, {word}: {shorten(by_word[word])}" for word in told]
        names += [f"{role}, fault of the suite: {fault}" for fault in faults]
        bad = bad or failed or unimplemented or faults or (strict and non_strict)
    print(*names, sep="\n", end="\n" if names else "")
    print(f"A report of each case is in {REPORTS.relative_to(ROOT)}.")
    return not bad


def main():
    options = argparse.ArgumentParser(prog="run", description="Runs the Autobahn test suite.")
    options.add_argument("--cases", default="*", help="which, such as '6.4.*,12.1.3' (all)")
    options.add_argument("--role", choices=EXAMPLES, help="only the end in this role (all)")
    options.add_argument("--strict", action="store_true", help="count what is not strict as failed")
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side (as many as cores)")
    options.add_argument(
        "--peer",
        help="test this command instead of our example; needs --role. A server gets the argument 0, and prints its "
        "address or URL; a client gets the URL of the suite",
    )
    chosen = options.parse_args()
    if chosen.peer and not chosen.role:
        options.error("--peer needs --role")

    cases = select(chosen.cases.split(","))
    roles = [chosen.role] if chosen.role else list(EXAMPLES)
    commands = {chosen.role: shlex.split(chosen.peer)} if chosen.peer else build(roles)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    results = {}
    try:
        for role in roles:
            print(f"{role}: {len(cases)} cases ...", end="", flush=True)
            start = time.monotonic()
            results[role] = test(role, commands[role], cases, chosen.jobs)
            print(f" {time.monotonic() - start:.0f} s", flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        CHILDREN.end_all()
    sys.exit(0 if tell(results, cases, chosen.strict) else 1)


if __name__ == "__main__":
    main()
