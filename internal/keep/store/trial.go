package store

import (
	"context"
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// TrialTable keeps the attempts of trials, and the words that agents write for them.
type TrialTable struct{ *DB }

// TrialAttempt is one that was begun.
type TrialAttempt struct {
	Key    string
	Cost   int64           // millionths of a US dollar: of it, or what is kept for it until it is made
	Result json.RawMessage // nil until it is made
}

// Owner and place are from when several machines made the attempts of one trial; they are empty now.
var putTrialAttempt = rows.UpsertSQL("trial_attempts", 1,
	`key, cost, result, owner_pid, owner_start, owner_boot, owner_host, place`)

func trialFields(a *TrialAttempt) []any { return []any{&a.Key, &a.Cost, &a.Result} }

// TrialAttempts returns all that were begun, by key.
func (s TrialTable) TrialAttempts(ctx context.Context) (map[string]TrialAttempt, error) {
	list, err := rows.ListAll(ctx, &s.reads, trialFields, `SELECT key, cost, result FROM trial_attempts`)
	all := map[string]TrialAttempt{}
	for _, a := range list {
		all[a.Key] = a
	}
	return all, s.explainError(ctx, "list the attempts of trials", err)
}

// PutTrialAttempt stores an attempt that begins, or that was made, in place of what is known of it.
func (s TrialTable) PutTrialAttempt(ctx context.Context, a TrialAttempt) error {
	return s.changeAs(ctx, powerSafe, "store an attempt", func(ctx context.Context, w *statements) error {
		w.Do(ctx, putTrialAttempt(), a.Key, a.Cost, a.Result, Owner{}, "")
		return nil
	})
}
