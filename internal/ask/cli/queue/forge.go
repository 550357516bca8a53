package queue

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/action/issues"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// ForgeCommand is the parent of what a person asks about the forge.
func ForgeCommand(a *command.App) *cobra.Command {
	check := func(ctx context.Context) error { return checkForge(ctx, a) }
	leaf := command.Plain("check", "Check the connection to the forge, and what the token may do", check)
	return command.Group("forge", "The forge: where issues and pull requests are", check, leaf)
}

// forgeState is what `pawl forge check --json` prints.
type forgeState struct {
	forge.Where
	User string       `json:"user"`
	Can  []forge.Able `json:"can"`
}

func checkForge(ctx context.Context, a *command.App) error {
	c, repo, target, err := session.OpenRepository(ctx, a)
	if err != nil {
		return err
	}
	f, err := session.OpenForge(ctx, a, c, repo, target)
	if err != nil {
		return err
	}
	defer f.Close()
	s := forgeState{Where: f.Where}
	about, err := f.About(ctx)
	if err == nil {
		s.User, err = f.User(ctx)
	}
	if err == nil {
		s.Can, err = f.Abilities(ctx)
	}
	if err != nil {
		return fault.Of(fault.Failed, err).Hint("Asked: %s, repository %s, as %s", f.URL, f.Repository, f.Kind)
	}
	return printForge(a, &s, about.Name)
}

// LookAtForge takes in what has happened at the forge: issues here, pull requests and
// checks by the pawl that works on the queue, if there is one.
func LookAtForge(ctx context.Context, a *command.App, p *action.Operator) error {
	c, repo, target, err := session.OpenRepository(ctx, a)
	if err != nil {
		return err
	}
	row, _, err := p.Store.Queue(ctx, merge.Ref(target))
	if err == nil && storedrun.Alive(row.Owner) {
		look := queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishLook}}
		_, err = p.Store.AskQueue(ctx, store.QueueAsk{Target: merge.Ref(target), Event: look, At: time.Now()})
	}
	if err != nil {
		return err
	}
	source, ok, err := session.Issues(ctx, a, c, repo, target, statedir.Of(c.Root, a.Env), nil)
	if err != nil || !ok {
		return err
	}
	defer source.Forge.Close()
	return issues.Sync(ctx, p, source)
}

func printForge(a *command.App, s *forgeState, name string) error {
	missing := false
	rows := [][]any{{"forge", s.Kind + " at " + s.URL}, {"repository", name}, {"token of", s.User}}
	for _, can := range s.Can {
		row := []any{can.What, "yes"}
		if !can.OK {
			row[1], missing = "no: "+can.Why, true
		}
		rows = append(rows, row)
	}
	if a.JSON {
		if err := a.Document(s); err != nil {
			return err
		}
	} else {
		a.Table("", rows, 0)
	}
	session.SayRenamed(a, s.Where, name)
	if missing {
		return command.StatusError(command.ExitFailed)
	}
	return nil
}
