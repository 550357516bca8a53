package boxpolicy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/command"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Main(os.Stderr))
	}
	os.Exit(gittest.Run(m))
}

// rig is a machine with a home, a project and a state folder.
type rig struct {
	t    *testing.T
	dir  string
	o    Options
	said []string
}

func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	for _, name := range []string{"home/.claude", "home/.codex", "project", "state"} {
		r.folder(name)
	}
	r.o = Options{
		Config: &config.Config{}, StateDir: r.path("state"), Env: append([]string{"HOME=" + r.path("home")}, env...),
		Plan: runplan.Plan{Root: r.path("project"), Safety: sandbox.Normal},
		Say:  func(format string, args ...any) { r.said = append(r.said, fmt.Sprintf(format, args...)) },
	}
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r *rig) folder(name string) string {
	r.t.Helper()
	if err := os.MkdirAll(r.path(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	return r.path(name)
}

func (r *rig) make(mounts bool) Boxes {
	return Make(r.t.Context(), r.o, sandbox.Verdict{Boxed: true, Means: sandbox.Means{Mounts: mounts}})
}

// An agent may write its own program's folder and sees no other's; a gate sees
// none.
func TestFoldersOfPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ag := runplan.Agent{Adapter: program.Adapter{Program: claude.Program(false)}, Endpoints: []string{"api.anthropic.com:443", "127.0.0.1:8080", "localhost:8080", "[::1]:9"}}
	r.o.Plan.Agents = map[string]runplan.Agent{"claude": ag}
	own, others := r.path("home/.claude"), r.path("home/.codex")
	sessions := r.folder("home/.claude/projects")
	r.folder("home/.claude/commands")
	boxes := r.make(true)
	p := boxes.Run.Agents["claude"]
	changes := slices.ContainsFunc(p.Over, func(o sandbox.Over) bool { return o.To == own })
	if !changes || slices.Contains(p.Write, own) || !slices.Contains(p.Write, sessions) || slices.Contains(p.Hide, own) ||
		slices.Contains(p.Write, filepath.Join(own, "commands")) || !slices.Contains(p.Hide, others) {
		t.Errorf("the agent may write %q, and does not see %q; for the run %v", p.Write, p.Hide, p.Over)
	}
	if bare := r.make(false).Run.Agents["claude"]; !slices.Contains(bare.Write, own) {
		t.Errorf("without mounts the agent may write %q", bare.Write)
	}
	if g := boxes.Run.Gates; slices.Contains(g.Write, own) || !slices.Contains(g.Hide, own) || !slices.Contains(g.Hide, others) {
		t.Errorf("gates may write %q, and do not see %q", g.Write, g.Hide)
	}
	if !slices.Equal(p.Reach, []string{"api.anthropic.com:443"}) || !slices.Equal(p.Doors, []int{9, 8080}) {
		t.Errorf("the agent reaches %q, and the doors %d", p.Reach, p.Doors)
	}
	if again := boxes.Agent("claude", ag); !slices.Equal(again.Write, p.Write) || !slices.Equal(again.Hide, p.Hide) {
		t.Errorf("one more agent gets %+v, the first had %+v", again, p)
	}
}

// What is to be hidden is there to be hidden; sockets that variables name, too.
func TestSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t, "DOCKER_HOST=unix:///var/run/other.sock", "SSH_AUTH_SOCK=/tmp/agent.1", "CONTAINER_HOST=tcp://localhost:1")
	r.o.Hide = []string{r.path("serve")}
	r.folder("all")
	if err := os.Symlink(r.folder("moved"), r.path("all/other-1a2b")); err != nil {
		t.Fatal(err)
	}
	r.o.Hide = append(r.o.Hide, r.path("all"))
	g := r.make(true).Run.Gates
	for _, path := range []string{r.path("serve"), r.path("all"), r.path("all/other-1a2b"), "/var/run/other.sock", "/tmp/agent.1", r.path("state"), r.path("home/.ssh")} {
		if !slices.Contains(g.Hide, path) {
			t.Errorf("%s is not hidden: %q", path, g.Hide)
		}
	}
	if _, err := os.Stat(r.path("serve")); err != nil {
		t.Error(err)
	}
}

