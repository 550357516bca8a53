package web

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// On a board with workers a task whose labels none of them has is in the inbox.
func TestTheInboxHasWhatNoWorkerMayWorkOn(t *testing.T) {
	t.Parallel()
	address := pgtest.Start(t).New(t)
	db, err := store.OpenShared(t.Context(), store.Shared{Address: address, Repository: "acme/shop", Place: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	drafts := []board.Draft{
		{Case: board.Case{Title: "any"}},
		{Case: board.Case{Title: "big", Tags: []string{"needs:gpu", "needs:arm"}}},
	}
	if _, err := db.AddCases(t.Context(), drafts, board.Person, noon); err != nil {
		t.Fatal(err)
	}
	s := placeHandlers{&core{o: Options{Operator: action.New(action.Options{Store: db})}}}
	inbox := func(want ...string) {
		t.Helper()
		needs, err := s.listNeeds(t.Context())
		got := []string{}
		for _, n := range needs {
			got = append(got, n.Title+": "+n.Why)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("the inbox has %q (%v)", got, err)
		}
	}
	inbox()
	for _, labels := range [][]string{{"gpu"}, {"arm", "gpu"}} {
		if err := db.SaveWorker(t.Context(), store.Worker{Name: "w", Labels: labels}); err != nil {
			t.Fatal(err)
		}
		if len(labels) == 1 {
			inbox("task-002: big: there is no worker with arm, gpu")
		} else {
			inbox()
		}
	}
}
