#!/bin/sh
# Makes the Node of the lockfile run, after `npm ci`: once for each installation, and nothing
# happens where it already runs.
# - npm 10 removes the packages of other systems together with the link `node`, which they would
#   have made as well.
# - A Debian without a compiler lacks libatomic.so.1. It comes from the machine's own Debian
#   sources, without root.
# A shell script, because there is no node yet. Changes nothing outside the checkout. Exit 1 and one
# sentence on failure.
set -u
cd "$(dirname "$0")/../.." || exit 1

fail() { # sentence
  printf '%s\n' "$1" >&2
  exit 1
}

PATH=$PWD/node_modules/.bin:$PATH
# No install scripts run (.npmrc): this makes the links and does nothing else.
[ -e node_modules/.bin/node ] || npm rebuild --loglevel=error > /dev/null || fail 'npm could not link the Node of the lockfile.'

FOUND=$(command -v node) || fail 'There is no node on the PATH: install Node 20 or newer, and npm.'
if PRINTED=$(node --version 2>&1); then
  LEAST=$(sed -n 's/^ *"node": ">=\([0-9.]*\)".*/\1/p' package.json)
  printf '%s\n' "$LEAST" "${PRINTED#v}" | sort -C -V ||
    fail "The lockfile brings no Node for this system, and the one here is $PRINTED: install Node $LEAST or newer."
  exit 0
fi

NODE=$(readlink -f "$FOUND")
CACHE=.cache/node-libraries
APT_TIMEOUT_S=180

# Only what is missing altogether: of a library that is too old, ldd prints "not found" as well, and
# no package would help.
missing() { # program
  LC_ALL=C ldd "$1" 2> /dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => not found$/\1/p'
}

package_of() { # library
  case $1 in
    libatomic.so.1) echo libatomic1 ;;
    libgcc_s.so.1) echo libgcc-s1 ;;
    libstdc++.so.6) echo libstdc++6 ;;
    *) return 1 ;;
  esac
}

LIBRARIES=$(missing "$NODE")
[ -n "$LIBRARIES" ] || fail "$NODE does not run: $PRINTED"
PACKAGES=
for library in $LIBRARIES; do
  package=$(package_of "$library") || fail "$NODE does not run: it needs $library, which this machine lacks."
  PACKAGES="$PACKAGES $package"
done
INSTALL="This machine lacks a library of Node, and its Debian sources did not bring it: install it with apt-get install$PACKAGES"
# The Node of the machine is not ours to change.
case $NODE in "$(pwd -P)/node_modules/"*) ;; *) fail "$INSTALL" ;; esac

unpacked() { # library
  find "$CACHE" -name "$1" 2> /dev/null | head -n 1
}

complete() {
  [ -x "$CACHE/usr/bin/patchelf" ] || return 1
  for library in $LIBRARIES; do
    [ -n "$(unpacked "$library")" ] || return 1
  done
}

# As in apt.ts, the state of apt is private: neither root nor a lock of the machine's is needed.
apt() { # options and words of apt-get
  (cd "$WORK" && timeout "$APT_TIMEOUT_S" apt-get -qq -o "Dir::Cache=$WORK/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none "$@" > /dev/null 2>&1)
}

# Everything happens in a directory of its own, which becomes the installation in one rename.
fetch() {
  mkdir -p "$WORK/lists/partial" "$WORK/cache/archives/partial" "$WORK/root" || return 1
  own="Dir::State::lists=$WORK/lists"
  # No lists, or lists that name releases which the mirror has replaced since: fetched afresh, into
  # a directory of our own.
  # shellcheck disable=SC2086 # names of packages, split at their spaces
  apt download patchelf $PACKAGES || { apt -o "$own" update && apt -o "$own" download patchelf $PACKAGES; } || return 1
  for archive in "$WORK"/*.deb; do
    dpkg -x "$archive" "$WORK/root" || return 1
  done
  rm -rf "$CACHE"
  mv "$WORK/root" "$CACHE"
}

# The folder of the libraries is written into the program itself, so that a child process finds them
# whatever its environment.
# The program is replaced in one rename: another process may be starting it.
rewrite() {
  folder=${NODE%/*}/../lib
  mkdir -p "$folder" && cp "$NODE" "$REWRITTEN" || return 1
  for library in $LIBRARIES; do
    cp "$(unpacked "$library")" "$folder/$library" || return 1
  done
  # shellcheck disable=SC2016 # $ORIGIN is a word of the loader's
  "$CACHE/usr/bin/patchelf" --set-rpath '$ORIGIN/../lib' "$REWRITTEN" && "$REWRITTEN" --version > /dev/null &&
    mv "$REWRITTEN" "$NODE"
}

WORK=$(pwd -P)/$CACHE-$$
REWRITTEN=$NODE-$$
trap 'rm -rf "$WORK" "$REWRITTEN"' EXIT
trap 'exit 1' HUP INT TERM
complete || { fetch && complete; } || fail "$INSTALL"
rewrite || fail "$NODE could not be rewritten to find its libraries: install them with apt-get install$PACKAGES"