// Files with names of secrets are hidden in the folders of tools that are shown, but for
// those that the person shows, and not in the workspace.
func TestSecretsBesideTools(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Env = append(r.o.Env, "PATH="+r.folder("home/tools/bin"))
	write := func(name string) string {
		mode := os.FileMode(0o600)
		if strings.Contains(name, "/bin/get") {
			mode = 0o755
		}
		path := r.path("home/" + name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var secret []string
	for _, name := range []string{
		"tools/.env", "tools/.env.local", "tools/etc/deploy.key", "tools/client_secret.json", ".foreman/auth.toml", ".local/share/gem/credentials",
		".nvm/.npmrc", ".platformio/appstate.json", ".config/mise/age.txt", ".luarocks/upload_config.lua", ".opam/plugins/publish.token", "tools/bin/.env", ".mix/auth.key",
	} {
		secret = append(secret, write(name))
	}
	plain := []string{
		write("tools/README"), write("tools/bin/gettoken"), write("tools/project/.env"), write(".nvm/nvm.sh"),
		write("tools/lib/token.py"), write("tools/include/secrets.h"),
	}
	r.o.Plan.Root = r.path("home/tools/project")
	g := r.make(true).Run.Gates
	for _, path := range secret {
		if !slices.Contains(g.Hide, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	for _, path := range plain {
		if slices.Contains(g.Hide, path) {
			t.Errorf("%s is hidden", path)
		}
	}
	r.o.Config.Safety.Show = []quantity.Path{quantity.Path(r.path("home/tools"))}
	if g := r.make(true).Run.Gates; slices.Contains(g.Hide, secret[0]) || !slices.Contains(g.Hide, secret[4]) {
		t.Errorf("with what the person shows %q is hidden", g.Hide)
	}
}

// A folder of safety.write that does not exist is left out, and said.
func TestWritable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	there, gone := r.folder("shared"), r.path("gone")
	r.o.Config.Safety.Write = []quantity.Path{quantity.Path(there), quantity.Path(gone)}
	g := r.make(true).Run.Gates
	if !slices.Contains(g.Write, there) || slices.Contains(g.Write, gone) {
		t.Errorf("gates may write %q", g.Write)
	}
	if len(r.said) != 1 || !strings.Contains(r.said[0], gone) {
		t.Errorf("said: %q", r.said)
	}
}

// What safety.hide names is hidden from agents and gates.
func TestHidden(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := r.path("home/.npmrc")
	r.o.Config.Safety.Hide = []quantity.Path{quantity.Path(path)}
	ad, _ := agents.Lookup("claude")
	boxes := r.make(true)
	for _, policy := range []sandbox.Policy{boxes.Run.Gates, boxes.Run.Setup, boxes.Agent("claude", runplan.Agent{Adapter: ad})} {
		if !slices.Contains(policy.Hide, path) {
			t.Errorf("hidden are %q", policy.Hide)
		}
	}
}

// Go's checksums have a place in the caches: over those of a GOPATH that is
// there, else all of GOPATH is.
func TestChecksumsOfGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box := r.make(true).Run
	if len(box.Setup.Binds) != 0 || !slices.Contains(box.Caches, "GOPATH="+r.path("state/cache/go")) {
		t.Errorf("without GOPATH: %v, %q", box.Setup.Binds, box.Caches)
	}
	gopath := r.folder("home/go")
	box = r.make(true).Run
	want := sandbox.Bind{From: r.path("state/cache/go/pkg/sumdb"), To: filepath.Join(gopath, "pkg", "sumdb")}
	if !slices.Equal(box.Setup.Binds, []sandbox.Bind{want}) {
		t.Errorf("with GOPATH: %v", box.Setup.Binds)
	}
	if box = r.make(false).Run; len(box.Setup.Binds) != 0 {
		t.Errorf("without mounts: %v", box.Setup.Binds)
	}
}

// A project of pnpm gets a store in the caches of its own.
func TestStoreOfPnpm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	variable := "npm_config_store_dir=" + r.path("state/cache/pnpm")
	if caches := r.make(true).Run.Caches; slices.Contains(caches, variable) {
		t.Errorf("without pnpm: %q", caches)
	}
	if err := os.WriteFile(r.path("project/pnpm-lock.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	box := r.make(true).Run
	if !slices.Contains(box.Caches, variable) || !slices.Contains(box.Caches, "PNPM_HOME="+r.path("state/cache/pnpm")) {
		t.Errorf("with pnpm: %q", box.Caches)
	}
	tells := func(c sandbox.Cache) bool { return slices.Contains(c.Names, "PNPM_HOME") }
	if !slices.ContainsFunc(box.GateCaches, tells) {
		t.Errorf("gates have %q", box.GateCaches)
	}
	if slices.Contains(box.Gates.Write, r.path("state/cache")) || !slices.Contains(box.Setup.Write, r.path("state/cache")) {
		t.Errorf("gates may write %q, set-up commands %q", box.Gates.Write, box.Setup.Write)
	}
}

// Commits are signed by keys that the box hides, so signing is switched off,
// unless the keys are shown.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Plan.Environ = []string{"GIT_CONFIG_COUNT=2"}
	gittest.Git(t, r.path("project"), "init", "-q")
	gittest.Git(t, r.path("project"), "config", "commit.gpgSign", "true")
	var err error
	if r.o.Repo, err = git.Open(t.Context(), r.path("project")); err != nil {
		t.Fatal(err)
	}
	want := []string{"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_2=commit.gpgSign", "GIT_CONFIG_VALUE_2=false"}
	caches := r.make(true).Run.Caches
	for _, variable := range want {
		if !slices.Contains(caches, variable) {
			t.Errorf("caches are %q, want %q in them", caches, variable)
		}
	}
	if len(r.said) != 1 || !strings.Contains(r.said[0], "not signed") {
		t.Errorf("said: %q", r.said)
	}
	r.o.Config.Safety.Write = []quantity.Path{quantity.Path(r.folder("home/.gnupg"))}
	if caches := r.make(true).Run.Caches; slices.Contains(caches, want[1]) {
		t.Errorf("with the keys: %q", caches)
	}
}

// What an agent's own folder has in the user's PATH stays as it is, since the user
// runs it too.
func TestProgramsInOwnFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bin := r.folder("home/.claude/bin")
	r.o.Env = append(r.o.Env, "PATH="+r.path("tools")+":"+bin)
	ad, _ := agents.Lookup("claude")
	policy := r.make(true).Agent("claude", runplan.Agent{Adapter: ad})
	if !slices.Contains(policy.Keep, bin) || slices.Contains(policy.Keep, r.path("tools")) {
		t.Errorf("kept are %q", policy.Keep)
	}
}

// A pawl that was built in the work tree starts itself again, outside of the box: it
// stays what it is.
func TestPawlOfTheTree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Plan.Exe = filepath.Join(r.folder("project/bin"), "pawl")
	ad, _ := agents.Lookup("claude")
	boxes := r.make(true)
	for _, policy := range []sandbox.Policy{
		boxes.Run.Gates, boxes.Run.Setup, boxes.Agent("claude", runplan.Agent{Adapter: ad}),
	} {
		if !slices.Contains(policy.Keep, r.o.Plan.Exe) {
			t.Errorf("kept are %q", policy.Keep)
		}
	}
}

