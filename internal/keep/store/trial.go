package store

import (
	"context"
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// TrialTable keeps the attempts of trials, and the words that agents write for them. All machines
// of a shared board make them together.
type TrialTable struct{ *DB }

// TrialAttempt is one that was begun.
type TrialAttempt struct {
	Key    string
	Owner  Owner // who makes it; its PID is 0 while it is left, and its Host is where
	Place  string
	Cost   int64           // millionths of a US dollar: of it, or what is kept for it until it is made
	Result json.RawMessage // nil until it is made
}

const trialColumns = `key, owner_pid, owner_start, owner_boot, owner_host, place, cost, result`

var putTrialAttempt = rows.UpsertSQL("trial_attempts", 1, trialColumns)

func trialFields(a *TrialAttempt) []any { return []any{&a.Key, &a.Owner, &a.Place, &a.Cost, &a.Result} }

// TrialAttempts returns all that were begun, by key, without owners that have died. alive is asked about
// processes of this machine only.
func (s TrialTable) TrialAttempts(ctx context.Context, alive func(Owner) bool) (map[string]TrialAttempt, error) {
	all, err := s.listTrialAttempts(ctx, &s.reads, alive)
	return all, s.explainError(ctx, "list the attempts of trials", err)
}

func (s TrialTable) listTrialAttempts(ctx context.Context, from *statements, alive func(Owner) bool,
) (map[string]TrialAttempt, error) {
	list, err := rows.ListAll(ctx, from, trialFields, `SELECT `+trialColumns+` FROM trial_attempts`)
	if err != nil {
		return nil, err
	}
	lives, err := s.aliveOrLeased(ctx, from, alive)
	all := map[string]TrialAttempt{}
	for _, a := range list {
		if a.Owner.PID != 0 && err == nil && !lives(a.Owner) {
			a.Owner.PID = 0
		}
		all[a.Key] = a
	}
	return all, err
}

// TakeTrialAttempt makes a.Owner the one who makes an attempt if choose, which is given all that were begun, says
// that it may be made, and what is kept for it. Of two processes that take one at once, only one gets true.
func (s TrialTable) TakeTrialAttempt(ctx context.Context, a TrialAttempt, alive func(Owner) bool,
	choose func(begun map[string]TrialAttempt) (cost int64, ok bool)) (taken bool, err error) {
	err = s.changeAs(ctx, powerSafe, "begin an attempt", func(ctx context.Context, w *statements) (err error) {
		begun, err := s.listTrialAttempts(ctx, w, alive)
		if err != nil {
			return err
		}
		if a.Cost, taken = choose(begun); !taken {
			return nil
		}
		if err := s.registerLease(ctx, w, a.Owner); err != nil {
			return err
		}
		w.Do(ctx, putTrialAttempt(), a.Key, a.Owner, a.Place, a.Cost, a.Result)
		return nil
	})
	return taken && err == nil, err
}

// LeaveTrialAttempt clears the owner of an attempt that is not made. What is kept for it stays kept.
func (s TrialTable) LeaveTrialAttempt(ctx context.Context, key string) error {
	return s.execOne(ctx, powerSafe, "leave an attempt", `UPDATE trial_attempts SET owner_pid = 0 WHERE key = $1`, key)
}

// EndTrialAttempt stores the result of an attempt, and what it cost.
func (s TrialTable) EndTrialAttempt(ctx context.Context, key string, cost int64, result json.RawMessage) error {
	return s.execOne(ctx, powerSafe, "store an attempt",
		`UPDATE trial_attempts SET owner_pid = 0, cost = $1, result = $2 WHERE key = $3`, cost, result, key)
}
