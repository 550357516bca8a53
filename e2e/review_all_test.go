//go:build e2e && e2e_all

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// reviewers are the programs that review Claude Code's work.
var reviewers = []program{codexProgram, geminiProgram}

// One program writes, another one reviews: the first review rejects, the second
// approves. The reviewer tries to write as well, and cannot.
func TestAnotherProgramReviews(t *testing.T) {
	t.Parallel()
	for _, by := range reviewers {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			critic := &script{asked: make(chan struct{}, 1000)}
			u, author := reviewScene(t, claudeProgram, by, critic)
			author.set(append(u.writes("done.txt"), u.writes("second.txt")...)...)
			spoilt := filepath.Join(u.repo, "done.txt")
			critic.set(
				modelserver.Reply{Text: "I look.", Tools: []modelserver.Tool{by.shell("cat done.txt")}},
				modelserver.Reply{Text: "- [high] done.txt:1: it says x\n\n<promise>REJECT: write a second file, too</promise>"},
				modelserver.Reply{Text: "I improve it.", Tools: []modelserver.Tool{by.write(spoilt, "spoilt\n")}},
				modelserver.Reply{Text: "Both are there.\n\n<promise>APPROVE</promise>"},
				// Asked once more only if it could write.
				modelserver.Reply{Text: "<promise>APPROVE</promise>"},
			)
			r, s := u.run(nil)
			if r.code != 0 || s.Status != "completed" || len(s.Iterations) != 2 || !strings.Contains(s.Why, by.name+" approves") {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			first, second := s.Iterations[0].Review, s.Iterations[1].Review
			if first == nil || first.Verdict != "rejected" || first.Reviewer != by.name || first.TokensIn != 200 || len(first.Items) != 1 || first.Items[0].File != "done.txt" {
				t.Errorf("the first review is %+v", first)
			}
			if second == nil || second.Verdict != "approved" || second.Reviewer != by.name {
				t.Errorf("the second review is %+v", second)
			}
			if got, err := os.ReadFile(spoilt); err != nil || string(got) != "x\n" {
				t.Errorf("the reviewed file is %q, %v", got, err)
			}
		})
	}
}

// reviewScene is a user whose author is p, and whose reviewer talks to a model
// of its own.
func reviewScene(t *testing.T, p, by program, critic *script) (*user, *script) {
	t.Helper()
	server := serve(t, modelserver.Scenario{Decide: critic.decide, Asides: true})
	env, err := json.Marshal(by.setUp(t, t.TempDir(), server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("review: {mode: agent, agent: %s}\n", by.name)
	u, author := scene(t, p, more)
	file := filepath.Join(u.repo, "pawl.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	added := fmt.Sprintf("agents:\n  %s: {command: [%q], model: %q, env: %s}\n", by.name, installed(t, by.name), by.model, env)
	keep(t, file, strings.Replace(string(text), "agents:\n", added, 1))
	u.git("add", "pawl.yaml")
	u.git("-c", "user.name=A Person", "-c", "user.email=person@example.com", "commit", "-q", "-m", "review")
	return u, author
}
