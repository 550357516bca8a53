package waits

import (
	"testing"
	"time"
	_ "time/tzdata" // the table is the same on every machine
)

func zone(name string) *time.Location {
	at, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil
	}
	return at
}

// When a service works again, in the words that were recorded and in others
// that are in use, in each zone, around the change of summer time.
func TestWaitUntilInZones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, in, msg, want string }{
		// As recorded.
		{"2026-11-20T10:40:00Z", "UTC", "You've hit your session limit · resets 2:29pm (UTC)", "2026-11-20T14:29:00Z"},
		{"2026-11-20T10:40:00Z", "Europe/Berlin", "You've hit your 5-hour limit · resets 1:51pm (UTC)", "2026-11-20T13:51:00Z"},
		{"2026-11-20T10:27:00Z", "UTC", "visit https://example.com/usage to purchase more credits or try again at 1:27 PM.", "2026-11-20T13:27:00Z"},
		{"2026-11-20T10:27:00Z", "America/New_York", "or try again at 1:27 PM.", "2026-11-20T18:27:00Z"},
		{"2026-11-20T10:27:00Z", "UTC", "50 requests per minute. Please try again in 2s.", "2026-11-20T10:27:02Z"},
		{"2026-11-20T10:27:00Z", "UTC", "Please retry in 2s.\nSuggested retry after 2s.", "2026-11-20T10:27:02Z"},
		{"2026-11-20T10:27:00Z", "UTC", "Retrying in 60s (attempt 1/10): rate limit", "2026-11-20T10:28:00Z"},
		{"2026-11-20T10:27:00Z", "UTC", "exceed your account's rate limit. Please try again later.", ""},
		{"2026-11-20T10:27:00Z", "UTC", "limit reached|1795182691", "2026-11-20T13:51:31Z"},
		{"2026-11-20T10:27:00Z", "UTC", "limit reached|1795182691123", "2026-11-20T13:51:31Z"},

		// Clock times without a date: today, or tomorrow when past.
		{"2026-11-20T18:00:00Z", "Europe/Berlin", "resets 3pm", "2026-11-21T14:00:00Z"},
		{"2026-11-20T10:00:00Z", "Europe/Berlin", "resets 3pm", "2026-11-20T14:00:00Z"},
		{"2026-11-20T14:10:00Z", "Europe/Berlin", "resets 3pm", "2026-11-21T14:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets at 14:05 (Europe/Berlin)", "2026-11-20T13:05:00Z"},
		{"2026-11-20T15:00:00Z", "UTC", "resets at 14:05 (Europe/Berlin)", "2026-11-21T13:05:00Z"},
		{"2026-11-20T23:30:00Z", "UTC", "resets 1am (Asia/Tokyo)", "2026-11-21T16:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets 9pm (America/Los_Angeles)", "2026-11-21T05:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets 3am PST", "2026-11-20T11:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "try again at 8:15 AM ET", "2026-11-20T13:15:00Z"},
		{"2026-07-20T10:00:00Z", "UTC", "resets 14:05 CEST", "2026-07-20T12:05:00Z"},
		{"2026-11-20T10:00:00Z", "Europe/Berlin", "resets 3pm (Atlantis/Capital)", "2026-11-20T14:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets 12pm", "2026-11-20T12:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets 12am", "2026-11-21T00:00:00Z"},
		{"2026-12-31T23:00:00Z", "UTC", "resets 1am", "2027-01-01T01:00:00Z"},

		// Days by their names (2026-11-20 is a Friday), and days alone.
		{"2026-11-20T10:00:00Z", "UTC", "try again on Mon, Nov 30 at 8:00 AM", "2026-11-30T08:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "try again tomorrow at 9 AM", "2026-11-21T09:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets Monday 9am (Europe/Berlin)", "2026-11-23T08:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets Thursday at 14:05", "2026-11-26T14:05:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "Your premium requests reset on December 1.", "2026-12-01T00:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets Dec 1, 2026", "2026-12-01T00:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "try again tomorrow", ""},

		// Who refuses at a time that is just past means minutes.
		{"2026-11-20T14:00:00Z", "Europe/Berlin", "resets 3pm", "2026-11-20T14:00:00Z"},
		{"2026-11-20T02:47:10Z", "UTC", "try again at 2:46 AM", "2026-11-20T02:47:10Z"},
		{"2026-11-20T00:03:00Z", "UTC", "try again at 11:58 PM", "2026-11-20T00:03:00Z"},
		{"2026-11-20T02:56:00Z", "UTC", "try again at 2:46 AM", "2026-11-21T02:46:00Z"},
		{"2026-11-20T09:01:00Z", "UTC", "resets Nov 20 at 9am", "2026-11-20T09:01:00Z"},
		{"2026-11-20T09:01:00Z", "UTC", "resets Nov 20 at 8am", ""},

		// Spans and full dates.
		{"2026-11-20T10:00:00Z", "UTC", "resets in 5 hours", "2026-11-20T15:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "try again in 1 day 2 hours 3 minutes", "2026-11-21T12:03:00Z"},
		{"2026-11-20T10:00:00Z", "Asia/Tokyo", "limit resets at 2026-11-20T18:00:00Z", "2026-11-20T18:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "available after 2026-11-20T18:00:00+02:00", "2026-11-20T16:00:00Z"},
		{"2026-11-20T10:00:00Z", "Europe/Berlin", "resets 2026-11-20 18:00", "2026-11-20T17:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "Retry-After: Fri, 20 Nov 2026 18:00:00 GMT", "2026-11-20T18:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "retry-after: Friday, 20-Nov-26 18:00:00 GMT", "2026-11-20T18:00:00Z"},
		{"2026-11-20T10:00:00Z", "UTC", "resets 2026-11-20T09:00:00Z", ""},
		{"2026-11-20T10:00:00Z", "UTC", "Retry-After: Fri, 20 Nov 2020 18:00:00 GMT", ""},

		// Summer time begins in Berlin at 2:00 on 2026-03-29, and ends at 3:00 on 2026-10-25.
		{"2026-03-28T23:00:00Z", "Europe/Berlin", "resets 3:30am", "2026-03-29T01:30:00Z"},
		{"2026-03-28T20:00:00Z", "UTC", "resets 9am (Europe/Berlin)", "2026-03-29T07:00:00Z"},
		{"2026-10-24T20:00:00Z", "UTC", "resets 9am (Europe/Berlin)", "2026-10-25T08:00:00Z"},
		{"2026-10-25T00:10:00Z", "Europe/Berlin", "resets 2:30am", "2026-10-25T00:30:00Z"},
		{"2026-10-25T01:10:00Z", "Europe/Berlin", "resets 2:30am", "2026-10-25T01:30:00Z"},
		{"2026-10-25T01:40:00Z", "Europe/Berlin", "resets 2:30am", "2026-10-26T01:30:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if at, _ := Read(c.msg, now.In(zone(c.in)), zone); !at.IsZero() {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%q at %s in %s: %q, want %q", c.msg, c.now, c.in, got, c.want)
		}
	}
}

// An hour that a change of summer time leaves out is not long after it.
func TestWaitUntilAnHourThatIsNot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 29, 0, 30, 0, 0, zone("Europe/Berlin"))
	at, _ := Read("resets 2:30am", now, zone)
	if d := at.Sub(now); d < time.Hour || d > 3*time.Hour {
		t.Errorf("waits %v", d)
	}
}
