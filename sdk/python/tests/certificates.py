"""Certificates to test with, made by the program ``openssl``."""

import pathlib
import shutil
import subprocess

import pytest

_CONFIG = """
[ca]
default_ca = authority
[authority]
database = {folder}/index
unique_subject = no
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
default_days = 1
policy = policy
[policy]
commonName = supplied
[req]
distinguished_name = name
[name]
"""

_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing, so there is no certificate to test with")
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_certificate(folder):
    """A certificate of localhost that signs itself: the paths of it and of its key."""
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    openssl("req", "-x509", *_NEW_KEY, "-keyout", key, "-out", certificate, "-days", 1,
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")  # fmt: skip
    return certificate, key


class Authority:
    """Signs certificates. ``certificate`` is the path of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "authority.pem", folder / "authority-key.pem"
        (folder / "config").write_text(_CONFIG.format(folder=folder))
        (folder / "index").touch()
        openssl("req", "-x509", *_NEW_KEY, "-keyout", self.key, "-out", self.certificate,
                "-days", 1, "-subj", "/CN=authority")  # fmt: skip

    def issue(self, name, subject="DNS:localhost", period=()):
        """The paths of a certificate and of its key; ``period`` is its start and its end."""
        paths = {kind: self.folder / f"{name}-{kind}" for kind in ("key", "request", "extensions")}
        certificate = self.folder / f"{name}.pem"
        openssl("req", "-new", *_NEW_KEY, "-keyout", paths["key"], "-out", paths["request"],
                "-subj", "/CN=localhost")  # fmt: skip
        paths["extensions"].write_text(f"subjectAltName={subject}\nbasicConstraints=CA:FALSE\n")
        dates = ["-startdate", period[0], "-enddate", period[1]] if period else []
        openssl("ca", "-batch", "-notext", "-config", self.folder / "config", *dates,
                "-cert", self.certificate, "-keyfile", self.key, "-in", paths["request"],
                "-extfile", paths["extensions"], "-out", certificate)  # fmt: skip
        return str(certificate), str(paths["key"])
