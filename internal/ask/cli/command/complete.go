package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is what a shell offers when a person presses Tab: names of the
// configuration, and what is in the database.

// Complete makes commands and flags offer what they take: by the word that stands for it in
// the usage, or by the name of the flag.
func (a *App) Complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.Complete(cmd)
	}
	for _, flags := range []*pflag.FlagSet{root.LocalNonPersistentFlags(), root.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			what, _ := pflag.UnquoteUsage(f)
			if what == "NAME" || what == "WHEN" {
				what = "--" + f.Name
			}
			_ = root.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, _ string) ([]string,
				cobra.ShellCompDirective) {
				return a.completeWord(cmd, what)
			})
		})
	}
	words := strings.Fields(root.Use)
	if len(words) < 2 || root.ValidArgsFunction != nil || len(root.ValidArgs) > 0 {
		return
	}
	what := strings.Trim(words[1], "[].…")
	many := strings.Contains(words[1], "...") || strings.Contains(words[1], "…")
	root.ValidArgsFunction = func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeWord(cmd, what)
	}
}

// completeWord returns the completions of a placeholder in a command's usage line.
func (a *App) completeWord(cmd *cobra.Command, what string) ([]string, cobra.ShellCompDirective) {
	const inOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	switch what {
	case "NAME":
		return a.procedureNames(), cobra.ShellCompDirectiveDefault // or a workflow file
	case "RUN", "NAME|RUN":
		return a.completeRuns(cmd.Context(), cmd.Name()), inOrder
	case "ID", "TASK":
		if cmd.Parent() != nil && cmd.Parent().Name() == "sprint" {
			return a.completeSprints(cmd.Context()), inOrder
		}
		return a.completeCases(cmd.Context()), inOrder
	}
	if strings.Contains(what, "FILE") || what == "DIR" || what == "FOLDER" || what == "PATH" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completionsFor(cmd.Context(), a, what), cobra.ShellCompDirectiveNoFileComp
}

// completionsFor are the values that a word of a usage, or a flag, stands for.
func completionsFor(ctx context.Context, a *App, what string) []string {
	switch what {
	case "KEY":
		return config.Keys()
	case "LEVEL":
		return []string{string(safety.Permissive), string(safety.Normal), string(safety.Paranoid)}
	case "TAG":
		return caseTags(ctx, a)
	case "STATUS":
		return lists.Each(board.Statuses, func(s board.Status) string { return string(s) })
	case "KIND":
		return []string{"task", "controlled"}
	case "MODEL":
		return pricedModels(a)
	case "auto|semi-auto":
		return strings.Split(what, "|")
	case "WHEN":
		return []string{"hourly", "daily 02:00", "weekdays 18:30", "monday 09:00", "every 30 minutes"}
	case "--agent":
		return a.agentNames()
	case "--strategy":
		return a.strategyNames()
	case "--gate":
		return gateNames(a)
	case "--color":
		return []string{"auto", "always", "never"}
	}
	return nil
}

func pricedModels(a *App) []string {
	c, err := a.Peek()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(planner.Prices(c, a.Env)))
}

func gateNames(a *App) []string {
	c, err := a.Peek()
	if err != nil {
		return nil
	}
	return lists.Each(c.Verification.Gates(), func(g config.Gate) string { return g.Name })
}

func (a *App) procedureNames() []string {
	c, err := a.Peek()
	if err != nil {
		return nil
	}
	var list []string
	for _, n := range slices.Sorted(maps.Keys(c.Procedures)) {
		list = append(list, completionWord(n, c.Procedures[n].Summary))
	}
	return list
}

func (a *App) agentNames() []string {
	names := agents.Names()
	if c, err := a.Peek(); err == nil {
		names = append(names, slices.Collect(maps.Keys(c.Agents.Named))...)
	}
	return lists.Distinct(names)
}

func (a *App) strategyNames() []string {
	names := append([]string{"auto", "conservative", "aggressive"}, strategy.Names()...)
	if c, err := a.Peek(); err == nil {
		names = append(names, lists.Each(c.Strategies, func(s config.Strategy) string { return s.Name })...)
	}
	return names
}

