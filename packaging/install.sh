#!/bin/sh
# Installs the program, its manual and completions from a release, once its checksum is right:
#   sh install.sh https://HOST/PATH|FOLDER [PREFIX, /usr/local]
# With MINISIGN_KEY, the file of a public key, the checksums must be signed by it. docs/service.md tells of the service.
set -eu
fail() {
    echo "install.sh: $1" >&2
    exit 1
}
[ $# -ge 1 ] || fail "usage: sh install.sh https://HOST/PATH|FOLDER [PREFIX]"
from=$1 prefix=${2:-/usr/local}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() { # FILE
    case $from in
        https://*) curl --proto =https --tlsv1.2 -fsSL -o "$work/$1" "$from/$1" || fail "cannot fetch $from/$1" ;;
        *://*) fail "releases come over https, or from a folder" ;;
        *) cp "$from/$1" "$work/$1" || fail "cannot read $from/$1" ;;
    esac
}

fetch SHA256SUMS
if [ -n "${MINISIGN_KEY:-}" ]; then
    fetch SHA256SUMS.minisig
    minisign -V -q -p "$MINISIGN_KEY" -m "$work/SHA256SUMS" || fail "SHA256SUMS is not signed by that key"
else
    echo "install.sh: without MINISIGN_KEY the checksums themselves are not verified" >&2
fi
machine=$(uname -m)
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(tlsdash-[0-9.]*-$machine-linux\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
[ -n "$archive" ] || fail "this release has nothing for $machine"
fetch "$archive"
(cd "$work" && grep "  $archive\$" SHA256SUMS | sha256sum --check --quiet) || fail "$archive is not what SHA256SUMS names"

mkdir "$work/root"
tar -xzf "$work/$archive" -C "$work/root" --strip-components=1 --no-same-owner
"$work/root/usr/bin/tlsdash" --version >/dev/null || fail "the program does not run here"
mkdir -p "$prefix/bin" "$prefix/share"
# Beside the old one and then over it, as that may run.
cp "$work/root/usr/bin/tlsdash" "$prefix/bin/.tlsdash.new"
mv -f "$prefix/bin/.tlsdash.new" "$prefix/bin/tlsdash"
for part in man bash-completion zsh fish; do
    [ ! -e "$work/root/usr/share/$part" ] || cp -r "$work/root/usr/share/$part" "$prefix/share"
done
"$prefix/bin/tlsdash" --version
