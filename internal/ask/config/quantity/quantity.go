// Package quantity reads and writes the values of keys as people write them: spans of time,
// sizes, amounts of money, shares, commands as words, and the target of a sprint.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Duration is a time span that is written with its unit.
type Duration time.Duration

// Std returns the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String gives the shortest form that reads back: 90s, 30m, 168h, 1h30m.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if d == 0 {
		return "0"
	}
	return s
}

// MarshalText writes the form of String, for JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// ParseDuration reads "90s", "1h30m", "1.5h", "7d" (a day is 24 hours) and
// "0". Negative values and numbers without a unit are errors.
func ParseDuration(s string) (Duration, error) {
	s = strings.TrimSpace(s)
	if s == "0" {
		return 0, nil
	}
	if IsNumber(s) {
		return 0, fmt.Errorf("needs a unit: write %s", WithUnits(s, 0))
	}
	rest, days := s, time.Duration(0)
	if head, tail, ok := strings.Cut(s, "d"); ok && IsNumber(head) && !strings.HasPrefix(head, "-") {
		n, err := strconv.ParseFloat(head, 64)
		if err != nil || n > 36500 {
			return 0, fmt.Errorf("is not a duration that fits: %q", s)
		}
		rest, days = tail, time.Duration(math.Round(n*24*float64(time.Hour)))
		if rest == "" {
			return Duration(days), nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") {
		return 0, fmt.Errorf("is not a duration: %q; write e.g. 90s, 10m, 1h30m or 7d", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("cannot be negative (%s)", s)
	}
	if d > math.MaxInt64-days {
		return 0, fmt.Errorf("is not a duration that fits: %q", s)
	}
	return Duration(d + days), nil
}

// IsNumber reports whether s is a number without a unit.
func IsNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789.") == "" && s[0] != '.' && strings.Count(s, ".") <= 1
}

// WithUnits shows what a number without a unit likely meant. Whole thousands
// from 10,000 on are likely milliseconds; a key whose default is hours likely
// means hours.
func WithUnits(s string, def Duration) string {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n < 0:
		return strings.TrimPrefix(s, "-") + "s"
	case n >= 10_000 && n%1000 == 0:
		return fmt.Sprintf("%ds or, if it was milliseconds, %ds", n, n/1000)
	case def >= Duration(time.Hour):
		return fmt.Sprintf("%dh or %dm", n, n)
	case n > 120:
		return fmt.Sprintf("%ds", n)
	}
	return fmt.Sprintf("%dm or %ds", n, n)
}

// BareUnits are the units of the places that take a number without one.
var BareUnits = map[string]time.Duration{"seconds": time.Second, "hours": time.Hour, "ms": time.Millisecond}

// BareDuration reads a number of the unit, or a duration with a unit.
func BareDuration(s string, unit time.Duration) (Duration, error) {
	s = strings.TrimSpace(s)
	if !IsNumber(s) {
		return ParseDuration(s)
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || n*float64(unit) > math.MaxInt64/2:
		return 0, fmt.Errorf("is not a duration that fits: %q", s)
	case n < 0:
		return 0, fmt.Errorf("cannot be negative (%s)", s)
	}
	return Duration(math.Round(n * float64(unit))), nil
}

// FlagDuration reads the value of --timeout: a bare number is milliseconds,
// and one below 1000 was surely meant otherwise.
func FlagDuration(s string) (Duration, error) {
	s = strings.TrimSpace(s)
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n == 0:
		return ParseDuration(s)
	case n < 0:
		return 0, fmt.Errorf("cannot be negative (%s)", s)
	case n < 1000:
		return 0, fmt.Errorf("would be %d ms: write %ds", n, n)
	}
	return BareDuration(s, time.Millisecond)
}

// Bytes is a size, written with its unit.
type Bytes int64

