package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"
	"strings"
)

// fingerprint is 16 hexadecimal digits that are the same for the same failure:
// class, step, failing tests in any order, and the key as it is.
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
		part(s)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:8])
}

// letters are those of a word. Characters of other scripts count.
const letters = `0-9A-Za-z_\x{80}-\x{10ffff}`

var (
	blanks = onUse(`[ \t]+`)
	paths  = onUse(`[` + letters + `/\\.~@-][` + letters + `/\\.~@+:-]*`)
	// An id, a number that may hold points, or a word.
	parts = onUse(`(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)` +
		`|[0-9][` + letters + `]*(?:\.[0-9][` + letters + `]*)*|[` + letters + `]+`)
	hexID = onUse(`^[0-9a-fA-F]{7,}$`)
	dates = onUse(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:\d{1,2} +)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d+`)
	// The name of a temporary folder or file: "tmp.Xk3jQ9aa", "tmpa8x_2k1".
	temporary = onUse(`^tmp[._-]?\w{6,}$`)
)

// steady leaves out of a line what differs between two runs of the same
// failure: numbers (lines, times, durations, ports, counts, addresses), hex
// ids, and folders of paths, so that only a file's name is left. Letters that
// lead into digits stay ("TS2322", "E0425").
func steady(s string) string {
	if slices.ContainsFunc(months, func(m string) bool { return strings.Contains(s, m) }) {
		s = dates().ReplaceAllString(s, "#")
	}
	s = paths().ReplaceAllStringFunc(s, func(path string) string {
		if i := strings.LastIndexAny(path, `/\`); i < len(path)-1 {
			path = path[i+1:]
		}
		if temporary().MatchString(path) {
			return "#"
		}
		return parts().ReplaceAllStringFunc(path, steadyPart)
	})
	if strings.Contains(s, "  ") || strings.Contains(s, "\t") {
		s = blanks().ReplaceAllString(s, " ")
	}
	return strings.TrimSpace(s)
}

var months = []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// steadyPart makes "#" of an id or a number.
func steadyPart(s string) string {
	name := strings.TrimRight(s, "0123456789")
	digits := 0
	for i := range len(s) {
		if isDigit(s[i]) {
			digits++
		}
	}
	switch {
	case digits == 0:
		return s
	case isDigit(s[0]), hexID().MatchString(s), len(s) >= 16 && digits >= 4, strings.Contains(s, "-"): // 12ms, 3f2a
		return "#"
	case digits >= 5: // the name of a temporary file, a process or a goroutine
		return name + "#"
	}
	return s
}

// stable is [steady] with what tells how far a failure got: "3 dead links" and
// "problems: 3" stay as they are, where "line 3" and "3 ms" do not.
func stable(s string) string { return strings.Join(append([]string{steady(s)}, amounts(s)...), "|") }

// amounts are the numbers in s that count something.
func amounts(s string) (found []string) {
	for _, m := range numbersOf().FindAllStringSubmatch(s, 8) {
		if !slices.ContainsFunc([]string{m[1], m[3], m[4], m[5]}, func(w string) bool { return changingNumber()[strings.ToLower(w)] }) {
			found = append(found, m[2]+m[6])
		}
	}
	return found
}

// numbersOf finds small numbers with the words around them.
var numbersOf = onUse(`(?:([A-Za-z]+) )?\b(\d{1,4}) ([a-z]+)(?: (passed|ok|checked))?|(?:([A-Za-z]+))?: (\d{1,4})[.)]?$`)

// changingNumber holds words in front of and behind numbers that differ from
// run to run, or count what is well.
var changingNumber = wordSet(`line lines column port pid process job step attempt try retry after in took for goroutine thread worker id
	length range ms s sec secs second seconds m min mins minute minutes h hour hours bytes ended exited of passed ok checked`)

// Fingerprint is the fingerprint of an analysis that another package makes:
// of its class, step, tests, and of keys, which are compared as they are.
func Fingerprint(a Analysis, keys ...string) string {
	return fingerprint(a, keys)
}
