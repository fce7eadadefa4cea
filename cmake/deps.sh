#!/usr/bin/env bash
# Brings what troupe builds with: Debian packages, and into one cached prefix the four things that
# Debian 12 lacks (CAF, Catch2 3, minja, valijson). Prints the prefix on its last line; for lint, the
# folder of clang-tidy.
#
# TROUPE_DEPS        where the prefix lives (default: ${XDG_CACHE_HOME:-~/.cache}/troupe/deps-1)
# TROUPE_CAF_TARBALL a CAF source tarball to build instead of fetching one
set -euo pipefail

prefix=${TROUPE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/troupe/deps-1}
caf_version=0.18.7
caf_sha256=d5c3abe8fd67a729aab1baeece10367637d903ba335f4c79378bcadfbcd34552
caf_upstream=https://github.com/actor-framework/actor-framework/archive/refs/tags/$caf_version.tar.gz
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  libboost1.81-dev libssl-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libsqlite3-dev
  libyaml-cpp-dev libre2-dev libcli11-dev libexpected-dev libseccomp-dev libpython3-dev python3 openssl
)
lint_packages=(clang-format-16 python3-pip)
# Debian's clang-tidy-16 matches every check against every system header: 31 s a file where this takes 9.
tidy_version=23.1.4
tidy_sha256=(6bb31e4f319ecbe14acb75f23c3050d0f1d4b1d92ea1c66091bc76e4eac2c1ac  # x86_64
  87596cd77dedfdea23ced1d13e57e869dcaee99745bfe942796196da3c197671)  # aarch64
fuzz_packages=(clang-16 libclang-rt-16-dev)

say() { printf '  deps: %s\n' "$*" >&2; }
die() { printf 'deps: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo -n "$@" || die "need root for: $*"
  else die "need root (or sudo) to install: $*"; fi
}

# Installs the packages of "$@" that dpkg does not have. Touches nothing when all are there.
install_packages() {
  local missing=() p
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing ${missing[*]}"
  as_root apt-get -qq update >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    "${missing[@]}" >&2
}

# apt with private sources and lists: newer suites can be read, the system's apt stays as it is.
mirror() {
  local f uri
  for f in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [ -r "$f" ] || continue
    uri=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' "$f" | head -n 1)
    [ -n "$uri" ] && { printf '%s' "$uri"; return; }
  done
  die "no Debian mirror is configured in /etc/apt"
}

