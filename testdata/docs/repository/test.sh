test "$(sh greet.sh)" = "Hello!"
