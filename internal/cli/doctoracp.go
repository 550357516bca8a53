package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent/acp"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/report"
)

// acpFound says of each own agent that is to speak the Agent Client Protocol
// whether it does, by asking it.
func (a *app) acpFound(ctx context.Context, c *config.Config) []finding {
	var found []finding
	for name, own := range c.Agents.Named {
		if own.Output == "acp" && len(own.Command) > 0 {
			found = append(found, finding{"agent " + name, a.acpState(ctx, c.Root, own)})
		}
	}
	slices.SortFunc(found, func(x, y finding) int { return strings.Compare(x.What, y.What) })
	return found
}

func (a *app) acpState(ctx context.Context, root string, own config.Agent) string {
	argv := slices.Clone(own.Command)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{model}", own.Model)
	}
	if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(root, argv[0])
	}
	path, err := a.lookPath(argv[0])
	if err != nil {
		return "not installed: " + argv[0] + " is not an executable program here"
	}
	argv[0] = path
	env := slices.Clone(a.env)
	for k, v := range own.Env {
		env = append(env, k+"="+v)
	}
	info, err := acp.Probe(ctx, root, argv, env)
	if err != nil {
		return "does not speak ACP: " + report.Line(err.Error(), 300)
	}
	text := "speaks ACP"
	if info.Name != "" {
		text += ", as " + report.Line(info.Name+" "+info.Version, 80)
	}
	if len(info.Login) > 0 {
		text += "; it offers to log in by " + report.Line(strings.Join(info.Login, ", "), 200)
	}
	return text
}
