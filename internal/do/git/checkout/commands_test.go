package checkout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// commandKeys are the settings by which git runs a program, and what pawl does that may
// run it; "" is nothing. A part in <> stands for any name.
var commandKeys = map[string]string{
	"core.alternateRefsCommand": "network",
	"core.askPass":              "network",
	"core.gitProxy":             "network",
	"core.sshCommand":           "network",
	"credential.<url>.*":        "network",
	"credential.helper":         "network",
	"gpg.<format>.program":      "network", // a push that is signed
	"gpg.program":               "network",
	"gpg.ssh.defaultKeyCommand": "network",
	"http.proxy":                "network", // no program, but it sees what is sent
	"remote.<name>.proxy":       "network",
	"remote.<name>.receivepack": "network",
	"remote.<name>.uploadpack":  "network",
	"remote.<name>.vcs":         "network",
	"url.<base>.insteadOf":      "network",
	"url.<base>.pushInsteadOf":  "network",
	"filter.<driver>.clean":     "filters",
	"filter.<driver>.process":   "filters",
	"filter.<driver>.smudge":    "filters",
	"merge.<driver>.driver":     "merges",

	"alias.*":                    "",
	"browser.<tool>.cmd":         "",
	"browser.<tool>.path":        "",
	"core.editor":                "",
	"core.fsmonitor":             "",
	"core.hooksPath":             "",
	"core.pager":                 "",
	"diff.<driver>.command":      "",
	"diff.<driver>.textconv":     "",
	"diff.external":              "",
	"difftool.<tool>.cmd":        "",
	"difftool.<tool>.path":       "",
	"gitcvs.dbDriver":            "",
	"guitool.<name>.cmd":         "",
	"help.browser":               "",
	"imap.tunnel":                "",
	"init.templateDir":           "",
	"instaweb.browser":           "",
	"interactive.diffFilter":     "",
	"man.<tool>.cmd":             "",
	"man.<tool>.path":            "",
	"mergetool.<tool>.cmd":       "",
	"mergetool.<tool>.path":      "",
	"pager.<cmd>":                "",
	"sendemail.ccCmd":            "",
	"sendemail.headerCmd":        "",
	"sendemail.smtpServer":       "",
	"sendemail.tocmd":            "",
	"sequence.editor":            "",
	"submodule.<name>.update":    "",
	"tar.<format>.command":       "",
	"trailer.<token>.cmd":        "",
	"trailer.<token>.command":    "",
	"uploadpack.packObjectsHook": "",
	"web.browser":                "",
}

// noCommands are settings that are named as if they ran a program.
var noCommands = []string{
	"advice.ignoredHook", "advice.waitingForEditor", "color.pager", "column.clean", "completion.commands",
	"core.fsmonitorHookVersion", "credential.protectProtocol", "credential.sanitizePrompt", "credential.useHttpPath",
	"credential.username", "credentialCache.ignoreSIGHUP", "credentialStore.lockTimeoutMS", "diff.<driver>.binary",
	"diff.<driver>.cachetextconv", "diff.<driver>.wordRegex", "diff.<driver>.xfuncname", "merge.<driver>.name",
	"merge.<driver>.recursive", "notes.rewrite.<command>", "rebase.abbreviateCommands", "remote.<name>.partialclonefilter",
	"fsmonitor.allowRemote", "fsmonitor.socketDir", "transfer.credentialsInUrl", "uploadpack.allowFilter",
	"include.path", "includeIf.<condition>.path", // what is included counts by its own keys
}

var (
	looksLikeCommand = regexp.MustCompile(`(?i)cmd|command|program|helper|pager|editor|driver|external|textconv|clean$|smudge|process$|` +
		`askpass|vcs$|(upload|receive)pack$|fsmonitor|hook|browser|filter$|tunnel|templatedir|^alias|proxy$|insteadof|smtpserver$|` +
		`tool>?\.path|^include(if)?\.|credential|bundleuri`)
	anyName = regexp.MustCompile(`<[^>]*>`)
)

// written is a key as a file of configuration may have it.
func written(key string) string {
	return strings.ReplaceAll(anyName.ReplaceAllString(key, "mine"), "*", "helper")
}

