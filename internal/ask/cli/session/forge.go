package session

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/action/issues"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
)

// tokens are the variables that have a token, by kind; the first that is set counts.
var tokens = map[string][]string{
	forge.GitHub: {"GH_TOKEN", "GITHUB_TOKEN"}, forge.Gitea: {"GITEA_TOKEN", "FORGEJO_TOKEN"},
}

// OpenRepository opens what a question to the forge needs: the configuration, the
// repository and the branch that work lands on.
func OpenRepository(ctx context.Context, a *command.App) (c *config.Config, repo *git.Repo, target string, err error) {
	if c, err = a.Load(nil); err != nil {
		return nil, nil, "", err
	}
	repo, err = git.OpenStore(ctx, c.Root)
	if errors.Is(err, git.ErrNotRepository) {
		err = command.Usage("there is no forge outside of a git repository").Hint("Create one: git init")
	}
	if err == nil {
		target, err = action.LandingTarget(ctx, c, repo)
	}
	return c, repo, target, err
}

// OpenForge is a client for the forge of the branch that work lands on: as
// configured, and else as the address of its remote says. It asks nothing yet.
func OpenForge(ctx context.Context, a *command.App, c *config.Config, repo *git.Repo, target string,
) (*forge.Client, error) {
	var found forge.Where
	remote, _, err := repo.UpstreamOf(ctx, merge.Ref(target))
	if err != nil {
		return nil, err
	}
	if remote != "" {
		address, err := repo.RemoteURL(ctx, remote)
		if err != nil {
			return nil, err
		}
		found = forge.FromRemote(address)
	}
	w := found
	w.URL = strings.TrimSuffix(cmp.Or(c.Forge.URL, w.URL), "/")
	w.Repository = cmp.Or(c.Forge.Repository, w.Repository)
	if c.Forge.Kind != "auto" {
		w.Kind = c.Forge.Kind
	}
	switch {
	case w.URL == "" || w.Repository == "":
		why := fault.Refuse("no forge is known: pawl does not know the remote of %s", command.BranchName(target))
		example := "forge: {kind: gitea, url: https://git.example.com, repository: acme/shop}"
		return nil, why.Hint("Name it in %s: %s", c.Name(), example)
	case w.Kind == "":
		return nil, fault.Refuse("cannot tell what kind of forge is at %s", w.URL).
			Hint("Set forge.kind to github or gitea (Forgejo too)")
	}
	token, err := forgeTokenOf(a, c, w.Kind)
	if err != nil {
		return nil, err
	}
	return forge.New(w, token), nil
}

// SayRenamed warns where a forge calls the repository by another name than pawl does.
func SayRenamed(a *command.App, w forge.Where, name string) {
	if name != "" && !strings.EqualFold(name, w.Repository) {
		a.Say("Warning: the repository %s is called %s: set forge.repository to that", w.Repository, name)
	}
}

// Issues says which issues of the forge are tasks of the board; ok is false where
// none are to be. A client that is there already is used again.
func Issues(ctx context.Context, a *command.App, c *config.Config, repo *git.Repo, target, stateDir string,
	f *forge.Client) (o issues.Source, ok bool, err error) {
	if c.Forge.Issues.Label == "" {
		return o, false, nil
	}
	if f == nil {
		f, err = OpenForge(ctx, a, c, repo, target)
	}
	shared := c.Merge.Push || c.Merge.Mode == "pull-request"
	return issues.Source{
		Forge: f, Label: c.Forge.Issues.Label, StateDir: stateDir, Target: target, Close: shared,
	}, true, err
}

func forgeTokenOf(a *command.App, c *config.Config, kind string) (string, error) {
	if c.Forge.TokenCommand != "" {
		token, err := a.KeyFrom(c, c.Forge.TokenCommand)
		if err != nil {
			return "", fault.Refuse("forge.token_command: %v", err)
		}
		return token, nil
	}
	for _, name := range tokens[kind] {
		if token := a.Getenv(name); token != "" {
			return token, nil
		}
	}
	return "", fault.Refuse("there is no token for the forge").
		Hint("Set forge.token_command to a command that prints it, such as: pass show forge").
		Hint("Or put it in the variable %s", tokens[kind][0])
}
