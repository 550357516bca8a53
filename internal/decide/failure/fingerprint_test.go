package failure

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// What differs between two runs of the same failure, and must not change its
// fingerprint: each pair of words stands for the same thing in another run.
var changing = []struct{ name, one, other string }{
	{"line", "cart.go:17:3", "cart.go:203:11"},
	{"workspace", "/home/dev/shop/cart.go:17", "/tmp/pawl-8f2c/ws-3/cart.go:17"},
	{"temp folder", "/tmp/TestCart1234567/001/data.json", "/tmp/TestCart7654321/001/data.json"},
	{"time", "2026-03-01T10:11:12.401Z", "2026-11-20T23:59:59.9Z"},
	{"clock", "10:11:12", "23:59:01"},
	{"duration", "took 1.203s", "took 17ms"},
	{"address", "0xc000012345", "0xc0000abcde"},
	{"goroutine", "goroutine 7 [running]", "goroutine 1931 [running]"},
	{"uuid", "123e4567-e89b-12d3-a456-426614174000", "9b2f1c60-0f1e-4a3b-8c7d-5e6f7a8b9c0d"},
	{"port", "127.0.0.1:40123", "127.0.0.1:51234"},
	{"pid", "process 4821 ended", "process 97 ended"},
	{"hash", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit 0bf05b8aa1c0e95dc970b74767f19372d61af811"},
	{"request id", "request id: req_011CSHoEeqs5C35K2UUqR7Fy", "request id: req_018EeqkXXzHT4kSrkY7u2v3p"},
}

func TestFingerprintStays(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{
		"exception":  "Traceback (most recent call last):\n  File \"app.py\", line 3, in f\nKeyError: 'id' at @",
		"error":      "error: cannot open the store (@)",
		"compiler":   "src/a.c:3:5: error: 'x' undeclared near @",
		"network":    "dial tcp: connect: connection refused (@)",
		"git":        "fatal: Unable to create '/repo/.git/index.lock': File exists. @",
		"permission": "open @: permission denied",
		"panic":      "panic: something broke: @\n\ngoroutine 1 [running]:",
	}
	for name, output := range outputs {
		for _, c := range changing {
			one := mark(strings.ReplaceAll(output, "@", c.one))
			other := mark(strings.ReplaceAll(output, "@", c.other))
			if one != other {
				t.Errorf("%s: the fingerprint depends on the %s: %q, %q", name, c.name, normalizeLine(c.one), normalizeLine(c.other))
			}
		}
	}
}

// What a green check says of each file, and counts of what is well, are noise; what speaks
// of an error, and counts of what is wrong, are not.
func TestFingerprintBesideGreen(t *testing.T) {
	t.Parallel()
	const green = "regenerating\n  gen/pet.txt is current\n| cash | 12 | ok |\n3 steps passed, 0 failed\n"
	const red = "gen/pet.txt is out of date: run make\n| rent | 30 | OFF |\n3 steps passed, 1 failed\n"
	finger := func(output string) string {
		return Analyse(Evidence{Source: "gate", Name: "check", ExitCode: 1, Output: output, Green: green}).Fingerprint
	}
	for _, c := range []struct {
		old, now string
		same     bool
	}{
		{"3 steps", "gen/dog.txt is current\n3 steps", true},
		{"3 steps", "| car | 7 | ok |\n3 steps", true},
		{"3 steps passed", "5 steps passed", true},
		{"gen/pet.txt is out of date", "gen/dog.txt is out of date", false},
		{"1 failed", "2 failed", false},
	} {
		if same := finger(red) == finger(strings.Replace(red, c.old, c.now, 1)); same != c.same {
			t.Errorf("%q for %q: the same is %t", c.now, c.old, same)
		}
	}
}

// A number that is a value tells how far a failure got; that of a place, a time or an id does not.
func TestFingerprintOfNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"coverage 65.0% is below 80%", "coverage 76.5% is below 80%", false},
		{"price(10): expected 90, got 100", "price(10): expected 90, got 70", false},
		{"VERSION says 1.4.1", "VERSION says 1.4.2", false},
		{"12/40 examples pass", "37/40 examples pass", false},
		{"files differ: byte 3, line 1", "files differ: byte 8, line 1", false},
		{`{"error": "width", "value": 30}`, `{"error": "width", "value": 31}`, false},
		{"error in words, lines 2 and 4", "error in words, lines 3 and 7", true},
		{"error after 20:56:28,073", "error after 20:56:28,401", true},
		{`{"error": "width", "took_ms": 31}`, `{"error": "width", "took_ms": 37}`, true},
		{"error: 1 problem in 2 services", "error: 1 problem in 3 services", true},
		{"error: missing {'a', 'c', 'b'}", "error: missing {'c', 'b', 'a'}", true},
		{"error of worker-f7e1", "error of worker-2c50", true},
		{"[api] error: broken", "[web] error: broken", false},
		{"assert f(2)\nAssertionError", "assert g(2)\nAssertionError", false},
		{"query failed: " + strings.Repeat("a, ", 100) + "of users", "query failed: " + strings.Repeat("a, ", 100) + "of items", false},
	} {
		if same := mark(c.one) == mark(c.other); same != c.same {
			t.Errorf("%q and %q: the same is %t", c.one, c.other, same)
		}
	}
}

