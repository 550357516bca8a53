#!/bin/sh
# slug.sh TITLE prints a title as a part of a web address.
printf '%s\n' "$1" | tr ' ' '-'