// completionWord returns a word to choose, with its description.
func completionWord(word, about string) string {
	if about = report.Line(about, 60); about == "" {
		return word
	}
	return word + "\t" + about
}

// maxOffers bounds what is offered at once.
const maxOffers = 200

// completeRuns returns the runs that a command can do something with, the newest first.
func (a *App) completeRuns(ctx context.Context, verb string) (list []string) {
	a.peekStore(ctx, func(db *store.Store, root string) {
		found, _, _, err := db.RunPage(ctx, store.RunQuery{Root: root}, store.RunMark{}, maxOffers)
		if err != nil {
			return
		}
		var ids []string
		for _, r := range found {
			if !commandApplies(verb, loop.Status(r.Status)) {
				continue
			}
			about := r.Status
			if r.Work != "" {
				about += ": " + r.Work
			}
			isListed := func(o string) bool { return strings.HasPrefix(o, r.Name+"\t") }
			if needsNoQuotes(r.Name) && !slices.ContainsFunc(list, isListed) {
				list = append(list, completionWord(r.Name, "its last run, "+about))
			}
			ids = append(ids, completionWord(r.ID, r.Name+", "+about))
		}
		list = append(list, ids...)
	})
	return list
}

// needsNoQuotes reports whether a shell takes the name as it is.
func needsNoQuotes(name string) bool {
	const signs = "-_.:/"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune(signs, r)
	})
}

// commandApplies reports whether a command has an effect on a run of that status.
func commandApplies(verb string, st loop.Status) bool {
	switch verb {
	case "stop", "pause":
		return st.Active()
	case "answer":
		return slices.Contains([]loop.Status{loop.Pending, loop.Blocked, loop.Aborted, loop.Paused, loop.FailedRun}, st)
	case "resume", "discard":
		return st != loop.Completed
	}
	return true
}

// wordPerRow returns a word for each row that find reads from the database.
func wordPerRow[T any](ctx context.Context, a *App, find func(*store.Store) ([]T, error), word func(T) string,
) (list []string) {
	a.peekStore(ctx, func(db *store.Store, _ string) {
		all, _ := find(db) // without it nothing is offered
		list = lists.Each(all[:min(len(all), maxOffers)], word)
	})
	return list
}

func (a *App) completeCases(ctx context.Context) []string {
	return wordPerRow(ctx, a, func(db *store.Store) ([]board.Case, error) { return db.Cases(ctx, store.CaseFilter{}) },
		func(c board.Case) string { return completionWord(c.ID, string(c.Status)+", "+c.Title) })
}

// caseTags reads the tags of all tasks, each once.
func caseTags(ctx context.Context, a *App) []string {
	all := wordPerRow(ctx, a, func(db *store.Store) ([]board.Case, error) { return db.Cases(ctx, store.CaseFilter{}) },
		func(c board.Case) string { return strings.Join(c.Tags, "\n") })
	tags := strings.Fields(strings.Join(all, "\n"))
	return lists.Distinct(tags)
}

func (a *App) completeSprints(ctx context.Context) []string {
	return wordPerRow(ctx, a, func(db *store.Store) ([]store.Sprint, error) { return db.Sprints(ctx, maxOffers) },
		func(s store.Sprint) string { return s.ID })
}

// peekStore looks into the database, where there is one; it makes none.
func (a *App) peekStore(ctx context.Context, do func(*store.Store, string)) {
	root, err := a.Root()
	if err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(statedir.Of(root, a.Env), "pawl.db")); err != nil {
		return
	}
	db, root, err := a.Store(ctx)
	if err != nil {
		return
	}
	defer func() { _ = db.Close() }()
	do(db, root)
}

// suggestRun names the run that a mistyped name is nearest to.
func (a *App) suggestRun(name string) string {
	var names []string
	for _, o := range a.completeRuns(context.Background(), "show") {
		word, _, _ := strings.Cut(o, "\t")
		names = append(names, word)
	}
	if near := config.Nearest(name, names); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
