"""Includes go down and to the right only (ARCHITECTURE.md, "Layers"); this fails on any other.

Run with the source folder as the only argument.
"""
import pathlib
import re
import sys

# Every layer, and what it may include beside itself.
CORE = {"runtime/core"}
POLICY = CORE | {"runtime/policy"}
NET = CORE | {"runtime/net"}
JOURNAL = POLICY | {"runtime/journal", "runtime/model"}
MODEL = POLICY | {"runtime/net"}
AGENT = MODEL | {"runtime/model"}
RUNTIME = AGENT | {"runtime/agent", "runtime/journal"}
ALLOWED = {
    "runtime/core": CORE,
    "runtime/policy": POLICY,
    "runtime/net": NET,
    "runtime/model": MODEL,
    "runtime/journal": JOURNAL,
    "runtime/agent": AGENT,
    "runtime/eval": RUNTIME,
    "executors": RUNTIME,
    "tools": RUNTIME | {"executors"},
    "config": RUNTIME | {"executors", "tools"},
    "actors": RUNTIME | {"executors", "tools"},
    "runtime/host": RUNTIME | {"executors", "tools", "config", "actors", "runtime/eval"},
    "runtime/cli": RUNTIME | {"runtime/eval", "config", "runtime/host"},
    "examples": set(),
}
# The public headers stand alone, but for the one word that all layers share; Boost is asio.hpp's.
PUBLIC_MAY = {"runtime/core/error.hpp"}
CAF_MAY = {"actors", "runtime/host", "tests"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def layer_of(path):
    for layer in ALLOWED:
        if path == layer or path.startswith(layer + "/"):
            return layer
    return None


def check(root):
    wrong, seen = [], 0
    for file in sorted(root.rglob("*.[ch]pp")):
        path = file.relative_to(root).as_posix()
        layer = layer_of(path)
        if layer is None:
            continue
        seen += 1
        public = path.startswith("runtime/host/include/")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            name = found.group(1)
            target = layer_of(name)
            if target and target != layer and target not in ALLOWED[layer]:
                wrong.append(f"{path}:{number}: {layer} may not include {target} ({name})")
            if name.startswith("caf/") and layer not in CAF_MAY:
                wrong.append(f"{path}:{number}: CAF is for actors/ and runtime/host alone ({name})")
            shown = name.startswith("caf/") or (target and name not in PUBLIC_MAY) or (
                name.startswith("boost/") and not path.endswith("/asio.hpp"))
            if public and shown:
                wrong.append(f"{path}:{number}: a public header shows {name}")
            if name.startswith("boost/beast") and "runtime/net/http_" not in path:
                wrong.append(f"{path}:{number}: Beast stays in runtime/net/http_*.cpp ({name})")
    return wrong, seen


def main():
    wrong, seen = check(pathlib.Path(sys.argv[1]))
    for line in wrong:
        print(line)
    if seen < 40:
        print(f"only {seen} files were looked at: is this the source folder?")
        return 1
    print(f"{seen} files, {len(wrong)} wrong includes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
