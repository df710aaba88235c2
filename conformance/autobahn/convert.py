"""Makes the Autobahn test suite, which is written for Python 2, run on Python 3.

Usage: convert.py SDIST OUT. SDIST is the unpacked source archive of the suite, OUT the folder to write the package
`autobahntestsuite` to, without what the cases don't need (WAMP, reports in HTML, the command line).

Python 2 kept octets in its `str`. Here they stay in `str`, one character of U+0000 to U+00FF for each octet: the
sources are read as Latin-1, so a literal is the octets it was, and the cases go on joining and comparing texts. Only
where octets meet the network are they turned to `bytes` and back; shim.py does that. So nothing has to tell literals
that are payload from those that are text, and what remains are the few places below.
"""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from fissix.refactor import RefactoringTool

# What has another spelling in Python 3. `unicode` is for `unichr`.
FIXERS = ["fissix.fixes.fix_" + name for name in ("has_key", "import", "print", "unicode", "xrange")]


class Edit(NamedTuple):
    why: str
    old: str
    new: str
    # How often each file has the old text.
    counts: dict[str, int]


EDITS = [
    Edit(
        "The case is in no list, and needs what zope.interface has no more.",
        "from case9_9_1 import *\n",
        "",
        {"case/__init__.py": 1},
    ),
    Edit(
        "A pickle also tells whether two parts are one object, which here depends on where the texts come from.",
        "pickle.dumps(obj1) == pickle.dumps(obj2)",
        "obj1 == obj2",
        {"case/case.py": 1},
    ),
    Edit(
        "Every class is an object now, and `object` ahead of a class that derives from it is refused.",
        "(object, Case, )",
        "(Case, )",
        {
            "case/case6_x_x.py": 1,
            "case/case7_7_X.py": 1,
            "case/case7_9_X.py": 1,
            "case/case9_7_X.py": 1,
            "case/case12_x_x.py": 2,
        },
    ),
    Edit(
        "Python's own takes and gives bytes alone.",
        "import binascii\n",
        "from .. import shim as binascii\n",
        {f"case/case{case}.py": 1 for case in ("6_2_1", "6_2_2", "6_2_3", "6_2_4", "6_3_1", "6_3_2")}
        | {f"case/case{case}.py": 1 for case in ("6_4_1", "6_4_2", "6_4_3", "6_4_4", "7_5_1")}
        | {"case/case6_x_x.py": 2},
    ),
    Edit(
        "Autobahn's validator of UTF-8 takes bytes.",
        "v.validate(vss[:i])",
        "v.validate(binascii.octets(vss[:i]))",
        {"case/case6_x_x.py": 1},
    ),
    Edit(
        "A count of frames; `/` gives fractions now.",
        "len(self.payload) / self.p.autoFragmentSize",
        "len(self.payload) // self.p.autoFragmentSize",
        {"case/case10_1_1.py": 1},
    ),
    Edit(
        "As above; and today's setuptools has no pkg_resources.",
        "import copy, os, pkg_resources, hashlib, binascii\n",
        "import copy, os, hashlib\nfrom .. import shim as binascii, shim as pkg_resources\n",
        {"case/case12_x_x.py": 1},
    ),
    Edit(
        "These cases hash and decode what they get, and compare it with octets of a file, which are bytes.",
        "def onMessage(self, msg, binary):\n",
        "def onMessage(self, msg, binary):\n   msg = binascii.octets(msg)\n",
        {"case/case12_x_x.py": 1},
    ),
    *(
        Edit("Autobahn renamed them.", f"{before}{old}{after}", f"{before}{new}{after}", {"case/case12_x_x.py": count})
        for before, old, after, new, count in (
            ("offer.", "acceptNoContextTakeover", "", "accept_no_context_takeover", 3),
            ("offer.", "acceptMaxWindowBits", "", "accept_max_window_bits", 4),
            ("", "requestNoContextTakeover", " = ", "request_no_context_takeover", 10),
            ("", "requestMaxWindowBits", " = ", "request_max_window_bits", 10),
            ("x.", "requestNoContextTakeover", "", "request_no_context_takeover", 1),
            ("x.", "requestMaxWindowBits", "", "request_max_window_bits", 1),
        )
    ),
    Edit("Python warns of what is no escape.", r"'\.'", r"r'\.'", {"caseset.py": 3}),
    Edit(
        "As in the cases; the last served web pages.",
        "import os, json, binascii, time, textwrap, pkg_resources\n",
        "import os, json, time, textwrap\nfrom . import shim as binascii\n",
        {"fuzzing.py": 1},
    ),
    Edit(
        "Here the cases meet the network, and an Autobahn newer than theirs.",
        "from autobahn.twisted.websocket import WebSocketServerFactory,",
        "from .shim import WebSocketServerFactory,",
        {"fuzzing.py": 1},
    ),
    Edit(
        "There is no TLS here, and so no need of pyOpenSSL.",
        "from twisted.internet import reactor, ssl\n",
        "from twisted.internet import reactor\n",
        {"fuzzing.py": 1},
    ),
    Edit("The same.", "ssl.ClientContextFactory()", "None", {"fuzzing.py": 1}),
    Edit(
        "For reports in HTML, which are not written.",
        """from report import CSS_COMMON, \\
                   CSS_DETAIL_REPORT, \\
                   CSS_MASTER_REPORT, \\
                   JS_MASTER_REPORT
""",
        "",
        {"fuzzing.py": 1},
    ),
    Edit(
        "What is logged comes from the cases and from the network.",
        '   ellipses = " ..."\n',
        '   ellipses = " ..."\n   data = binascii.text(data)\n',
        {"fuzzing.py": 2},
    ),
    Edit(
        "Octets that are UTF-8 are logged as what they mean.",
        "return dd.decode(",
        "return binascii.octets(dd).decode(",
        {"fuzzing.py": 1},
    ),
    Edit(
        "The parts of a payload as they came from the network.",
        "p = ''.join(payload)",
        "p = b''.join(payload)",
        {"fuzzing.py": 1},
    ),
    Edit(
        "The heads of the HTTP handshake and the reason of a close are bytes.",
        "json.dumps(case, ",
        "json.dumps(case, default = binascii.text, ",
        {"fuzzing.py": 1},
    ),
]