var byteUnits = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6},
	{"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// String gives the largest unit without a fraction: 50 MB, 1 MiB, 1001 B.
func (b Bytes) String() string {
	best, value := "B", int64(b)
	for _, u := range byteUnits {
		if u.name != "kB" && b != 0 && int64(b)%u.size == 0 && int64(b)/u.size < value {
			best, value = u.name, int64(b)/u.size
		}
	}
	return fmt.Sprintf("%d %s", value, best)
}

// MarshalText writes the form of String, for JSON.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// ParseBytes reads "50 MB", "64MiB", "1.5 GB" and "0". Units with an i count
// by 1024, others by 1000. Negative sizes and numbers without a unit are errors.
func ParseBytes(s string) (Bytes, error) {
	s = strings.TrimSpace(s)
	if s == "0" {
		return 0, nil
	}
	if IsNumber(s) {
		return 0, fmt.Errorf("needs a unit: write %s MB", strings.TrimPrefix(s, "-"))
	}
	for _, u := range byteUnits {
		head, ok := strings.CutSuffix(s, u.name)
		head = strings.TrimSpace(head)
		if !ok || !IsNumber(head) {
			continue
		}
		n, err := strconv.ParseFloat(head, 64)
		switch {
		case err != nil || n*float64(u.size) > math.MaxInt64/2:
			return 0, fmt.Errorf("is not a size that fits: %q", s)
		case n < 0:
			return 0, fmt.Errorf("cannot be negative (%s)", s)
		}
		return Bytes(math.Round(n * float64(u.size))), nil
	}
	return 0, fmt.Errorf("is not a size: %q; write e.g. 50 MB or 64 MiB", s)
}

// ParseUSD reads an amount in US dollars, with or without a dollar sign:
// "20", "0.25", "$1.50". It is exact; more than six decimals, a sign or an
// exponent are errors.
func ParseUSD(s string) (loop.MicroUSD, error) {
	s = strings.TrimSpace(s)
	amount := strings.TrimPrefix(s, "$")
	if strings.HasPrefix(amount, "-") {
		return 0, fmt.Errorf("cannot be negative (%s)", s)
	}
	whole, decimals, _ := strings.Cut(amount, ".")
	if !IsNumber(amount) || len(whole) > 12 {
		return 0, fmt.Errorf("is not an amount in US dollars: %q; write e.g. 20 or 0.25", s)
	}
	if len(decimals) > 6 {
		return 0, fmt.Errorf("has more than six decimals: %s", s)
	}
	n, err := strconv.ParseInt(whole+(decimals + "000000")[:6], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("is not an amount in US dollars: %q; write e.g. 20 or 0.25", s)
	}
	return loop.MicroUSD(n), nil
}

// USDText writes an amount as ParseUSD reads it.
func USDText(m loop.MicroUSD) string {
	s := fmt.Sprintf("%d.%06d", m/1e6, m%1e6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Percent is a part of something, from 1 to 100.
type Percent int

// ParsePercent reads "80%" or "80".
func ParsePercent(s string) (Percent, error) {
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "%")))
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("must be 1%% to 100%%, not %q", s)
	}
	return Percent(n), nil
}

// Path is a file or folder. In a Config it is absolute, or "".
type Path string

// Argv is a command line: the program and its arguments.
type Argv []string

// SplitWords splits a command line as a shell would: blanks separate, quotes
// and backslashes protect, nothing is expanded. A quote that is not closed is
// an error.
func SplitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; ch {
		case ' ', '\t', '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'', '"':
			end := closingQuote(s, i)
			if end < 0 {
				return nil, fmt.Errorf("has a quote (%c) that is not closed", ch)
			}
			word.WriteString(takeQuotesOff(s[i:end+1], ch))
			i, inWord = end, true
		case '\\':
			if i++; i == len(s) {
				return nil, fmt.Errorf("ends in a backslash")
			}
			word.WriteByte(s[i])
			inWord = true
		default:
			word.WriteByte(ch)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// closingQuote returns the index of the quote that closes the one at i, or -1.
func closingQuote(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == s[i]:
			return j
		case s[j] == '\\' && s[i] == '"':
			j++
		}
	}
	return -1
}

// takeQuotesOff takes the quotes off. Between double quotes a backslash protects
// only what a shell lets it protect.
func takeQuotesOff(s string, quote byte) string {
	s = s[1 : len(s)-1]
	if quote == '\'' {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`", "\\\n", "").Replace(s)
}

// SprintTarget is when a sprint starts nothing new any more.
type SprintTarget struct {
	Type  string `yaml:"type" default:"no_ready" enum:"count|duration|until_time|plan|no_ready"`
	Value string `yaml:"value" loose:"true"`

	// Count is set for count.
	Count int `yaml:"-"`
	// Duration is set for duration.
	Duration Duration `yaml:"-"`
	// Hour and Minute are set for until_time.
	Hour   int `yaml:"-"`
	Minute int `yaml:"-"`
	// Plan is set for plan.
	Plan Percent `yaml:"-"`
}

// Sprint targets.
const (
	TargetCount     = "count"
	TargetDuration  = "duration"
	TargetUntilTime = "until_time"
	TargetNoReady   = "no_ready"
	TargetPlan      = "plan"
)

// ParseTarget reads a target's value. A missing, unreadable or zero value is
// an error; so is a value for no_ready.
func ParseTarget(kind, value string) (SprintTarget, error) {
	t := SprintTarget{Type: kind, Value: value}
	value = strings.TrimSpace(value)
	switch kind {
	case TargetCount:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return t, fmt.Errorf("must be a whole number of tasks, 1 or more, for the target count; not %q", value)
		}
		t.Count = n
	case TargetDuration:
		d, err := BareDuration(value, time.Hour)
		if err != nil || d == 0 {
			return t, fmt.Errorf("must be hours or a duration over 0, e.g. 2 or 90m, for the target duration; not %q",
				value)
		}
		t.Duration = d
	case TargetUntilTime:
		at, err := time.Parse("15:04", value)
		if err != nil {
			return t, fmt.Errorf("must be a time of day, e.g. 18:30, for the target until_time; not %q", value)
		}
		t.Hour, t.Minute = at.Hour(), at.Minute()
	case TargetPlan:
		n, err := ParsePercent(value)
		if err != nil {
			return t, fmt.Errorf("%v for the target plan", err)
		}
		t.Plan = n
	case TargetNoReady:
		if value != "" {
			return t, fmt.Errorf("has no meaning for the target no_ready: remove it")
		}
	}
	return t, nil
}
