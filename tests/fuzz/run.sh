#!/bin/sh
# run.sh PROGRAM NAME SECONDS FOLDER: fuzzes one target. What it learns stays in FOLDER/NAME, where
# its next run begins; an input that breaks it is left as FOLDER/NAME-crash-..., -timeout-... .
set -eu
here=$(dirname "$0")
mkdir -p "$4/$2"
exec "$1" -max_total_time="$3" -rss_limit_mb=1024 -timeout=10 -max_len=8192 -verbosity=0 -print_final_stats=1 \
  -dict="$here/tokens.dict" -artifact_prefix="$4/$2-" "$4/$2" "$here/corpus/$2"
