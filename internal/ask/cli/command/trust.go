package command

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Load reads the configuration with the flags of a run in force. A file that changed
// while an agent had the tree is not believed before a person says so.
func (a *App) Load(flags map[string]string) (*config.Config, error) {
	c, read, err := a.loadConfig(flags)
	if terr := a.askAboutChangedFiles(read); terr != nil {
		return nil, terr
	}
	return c, err
}

// Peek is [App.Load] for who only looks: what an agent may have changed is shown
// like anything else, and no command may be taken from it.
func (a *App) Peek() (*config.Config, error) {
	c, _, err := a.loadConfig(nil)
	return c, err
}

func (a *App) loadConfig(flags map[string]string) (c *config.Config, read []trust.File, err error) {
	c, err = config.Load(config.Options{
		Dir: a.Dir, File: a.File, Over: a.Over, Env: a.Env, Flags: flags,
		Builtin: prompt.Builtin, BuiltinNames: prompt.Builtins(),
		CheckTemplate: prompt.CheckTemplate, Agents: agents.Names(), Strategies: strategy.Names(),
		Pinned: a.pinned, Read: &read,
	})
	if err != nil {
		return nil, read, fault.Of(fault.Refused, err)
	}
	for _, w := range c.Warnings {
		a.Say("Warning: %s", w)
	}
	return c, read, nil
}

// LoadWorkflow is [App.Load] for a workflow file.
func (a *App) LoadWorkflow(name string) (*config.Workflow, error) {
	w, err := config.LoadWorkflow(a.Dir, name, a.pinned...)
	if terr := a.askAboutChangedFiles(w.Files); terr != nil {
		return nil, terr
	}
	if err != nil {
		return nil, fault.Of(fault.Refused, err)
	}
	return w, nil
}

// PinTo lets a run go on with the files that it began with, where they changed while
// its agents had the tree. With --trust-config they are taken as they are.
func (a *App) PinTo(root, run string) {
	a.pinned = nil
	if a.TrustConfig {
		return
	}
	a.pinned = trust.Kept(statedir.Of(root, a.Env), run)
	for _, f := range a.pinned {
		if trust.Read(root, f.Path) != f {
			a.Say("Note: %s changed under an agent; the run uses the version from before.", shortPath(root, f.Path))
			a.Say("  To use the changed version: pawl resume %s --trust-config", run)
		}
	}
}

// LoadFrom loads an app's configuration from files as they are given, and not as they lie there.
func LoadFrom(a App, list []trust.File, flags map[string]string) (*config.Config, error) {
	a.pinned = list
	c, _, err := a.loadConfig(flags)
	return c, err
}

// askAboutChangedFiles asks about files that changed while an agent had the tree.
func (a *App) askAboutChangedFiles(read []trust.File) error {
	root, err := statedir.FindRoot(a.Dir)
	if err != nil || len(read) == 0 {
		return err
	}
	if err := a.refuseWorkspace(root); err != nil {
		return err
	}
	// Records of a root further up count too: an agent may have made this one.
	var dirs []string
	for at := root; ; at = filepath.Dir(at) {
		dirs = append(dirs, statedir.Of(at, a.Env))
		if at == filepath.Dir(at) {
			break
		}
	}
	changed, err := trust.Changed(dirs, read)
	if err != nil { // most often the state cannot be read, and that says whose it is
		return cmp.Or(statedir.Make(root, a.Env), err)
	}
	if len(changed) == 0 {
		return nil
	}
	var names []string
	var now []trust.File
	for _, c := range changed {
		if slices.Contains(now, c.Now) {
			continue // of several runs
		}
		now = append(now, c.Now)
		names = append(names, shortPath(root, c.Now.Path))
		a.Say("%s changed under an agent (run %s of %s):", shortPath(root, c.Now.Path), c.Run, report.Line(c.Name, 80))
		for _, line := range changedLines(c.Was, c.Now) {
			a.Say("  %s", line)
		}
	}
	isTrusted := a.TrustConfig
	if !isTrusted && a.Interactive() {
		isTrusted = IsYes(a.Ask("Use commands from the changed version? [y/N] "))
	}
	if !isTrusted {
		return Usage("cannot use commands from %s: changed while an agent could write", strings.Join(names, ", ")).
			Hint("Restore it, or accept the change: --trust-config")
	}
	return trust.Accept(dirs, now)
}

// refuseWorkspace refuses to take commands from the folder of a workspace, which is an agent's
// to write for as long as it is there. Agents and gates, who are in one, may.
func (a *App) refuseWorkspace(root string) error {
	base, err := filepath.EvalSymlinks(statedir.Base(a.Env))
	if err != nil || a.TrustConfig || a.Getenv("PAWL_RUN") != "" {
		return nil //nolint:nilerr // without the folder there is no workspace
	}
	if _, below := files.Below(base, root); !below {
		return nil
	}
	return Usage("cannot use commands from the files in %s: agents can write there", report.Line(root, 200)).
		Hint("Start pawl in your own repository, or accept these files: --trust-config")
}

// shortPath returns a path as seen from the root, if it lies there.
func shortPath(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return report.Line(path, 200)
}

// maxDifference bounds the lines that are shown of a change.
const maxDifference = 60

// changedLines drops the common beginning and the common end of two texts, and returns
// the lines between, marked as removed or added.
func changedLines(was, now trust.File) []string {
	before, after := linesOfFile(was), linesOfFile(now)
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	var out []string
	for _, part := range []struct {
		sign  string
		lines []string
	}{{"-", before}, {"+", after}} {
		for i, line := range part.lines {
			if i == maxDifference {
				out = append(out, fmt.Sprintf("%s… %d more lines", part.sign, len(part.lines)-i))
				break
			}
			indent := len(line) - len(strings.TrimLeft(line, " "))
			out = append(out, part.sign+strings.Repeat(" ", min(indent, 40))+report.Line(line, 200))
		}
	}
	return out
}

// linesOfFile is the text of a file, or why it has none.
func linesOfFile(f trust.File) []string {
	switch {
	case f.Why != "":
		return []string{"(" + f.Why + ")"}
	case f.Text == "":
		return nil
	}
	return strings.Split(strings.TrimSuffix(f.Text, "\n"), "\n")
}
