package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
)

const session = "01a1f881-07c5-7e93-99d1-1490f0fa8127"

func TestResetFromTheSessionsFile(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	soon, later := ended.Add(3*time.Hour), ended.Add(5*24*time.Hour)
	line := func(limits string) string {
		return `{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":` + limits + `}}` + "\n"
	}
	window := func(used float64, at time.Time) string {
		return fmt.Sprintf(`{"used_percent":%v,"window_minutes":300,"resets_at":%d}`, used, at.Unix())
	}
	limit := failure.APIError{Status: 429, Type: "usage_limit_reached", Message: "try again at 3:00 PM"}
	for name, tt := range map[string]struct {
		file    string
		session string
		err     failure.APIError
		want    time.Time
	}{
		"one limit":              {line(`{"primary":` + window(100, soon) + `,"secondary":null}`), session, limit, soon},
		"the longer one":         {line(`{"primary":` + window(100, soon) + `,"secondary":` + window(100, later) + `}`), session, limit, later},
		"the one that is used":   {line(`{"primary":` + window(100, soon) + `,"secondary":` + window(40, later) + `}`), session, limit, soon},
		"none said to be used":   {line(`{"primary":` + window(99, soon) + `}`), session, limit, soon},
		"the last state":         {line(`{"primary":`+window(50, later)+`}`) + line(`{"primary":`+window(100, soon)+`}`) + "{\"type\":\"other\"}\n", session, limit, soon},
		"a state without limits": {line(`{"primary":`+window(100, soon)+`}`) + line("null"), session, limit, soon},
		"in the past":            {line(`{"primary":` + window(100, ended.Add(-time.Hour)) + `}`), session, limit, time.Time{}},
		"absurd":                 {line(`{"primary":{"used_percent":100,"resets_at":1e300}}`), session, limit, time.Time{}},
		"damage":                 {`{"payload":{"rate_limits":{"primary":{"resets_at":17`, session, limit, time.Time{}},
		"no id":                  {line(`{"primary":` + window(100, soon) + `}`), "*", limit, time.Time{}},
		"another failure":        {line(`{"primary":` + window(100, soon) + `}`), session, failure.APIError{Status: 500}, time.Time{}},
		"known already":          {line(`{"primary":` + window(100, soon) + `}`), session, failure.APIError{Status: 429, ResetAt: later}, later},
		"no file":                {"", session, limit, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := filepath.Join(t.TempDir(), "a [home]*")
			dir := filepath.Join(home, "sessions", "2026", "11", "20")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "rollout-2026-11-20T12-00-00-"+session+".jsonl"), []byte("{}\n"+tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			getenv := func(name string) string { return strings.Replace(name, "CODEX_HOME", home, 1) }
			in := agent.Outcome{Session: tt.session, Errors: []failure.APIError{tt.err}}
			got := adapter(nil).Complete(t.Context(), getenv, ended, in)
			if at := got.Errors[0].ResetAt; !at.Equal(tt.want) {
				t.Errorf("reset at %v, want %v", at, tt.want)
			}
			if !in.Errors[0].ResetAt.Equal(tt.err.ResetAt) {
				t.Error("what was handed in was changed")
			}
		})
	}
}
