package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func TestRacers(t *testing.T) {
	t.Parallel()
	both := []string{"claude", "codex"}
	for _, c := range []struct {
		tag      string
		settings []string
		want     []string
	}{
		{"", nil, nil},
		{"", both, both},
		{"docs", both, both},
		{"race:3", nil, []string{"", "", ""}},
		{"race:1", both, []string{""}},
		{"race:-4", both, []string{}},
		{"race:99999999", nil, make([]string, board.MaxRacers)},
		{"race:gemini+codex", both, []string{"gemini", "codex"}},
		{"", strings.Split("a b c d e f g", " "), strings.Split("a b c d e", " ")},
	} {
		if got := Racers([]string{"old", c.tag}, c.settings); !slices.Equal(got, c.want) {
			t.Errorf("%q over %q: %q race, want %q", c.tag, c.settings, got, c.want)
		}
	}
}

func TestRaceTrouble(t *testing.T) {
	t.Parallel()
	const nobody = " starts no race: write race:2 to race:5, or race:claude+codex"
	for tag, want := range map[string]string{
		"docs": "", "race:1": "", "race:0": "", "race:5": "", "race:claude+codex": "", "race:2+3": "",
		"race:6":           `the tag "race:6" asks for too many agents: 5 race, which is the most`,
		"race:a+b+c+d+e+f": `the tag "race:a+b+c+d+e+f" asks for too many agents: 5 race, which is the most`,
		"race:-1":          `the tag "race:-1"` + nobody,
		"race:":            `the tag "race:"` + nobody,
		"race:claude+":     `the tag "race:claude+"` + nobody,
		"race:claude":      `the tag "race:claude"` + nobody + "; for one agent write agent:claude",
	} {
		if got := RaceTrouble([]string{"old", tag}); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}

func TestPicksBest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tag           string
		setting, want bool
	}{
		{"docs", false, false},
		{"docs", true, true},
		{"pick:best", false, true},
		{"pick:first", true, false},
	} {
		if got := PicksBest([]string{"old", c.tag}, c.setting); got != c.want {
			t.Errorf("%q over %v: %v, want %v", c.tag, c.setting, got, c.want)
		}
	}
}

// Each beats those after it, and none beats itself or one before it.
func TestMerit(t *testing.T) {
	t.Parallel()
	order := []Merit{
		{Score: 1000, Files: 1, Lines: 2},
		{Score: 1000, Files: 1, Lines: 9},
		{Score: 1000, Files: 2, Lines: 9},
		{Score: 500, Files: 1, Lines: 1},
		{Score: -1, Files: 1, Lines: 1},
		{Score: 1000}, // nothing was done
		{Score: -1},
	}
	for i, m := range order {
		for j, other := range order {
			if got, want := m.Beats(other), i < j; got != want {
				t.Errorf("%+v beats %+v: %v, want %v", m, other, got, want)
			}
		}
	}
}

// What a racer came to holds after a crash and after a stop, and not after a person had
// the task begin anew.
func TestStands(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.UnixMilli(int64(n)) }
	entry := func(a board.Action, n int) board.Entry {
		return board.Entry{Action: a, From: board.Active, To: board.Pending, At: at(n)}
	}
	for _, c := range []struct {
		name    string
		history []board.Entry
		status  loop.Status
		want    bool
	}{
		{"nothing came between", nil, loop.Completed, true},
		{"a crash", []board.Entry{entry(board.Crash, 20)}, loop.Completed, true},
		{"a stop, and it had failed", []board.Entry{entry(board.Stop, 20)}, loop.FailedRun, true},
		{"it was only stopped", []board.Entry{entry(board.Stop, 20)}, loop.Stopped, false},
		{"a retry before it", []board.Entry{entry(board.Retry, 5), entry(board.Crash, 20)}, loop.Completed, true},
		{"a retry after it", []board.Entry{entry(board.Retry, 15), entry(board.Crash, 20)}, loop.Completed, false},
	} {
		if got := Stands(c.history, loop.State{Status: c.status}, at(10)); got != c.want {
			t.Errorf("%s: it stands is %v, want %v", c.name, got, c.want)
		}
	}
}
