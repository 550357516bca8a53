#!/bin/sh
# What greet.sh can do already must stay right.
fail() { echo "FAIL: $1"; exit 1; }
sh greet.sh Ada >/dev/null 2>&1 || fail "greet.sh Ada ends with an error"
if grep -q Hello greet.sh; then
	test "$(sh greet.sh Ada)" = "Hello, Ada!" || fail "greet.sh Ada prints $(sh greet.sh Ada)"
fi
echo "ok"
