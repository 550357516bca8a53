package failure

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// noise is what another run of the same command on another machine prints otherwise.
var noise = []struct {
	form    *regexp.Regexp
	another func(m []string) string
}{
	{regexp.MustCompile(`(/(?:home|Users)/\w+|[A-Z]:\\Users\\\w+)([/\\])`), func(m []string) string { return m[1] + "2" + m[2] + "ci" + m[2] }},
	{regexp.MustCompile(`\b(\d+)\.(\d+) ?(s|sec|secs|seconds|ms)\b`), func(m []string) string { return "7." + m[2] + " " + m[3] }},
	{regexp.MustCompile(`\b(\d\d):(\d\d):(\d\d)`), func([]string) string { return "21:47:09" }},
	{regexp.MustCompile(`\b(20\d\d)-(\d\d)-(\d\d)([T _-])`), func(m []string) string { return "2026-07-09" + m[4] }},
	{regexp.MustCompile(`\b0x[0-9a-f]{6,}`), func([]string) string { return "0x7fe01b2c9d40" }},
	{regexp.MustCompile(`\b(seed|port|pid|id)([ :=]+)(\d+)`), func(m []string) string { return m[1] + m[2] + m[3] + "7" }},
	{regexp.MustCompile(`/tmp/[\w.-]+`), func([]string) string { return "/tmp/tmp.Zq81kfLa0c" }},
	{regexp.MustCompile(`(\.[a-z]\w{0,3}:)(\d+)`), func(m []string) string { // two lines were added on top
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprint(m[1], n+2)
	}},
}

// withNoise is an output as another run prints it.
func withNoise(s string) string {
	for _, n := range noise {
		s = n.form.ReplaceAllStringFunc(s, func(m string) string { return n.another(n.form.FindStringSubmatch(m)) })
	}
	return s
}

// TestNoiseKeepsTheFingerprint: what differs between two runs of the same failure makes no other failure, and two
// failures of one tool are two.
func TestNoiseKeepsTheFingerprint(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	var same, different tally
	for _, o := range readFreshLines[freshOutput](t, "tenth.jsonl") {
		a := Analyse(o.evidence())
		again := o
		again.Output = withNoise(o.Output)
		if again.Output != o.Output {
			b := Analyse(again.evidence())
			same.count(a.Fingerprint == b.Fingerprint)
			if a.Fingerprint != b.Fingerprint {
				t.Logf("%s: another failure with noise: %q and %q", o.ID, a.Summary, b.Summary)
			}
		}
		other := seen[a.Fingerprint]
		different.count(other == "")
		if other != "" {
			t.Logf("%s is the same as %s: %q", o.ID, other, a.Summary)
		}
		seen[a.Fingerprint] = o.ID
	}
	t.Logf("same %d of %d, different %d of %d", same.right, same.all, different.right, different.all)
	if same.percent() < 95 || different.percent() < 100 {
		t.Errorf("same %.1f %%, different %.1f %%", same.percent(), different.percent())
	}
}
