"""Writes BUILD/tidy/compile_commands.json: the build's commands without GCC's precompiled headers,
which mean nothing to clang-tidy, and without warnings that only GCC has."""
import json
import pathlib
import re
import sys

build = pathlib.Path(sys.argv[1])
commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
kept = []
for entry in commands:
    if entry["file"].endswith(("cmake_pch.hxx.cxx", "cmake_pch.hxx")):
        continue
    command = re.sub(r"-Winvalid-pch|-include \S*cmake_pch\.hxx|-Wno-restrict|-Wno-maybe-uninitialized", "", entry["command"])
    entry["command"] = re.sub(r"^\S*ccache ", "", command)
    kept.append(entry)
(build / "tidy").mkdir(exist_ok=True)
(build / "tidy" / "compile_commands.json").write_text(json.dumps(kept), encoding="utf-8")