// A project that holds the home folder shows all of it: that is said.
func TestHomeInTheProject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.make(true)
	if len(r.said) != 0 {
		t.Errorf("said: %q", r.said)
	}
	r.o.Plan.Root = r.path("home")
	gates := r.make(true).Run.Gates
	if len(r.said) != 1 || !strings.Contains(r.said[0], "home folder") {
		t.Errorf("said: %q", r.said)
	}
	if slices.ContainsFunc(gates.Temp, func(b sandbox.Bind) bool { return b.To == r.path("home") }) {
		t.Error("the project is another folder in the box")
	}
}

// Tools of the PATH are shown with what they are part of, and what links there lead to;
// the home folder never is as a whole.
func TestShownTools(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, dir := range []string{
		"home/.nvm/versions", "home/tools/bin", "home/.local/bin", "home/.local/share/agent/versions", "data/jdk/bin", "home/notes",
	} {
		r.folder(dir)
	}
	program := r.path("home/.local/share/agent/versions/1.2")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"home/.local/bin/agent": program, "home/tools/bin/java": r.path("data/jdk/bin")} {
		if err := os.Symlink(to, r.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	r.o.Env = append(r.o.Env, "PATH="+r.path("home/tools/bin")+":"+r.path("home/.local/bin")+":"+r.path("home"), "JAVA_HOME="+r.path("data/jdk"))
	show := r.make(true).Run.Gates.Show
	for _, path := range []string{"home/.nvm", "home/tools", "home/.local/bin", "home/.local/share/agent/versions", "data/jdk"} {
		if !slices.Contains(show, r.path(path)) {
			t.Errorf("%s is not shown: %q", path, show)
		}
	}
	for _, path := range []string{"home", "home/notes", "home/.local", "data", "state"} {
		if slices.Contains(show, r.path(path)) {
			t.Errorf("%s is shown", path)
		}
	}
}

// Settings of package managers are shown without their tokens, unless the person shows
// the file itself.
func TestSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	npmrc := r.path("home/.npmrc")
	if err := os.WriteFile(npmrc, []byte("fund=false\n//r/:_authToken=secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		for _, b := range r.make(true).Run.Gates.Binds {
			if b.To == npmrc && b.ReadOnly {
				text, err := os.ReadFile(b.From)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
		}
		return ""
	}
	if got := shown(); got != "fund=false\n" {
		t.Errorf("shown is %q", got)
	}
	r.o.Config.Safety.Show = []quantity.Path{quantity.Path(npmrc)}
	if got := shown(); got != "" || !slices.Contains(r.make(true).Run.Gates.Show, npmrc) {
		t.Errorf("asked for, shown is %q", got)
	}
}

// A script that an interpreter runs has the modules beside it, through links too.
func TestShownPackages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, dir := range []string{"opt/lib/node_modules/agent/bundle", "opt/lib/node_modules/.bin", "home/code"} {
		r.folder(dir)
	}
	script, link, own := r.path("opt/lib/node_modules/agent/bundle/main.js"), r.path("opt/lib/node_modules/.bin/agent"), r.path("home/code/a.js")
	for _, name := range []string{script, own} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(r.folder("opt/venv/bin"), "aider") // its Python lies beside it
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	want := []string{r.path("opt/lib/node_modules"), r.path("opt/venv")}
	if got := packagesOf([]string{link, own, r.path("gone"), program}, r.path("home")); !slices.Equal(got, want) {
		t.Errorf("shown is %q, want %q", got, want)
	}
}

