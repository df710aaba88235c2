#!/bin/sh
# Does what docs/cpp.md says, from an empty folder: the files and the commands are the document's.
# Usage: guide.sh DOCUMENT PREFIX DUEL FOLDER: where the library is installed, the guide's game, and
# a folder, which is deleted first.
set -eu
document=$1 prefix=$2 duel=$3 folder=$4

# The first block of a language after the document's heading "A client of the guide's game".
block() {
    awk -v begin="\`\`\`$1" '
        /^## A client of the guide/ { here = 1 }
        inside && /^```$/ { exit }
        inside { print }
        here && $0 == begin { inside = 1 }
    ' "$document"
}

fail() {
    echo "guide.sh: $1" >&2
    cat "$folder"/*.log >&2 2>/dev/null || true
    exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
block cmake >CMakeLists.txt
block cpp >main.cpp

mkfifo says
PLAYFIELD_LISTEN=127.0.0.1:0 "$duel" >says 2>duel.log &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT
exec 3<says
# "listening on 127.0.0.1:45589"
read -r line <&3 || fail "the duel has ended"
address=${line##* }

# The commands as they are, but for the two places that they name.
block sh | sed -e "s|~/playfield-cpp|$prefix|" -e "s|127\.0\.0\.1:7350|$address|g" >commands.sh
grep -q "cmake --build build" commands.sh || fail "the document has other commands"
{
    cat commands.sh
    echo wait
} | sh -e >commands.log 2>&1 || fail "the commands failed"
won=$(grep -c ": won" commands.log || true)
lost=$(grep -c ": lost" commands.log || true)
rounds=$((won + lost))
# Two players print five rounds each, of which both lose those that are a draw.
[ "$rounds" -ge 10 ] || fail "$rounds rounds were printed, and not 10"
echo "two clients played $rounds rounds: $won won, $lost lost"