def main(source: Path, out: Path) -> None:
    package = out / "autobahntestsuite"
    source = source / "autobahntestsuite"
    files = ["_version.py", "caseset.py", "fuzzing.py"]
    files += sorted(f"case/{path.name}" for path in (source / "case").glob("*.py") if path.name != "case9_9_1.py")

    tool = RefactoringTool(FIXERS)
    if package.exists():
        shutil.rmtree(package)
    (package / "case").mkdir(parents=True)
    for file in files:
        code = (source / file).read_bytes().decode("latin-1").replace("\r\n", "\n")
        for edit in EDITS:
            count = edit.counts.pop(file, 0)
            if count:
                found = code.count(edit.old)
                if found != count:
                    sys.exit(f"convert: {file} should have {edit.old!r} {count} times, and has it {found} times")
                code = code.replace(edit.old, edit.new)
        # The path tells the fixer of imports what lies beside the file.
        code = str(tool.refactor_string(code + "\n", str(source / file)))
        compile(code, file, "exec")
        (package / file).write_text(code, encoding="utf-8")
    for edit in EDITS:
        if edit.counts:
            sys.exit(f"convert: the suite has no {', '.join(edit.counts)}, where {edit.old!r} should be")

    (package / "__init__.py").write_text("from ._version import __version__ as version\n", encoding="utf-8")
    shutil.copy(Path(__file__).with_name("shim.py"), package)
    shutil.copytree(source / "testdata", package / "testdata")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
