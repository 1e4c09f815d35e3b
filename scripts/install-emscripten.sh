#!/bin/sh
# Puts Emscripten 3.1.69 on a Debian 12 machine, in one private folder: install-emscripten.sh DIR makes DIR/bin/emcc and its kin.
#
# Debian 12's own emscripten is too old, and that of Debian 13 needs a newer C library. So the compiler (clang-19) is installed as
# an ordinary package of Debian 12, while emscripten, binaryen and the C and C++ libraries that binaryen needs are fetched from
# Debian 13 and only unpacked: the system's own libraries stay as they are, and binaryen starts through the loader beside it.
set -eu

target=${1:?usage: install-emscripten.sh DIR}
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive

mkdir -p "$target"
target=$(cd "$target" && pwd)
sysroot=$target/root
rm -rf "$sysroot" "$target/bin" "$target/binaryen"

$sudo apt-get install -y --no-install-recommends clang-19 lld-19 llvm-19 python3

# apt with lists and archives of its own, reading the mirror that this machine uses already.
. /etc/os-release
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' |
  sed -n "s/^Debian|$VERSION_CODENAME|//p" | head -n 1)
[ -n "$mirror" ] || { echo "apt knows no mirror of Debian $VERSION_CODENAME." >&2; exit 1; }
private=$target/apt
mkdir -p "$private/lists/partial" "$private/cache/archives/partial" "$private/deb"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > "$private/sources.list"
private_apt() {
  apt-get -o Dir::State::Lists="$private/lists" -o Dir::Cache="$private/cache" -o Dir::Etc::SourceList="$private/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User="$(id -un)" "$@"
}
private_apt update
(cd "$private/deb" && private_apt download emscripten binaryen libc6 libstdc++6 libgcc-s1 node-acorn)
for package in "$private"/deb/*.deb; do
  dpkg-deb -x "$package" "$sysroot"
done
rm -rf "$private"

# Binaryen's programs, each started by the unpacked loader with the unpacked libraries.
for library in "$sysroot"/usr/lib/*-linux-gnu*; do :; done
for loader in "$library"/ld-linux-*.so.*; do :; done
mkdir -p "$target/binaryen/bin" "$target/bin"
for program in "$sysroot"/usr/bin/wasm-*; do
  wrapper=$target/binaryen/bin/$(basename "$program")
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$library" "$program" > "$wrapper"
  chmod +x "$wrapper"
done

# Emscripten's own scripts are CommonJS, whatever the package.json of a folder above says.
echo '{}' > "$target/package.json"

emscripten=$sysroot/usr/share/emscripten
mkdir -p "$emscripten/node_modules"
ln -sfn "$sysroot/usr/share/nodejs/acorn" "$emscripten/node_modules/acorn"
# The configuration lies where Emscripten looks by itself, for CMake calls its compiler without the commands below.
cat > "$emscripten/.emscripten" <<CONFIG
import shutil
LLVM_ROOT = '/usr/lib/llvm-19/bin'
BINARYEN_ROOT = '$target/binaryen'
NODE_JS = shutil.which('node')
CACHE = '$emscripten/cache'
FROZEN_CACHE = True
CONFIG
for tool in emcmake em++ emar emranlib emcc; do
  printf '#!/bin/sh\nexec python3 "%s/%s.py" "$@"\n' "$emscripten" "$tool" > "$target/bin/$tool"
  chmod +x "$target/bin/$tool"
done
"$target/bin/emcc" -dumpversion
