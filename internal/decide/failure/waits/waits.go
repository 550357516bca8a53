// Package waits reads in a message when a service works again: "try again in 2h 15m",
// "resets 9pm (America/New_York)", "Retry-After: 60".
package waits

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Waits are at most this long; what names a later time is misread.
const longest = 32 * 24 * time.Hour

var words = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// limit reached|1763640000
		regexp.MustCompile(`(?i)(?:limit|reached|reset\w*)\S{0,20}?[|=: ]+["']?(1[5-9]\d{8})(\d{3})?\b`),
		// in 2h 15m; after 37 seconds; retry-after: 60
		regexp.MustCompile(`(?i)\b(?:in|after|for|retry-after['"]?\s*:|retry_after['"]?\s*:` +
			`|retry_?delay['"]?\s*:)\s*['"]?~?((?:\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|ms|m|seconds?|secs?|sec|s)?[ ,]*(?:and )?){1,4})`),
		// resets 9pm (America/New_York); again at 1:27 PM; at Nov 21, 2026 3:04 PM; Monday 9am; on Dec 1
		regexp.MustCompile(`(?i)\b(?:resets?|again|until|available|renews?|back|refresh(?:es)?)(?: at| on| by` +
			`|:)?\s+(?:on )?(?:(tomorrow|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)\b[, ]*)?(?:((?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4}))?(?:,| at|,? )*\s*)?(?:at )?(?:(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*([ap]\.?m\.?)?)?(?:\s*\(?([A-Za-z]+/[A-Za-z_/+-]+|UTC|GMT|Z|P[SD]?T|E[SD]?T|CES?T)\b\)?)?`),
		// 2026-11-20T18:00:00Z
		regexp.MustCompile(`(?i)\b(?:resets?|again|until|available` +
			`|after)\D{0,20}(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)`),
		// Retry-After: Fri, 20 Nov 2026 18:00:00 GMT
		regexp.MustCompile(`(?i)\b(?:resets?|again|until|available|after)\W[^\d,]{0,20}?\b(?:mon|tue|wed|thu|fri` +
			`|sat|sun)[a-z]*,? (\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d{2}:\d{2}:\d{2}) (?:GMT|UTC)`),
	}
})

// Read reads when msg says that a service works again, and whether it says so by the
// clock, to the minute. Clock times are read in now's location unless msg names another that
// zone knows; a time that is already past today means tomorrow, or now when it is just past.
// The zero time means that msg does not say, or that what it says is more than longest ahead.
func Read(msg string, now time.Time, zone func(string) *time.Location) (t time.Time, clocked bool) {
	if now.IsZero() {
		return time.Time{}, false
	}
	// A full date holds digits of a span and a clock time.
	if t := dropUnlikely(readDate(msg, now), now); !t.IsZero() {
		return t, false
	}
	in := func(m []string, now time.Time) time.Time { return readClock(m[1], m[2:], timeInZone(now, m[8], zone)) }
	for i, read := range []func([]string, time.Time) time.Time{readEpoch, readSpan, in, readStamp} {
		for _, m := range words()[i].FindAllStringSubmatch(msg, 8) {
			if t := dropUnlikely(read(m, now), now); !t.IsZero() {
				return t, i == clocks
			}
		}
	}
	return time.Time{}, false
}

// clocks is the place of clock times among the words that are looked for.
const clocks = 2

