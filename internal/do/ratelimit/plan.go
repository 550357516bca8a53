package ratelimit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Plan of a subscription, as a program reports it. It is stored: names must not change.
type Plan struct {
	Agent   string        `json:"agent"`
	Windows []loop.Window `json:"windows"`
	Seen    time.Time     `json:"seen"`
}

const planEnd = ".plan.json"

// SavePlan keeps what an agent's program said of the plan of its account.
func (s *Store) SavePlan(key, agent string, windows []loop.Window, now time.Time) error {
	p := Plan{Agent: agent, Windows: loop.Known(windows, now), Seen: now}
	if s == nil || key == "" || len(p.Windows) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep what is used of a plan: %v", err)
	}
	return files.ReplaceJSON(filepath.Join(s.dir, key+planEnd), p, false)
}

// planOf reads the plan of an account; one without windows is not known.
func (s *Store) planOf(key string, now time.Time) (p Plan) {
	if s == nil || key == "" || files.ReadJSON(filepath.Join(s.dir, key+planEnd), &p) != nil {
		return Plan{}
	}
	p.Windows = loop.Known(p.Windows, now)
	return p
}

// Plans of some accounts in words, nil for all of the user, and how much of the fullest is used, in per cent.
func (s *Store) Plans(keys []string, now time.Time) (said []string, most int) {
	if keys == nil && s != nil {
		names, _ := filepath.Glob(filepath.Join(s.dir, "*"+planEnd)) // the pattern is good
		keys = lists.Each(names, func(name string) string { return strings.TrimSuffix(filepath.Base(name), planEnd) })
	}
	for _, key := range keys {
		if p := s.planOf(key, now); len(p.Windows) > 0 {
			said, most = append(said, p.String()), max(most, loop.Fullest(p.Windows).Used)
		}
	}
	slices.Sort(said)
	return slices.Compact(said), most
}

// String is for people.
func (p Plan) String() string {
	return "plan of " + p.Agent + ": " + strings.Join(lists.Each(p.Windows, loop.Window.String), "; ")
}

// limitPlan makes a limit of limits.plan, where it is reached.
func (s *Store) limitPlan(key string, now time.Time) (Limit, bool) {
	if s == nil || s.Plan == 0 {
		return Limit{}, false
	}
	p := s.planOf(key, now)
	w := loop.Fullest(p.Windows)
	return Limit{
		Class: failure.QuotaExhausted, Met: p.Seen, Until: w.Resets, Named: true, Times: 1,
		Why: fmt.Sprintf("%d %% of the plan of %s are used, and limits.plan is %d %%", w.Used, p.Agent, s.Plan),
	}, w.Used >= s.Plan
}
