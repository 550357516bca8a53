package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

var guardsAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// tripAt feeds events, a second apart, and returns the first trip and after how
// many events it came; 0 is never.
func tripAt(limits Guards, events ...Event) (Trip, int) {
	g := NewGuard(limits)
	for i, e := range events {
		if trip, tripped := g.Add(e, guardsAt.Add(time.Duration(i)*time.Second)); tripped {
			return trip, i + 1
		}
	}
	return Trip{}, 0
}

func times(n int, turn ...Event) []Event {
	var all []Event
	for range n {
		all = append(all, turn...)
	}
	return all
}

func said(s string) Event { return Event{Kind: Text, Text: s} }

func called(tool, args, result string) []Event {
	return []Event{{Kind: ToolStart, Tool: tool, Command: args, Digest: Digest([]byte(args))}, {Kind: ToolEnd, Tool: tool, Digest: Digest([]byte(result))}}
}

func refused(wait time.Duration) Event {
	return Event{Kind: Retry, Calls: 1, Error: &failure.APIError{Status: 503, Type: "unavailable", Message: "try later", RetryAfter: wait}}
}

func TestGuardTrips(t *testing.T) {
	t.Parallel()
	all := Guards{Repeats: 5, Retries: 4, RetryTime: time.Minute, EmptyCalls: 6}
	call := Event{Kind: UsageSeen, Calls: 1}
	poll := func(n int) []Event {
		var events []Event
		for i := range n {
			events = append(events, called("shell", "gh run view", fmt.Sprint("running for ", i))...)
		}
		return events
	}
	long := make([]Event, 0, longestTurn+1)
	for i := range longestTurn + 1 {
		long = append(long, said(fmt.Sprint("step ", i)))
	}
	for _, test := range []struct {
		name   string
		limits Guards
		events []Event
		want   loop.Ended
		at     int // events until it trips
		why    string
	}{
		{"the same words", all, times(20, said("I try again.")), loop.EndedRepeats, 6, "the same words came 6 times in a row"},
		{"the same call", all, times(20, called("shell", "make", "error 1")...), loop.EndedRepeats, 12, "the same turn with the tool shell came 6 times in a row"},
		{"words and a call", all, times(20, append([]Event{said("Again.")}, called("shell", "make", "no")...)...), loop.EndedRepeats, 18, "6 times in a row"},
		{"two calls in turn", all, times(20, append(called("read", "a", "x"), called("read", "b", "y")...)...), loop.EndedRepeats, 24, ""},
		{"a longer turn than any is looked for", all, times(20, long...), loop.NotEnded, 0, ""},
		{"as often as is allowed", all, times(5, said("x")), loop.NotEnded, 0, ""},
		{"blank words", all, times(20, said(" \n")), loop.NotEnded, 0, ""},
		{"the same call with other results", all, poll(50), loop.NotEnded, 0, ""},
		{"calls whose arguments are not known", all, times(20, Event{Kind: ToolStart, Tool: "edit"}), loop.NotEnded, 0, ""},
		{"something else between", all, append(append(times(5, said("x")), said("y")), times(5, said("x"))...), loop.NotEnded, 0, ""},
		{"off", Guards{}, times(500, said("x"), call, refused(time.Hour)), loop.NotEnded, 0, ""},

		{"calls without anything", all, times(20, call), loop.EndedRequests, 7, "7 model calls in a row brought nothing new"},
		{"calls that bring the same words", Guards{EmptyCalls: 6}, times(20, Event{Kind: UsageSeen, Calls: 1}, said("compacted")), loop.EndedRequests, 15, ""},
		{"calls with an error each", all, times(20, call, Event{Kind: Error, Error: &failure.APIError{Type: "context_length_exceeded", Message: "too long"}}), loop.EndedRequests, 13, "(too long)"},
		{"calls that bring something", all, append(times(5, call), append(poll(1), append(times(5, call), poll(1)...)...)...), loop.NotEnded, 0, ""},

		{"retries by number", all, times(9, refused(0)), loop.EndedRetries, 5, "again 5 times in a row without any change (503 try later)"},
		{"retries by time", Guards{RetryTime: 10 * time.Second}, times(30, refused(0)), loop.EndedRetries, 11, "again for 10s"},
		{"a retry that is far off", all, times(1, refused(3*time.Hour)), loop.EndedRetries, 1, "and waits 3h0m0s for it"},
		{"retries that help", all, times(20, refused(time.Second), refused(time.Second), Event{Kind: Thinking, Text: "hm"}, Event{Kind: ToolStart}), loop.NotEnded, 0, ""},
		{"retries up to the end", all, []Event{refused(0), refused(0), {Kind: End}, refused(0), refused(0), refused(0)}, loop.NotEnded, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			trip, at := tripAt(test.limits, test.events...)
			if trip.Ended != test.want || at != test.at || !strings.Contains(trip.Why, test.why) {
				t.Errorf("trips after %d events: %+v; want %q after %d", at, trip, test.want, test.at)
			}
			if at > 0 && !strings.Contains(trip.Why, "; ") {
				t.Errorf("%q does not say what to do", trip.Why)
			}
			if (trip.Ended == loop.EndedRepeats) == trip.Since.IsZero() {
				t.Errorf("since %v", trip.Since)
			}
		})
	}
}

// Retries go on in silence too, and a run that is forgiven starts anew.
func TestGuardOverTime(t *testing.T) {
	t.Parallel()
	g := NewGuard(Guards{RetryTime: time.Minute, Repeats: 2})
	if _, tripped := g.Expired(guardsAt.Add(time.Hour)); tripped || !g.Deadline().IsZero() {
		t.Error("trips before anything was tried again")
	}
	g.Add(refused(0), guardsAt)
	if due := g.Deadline(); !due.Equal(guardsAt.Add(time.Minute)) {
		t.Errorf("due at %v", due)
	}
	if _, tripped := g.Expired(guardsAt.Add(59 * time.Second)); tripped {
		t.Error("trips too early")
	}
	if trip, tripped := g.Expired(guardsAt.Add(time.Minute)); !tripped || trip.Ended != loop.EndedRetries {
		t.Errorf("after a minute: %+v", trip)
	}
	g.Add(said("It works."), guardsAt)
	if !g.Deadline().IsZero() {
		t.Error("a retry that helped is still counted")
	}
	for range 2 {
		if _, tripped := g.Add(said("x"), guardsAt); tripped {
			t.Error("trips before its limit")
		}
	}
	g.Forgive()
	for range 2 {
		if _, tripped := g.Add(said("x"), guardsAt); tripped {
			t.Error("what was forgiven still counts")
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	g := NewGuard(Guards{Repeats: 30, Retries: 20, RetryTime: time.Minute, EmptyCalls: 30})
	events := append([]Event{said(strings.Repeat("I look at the code. ", 20)), {Kind: UsageSeen, Calls: 1}}, called("shell", "go test ./...", "ok")...)
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range events {
			if _, tripped := g.Add(e, guardsAt); tripped {
				g.Forgive()
			}
		}
	}
}