// readDate reads a full date: of ISO 8601, or as HTTP has it.
func readDate(msg string, now time.Time) time.Time {
	for _, m := range words()[3].FindAllStringSubmatch(msg, 1) {
		if t := readStamp(m, now); !t.IsZero() {
			return t
		}
	}
	for _, m := range words()[4].FindAllStringSubmatch(msg, 1) {
		for _, layout := range []string{"2 Jan 2006 15:04:05", "2-Jan-06 15:04:05"} {
			if t, err := time.Parse(layout, m[1]); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}

// abbreviations are zones that are written in short, by their first letter.
var abbreviations = map[byte]string{'P': "America/Los_Angeles", 'E': "America/New_York", 'C': "Europe/Berlin"}

// timeInZone returns now in a message's zone. One that is not known is taken for the machine's own,
// which programs mostly name.
func timeInZone(now time.Time, name string, zone func(string) *time.Location) time.Time {
	switch {
	case name == "":
		return now
	case strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") || strings.EqualFold(name, "Z"):
		return now.UTC()
	case !strings.Contains(name, "/"):
		name = abbreviations[name[0]&^0x20]
	}
	if zone != nil {
		if at := zone(name); at != nil {
			return now.In(at)
		}
	}
	return now
}

// LongestRate is the longest wait that a rate, as against a quota, asks for.
const LongestRate = 30 * time.Minute

// In reads the first span of time that s names as a wait.
func In(s string) (time.Duration, bool) {
	for _, m := range words()[1].FindAllStringSubmatch(s, 8) {
		if d, ok := readDuration(m[1]); ok {
			return d, true
		}
	}
	return 0, false
}

// dropUnlikely returns zero for a time in the past or too far away.
func dropUnlikely(t, now time.Time) time.Time {
	if t.IsZero() || t.Before(now) || t.Sub(now) > longest {
		return time.Time{}
	}
	return t
}

func readEpoch(m []string, now time.Time) time.Time {
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).In(now.Location())
}

// readSpan reads "2h 15m", "37 seconds", "1.493s"; a bare number is seconds.
func readSpan(m []string, now time.Time) time.Time {
	d, ok := readDuration(m[1])
	if !ok {
		return time.Time{}
	}
	return now.Add(d)
}

var spans = lazy.Regexp(`(\d+(?:\.\d+)?)\s*([A-Za-z]*)`)

func readDuration(s string) (sum time.Duration, found bool) {
	for _, m := range spans().FindAllStringSubmatch(s, -1) {
		value, err := strconv.ParseFloat(m[1], 64)
		unit := unitOfWord(strings.ToLower(m[2]))
		if err != nil || value > 1e7 || unit == 0 {
			break
		}
		sum += time.Duration(value * float64(unit))
		found = true
	}
	return sum, found
}

func unitOfWord(word string) time.Duration {
	switch {
	case word == "ms":
		return time.Millisecond
	case word == "" || word[0] == 's':
		return time.Second
	case word[0] == 'm':
		return time.Minute
	case word[0] == 'h':
		return time.Hour
	case word[0] == 'd':
		return 24 * time.Hour
	}
	return 0
}

// readClock reads "9pm", "1:27 PM", "14:05", "Nov 21 9am", with a zone or without. weekday may be
// one, or tomorrow.
func readClock(weekday string, m []string, now time.Time) time.Time {
	month, day, year, hour, minute, half := m[0], m[1], m[2], m[3], m[4], m[5]
	if half == "" && minute == "" {
		if month == "" {
			return time.Time{} // a bare number is no time
		}
		hour = "" // the day begins
	}
	h := hourOfDay(hour, half)
	mins, _ := strconv.Atoi(minute)
	if h > 23 || mins > 59 {
		return time.Time{}
	}
	if ahead := daysAhead(weekday, now); month == "" && ahead > 0 {
		return time.Date(now.Year(), now.Month(), now.Day()+ahead, h, mins, 0, 0, now.Location())
	}
	if month == "" {
		t := time.Date(now.Year(), now.Month(), now.Day(), h, mins, 0, 0, now.Location())
		for _, past := range []time.Time{t, t.AddDate(0, 0, -1)} {
			if isJustPast(past, now) {
				return now
			}
		}
		// One hour comes twice when summer time ends.
		for _, same := range []time.Time{t.Add(-time.Hour), t, t.Add(time.Hour)} {
			if same.After(now) && (same.Equal(t) || same.Hour() == h) {
				return same
			}
		}
		return time.Date(now.Year(), now.Month(), now.Day()+1, h, mins, 0, 0, now.Location())
	}
	y := now.Year()
	d, _ := strconv.Atoi(day)
	if n, err := strconv.Atoi(year); err == nil {
		y = n
	}
	named, err := time.Parse("Jan", month[:3])
	if err != nil {
		return time.Time{}
	}
	t := time.Date(y, named.Month(), d, h, mins, 0, 0, now.Location())
	if isJustPast(t, now) {
		return now
	}
	if year == "" && t.Before(now) {
		t = t.AddDate(1, 0, 0)
	}
	return t
}

// hourOfDay reads "9" with "pm"; 24 for an hour that is none.
func hourOfDay(hour, half string) int {
	h, _ := strconv.Atoi(hour)
	switch {
	case half == "":
		return h
	case h < 1 || h > 12:
		return 24
	case half[0]|0x20 == 'p':
		return h%12 + 12
	}
	return h % 12
}

// daysAhead counts from now to the next day that is called so: 0 for today, and for no name.
func daysAhead(name string, now time.Time) int {
	if strings.EqualFold(name, "tomorrow") {
		return 1
	}
	for i := range 7 {
		day := now.AddDate(0, 0, i).Weekday().String()
		if name != "" && strings.EqualFold(name[:3], day[:3]) {
			return i
		}
	}
	return 0
}

// Late is added to a time that is named to the minute: the service may work only at its end.
const Late = time.Minute

// isJustPast: who refuses at 2:47 and says 2:46 means minutes, and not tomorrow.
func isJustPast(t, now time.Time) bool { return !t.After(now) && now.Sub(t) < 10*time.Minute }

func readStamp(m []string, now time.Time) time.Time {
	s := strings.Replace(m[1], " ", "T", 1)
	for _, seconds := range []string{":05", ""} {
		for _, zone := range []string{"Z07:00", "Z0700", ""} {
			if t, err := time.ParseInLocation("2006-01-02T15:04"+seconds+zone, s, now.Location()); err == nil {
				return t.In(now.Location())
			}
		}
	}
	return time.Time{}
}