// Paths in the variables that a program reads, and in those that its agent is given, are
// shown: settings and certificates. What holds more than that, and what is hidden, is not.
func TestPathsInVariables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name := range strings.FieldsSeq("etc/oc.json etc/mine.json etc/ca.pem etc/other.json etc/secret.json project/a.json") {
		r.folder(filepath.Dir(name))
		if err := os.WriteFile(r.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.folder("oc")
	r.folder("alone/home2")
	r.o.Config.Safety.Hide = []quantity.Path{quantity.Path(r.path("etc/secret.json"))}
	r.o.Env = append(r.o.Env, "OPENCODE_CONFIG="+r.path("etc/oc.json"), "OPENCODE_CONFIG_DIR="+r.path("oc"),
		"OPENCODE_X="+r.dir, "OPENCODE_URL=http://"+r.path("etc/other.json"), "OTHERS="+r.path("etc/other.json"))
	ad, _ := agents.Lookup("opencode")
	ag := runplan.Agent{Adapter: ad, Env: []string{
		"CERTS=" + r.path("gone") + ":" + r.path("etc/ca.pem"),
		"MORE=" + r.path("etc/secret.json") + ":" + r.path("project/a.json"),
		"PATH=" + r.folder("kit/bin") + ":/usr/bin", "OPENCODE_TUI_CONFIG=" + r.path("etc/mine.json"),
		"TMPDIR=" + r.folder("scratch"),
	}}
	p := r.make(true).Agent("opencode", ag)
	for name, want := range map[string]bool{
		"etc/oc.json": true, "etc/ca.pem": true, "etc/mine.json": true, "kit": true,
		"etc/other.json": false, "etc/secret.json": false, "project/a.json": false, "": false, "oc": false,
		"scratch": false,
	} {
		if slices.Contains(p.Show, r.path(name)) != want {
			t.Errorf("%q is shown: %v, of %q", name, !want, p.Show)
		}
	}
	changes := func(p sandbox.Policy, name string) bool {
		return slices.ContainsFunc(p.Over, func(o sandbox.Over) bool { return o.To == r.path(name) })
	}
	runs := func(p sandbox.Policy, name string) bool {
		return slices.Contains(p.Temp, sandbox.Bind{To: r.path(name)})
	}
	if !changes(p, "oc") || changes(p, "") || !runs(p, "scratch") || !runs(p, "home") {
		t.Errorf("changes go with the run in %v and %v", p.Over, p.Temp)
	}
	if gates := r.make(true).Run.Gates; slices.Contains(gates.Show, r.path("etc/oc.json")) || runs(gates, "scratch") {
		t.Errorf("gates see %q, %v", gates.Show, gates.Temp)
	}
	rc := r.path("alone/home2/.npmrc")
	if err := os.WriteFile(rc, []byte("fund=false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ag.Env = []string{"HOME=" + r.path("alone/home2"), "XDG_CONFIG_HOME=" + r.path("alone/settings")}
	p = r.make(true).Agent("opencode", ag)
	if !runs(p, "alone/home2") || runs(p, "home") || !changes(p, "alone/home2/.local/share/opencode") ||
		!changes(p, "alone/settings/opencode") || changes(p, "alone/home2/.config/opencode") {
		t.Errorf("with another home folder %v and %v", p.Over, p.Temp)
	}
	if !slices.ContainsFunc(p.Binds, func(b sandbox.Bind) bool { return b.To == rc && b.ReadOnly }) {
		t.Errorf("settings of another home folder: %v", p.Binds)
	}
}

// A login that a program replaces is no file of its own in the box: it is written back.
func TestReplacedLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, login := range map[string]string{"droid": "home/.factory/auth.v2.file", "qwen": "home/.qwen/oauth_creds.json",
		"cline": "home/.cline/data/settings/providers.json"} {
		r.folder(filepath.Dir(login))
		own := r.path(strings.Join(strings.Split(login, "/")[:2], "/"))
		if err := os.WriteFile(r.path(login), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ad, _ := agents.Lookup(name)
		p := r.make(true).Agent(name, runplan.Agent{Adapter: ad})
		isBack := func(o sandbox.Over) bool {
			return o.To == own && slices.Contains(o.Back, login[len("home/.")+len(filepath.Base(own)):])
		}
		isWritten := func(path string) bool { return strings.HasPrefix(r.path(login), path) && path != r.path("") }
		if !slices.ContainsFunc(p.Over, isBack) || slices.ContainsFunc(p.Write, isWritten) {
			t.Errorf("%s may write %q; for the run %v", name, p.Write, p.Over)
		}
	}
}

// With the gateway a program has a folder of pawl's: the person's, with its login, is not shown.
func TestFolderWithTheGateway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ad, _ := agents.Lookup("claude")
	ag := runplan.Agent{Adapter: ad, Routes: []agent.Route{{Name: "anthropic", Protocol: agent.Anthropic, KeyIn: "ANTHROPIC_API_KEY"}}}
	p := r.make(true).Agent("claude", ag)
	ofPerson := func(o sandbox.Over) bool { return o.To == r.path("home/.claude") }
	if slices.ContainsFunc(p.Over, ofPerson) || !slices.Contains(p.Write, r.path("state/agents/claude")) {
		t.Errorf("it may write %q; for the run %v", p.Write, p.Over)
	}
}

// A folder of pawl's that a program is told by an argument is not shown to be read: its
// agent may write it.
func TestFolderOfPawlInArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ad, _ := agents.Lookup("cline")
	program := filepath.Join(r.folder("opt"), "cline")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	p := r.make(true).Agent("cline", runplan.Agent{Adapter: ad, Command: []string{program}, Isolate: true})
	if !slices.Contains(p.Show, program) || slices.Contains(p.Show, r.path("state/agents/cline")) {
		t.Errorf("shown are %q", p.Show)
	}
}

// Where XDG's variables move parts of the home folder, tools and settings are found there.
func TestMovedHome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := filepath.Join(r.folder("cfg/pnpm"), "rc")
	if err := os.WriteFile(rc, []byte("a=b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.o.Env = append(r.o.Env, "XDG_CONFIG_HOME="+r.path("cfg"), "XDG_DATA_HOME="+r.path("data"))
	mise := r.folder("data/mise")
	r.folder("data/private")
	g := r.make(true).Run.Gates
	settings := func(b sandbox.Bind) bool { return b.To == rc && b.ReadOnly }
	if !slices.Contains(g.Show, mise) || !slices.ContainsFunc(g.Binds, settings) || slices.Contains(g.Show, r.path("data/private")) {
		t.Errorf("shown are %q, and settings %v", g.Show, g.Binds)
	}
}

// Where the folder for temporary files holds the home folder, and no mount hides that, programs
// get one of their own.
func TestHomeAmongTemporaryFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Env = append(r.o.Env, "TMPDIR="+r.dir)
	own := "TMPDIR=" + r.path("state/cache/tmp")
	for _, mounts := range []bool{false, true} {
		box := r.make(mounts).Run
		_, env := box.Gates.WithCaches(box.GateCaches, "/scratch")
		for _, got := range []bool{
			slices.Contains(box.Caches, own), slices.Contains(env, "TMPDIR=/scratch/tmp"),
			!mounts && !slices.Contains(box.Gates.Write, r.dir), !mounts && !slices.Contains(box.Setup.Write, r.dir),
		} {
			if got == mounts {
				t.Errorf("mounts %v: agents %v, gates %v, written %v", mounts, box.Caches, env, box.Gates.Write)
			}
		}
	}
}

// A folder of programs is shown where what it is part of holds the home folder, too.
func TestProgramsBesideHome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bin := r.folder("bin")
	r.o.Env = append(r.o.Env, "PATH="+bin)
	if show := r.make(true).Run.Gates.Show; !slices.Contains(show, bin) || slices.Contains(show, r.dir) {
		t.Errorf("shown is %q, without %s alone", show, bin)
	}
}

