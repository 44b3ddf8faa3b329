#!/usr/bin/env bash
# Unpacks packages of the distribution, and all that they need, into build-packages/, for a user who is not root and has no
# sudo (CUDP_UNPACK=1 scripts/setup.sh). It changes nothing outside of that folder. build-packages/environment makes a
# shell use compilers, headers and libraries from there. Usage: scripts/unpack.sh PACKAGE...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD/build-packages
[[ $(cat "$root/packages" 2>/dev/null) != "$*" ]] || exit 0
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "unpack.sh: $tool is missing: this is for Debian and Ubuntu" >&2; exit 1; }
done

rm -rf "$root"
mkdir -p "$root"/apt/lists/partial "$root"/cache/archives/partial "$root"/usr/{bin,lib,lib64,sbin} "$root/libraries"
for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$root/$folder"; done
# Without a list of what is installed, all dependencies are downloaded: the folder is a system root for the compiler.
apt=(apt-get -qq -o Dir::State="$root/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$root/cache"
  -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends --download-only "$@"
for package in "$root"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --no-same-owner --keep-directory-symlink -C "$root"
done

# Libraries of the unpacked programs. The C library is this machine's: it belongs to the loader.
triplet=$("$root/usr/bin/gcc" -dumpmachine)
c_library=" $(dpkg-deb -c "$root"/cache/archives/libc6_*.deb | awk -F/ '{ sub(" -> .*", ""); print $NF }' | tr '\n' ' ')"
for library in "$root/usr/lib/$triplet"/*.so*; do
  name=${library##*/}
  [[ $c_library == *" $name "* ]] || ln -s "$library" "$root/libraries/$name"
done
cat >"$root/environment" <<END
export PATH=$root/usr/bin:\$PATH LD_LIBRARY_PATH=$root/libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export CC=$root/usr/bin/gcc CXX=$root/usr/bin/g++
export CFLAGS=--sysroot=$root CXXFLAGS=--sysroot=$root LDFLAGS=--sysroot=$root CMAKE_PREFIX_PATH=$root/usr
END
rm -r "$root/cache" "$root/apt"
echo "$*" >"$root/packages"
