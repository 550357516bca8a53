package check

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/files"
)

// skillText is the skill as it is installed.
//
//go:embed skill/SKILL.md
var skillText []byte

// skillName is the folder that the skill is in; its text says the same name.
const skillName = "iteration-control"

// skillFolders are where agents look for a project's skills, by the agents'
// names. Several read the shared .agents/skills, and some Claude Code's.
var skillFolders = []struct {
	agent, folder string
}{
	{"claude", ".claude/skills"},
	{"codex", ".agents/skills"},
	{"opencode", ".opencode/skills"},
	{"gemini", ".gemini/skills"},
	{"cursor", ".cursor/skills"},
	{"copilot", ".github/skills"},
	{"amp", ".agents/skills"},
}

func skillCommand(a *command.App) *cobra.Command {
	var agent, dir string
	var show, force bool
	install := command.Leaf("install", "Write the skill where an agent looks for it", command.AtMost(0),
		func(context.Context, []string) error {
			switch {
			case show:
				a.Result("%s", skillText)
				return nil
			case agent != "" && dir != "":
				return command.Usage("--agent and --dir exclude each other")
			}
			return installSkill(a, agent, dir, force)
		})
	command.TextOnly(install)
	install.Long = "Write the skill into the project: " + skillPath(".claude/skills") + " by default.\n" +
		"A file that was changed is not overwritten without --force.\n\n" + skillTable()
	install.Example = "  pawl skill install\n  pawl skill install --agent codex\n" +
		"  pawl skill install --dir ~/.claude/skills\n  pawl skill install --print"
	f := install.Flags()
	f.StringVar(&agent, "agent", "", "write it where the agent `NAME` looks")
	f.StringVar(&dir, "dir", "", "write it into the folder of skills `DIR`")
	f.BoolVar(&show, "print", false, "print the skill and write nothing")
	f.BoolVar(&force, "force", false, "overwrite a file that was changed")
	return command.Group("skill", "Teach an agent to call pawl check", nil, install)
}

func skillPath(folder string) string { return folder + "/" + skillName + "/SKILL.md" }

// skillTable lists where each agent looks.
func skillTable() string {
	var b strings.Builder
	b.WriteString("Where agents look:\n")
	for _, s := range skillFolders {
		fmt.Fprintf(&b, "  %-10s %s\n", s.agent, s.folder)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// installSkill writes the skill file of a project, or of the folder dir.
func installSkill(a *command.App, agent, dir string, force bool) error {
	folder := a.InDir(dir)
	if dir == "" {
		root, err := config.FindRoot(a.Dir)
		if err != nil {
			return fault.Of(fault.Refused, err)
		}
		below, err := skillFolder(agent)
		if err != nil {
			return err
		}
		folder = filepath.Join(root, filepath.FromSlash(below))
	}
	path := filepath.Join(folder, skillName, "SKILL.md")
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, skillText):
		a.Result("%s is up to date\n", path)
		return nil
	case err == nil && !force:
		return command.Usage("%s is another text than this pawl's, and is not overwritten", path).
			Hint("See what would be written: pawl skill install --print").
			Hint("Overwrite it:              pawl skill install --force")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read the skill that is there: %v", err)
	}
	if err := writeSkill(path, force); err != nil {
		return fmt.Errorf("cannot write the skill: %v", err)
	}
	a.Result("Wrote %s\n", path)
	a.Say("The agent finds it when it starts next. Try it: ask it \"should I retry or escalate?\"")
	return nil
}

func skillFolder(agent string) (string, error) {
	var names []string
	for _, s := range skillFolders {
		if s.agent == cmp.Or(agent, "claude") {
			return s.folder, nil
		}
		names = append(names, s.agent)
	}
	slices.Sort(names)
	return "", command.Usage("it is not known where agent %q looks for skills", agent).
		Hint("Known: %s", strings.Join(names, ", ")).Hint("Name the folder: pawl skill install --dir DIR")
}

// writeSkill writes the file whole or not at all. Without force one that
// appeared meanwhile stays.
func writeSkill(path string, force bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if force {
		return files.Replace(path, skillText, 0o644, false)
	}
	return config.WriteNew(path, skillText)
}
