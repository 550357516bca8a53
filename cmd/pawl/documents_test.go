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
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

// What a fenced block of README.md or docs/ is, its language says:
//
//	sh      commands; they are run, in the order of the page, in a repository
//	        made of testdata/docs, and have to succeed
//	yaml    a configuration or a workflow; pawl has to accept it
//	mcp     calls of tools, each a line of name and arguments; they are made
//	others  an illustration: nothing runs, but each pawl command in it has to
//	        exist, with its flags
//
// A page of docs/tutorial begins in an empty folder, with an agent of its own in
// testdata/docs/tutorial, and a GitHub if it says gh. A text block there is what one sees: see [seen].
//
// A block without a language is refused.

// block is one fenced block of a page.
type block struct {
	page, language, text string
	line                 int
}

var fence = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)```$")

// tutorial is how the names of its pages begin.
const tutorial = "docs/tutorial/"

// pages returns the fenced blocks of README.md, docs/*.md and the tutorial by page.
func pages(t *testing.T) map[string][]block {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []string
	for _, pattern := range []string{"docs/*.md", "docs/guide/*.md", tutorial + "*.md", "README.md", "CONTRIBUTING.md"} {
		list, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	found := map[string][]block{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
	for page, blocks := range pages(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := documentEnv(t, dir, name)
			var script strings.Builder
			for _, b := range blocks {
				switch b.language {
				case "":
					t.Errorf("%s:%d: say what this block is: sh, yaml, text …", b.page, b.line)
				case "sh":
					fmt.Fprintf(&script, "# line %d\n%s", b.line, b.text)
				case "mcp":
					script.WriteString(callsOf(b.text))
				case "yaml":
					acceptable(t, env, b)
				default:
					commandsExist(t, env, b)
				}
			}
			switch {
			case script.Len() == 0 || page == "CONTRIBUTING.md":
			case strings.HasPrefix(page, tutorial):
				runTutorial(t, dir, env, blocks, script.String())
			default:
				runDocument(t, dir, env, page, script.String())
			}
		})
	}
}

// documentEnv is the environment of somebody who reads the documents: a home of
// their own, and the scripted agent as the agent of all procedures and tasks.
// A page of the tutorial has its own scenario.
func documentEnv(t *testing.T, dir, page string) []string {
	t.Helper()
	vars, err := ownHome(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	scenario := filepath.Join("..", "..", "testdata", "docs", page+".yaml")
	if _, err := os.Stat(scenario); err != nil {
		scenario = filepath.Join("..", "..", "testdata", "docs", "agent.yaml")
	}
	agent, err := filepath.Abs(scenario)
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
	return append(env, "PAWL_AGENT=script", "GOCACHE="+goCache())
}

// goCache is where the go command keeps what it has built: the standard library is not built for each test.
var goCache = sync.OnceValue(func() string {
	cache, _ := exec.Command("go", "env", "GOCACHE").Output() // without go, tests that need it are skipped
	return strings.TrimSpace(string(cache))
})

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

// callsOf is a command that calls tools as the lines of a block say. RUN is the run that waits first.
func callsOf(lines string) string {
	call := "tools"
	for line := range strings.Lines(lines) {
		tool, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
		arguments = strings.ReplaceAll(arguments, "'", `'\''`)
		call += " " + tool + " '" + strings.ReplaceAll(arguments, `"RUN"`, `"'$RUN'"`) + "'"
	}
	const first = `RUN=$(tools get_inbox '{}' | sed 's/.*"run":{"run":"\([0-9a-z]*\)".*/\1/')` + "\n"
	return first + call + "\n"
}

// needed is the program that a page of the tutorial is about.
var needed = map[string]string{
	"go": "go", "node": "npm", "python": "python3", "night": "make", "team": "make", "mcp": "make",
}

// promised is a command that ends with a status.
var promised = regexp.MustCompile(`(?m)^(\S.*?) +# exit status (\d+).*$`)

