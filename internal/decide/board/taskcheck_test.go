package board

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadTaskCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" make test ":            `{"command":"make test"}`,
		"{ true; }":              `{"command":"{ true; }"}`,
		`{"command": "x`:         `unexpected end of JSON`,
		`{"command":"x"}`:        `{"command":"x"}`,
		`{"comand":"x"}`:         `a check has no key "comand"`,
		`{"command":"x","a":1}`:  `a check has no key "a"`,
		`{"name":"n","files":1}`: `cannot unmarshal number`,
	} {
		c, err := ReadTaskCheck(text)
		got, _ := json.Marshal(c)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestFaultsOfChecks(t *testing.T) {
	t.Parallel()
	file := func(name, text string) TaskCheck {
		return TaskCheck{Command: "true", Files: map[string]string{name: text}}
	}
	for want, c := range map[string]TaskCheck{
		"":                               file("test/accept.sh", "true"),
		"has no command":                 {},
		"a command of more than":         {Command: strings.Repeat("x", maxCommand+1)},
		`cannot have a file "/etc/x"`:    file("/etc/x", ""),
		`cannot have a file "a/../../x"`: file("a/../../x", ""),
		`cannot have a file ".git/hook"`: file(".git/hook", ""),
		`cannot have a file "a/pawl.yam`: file("a/pawl.yaml", ""),
		"files of":                       file("x", strings.Repeat("x", maxCheckFiles)),
	} {
		got := strings.Join(Check(Tidy(Case{Type: Task, Title: "t", Checks: Checks{Verify: []TaskCheck{c}}})), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	two := []TaskCheck{{Command: "true"}, {Command: "true"}}
	if got := faultsOfChecks("verify", two); len(got) != 1 || !strings.Contains(got[0], "is repeated") {
		t.Errorf("%q", got)
	}
}

// A block of an issue is a check; quotes and other blocks are not.
func TestChecksOfAnIssue(t *testing.T) {
	t.Parallel()
	body := "Do it.\n```pawl-verify\ngo test ./x\n```\n> ```pawl-verify\n> rm\n> ```\n```sh\nno\n```\n```pawl-verify\na &&\nb\n```\n"
	i := Issue{Number: 1, URL: "https://forge/1", Title: "T", Body: body}
	c := i.Case()
	if len(c.Verify) != 2 || c.Verify[0].Command != "go test ./x" || c.Verify[1].Command != "a &&\nb" {
		t.Errorf("%+v", c.Verify)
	}
	if !c.Verify[0].OfIssue() || len(Check(c)) > 0 {
		t.Errorf("%+v: %q", c.Verify, Check(c))
	}
}
