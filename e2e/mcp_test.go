//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
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

// The agent of a run has pawl's tools for its own task, in the box: it reads the task, asks and is
// answered, proposes another task, and claims to be complete. It finds nothing else there.
func TestToolsOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, p := range []program{claudeProgram, codexProgram} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p, "autopilot: {max_parallel: 1, on_red_target: work}\nreview: {mode: skip}\n")
			file := filepath.Join(u.repo, "pawl.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			keep(t, file, strings.Replace(string(text), "{command: [", "{mcp: true, command: [", 1))
			u.git("-c", "user.name=A Person", "-c", "user.email=person@example.com", "commit", "-qam", "tools")
			tool := func(name string, input map[string]any) modelserver.Reply {
				of := modelserver.Tool{Name: "mcp__pawl__" + name, Input: input}
				if p.name == "codex" {
					of.Name = "mcp__pawl/" + name
				}
				return modelserver.Reply{Text: "I call it.", Tools: []modelserver.Tool{of}}
			}
			words := func(s string) map[string]any { return map[string]any{"text": s} }
			model.set(tool("get_task", map[string]any{}), tool("list_cases", map[string]any{}),
				tool("ask", words("In which language?")), modelserver.Reply{Text: "I wait."})
			if r := u.do(nil, "case", "add", "Greet everybody", "--acceptance", "done.txt is there"); r.code != 0 {
				t.Fatal(r.stderr)
			}
			r := u.do(nil, "autopilot")
			if shown := u.do(nil, "case", "show", "1"); !strings.Contains(shown.stdout, "In which language?") {
				t.Fatalf("it did not ask: %s\n%s", shown.stdout, r.stderr)
			}
			calls := u.model.Calls()
			if last := string(calls[len(calls)-1].Body); !strings.Contains(last, "Greet everybody") || !strings.Contains(last, "done.txt is there") {
				t.Errorf("the agent does not know its task: %.3000s", last)
			}
			for _, name := range calls[0].Tools() {
				if strings.Contains(name, "list_cases") || strings.Contains(name, "answer_run") {
					t.Errorf("the agent has the tool %s", name)
				}
			}
			model.set(append(make([]modelserver.Reply, len(calls)), modelserver.Reply{Text: "I write it.", Tools: []modelserver.Tool{p.shell("echo x > done.txt && git add -A && git -c user.name=a -c user.email=a@b commit -qm work")}},
				tool("add_follow_up_task", map[string]any{"title": "Greet in more languages"}),
				tool("complete", words("It greets.")), modelserver.Reply{Text: "Done."})...)
			if r := u.do(nil, "answer", "task-001", "In French."); r.code != 0 {
				t.Fatal(r.stderr)
			}
			r = u.do(nil, "autopilot")
			list, shown := u.do(nil, "case", "list"), u.do(nil, "case", "show", "1")
			if !strings.Contains(shown.stdout, "done") || !strings.Contains(list.stdout, "Greet in more languages") {
				t.Errorf("the task: %s\nthe board: %s\n%s", shown.stdout, list.stdout, r.stderr)
			}
			u.git("cat-file", "-e", "main:done.txt")
		})
	}
}
