"""Line coverage of a folder's sources from what gcc's --coverage has written.

usage: coverage.py BUILD FOLDER...   e.g. coverage.py build/coverage runtime/agent
"""
import gzip
import json
import pathlib
import subprocess
import sys


def lines_of(data, build, root):
    """{source: {line: hits}} of one object, sources relative to `root`."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=build, capture_output=True, check=True)
    text = gzip.decompress(done.stdout) if done.stdout[:2] == b"\x1f\x8b" else done.stdout
    for one in text.splitlines():
        for file in json.loads(one)["files"]:
            path = (pathlib.Path(build) / file["file"]).resolve()
            if path.is_relative_to(root):
                yield str(path.relative_to(root)), {l["line_number"]: l["count"] for l in file["lines"]}


def main(build, *folders):
    root = pathlib.Path.cwd()
    hits = {}
    for data in sorted(pathlib.Path(build).resolve().rglob("*.gcda")):
        for source, lines in lines_of(data, pathlib.Path(build).resolve(), root):
            if lines and source.startswith(tuple(f.rstrip("/") + "/" for f in folders)):
                known = hits.setdefault(source, {})
                for line, count in lines.items():
                    known[line] = known.get(line, 0) + count
    if not hits:
        sys.exit("nothing was covered: run the tests of this build first")
    total = covered = 0
    for source in sorted(hits):
        all_lines = hits[source]
        met = sum(1 for count in all_lines.values() if count)
        total, covered = total + len(all_lines), covered + met
        missed = [line for line, count in sorted(all_lines.items()) if not count]
        print(f"{100 * met / len(all_lines):6.1f} %  {met:4} of {len(all_lines):4}  {source}"
              + (f"  without {', '.join(map(str, missed[:12]))}{', ...' if len(missed) > 12 else ''}"
                 if missed else ""))
    print(f"{100 * covered / total:6.1f} %  {covered:4} of {total:4}  {', '.join(folders)}")


main(*sys.argv[1:])
