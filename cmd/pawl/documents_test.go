package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a fenced block of README.md or docs/ is, its language says:
//
//	sh      commands; they are run, in the order of the page, in a repository
//	        made of testdata/docs, and have to succeed
//	yaml    a configuration or a workflow; pawl has to accept it
//	others  an illustration: nothing runs, but each pawl command in it has to
//	        exist, with its flags
//
// A block without a language is refused.

// block is one fenced block of a page.
type block struct {
	page, language, text string
	line                 int
}

var fence = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)```$")

// pages returns the fenced blocks of README.md and docs/*.md by page.
func pages(t *testing.T) map[string][]block {
	t.Helper()
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]block{}
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := filepath.Base(file)
		for _, at := range fence.FindAllSubmatchIndex(text, -1) {
			found[page] = append(found[page], block{
				page: page, language: string(text[at[4]:at[5]]), text: string(text[at[6]:at[7]]),
				line: 1 + strings.Count(string(text[:at[0]]), "\n"),
			})
		}
	}
	return found
}

func TestDocuments(t *testing.T) {
	for page, blocks := range pages(t) {
		t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := documentEnv(t, dir)
			var script strings.Builder
			for _, b := range blocks {
				switch b.language {
				case "":
					t.Errorf("%s:%d: say what this block is: sh, yaml, text …", b.page, b.line)
				case "sh":
					fmt.Fprintf(&script, "# line %d\n%s", b.line, b.text)
				case "yaml":
					acceptable(t, env, b)
				default:
					commandsExist(t, env, b)
				}
			}
			if script.Len() > 0 && page != "CONTRIBUTING.md" {
				runDocument(t, dir, env, page, script.String())
			}
		})
	}
}

// documentEnv is the environment of somebody who reads the documents: a home of
// their own, and the scripted agent as the agent of all procedures and tasks.
func documentEnv(t *testing.T, dir string) []string {
	t.Helper()
	vars, err := ownHome(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	agent, err := filepath.Abs(filepath.Join("..", "..", "testdata", "docs", "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(vars["XDG_CONFIG_HOME"], "pawl", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("agents: {script: {command: ["+agent+"]}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return append(env, "PAWL_AGENT=script")
}

// runDocument runs the commands of a page in a repository made of testdata/docs.
func runDocument(t *testing.T, dir string, env []string, page, script string) {
	t.Helper()
	repo := filepath.Join(dir, "work", strings.TrimSuffix(page, ".md"))
	if err := os.CopyFS(repo, os.DirFS(filepath.Join("..", "..", "testdata", "docs", "repository"))); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(script, "pawl init") {
		if err := os.Remove(filepath.Join(repo, "pawl.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(repo, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pawl, filepath.Join(repo, "bin", "pawl")); err != nil {
		t.Fatal(err)
	}
	script = "git init -q -b main . && git add -A && git commit -q -m 'as it begins'\n" + script
	if out, err := shell(t.Context(), repo, env, script); err != nil {
		t.Errorf("%s: a command of the page fails: %v\n%s", page, err, out)
	}
}

func shell(ctx context.Context, dir string, env []string, script string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "sh", "-eux", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	return cmd.CombinedOutput()
}

// acceptable checks that pawl takes the block as a workflow, if it has steps,
// or as a configuration. Input of 'pawl check' is run by its own page.
func acceptable(t *testing.T, env []string, b block) {
	t.Helper()
	dir := t.TempDir()
	name, args := "pawl.yaml", []string{"config"}
	switch {
	case strings.Contains(b.text, "\niteration_check:") || strings.HasPrefix(b.text, "iteration_check:"):
		return
	case regexp.MustCompile(`(?m)^steps:`).MatchString(b.text):
		name, args = "workflow.yaml", []string{"run", "workflow.yaml", "--dry-run"}
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, fragment := range []string{"PLAN.md", "prompts/review.md"} { // that examples name
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(fragment)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fragment), []byte("What to do.\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "pawl", args...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: pawl refuses this example: %v\n%s", b.page, b.line, err, out)
	}
}

var (
	// command is a line that starts pawl, after a prompt and variables.
	command = regexp.MustCompile(`^ *(?:\$ )?(?:[A-Z_]+=\S+ )*pawl ([a-z].*)$`)
	// remark is what follows a command in the same line.
	remark = regexp.MustCompile(`\s{2,}.*$|\s+#.*$`)
	option = regexp.MustCompile(`^(--?[a-z][a-z-]*)`)
	quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// commandsExist checks the command and the flags of each line that starts pawl.
func commandsExist(t *testing.T, env []string, b block) {
	t.Helper()
	for n, line := range strings.Split(b.text, "\n") {
		found := command.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text := quoted.ReplaceAllString(remark.ReplaceAllString(found[1], ""), "X")
		text, _, _ = strings.Cut(text, " && ")
		text, _, _ = strings.Cut(text, " | ")
		words := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(text))
		var path, flags []string
		for _, word := range words {
			switch {
			case strings.HasPrefix(word, "-"):
				flags = append(flags, option.FindString(word))
			case len(flags) == 0 && len(path) < 2 && word == strings.ToLower(word) && !strings.ContainsAny(word, "./0123456789"):
				path = append(path, strings.Split(word, "|")[0])
			}
		}
		cmd := exec.CommandContext(t.Context(), "pawl", append(slices.Clone(path), "--help")...)
		cmd.Env = env
		help, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d: there is no such command: %s\n%s", b.page, b.line+1+n, line, help)
			continue
		}
		for _, flag := range flags {
			if !regexp.MustCompile(`(?m)(^|[ ,])` + regexp.QuoteMeta(flag) + `([ ,=]|$)`).Match(help) {
				t.Errorf("%s:%d: pawl %s has no flag %s", b.page, b.line+1+n, strings.Join(path, " "), flag)
			}
		}
	}
}
