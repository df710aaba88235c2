"""The echo server: compiled with cc, on the first processor."""

import os
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(sys.prefix) / "bench"
SOURCE = pathlib.Path(__file__).with_name("echo.c")
PROGRAM, CERTIFICATE, KEY = FOLDER / "echo", FOLDER / "certificate.pem", FOLDER / "key.pem"


def pin_to_first():
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


class Server:
    """`tls` says why there is no TLS, if so."""

    def __init__(self):
        if not sys.platform.startswith("linux"):
            sys.exit("bench-python: it needs Linux: the server uses epoll, and all are pinned")
        compiler = shutil.which("cc")
        if compiler is None:
            sys.exit("bench-python: cc, a C compiler, is missing: the echo server is in C")
        FOLDER.mkdir(exist_ok=True)
        command = [compiler, "-O3", "-o", PROGRAM, SOURCE]
        with_tls = [*command, "-DWITH_TLS", "-lssl", "-lcrypto"]
        self.tls = None
        self.process = None
        if subprocess.run(with_tls, capture_output=True).returncode != 0:
            self.tls = "the headers of OpenSSL are missing (Debian, Ubuntu: apt-get install libssl-dev)"
            subprocess.run(command, check=True)
        elif shutil.which("openssl") is None:
            self.tls = "openssl, which makes the certificate, is missing"
        else:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", KEY, "-out", CERTIFICATE,
                 "-days", "2", "-subj", "/CN=localhost",
                 "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                 "-addext", "basicConstraints=critical,CA:FALSE"],
                check=True, capture_output=True,
            )  # fmt: skip
        self.start()

    def start(self):
        files = [] if self.tls else [CERTIFICATE, KEY]
        self.process = subprocess.Popen(
            [PROGRAM, *files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=pin_to_first,
        )
        self.port = self.process.stdout.readline().strip()
        self.tls_port = self.process.stdout.readline().strip() if files else None

    def target(self, feature):
        """How `contestants.Target` is made."""
        if feature == "tls":
            return {"url": f"wss://localhost:{self.tls_port}/", "certificate": str(CERTIFICATE)}
        return {"url": f"ws://127.0.0.1:{self.port}/", "compressed": feature == "deflate"}

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        self.stop()
        self.start()