// A test's failure is known by the test and what it says, not by where it is or how long
// it took: another value may be one step further.
func TestFingerprintOfTests(t *testing.T) {
	t.Parallel()
	say := func(place, got, took, package_ string) string {
		return "--- FAIL: TestTotal (" + took + ")\n    " + place + ": got " + got + ", want 3\nFAIL\nFAIL\t" + package_ + "\t" + took + "\n"
	}
	if mark(say("cart_test.go:7", "2", "0.01s", "example.com/shop")) != mark(say("/ws/7/cart_test.go:90", "2", "12.70s", "example.com/shop")) {
		t.Error("the fingerprint of a failing test depends on place or time")
	}
	if mark(say("cart_test.go:7", "2", "0.01s", "example.com/shop")) == mark(say("cart_test.go:7", "1", "0.01s", "example.com/shop")) {
		t.Error("another value of a failing test is the same failure")
	}
	ci := "2026-03-01T10:11:12.4012345Z --- FAIL: TestTotal (0.00s)\n2026-03-01T10:11:12.4012346Z     cart_test.go:7: got 2, want 3\n2026-03-01T10:11:12.5012345Z FAIL\n"
	if mark(ci) != mark(say("cart_test.go:7", "2", "0.01s", "example.com/shop")) {
		t.Error("the fingerprint depends on the prefixes of a CI system")
	}
	if mark(strings.ReplaceAll(ci, "\n", "\r\n")) != mark(ci) {
		t.Error("the fingerprint depends on the ends of lines")
	}
	if mark("\x1b[31m"+ci+"\x1b[0m") != mark(ci) {
		t.Error("the fingerprint depends on colors")
	}
}

// What is another failure has another fingerprint.
func TestFingerprintDiffers(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, output := range []string{
		"error TS2322: x", "error TS2345: x", "HTTP 401 Unauthorized", "HTTP 403 Forbidden", "a.py: KeyError: 'id'", "KeyError: 'name'",
		"ModuleNotFoundError: No module named 'a'", "ModuleNotFoundError: No module named 'b'", "sh: 1: jest: not found", "sh: 1: vitest: not found",
		"a.go:3:5: undefined: x", "b.go:3:5: undefined: x", "a.go:3:5: undefined: y", "panic: one", "panic: two",
	} {
		f := mark(output)
		if seen[f] != "" {
			t.Errorf("%q and %q have the same fingerprint", seen[f], output)
		}
		seen[f] = output
	}
}

func mark(output string) string {
	return Analyse(Evidence{Source: "gate", Name: "check", ExitCode: 1, Output: output}).Fingerprint
}

func FuzzFingerprint(f *testing.F) {
	for _, c := range changing {
		f.Add("error: cannot reach "+c.one, uint16(17), uint16(4711))
	}
	f.Fuzz(func(t *testing.T, message string, one, other uint16) {
		if message == "" || strings.ContainsAny(message[len(message)-1:], "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-~@+:/\\") || message[len(message)-1] >= 0x80 {
			return // the number would become a part of another word
		}
		a, b := normalizeLine(message+number16(one)+"ms"), normalizeLine(message+number16(other)+"ms")
		if a != b {
			t.Errorf("%q: %q, %q", message, a, b)
		}
	})
}

