#!/usr/bin/env bash
# tidy.sh BUILD FILE: clang-tidy on one file; a clean result is remembered by the hash of the source,
# the project's headers that it reads and the checks, so that a second lint is quick.
set -euo pipefail
build=$1 file=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/troupe/tidy
mkdir -p "$cache"
key=$({ cat .clang-tidy cmake/tidy.sh; grep ^tidy_version cmake/deps.sh; xargs cat <"$build/tidy/${file//\//_}.reads"; } | sha256sum | cut -c 1-32)
[ -e "$cache/$key" ] && exit 0
# GCC's precompiled headers mean nothing to clang: they are left out of its view of the commands.
out=$("${CLANG_TIDY:-clang-tidy}" --quiet -p "$build/tidy" "$file" 2>&1) && { touch "$cache/$key"; exit 0; }
printf '%s\n' "$out" | grep -v ' warnings generated' >&2
exit 1