// What opens the database and the engine that machines share does not exist in a box, also where a folder
// above it is shown, and their ports are shut in an open one. The paths are those of docs/cluster.md.
func TestTheClusterIsOutOfReach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pass := r.path("home/secrets/pass")
	r.o.Env = append(r.o.Env, "PGPASSFILE="+pass, "PGSERVICEFILE="+r.path("home/services"))
	r.o.Config.Safety.Show = []quantity.Path{quantity.Path(r.folder("home/secrets")), "/etc", "/srv"}
	r.o.Config.Cluster = config.Cluster{
		Store:  "postgres://pawl@db.example.com:6432/pawl?sslmode=verify-full&sslkey=/etc/pawl/db.key",
		Engine: "temporal://temporal.example.com/pawl", Files: "file:///srv/pawl",
		TLS: config.ClusterTLS{CA: quantity.Path(r.path("project/certs/engine-ca.pem")), Cert: "/etc/pawl/machine.pem", Key: "/etc/pawl/machine.key"},
	}
	means := sandbox.Means{Mounts: true, Landlock: 4, Seccomp: true}
	r.o.Plan.Agents = map[string]runplan.Agent{"one": {Adapter: command.New("one", []string{"sh"}, "text", agent.Traits{})}}
	boxes := Make(t.Context(), r.o, sandbox.Verdict{Boxed: true, Means: means})
	for name, p := range map[string]sandbox.Policy{"gates": boxes.Run.Gates, "set-up": boxes.Run.Setup, "agent": boxes.Run.Agents["one"]} {
		for _, path := range []string{pass, r.path("home/services"), r.path("home/.pgpass"), r.path("home/.postgresql"),
			r.path("home/.pg_service.conf"), "/etc/pawl/machine.pem", "/etc/pawl/machine.key", "/etc/pawl/db.key", "/srv/pawl"} {
			if !slices.Contains(p.Hide, path) {
				t.Errorf("%s: %s is not hidden", name, path)
			}
		}
		if slices.Contains(p.Hide, r.path("project/certs/engine-ca.pem")) {
			t.Errorf("%s: a committed certificate is missing", name)
		}
		if want := []int{6432, 7233}; !slices.Equal(p.Shut, want) {
			t.Errorf("%s: the ports %v are shut", name, p.Shut)
		}
	}
	r.make(true) // without Landlock
	if said := strings.Join(r.said, "\n"); !strings.Contains(said, "cannot reach port 6432 and 7233, on any machine") ||
		!strings.Contains(said, "Warning: agents and gates can reach the cluster's database and engine") {
		t.Errorf("it says %q", r.said)
	}
}

