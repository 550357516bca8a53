//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/modelserver"
)

// A person's own program works with the board by pawl's tools: it starts 'pawl mcp', is told
// what pawl answers, and the task is on the board.
func TestToolsOfAFrontEnd(t *testing.T) {
	t.Parallel()
	pawl, err := buildPawl()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]struct {
		program
		args func(home, repo string) []string
		tool func(tool string, input map[string]any) modelserver.Tool
	}{
		"claude": {claudeProgram, func(home, _ string) []string {
			file := filepath.Join(home, "mcp.json")
			keep(t, file, fmt.Sprintf(`{"mcpServers":{"pawl":{"command":%q,"args":["mcp"]}}}`, pawl))
			return []string{"-p", "Add a task.", "--mcp-config", file, "--allowedTools", "mcp__pawl__add_case,mcp__pawl__get_inbox"}
		}, func(tool string, input map[string]any) modelserver.Tool {
			return modelserver.Tool{Name: "mcp__pawl__" + tool, Input: input}
		}},
		"codex": {codexProgram, func(_, repo string) []string {
			return []string{"exec", "-c", "mcp_servers.pawl.command=" + strconv.Quote(pawl), "-c", `mcp_servers.pawl.args=["mcp"]`,
				"-m", codexProgram.model, "-C", repo, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Add a task."}
		}, func(tool string, input map[string]any) modelserver.Tool {
			return modelserver.Tool{Name: "mcp__pawl/" + tool, Input: input}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := installed(t, f.name)
			model := serve(t, modelserver.Scenario{Asides: true, Replies: []modelserver.Reply{
				{Text: "I add it.", Tools: []modelserver.Tool{f.tool("add_case", map[string]any{"title": "Parse the header", "acceptance": []string{"tests pass"}})}},
				{Text: "It is task-001."},
			}})
			home, repo := t.TempDir(), t.TempDir()
			env := world(t, model)
			for k, v := range f.setUp(t, home, model.URL()) {
				env = append(env, k+"="+v)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			run := func(path string, args ...string) string {
				c := exec.CommandContext(ctx, path, args...)
				var out, stderr bytes.Buffer
				c.Dir, c.Env, c.Stdout, c.Stderr, c.WaitDelay = repo, env, &out, &stderr, time.Second
				if err := c.Run(); err != nil {
					t.Fatalf("%s %q: %v\n%s\n%s", path, args, err, &out, &stderr)
				}
				return out.String()
			}
			run("git", "init", "-q")
			run(binary, f.args(home, repo)...)
			calls := model.Calls()
			last := calls[len(calls)-1]
			if !strings.Contains(string(last.Body), "task-001") {
				t.Errorf("the model was not told what pawl answered; %d calls, tools %q, the last: %.3000s", len(calls), calls[0].Tools(), last.Body)
			}
			if got := run(pawl, "case", "list", "--json"); !strings.Contains(got, "Parse the header") {
				t.Errorf("the board has no task: %s", got)
			}
		})
	}
}