private_apt=()
use_private_apt() {
  [ ${#private_apt[@]} = 0 ] || return 0
  local dir=$work/apt uri suite
  uri=$(mirror)
  mkdir -p "$dir/lists/partial"
  {
    echo "deb-src [signed-by=$keyring] $uri experimental main"
    for suite in bookworm-backports trixie sid; do echo "deb [signed-by=$keyring] $uri $suite main"; done
  } >"$dir/sources.list"
  # A mirror that lags behind still serves: what is wanted from sid is signed, and rarely changes.
  private_apt=(-q -o Acquire::Check-Valid-Until=false -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$dir/lists" -o APT::Sandbox::User=root)
  apt-get "${private_apt[@]}" update >"$dir/log" 2>&1 || die "apt update failed: $(tail -n 1 "$dir/log")"
}

# unpack NAME SUITE [SHA256]: a package's files into the prefix; apt checks it against signed lists.
unpack() {
  use_private_apt
  local dir=$work/$1
  mkdir -p "$dir"
  (cd "$dir" && apt-get "${private_apt[@]}" download "$1/$2" >log 2>&1) ||
    die "cannot fetch $1 from $2: $(tail -n 1 "$dir/log")"
  local deb
  deb=$(echo "$dir"/*.deb)
  say "taking $(basename "$deb") from $2"
  if [ -n "${3:-}" ] && ! echo "$3  $deb" | sha256sum --quiet -c - >/dev/null 2>&1; then
    die "$(basename "$deb") has another checksum than the pinned one: look at it, then update cmake/deps.sh"
  fi
  dpkg -x "$deb" "$prefix"
}

caf_tarball() {
  local out=$work/caf.tar.gz
  if [ -n "${TROUPE_CAF_TARBALL:-}" ]; then
    cp "$TROUPE_CAF_TARBALL" "$out"
  else
    use_private_apt
    (cd "$work" && apt-get "${private_apt[@]}" source --tar-only --download-only \
      "actor-framework=$caf_version-1~exp1" >caf.log 2>&1 && mv actor-framework_*.orig.tar.gz "$out") ||
      { say "Debian no longer has CAF $caf_version, trying upstream's archive"
        install_packages curl
        curl -fsSL --max-time 120 -o "$out" "$caf_upstream" || die "no CAF source to be had; name one with TROUPE_CAF_TARBALL"; }
  fi
  echo "$caf_sha256  $out" | sha256sum --quiet -c - >&2 || die "the CAF tarball has a wrong checksum"
}

# build_caf PREFIX [cmake options]: static, so that the program runs without the prefix and for every
# user; a unity build saves a third of 5 CPU minutes (batches of 4 build, 8 do not).
build_caf() {
  local into=$1; shift
  caf_tarball
  mkdir -p "$work/caf" && tar -xzf "$work/caf.tar.gz" -C "$work/caf" --strip-components=1
  say "building CAF $caf_version (once, 2 to 5 minutes)"
  cmake -S "$work/caf" -B "$work/caf/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_INSTALL_PREFIX="$into" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=4 -DCAF_ENABLE_TESTING=OFF \
    -DCAF_ENABLE_EXAMPLES=OFF -DCAF_ENABLE_TOOLS=OFF -DCAF_ENABLE_IO_MODULE=OFF \
    -DCAF_ENABLE_OPENSSL_MODULE=OFF "$@" >"$work/caf.log" 2>&1 &&
    nice cmake --build "$work/caf/build" >>"$work/caf.log" 2>&1 &&
    cmake --install "$work/caf/build" >>"$work/caf.log" 2>&1 ||
    { tail -n 20 "$work/caf.log" >&2; die "CAF did not build"; }
}

# The project's own wheel of LLVM's clang-tidy, into a folder of its own: nothing of the system's Python changes.
clang_tidy() {
  [ -x "$prefix/clang-tidy-$tidy_version/clang_tidy/data/bin/clang-tidy" ] && return
  say "taking clang-tidy $tidy_version from PyPI"
  echo "clang-tidy==$tidy_version ${tidy_sha256[*]/#/--hash=sha256:}" >"$work/tidy.txt"
  python3 -m pip --quiet --disable-pip-version-check install --no-deps --only-binary :all: --require-hashes \
    --target "$prefix/clang-tidy-$tidy_version" -r "$work/tidy.txt" >"$work/tidy.log" 2>&1 ||
    die "cannot fetch clang-tidy $tidy_version: $(tail -n 1 "$work/tidy.log")"
}

installed_caf() {
  local d
  for d in /usr/lib/cmake/CAF /usr/lib/*/cmake/CAF /usr/local/lib/cmake/CAF; do
    [ -e "$d/CAFConfigVersion.cmake" ] && grep -qE 'PACKAGE_VERSION "?(0\.18\.7|1\.)' "$d/CAFConfigVersion.cmake" && return 0
  done
  return 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$prefix"

case ${1:-all} in
  all)
    install_packages "${packages[@]}"
    exec 9>"$prefix/.lock"; flock 9
    [ -e "$prefix/usr/lib/libCatch2.a" ] || unpack libcatch2-dev bookworm-backports
    [ -e "$prefix/usr/include/valijson/validator.hpp" ] ||
      unpack libvalijson-dev trixie 8c9e8f57990cd7f44fff562b4e644de9db0a832302c71751c056b36a20b9f122
    [ -e "$prefix/usr/include/minja/minja.hpp" ] || unpack libminja-dev sid
    installed_caf || [ -e "$prefix/lib/cmake/CAF/CAFConfig.cmake" ] || build_caf "$prefix"
    ;;
  lint)
    install_packages "${lint_packages[@]}"
    exec 9>"$prefix/.lock"; flock 9
    clang_tidy
    prefix=$prefix/clang-tidy-$tidy_version/clang_tidy/data/bin
    ;;
  fuzz) install_packages "${packages[@]}" "${fuzz_packages[@]}" ;;  # needs nothing of the prefix
  tsan) # a CAF that the thread sanitizer can see into: without it, hundreds of false reports
    exec 9>"$prefix/.lock"; flock 9
    [ -e "$prefix/tsan/lib/cmake/CAF/CAFConfig.cmake" ] ||
      build_caf "$prefix/tsan" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCAF_SANITIZERS=thread \
        "-DCMAKE_CXX_FLAGS=-O1 -g1"
    ;;
  *) die "usage: cmake/deps.sh [all|lint|fuzz|tsan]" ;;
esac
printf '%s\n' "$prefix"
