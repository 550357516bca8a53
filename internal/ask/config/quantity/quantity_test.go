package quantity

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	good := map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour,
		"1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0s": 0,
	}
	for text, want := range good {
		got, err := ParseDuration(text)
		if err != nil || got.Std() != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
		if again, err := ParseDuration(got.String()); err != nil || again != got {
			t.Errorf("%q does not read back from %q", text, got.String())
		}
	}
	for _, text := range []string{"", "5", "5.5", "-5m", "-1d", "+5m", "5 minutes", "d", "1e9h", "999999999h", "99999999d", "106751d24h", "1d1", "∞"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v", text, got)
		}
	}
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	good := map[string]Bytes{"0": 0, "50 MB": 50e6, "64MiB": 64 << 20, "1.5 GB": 15e8, "10 kB": 1e4, "10KB": 1e4, "7 B": 7, "2TiB": 2 << 40}
	for text, want := range good {
		got, err := ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %v, %v; want %v", text, got, err, want)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%q does not read back from %q", text, got.String())
		}
	}
	for _, text := range []string{"", "50", "-1 MB", "50 mb", "MB", "1e3 MB", "99999999 TB", "5 M"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %v", text, got)
		}
	}
}

func TestParseUSD(t *testing.T) {
	t.Parallel()
	good := map[string]loop.MicroUSD{"0": 0, "20": 20e6, "$1.50": 15e5, "0.000001": 1, "5.": 5e6, "999999999999": 999999999999e6}
	for text, want := range good {
		got, err := ParseUSD(text)
		if err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %v, %v; want %v", text, got, err, want)
		}
		if again, err := ParseUSD(USDText(got)); err != nil || again != got {
			t.Errorf("%q does not read back from %q", text, USDText(got))
		}
	}
	for _, text := range []string{"", "-1", "$-1", "1e3", "1,5", "0.0000001", ".5", "1000000000000", ".inf", "20 EUR"} {
		if got, err := ParseUSD(text); err == nil {
			t.Errorf("ParseUSD(%q) = %v", text, got)
		}
	}
}

func TestSplitWords(t *testing.T) {
	t.Parallel()
	good := map[string][]string{
		"":                    nil,
		"  claude  -p\t--x ":  {"claude", "-p", "--x"},
		`say 'a b' "c d"`:     {"say", "a b", "c d"},
		`a'b'"c"d`:            {"abcd"},
		`x "" ''`:             {"x", "", ""},
		`a\ b "q\"\$\n" '\n'`: {"a b", `q"$\n`, `\n`},
	}
	for text, want := range good {
		if got, err := SplitWords(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("SplitWords(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`'a`, `"a\"`, `a\`, `"`} {
		if got, err := SplitWords(text); err == nil {
			t.Errorf("SplitWords(%q) = %q", text, got)
		}
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	good := map[SprintTarget][2]string{
		{Type: "count", Value: "10", Count: 10}:                    {"count", "10"},
		{Type: "duration", Value: "2", Duration: 7200e9}:           {"duration", "2"},
		{Type: "duration", Value: "0.5", Duration: 1800e9}:         {"duration", "0.5"},
		{Type: "duration", Value: "90m", Duration: 5400e9}:         {"duration", "90m"},
		{Type: "until_time", Value: "18:30", Hour: 18, Minute: 30}: {"until_time", "18:30"},
		{Type: "until_time", Value: "00:00"}:                       {"until_time", "00:00"},
		{Type: "no_ready"}:                                         {"no_ready", ""},
	}
	for want, in := range good {
		if got, err := ParseTarget(in[0], in[1]); err != nil || got != want {
			t.Errorf("ParseTarget(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range [][2]string{{"count", ""}, {"count", "0"}, {"count", "2.5"}, {"duration", ""}, {"duration", "0"}, {"duration", "-2"},
		{"until_time", "24:00"}, {"until_time", "6pm"}, {"no_ready", "1"}} {
		if got, err := ParseTarget(in[0], in[1]); err == nil {
			t.Errorf("ParseTarget(%q) = %+v", in, got)
		}
	}
}