// The patterns of shown.txt mean what they mean to package filepath.
func TestMatchesStars(t *testing.T) {
	names := strings.Fields(".env .env.local prod.env token api_token token.json tokens.json a.tokens.json x.age age " +
		"id_rsa.pub service-account-1.json auth.yml auth.yaml my_auth.yl libx.so libx.so.6 kubeconfig ca.kubeconfig man.1 **")
	for _, pattern := range slices.Concat(shownNames()["secrets"], shownNames()["code"], []string{"*", "a*b*c", "*a*a", "**"}) {
		if strings.ContainsAny(pattern, `?[\`) {
			t.Errorf("%s has another sign than stars", pattern)
		}
		for _, name := range append(names, pattern, "a", "abc", "aXbYc", "ab") {
			want, err := filepath.Match(pattern, name)
			if got := matchesStars(pattern, name); err != nil || got != want {
				t.Errorf("%s matches %s: %v, want %v (%v)", pattern, name, got, want, err)
			}
		}
	}
}

// A folder of programs that PATH names twice, by its own name and by a link, is shown by both.
func TestFoldersThatLinksLeadTo(t *testing.T) {
	home := t.TempDir()
	bin, link, tool := filepath.Join(home, "tools", "bin"), filepath.Join(home, "linked"), filepath.Join(home, "pkg", "tool", "run")
	for _, dir := range []string{bin, filepath.Dir(tool)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(tool, nil, 0o755), os.Symlink(tool, filepath.Join(bin, "run")), os.Symlink(bin, link)); err != nil {
		t.Fatal(err)
	}
	got := programsIn([]string{bin, link, bin, filepath.Join(home, "missing"), "relative"}, home)
	want := []string{filepath.Dir(bin), filepath.Dir(tool), link, filepath.Dir(bin)}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