// runTutorial runs the commands of a page in an empty folder, and looks for what the page
// says that one sees.
func runTutorial(t *testing.T, dir string, env []string, blocks []block, script string) {
	t.Helper()
	language := strings.TrimSuffix(filepath.Base(blocks[0].page), ".md")
	if _, err := exec.LookPath(needed[language]); err != nil {
		t.Skipf("there is no %s", needed[language])
	}
	env = append(env, "npm_config_offline=true")
	if strings.Contains(script, "\ngh ") {
		env = atGitHub(t, env)
	}
	start := filepath.Join(dir, "work")
	if err := os.Mkdir(start, 0o755); err != nil {
		t.Fatal(err)
	}
	script = promised.ReplaceAllString(script, "$1 || test $$? = $2")
	out, err := shell(t.Context(), start, env, script)
	if err != nil {
		t.Fatalf("%s: a command of the page fails: %v\n%s", blocks[0].page, err, out)
	}
	for _, b := range blocks {
		if b.language == "text" {
			seen(t, b, out)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// atGitHub has the repository acme/greet of github.com be one of a GitHub on loopback.
func atGitHub(t *testing.T, env []string) []string {
	t.Helper()
	site, _ := forgetest.GitHub(t)
	home := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = value
		}
	}
	settings := fmt.Sprintf("[url %q]\n\tinsteadOf = https://github.com/acme/greet\n", site.Remote)
	if old, err := os.ReadFile(filepath.Join(home, ".gitconfig")); err == nil {
		settings = string(old) + settings
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(env, "PAWL_FORGE_KIND=github", "PAWL_FORGE_URL="+site.URL, "PAWL_FORGE_REPOSITORY="+site.Repository,
		"GH_SITE="+site.URL+"/api/v3/repos/"+site.Repository, "GH_USER="+site.Token(forgetest.Owner))
}

// seen looks for each line of a text block in what was printed; "…" is anything.
func seen(t *testing.T, b block, out []byte) {
	t.Helper()
	for n, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
		want := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
		want = strings.NewReplacer("…", ".*", " ", " +").Replace(want)
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s:%d: nobody sees %q", b.page, b.line+1+n, line)
		}
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

// No page has a block that is never closed, or the old and the new words of a passage side by side.
func TestPagesAreWhole(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, damage := range damagesOf(string(text)) {
			t.Errorf("%s:%s", page, damage)
		}
	}
	const damaged = "```sh\npawl run\nText.\n| a |\n\n| b | 1 |\n|---|---|\n| c | 1 |\n| c | 2 |\n```\nmore\n```text\n" +
		"```\nA sentence of more than thirty letters.\nAnother one. It ends here.\n[a.md](a.md).\nA sentence of more than thirty letters.\n" +
		"| b | 1 |\n|---|---|\n| c | 1 |\n| c | 2 |\n| c | how it ended, and who worked |\n| c | how it ended, and who worked at it |\n\n| d |\n| e |\n|---|\n```sh\n"
	want := []string{"16: a link", "17: line 14", "23: the row of c", "27: a table's", "28: this block"}
	got := damagesOf(damaged)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// damagesOf are the places of a page where a block is open to its end, or a line stands twice: outside of blocks
// and lists, and in a table as two rows of one name.
func damagesOf(text string) (found []string) {
	report := func(n int, format string, a ...any) {
		found = append(found, fmt.Sprintf("%d: ", n+1)+fmt.Sprintf(format, a...))
	}
	seen, rows := map[string]int{}, map[string]bool{}
	opened, openedAt, inTable := "", 0, 0
	lines := strings.Split(text, "\n")
	for n, line := range lines {
		mark := regexp.MustCompile("^ *(```+|~~~+)").FindString(line)
		isRow := strings.HasPrefix(line, "|")
		switch {
		case mark != "" && opened == "":
			opened, openedAt = strings.TrimSpace(mark), n
			continue
		case opened != "" && strings.TrimSpace(line) == opened:
			opened = ""
			continue
		case opened != "":
			continue
		case !isRow:
			rows, inTable = map[string]bool{}, 0
		default:
			inTable++
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		switch {
		case strings.HasPrefix(line, "|--") && inTable != 2:
			report(n, "a table's line below its head is not its second")
		case isRow:
			begins := line[:min(len(line), len(first)+25)]
			if rows[begins] && len(line) > 25 {
				report(n, "the row of %s is there twice", first)
			}
			rows[begins] = true
		case n > 0 && strings.HasSuffix(lines[n-1], ".") && loneLink.MatchString(line):
			report(n, "a link alone after the end of a sentence")
		case len(line) >= 30 && !regexp.MustCompile(`^\s*([-#>]|\d+\.)`).MatchString(line):
			if before, is := seen[line]; is {
				report(n, "line %d says the same", before+1)
			}
			seen[line] = n
		}
	}
	if opened != "" {
		report(openedAt, "this block has no end")
	}
	return found
}

// loneLink is a line that is nothing but the name of a page.
var loneLink = regexp.MustCompile(`^\[[\w/-]+\.md\]\([^)]*\)\.$`)

// Each setting that docs/questions.md names is one that there is.
func TestQuestions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "questions.md"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	keys := config.Keys()
	for _, row := range regexp.MustCompile(`(?m)^\|.*\? \| (.*) \|$`).FindAllStringSubmatch(string(text), -1) {
		setting, _, _ := strings.Cut(row[1], "once:")
		for _, name := range regexp.MustCompile("`([a-z_]+(?:\\.[a-z_]+)*)`").FindAllStringSubmatch(setting, -1) {
			if strings.HasSuffix(setting, " at the gate") || name[1] == "timeout" || name[1] == "paranoid" {
				continue
			}
			_, below, _ := strings.Cut(strings.TrimPrefix(name[1], "agents."), ".") // of an agent that a person names
			isAgents := strings.HasPrefix(name[1], "agents.") &&
				strings.Contains(string(reference), "| `agents.NAME."+below+"`")
			if !isAgents && !slices.Contains(keys, name[1]) {
				t.Errorf("questions.md names %s, and there is no such key", name[1])
			}
		}
	}
}
