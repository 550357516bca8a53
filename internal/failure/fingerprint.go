package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"
)

// fingerprint is 16 hexadecimal digits that are the same for the same failure:
// class, step, failing tests in any order, and the key lines, in which
// everything that changes from run to run is left out (see [steady]).
func fingerprint(a Analysis, key []string) string {
	all := make([]byte, 0, 512)
	part := func(s string) { all = append(append(all, s...), 0) }
	part(string(a.Class))
	part(a.Step)
	var tests []string
	for _, i := range a.Items {
		if i.Test != "" {
			tests = append(tests, steady(i.Test))
		}
	}
	sort.Strings(tests)
	for _, s := range tests {
		part(s)
	}
	part("")
	for _, s := range key {
		part(steady(s))
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:8])
}

// steady leaves out of a line what differs between two runs of the same
// failure: numbers (lines, times, durations, ports, counts, addresses), hex
// ids, and folders of paths, so that only a file's name is left. Letters that
// lead into digits stay ("TS2322", "E0425"), and so do statuses of three digits.
func steady(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := true
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t':
			if !space {
				b.WriteByte(' ')
			}
			space = true
			i++
			continue
		case inToken[c] && c != '+' && c != ':':
			n := i
			for n < len(s) && inToken[s[n]] {
				n++
			}
			token(&b, s[i:n])
			i = n
		default:
			b.WriteByte(c)
			i++
		}
		space = false
	}
	return strings.TrimSpace(b.String())
}

// inToken are the bytes of which a run of path and word characters is made.
var inToken = func() (t [256]bool) {
	for i := range t {
		t[i] = wordByte(byte(i)) || strings.IndexByte(`/\.~-@+:`, byte(i)) >= 0
	}
	return t
}()

// token writes one run of path and word characters in its steady form.
func token(b *strings.Builder, s string) {
	if i := max(strings.LastIndexByte(s, '/'), strings.LastIndexByte(s, '\\')); i >= 0 && i < len(s)-1 {
		s = s[i+1:]
	}
	for i := 0; i < len(s); {
		if uuid(s[i:]) {
			b.WriteByte('#')
			i += uuidLen
			continue
		}
		n := i
		for n < len(s) && wordByte(s[n]) {
			n++
		}
		if n == i {
			b.WriteByte(s[i])
			i++
			continue
		}
		for isDigit(s[i]) && n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) { // 1.203s, 10.0.0.7
			n++
			for n < len(s) && wordByte(s[n]) {
				n++
			}
		}
		word(b, s[i:n])
		i = n
	}
}

const uuidLen = 36

// uuid tells whether s begins with a UUID.
func uuid(s string) bool {
	if len(s) < uuidLen || len(s) > uuidLen && wordByte(s[uuidLen]) {
		return false
	}
	for i := range uuidLen {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		c := lower(s[i])
		if dash != (c == '-') || !dash && !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// word writes a run of letters and digits: a hex id or a number becomes "#".
func word(b *strings.Builder, s string) {
	digits, hexes := 0, 0
	for i := range len(s) {
		c := lower(s[i])
		if isDigit(c) {
			digits++
		}
		if isDigit(c) || 'a' <= c && c <= 'f' {
			hexes++
		}
	}
	switch {
	case digits == 0:
		b.WriteString(s)
	case isDigit(s[0]): // 12, 12ms, 3f2a, 0x7f00
		b.WriteByte('#')
	case hexes == len(s) && len(s) >= 7, len(s) >= 16 && digits >= 4:
		b.WriteByte('#')
	case digits >= 5: // tmp, process and goroutine names
		b.WriteString(strings.TrimRight(s, "0123456789"))
		b.WriteByte('#')
	default:
		b.WriteString(s)
	}
}

// Fingerprint is the fingerprint of an analysis that another package makes:
// of its class, step, tests, and of keys, which are compared as they are.
func Fingerprint(a Analysis, keys ...string) string {
	return fingerprint(a, keys)
}
