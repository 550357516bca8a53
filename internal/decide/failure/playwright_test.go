package failure

import (
	"strings"
	"testing"
)

func TestPlaywright(t *testing.T) {
	t.Parallel()
	const output = `Running 7 tests using 2 workers

  1) [chromium] › cart/pay.spec.ts:9:5 › cart › pays by card ──────────

    Error: expect(locator).toHaveText(expected) failed

    Expected string: "Paid"
    Received string: "Open"

  2) home.spec.ts:5:1 › shows the title ───────────────────────────────

    Error: page.goto: connect ECONNREFUSED at http://127.0.0.1:4173/

  2 failed
    [chromium] › cart/pay.spec.ts:9:5 › cart › pays by card ──────────
    home.spec.ts:5:1 › shows the title ───────────────────────────────
  1 flaky
  1 skipped
  3 passed (4.2s)
`
	got, ok := ParseTests(output)
	if !ok || got.Runner != "playwright" || got.Passed != 4 || got.Failed != 2 || got.Skipped != 1 || len(got.Items) != 2 {
		t.Fatalf("read %+v, %v", got, ok)
	}
	first := got.Items[0]
	if first.File != "cart/pay.spec.ts" || first.Line != 9 || first.Test != "cart › pays by card" || first.Expected != `"Paid"` || first.Received != `"Open"` {
		t.Errorf("the first is %+v", first)
	}
	if second := got.Items[1]; second.Test != "shows the title" || second.File != "home.spec.ts" {
		t.Errorf("the second is %+v", second)
	}
	if a := Analyse(Evidence{Source: "gate", Name: "e2e", ExitCode: 1, Output: strings.ReplaceAll(output, "expect(locator).toHaveText(expected) failed", "no text")}); a.Class != TestFailure || a.Transient {
		t.Errorf("a test that finds nobody there is %s: %q", a.Class, a.Summary)
	}
	bare := strings.NewReplacer("expect(locator).toHaveText(expected) failed", "no text", "connect ECONNREFUSED", "nobody there").Replace(output)
	if a := Analyse(Evidence{Source: "gate", Name: "e2e", ExitCode: 1, Output: bare}); a.Class != TestFailure || len(a.Items) != 2 {
		t.Errorf("without a word that says so it is %s: %+v", a.Class, a.Items)
	}
}