// TestEveryCommandKeyIsKnown compares the list with git's own, so that a key that a newer
// git has is looked at by somebody.
func TestEveryCommandKeyIsKnown(t *testing.T) {
	t.Parallel()
	for key := range strings.Lines(gittest.Git(t, t.TempDir(), "help", "--config")) {
		key = strings.TrimSpace(key)
		_, known := commandKeys[key]
		if looksLikeCommand.MatchString(key) && !known && !slices.Contains(noCommands, key) {
			t.Errorf("%s may run a program, and nobody decided what pawl makes of it", key)
		}
	}
}

// TestCommandsOfThePerson sets every key to a program that leaves its name, and has git do
// all that may run one. Only those run that the list says.
func TestCommandsOfThePerson(t *testing.T) {
	t.Parallel()
	top, r := repository(t, "r")
	other := filepath.Join(t.TempDir(), "other")
	gittest.Git(t, top, "clone", "-q", top, other)
	marks := t.TempDir()
	for key := range commandKeys {
		gittest.Git(t, top, "config", written(key), "touch '"+filepath.Join(marks, key)+"'; false")
	}
	for _, key := range []string{"receivepack", "uploadpack", "vcs", "proxy"} {
		gittest.Git(t, top, "config", "--unset", "remote.mine."+key) // below
	}
	gittest.Git(t, top, "config", "push.gpgSign", "if-asked")
	gittest.Git(t, top, "config", "commit.gpgSign", "true")
	gittest.Git(t, top, "config", "tag.gpgSign", "true")
	put(t, filepath.Join(top, ".git", "info", "attributes"), "* diff=mine merge=mine filter=mine\n")
	mark := func(name string) string { return "touch '" + filepath.Join(marks, name) + "'; false" }
	gittest.Git(t, top, "config", "remote.here.url", other)
	gittest.Git(t, top, "config", "remote.here.uploadpack", mark("remote.<name>.uploadpack"))
	gittest.Git(t, top, "config", "remote.here.receivepack", mark("remote.<name>.receivepack"))
	gittest.Git(t, top, "config", "remote.ssh.url", "ssh://127.0.0.1:1/x")
	gittest.Git(t, top, "config", "remote.other.url", "x")
	gittest.Git(t, top, "config", "remote.other.vcs", "ext")
	ctx := t.Context()
	head := gittest.Git(t, other, "rev-parse", "HEAD")
	commit := func(text string) string {
		put(t, filepath.Join(other, "text"), text)
		gittest.Git(t, other, "add", "-A")
		gittest.Git(t, other, "commit", "-q", "-m", "x")
		id := gittest.Git(t, other, "rev-parse", "HEAD")
		gittest.Git(t, other, "reset", "-q", "--hard", head)
		return id
	}
	one, two := commit("one\n"), commit("two\n")
	gittest.Git(t, other, "branch", "one", one)
	gittest.Git(t, other, "branch", "two", two)
	for _, ref := range []string{"one", "two"} {
		if _, err := r.Fetch(ctx, "here", "refs/heads/"+ref, "refs/pawl/"+ref); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.PushFrom(ctx, "here", one, "refs/heads/pushed", ""); err != nil {
		t.Error(err)
	}
	for _, remote := range []string{"ssh", "other"} {
		if _, err := r.Fetch(ctx, remote, "refs/heads/main", "refs/pawl/x"); err == nil {
			t.Errorf("%s was fetched from", remote)
		}
	}
	s, err := git.OpenShadow(ctx, r, r, filepath.Join(t.TempDir(), "state", "git"))
	must(t, err)
	_, _ = r.MergeTree(ctx, one, two)
	_, _, _ = s.Diff(ctx, head, one, 1<<20)
	_, _ = r.Changes(ctx, head, one)
	_, _, _ = r.Untracked(ctx, top, []string{"*"})
	_, _ = s.Commit(ctx, head+"^{tree}", "x", head)
	if a, err := BeginFastForward(ctx, r, head, one, holdFile(t)); err == nil {
		_, _ = a.Move(ctx)
		a.End()
	}
	entries, err := os.ReadDir(marks)
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, e := range entries {
		ran = append(ran, e.Name())
		if commandKeys[e.Name()] == "" {
			t.Errorf("%s was run", e.Name())
		}
	}
	for _, key := range []string{"core.sshCommand", "filter.<driver>.process", "merge.<driver>.driver"} {
		if !slices.Contains(ran, key) {
			t.Errorf("%s, which is the person's, was not run", key)
		}
	}
	for _, key := range []string{"remote.<name>.uploadpack", "remote.<name>.receivepack"} {
		if slices.Contains(ran, key) {
			t.Errorf("%s was run", key)
		}
	}
}
