#!/bin/sh
# Installs pawl VERSION for the user who runs this, without root:
#
#   curl -fsSL https://github.com/pawl-dev/pawl/releases/latest/download/install.sh | sh
#
# The program goes to $PAWL_BIN (default ~/.local/bin), the manual and the completions below ~/.local/share.
# The archive is compared with the checksums of the release before anything is unpacked. $PAWL_FROM is another
# place than GitHub that has the files of the release. Nothing else is changed, and no file of your shell.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

fetch() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL -o "$2" "$1" || fail "cannot fetch $1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q -O "$2" "$1" || fail "cannot fetch $1"
	else
		fail "curl or wget is needed to fetch $1"
	fi
}

sha256() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1"
	else
		fail "sha256sum or shasum is needed to check the archive"
	fi | cut -d ' ' -f 1
}

main() {
	version=VERSION
	from=${PAWL_FROM:-https://github.com/pawl-dev/pawl/releases/download/$version}
	bin=${PAWL_BIN:-${HOME:?HOME is not set}/.local/bin}
	share=${XDG_DATA_HOME:-$HOME/.local/share}
	case $(uname -s) in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "there is no archive for $(uname -s); build it from the source: https://github.com/pawl-dev/pawl" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) processor=amd64 ;;
	aarch64 | arm64) processor=arm64 ;;
	*) fail "there is no archive for $(uname -m); build it from the source: https://github.com/pawl-dev/pawl" ;;
	esac
	name=pawl-$version-$system-$processor
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch "$from/SHA256SUMS" "$dir/SHA256SUMS"
	fetch "$from/$name.tar.gz" "$dir/$name.tar.gz"
	want=$(grep " $name.tar.gz\$" "$dir/SHA256SUMS" | cut -d ' ' -f 1)
	got=$(sha256 "$dir/$name.tar.gz")
	[ -n "$want" ] || fail "$from/SHA256SUMS has no checksum of $name.tar.gz"
	[ "$want" = "$got" ] || fail "$name.tar.gz has the checksum $got, and the release says $want: nothing was installed"
	tar -xzf "$dir/$name.tar.gz" -C "$dir" || fail "cannot unpack $name.tar.gz"
	mkdir -p "$bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
		"$share/fish/vendor_completions.d" || fail "cannot make the folders; PAWL_BIN=DIR names another one for the program"
	cp "$dir/$name/pawl" "$bin/.pawl.new" && chmod 755 "$bin/.pawl.new" && mv -f "$bin/.pawl.new" "$bin/pawl" ||
		fail "cannot write $bin/pawl; PAWL_BIN=DIR names another folder"
	cp "$dir/$name"/man/man1/*.1 "$share/man/man1/"
	cp "$dir/$name/completions/pawl.bash" "$share/bash-completion/completions/pawl"
	cp "$dir/$name/completions/_pawl" "$share/zsh/site-functions/_pawl"
	cp "$dir/$name/completions/pawl.fish" "$share/fish/vendor_completions.d/pawl.fish"
	echo "Installed $("$bin/pawl" --version) as $bin/pawl"
	case :$PATH: in
	*":$bin:"*) next=pawl ;;
	*)
		next=$bin/pawl
		echo "$bin is not on your PATH. Add this line to your shell's start file:"
		echo "  export PATH=\"$bin:\$PATH\""
		;;
	esac
	echo "Watch it work: $next demo"
}

main
