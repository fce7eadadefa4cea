"""Writes BUILD/tidy/compile_commands.json: the build's commands without GCC's precompiled headers,
which mean nothing to clang-tidy, and without warnings that only GCC has. Beside it, one list per
source of the project's headers that it reads: its result holds until one of them changes."""
import json
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
kept = []
for entry in commands:
    if entry["file"].endswith(("cmake_pch.hxx.cxx", "cmake_pch.hxx")):
        continue
    command = re.sub(r"-Winvalid-pch|-include \S*cmake_pch\.hxx|-Wno-restrict|-Wno-maybe-uninitialized", "", entry["command"])
    # libstdc++ 12's own stable_sort uses what C++17 deprecates.
    entry["command"] = re.sub(r"^\S*ccache ", "", command) + " -Wno-deprecated-declarations"
    kept.append(entry)
(build / "tidy").mkdir(exist_ok=True)
(build / "tidy" / "compile_commands.json").write_text(json.dumps(kept), encoding="utf-8")

root = pathlib.Path.cwd()
reads: dict[pathlib.Path, list[str]] = {}
listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
for block in listing.split("\n\n"):
    paths = [(build / line.strip()).resolve() for line in block.splitlines()[1:]]
    ours = [str(p.relative_to(root)) for p in paths if p.is_relative_to(root) and not p.is_relative_to(root / "build")]
    if ours and ours[0].startswith("tests/"):
        ours.append("tests/.clang-tidy")
    if ours:
        reads[pathlib.Path(ours[0])] = sorted(ours)
for source, headers in reads.items():
    (build / "tidy" / (str(source).replace("/", "_") + ".reads")).write_text("\n".join(headers) + "\n", encoding="utf-8")