func number16(n uint16) string {
	digits := ""
	for v := n; ; v /= 10 {
		digits = string(rune('0'+v%10)) + digits
		if v < 10 {
			return digits
		}
	}
}

func FuzzPrefix(f *testing.F) {
	for _, s := range []string{"2026-01-01T00:00:00.0000000Z x", "##[error]x", "[web] x", "web-1  | x", "#8 1.2 x", "a\tb\t2026-01-01T00:00:00.0000000Z x", "[", "#", "2026-01-01T00:00:00Z ", "[a]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", " ")
		if n := printed.PrefixOf(line); n < 0 || n > len(line) {
			t.Errorf("%q: a prefix of %d", line, n)
		}
		if got := printed.Split(line + "\n" + line); got.LineCount() != 2 || got.LineAt(0) != got.LineAt(1) {
			t.Errorf("%q: %d lines", line, got.LineCount())
		}
	})
}

func FuzzScanner(f *testing.F) {
	f.Add("ERROR: Connection refused; read timeout, ReadTimeoutError 429")
	f.Fuzz(func(t *testing.T, s string) {
		phrases().eachWordHit(s, words.Small(s), func(owner *rule, from, to int) {
			if from < 0 || to > len(s) || from >= to || owner == nil {
				t.Fatalf("%q: %d..%d of rule %v", s, from, to, owner)
			}
		})
	})
}

// TestWhatIsNotSeenIsNotTheSame: where the middle of an output is missing and the rest says
// nothing, nobody knows whether it is the same failure.
func TestWhatIsNotSeenIsNotTheSame(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat("ok copy\n", 40_000)
	printed := func(size, said string) string {
		return Analyse(Evidence{Source: "gate", ExitCode: 1, Output: noise + "… " + size + " bytes in all …\n" + noise + said}).Fingerprint
	}
	if printed("52000001", "") == printed("52000007", "") {
		t.Error("nothing of what went wrong is there, and it is taken for the same")
	}
	if said := "error: no layout\n"; printed("52000001", said) != printed("52000007", said) {
		t.Error("how much was printed makes another failure")
	}
}

// TestABannersNumberIsNoCount: what a program prints of itself before it says what is wrong differs from
// run to run.
func TestABannersNumberIsNoCount(t *testing.T) {
	t.Parallel()
	printed := func(pid string) string {
		return Analyse(Evidence{Source: "gate", ExitCode: 1, Output: "check v3 " + pid + "\n✖ a title is too long\n"}).Fingerprint
	}
	if printed("17") != printed("18") {
		t.Error("the number of a process makes another failure")
	}
}

// A number of five digits is a part of what is wrong: got 70000 is another failure than got 80000. That
// of a process is not.
func TestLargeNumbersDiffer(t *testing.T) {
	t.Parallel()
	of := func(output string) string {
		return Analyse(Evidence{Source: "gate", Name: "check", ExitCode: 1, Output: output}).Fingerprint
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"bundle: 70123 bytes, at most 65536 allowed\n", "bundle: 80123 bytes, at most 65536 allowed\n", false},
		{"--- FAIL: TestCount (0.00s)\n    a_test.go:9: got 10000, want 12000\nFAIL\nFAIL\ta\t0.1s\n", "--- FAIL: TestCount (0.00s)\n    a_test.go:9: got 11000, want 12000\nFAIL\nFAIL\ta\t0.1s\n", false},
		{"AssertionError: expected 123456 rows, got 123455\n", "AssertionError: expected 123456 rows, got 123400\n", false},
		{"[40123] error: no user\n", "[40777] error: no user\n", true},
		{"12345 MainThread ERROR no user\n", "12399 MainThread ERROR no user\n", true},
		{"error: process 40123 is gone\n", "error: process 40999 is gone\n", true},
		{"error: cannot reach 127.0.0.1:40123\n", "error: cannot reach 127.0.0.1:51234\n", true},
	} {
		if same := of(c.a) == of(c.b); same != c.same {
			t.Errorf("%q and %q: same is %t", c.a, c.b, same)
		}
	}
}
