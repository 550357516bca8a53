#!/bin/sh
# Prints what is right and what is not, and ends with status 1 if anything is not.
n=0 status=0
check() {
	n=$((n + 1)) got=$(sh slug.sh "$2")
	if [ "$got" = "$3" ]; then echo "ok $n - $1"; return; fi
	printf 'not ok %s - %s\n# "%s": expected %s, got %s\n' "$n" "$1" "$2" "$3" "$got"
	status=1
}
echo "TAP version 13"
check "spaces become dashes" "a b" "a-b"
check "letters become lower case" "Release" "release"
check "punctuation is removed" "Hello, World!" "hello-world"
echo "1..$n"
exit $status
