package store

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// Learned is what was learned of one strategy for one class of failure.
type Learned struct {
	strategy.Tally
	// Successes and Failures are all that were ever counted.
	Successes, Failures int
	UsedAt              time.Time
}

// Accuracy is how often a chosen strategy helped, and of how many uses.
func Accuracy(list []Learned) (right, uses int) {
	for _, l := range list {
		right, uses = right+l.Successes, uses+l.Successes+l.Failures
	}
	return right, uses
}

// StrategyStat is how often a strategy helped against a class of failure.
type StrategyStat struct {
	Class     string    `json:"class"`
	Strategy  string    `json:"strategy"`
	Successes int       `json:"successes"`
	Failures  int       `json:"failures"`
	Rate      *float64  `json:"rate" nullable:"true" doc:"What counts for a choice today, 0 to 1: older uses have faded; null when nothing is left of them."`
	LastUsed  time.Time `json:"last_used"`
}

// Stat is what programs read of it.
func (l Learned) Stat(now time.Time) StrategyStat {
	one := StrategyStat{Class: string(l.Class), Strategy: l.Strategy, Successes: l.Successes, Failures: l.Failures,
		LastUsed: l.UsedAt}
	if left := strategy.Faded([]strategy.Tally{l.Tally}, strategy.Day(now)); len(left) == 1 {
		rate := float64(left[0].Rate()) / 1000
		one.Rate = &rate
	}
	return one
}

// maxLearned bounds what is read: classes times strategies is far below it.
const maxLearned = 10_000

// Learned returns what the runs of this repository learned, by class and
// strategy. The tallies are as they were stored; [strategy.Faded] makes them
// those of today.
func (s *Store) Learned(ctx context.Context) ([]Learned, error) {
	all, err := learned(ctx, &s.reads, `SELECT `+learnedColumns+` FROM learned ORDER BY class, strategy LIMIT $1`,
		maxLearned)
	return all, s.explain(ctx, "read what was learned of strategies", err)
}

const learnedColumns = `class, strategy, wins, losses, day, successes, failures, used_at`

func learned(ctx context.Context, w *statements, query string, args ...any) ([]Learned, error) {
	return list(ctx, w, func(l *Learned) []any {
		return []any{&l.Class, &l.Strategy, &l.Wins, &l.Losses, &l.Day, &l.Successes, &l.Failures, when(&l.UsedAt)}
	}, query, args...)
}

// learn adds credits to what is stored, by the same arithmetic as the run that
// earned them; runs at the same time add to each other.
func learn(ctx context.Context, w *statements, credits []strategy.Credit, when time.Time) error {
	for _, c := range credits {
		if err := learnOne(ctx, w, c, when); err != nil {
			return err
		}
	}
	return nil
}

func learnOne(ctx context.Context, w *statements, c strategy.Credit, when time.Time) error {
	rows, err := learned(ctx, w, `SELECT `+learnedColumns+` FROM learned WHERE class = $1`, string(c.Class))
	if err != nil {
		return err
	}
	tallies := lists.Each(rows, func(one Learned) strategy.Tally { return one.Tally })
	for _, t := range strategy.Learn(tallies, c, strategy.Day(when)) {
		if err := putTally(ctx, w, t); err != nil {
			return err
		}
	}
	success, failed := 0, 1
	if c.Success {
		success, failed = 1, 0
	}
	_, err = w.exec(ctx, `UPDATE learned SET successes = successes + $1, failures = failures + $2,
		used_at = CASE WHEN used_at > $3 THEN used_at ELSE $3 END
		WHERE class = $4 AND strategy = $5`, success, failed, ms(when), string(c.Class), c.Strategy)
	return err
}

func putTally(ctx context.Context, w *statements, t strategy.Tally) error {
	_, err := w.exec(ctx, `INSERT INTO learned (class, strategy, wins, losses, day, successes, failures, used_at)
		VALUES ($1, $2, $3, $4, $5, 0, 0, 0)
		ON CONFLICT (class, strategy) DO UPDATE SET wins = excluded.wins, losses = excluded.losses, day = excluded.day`,
		string(t.Class), t.Strategy, t.Wins, t.Losses, t.Day)
	return err
}
