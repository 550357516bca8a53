// Package boxpolicy says what the boxes of a run's agents and gates are: which
// folders are shown, hidden or writable, where tools keep their caches, which
// endpoints an agent reaches. [sandbox] holds them to it.
//
// It asks git and go for settings, and makes folders that must exist to be shown
// or hidden; it starts no process that outlives the call. What it cannot do is
// reported as a warning, since a box with less in it still works.
package boxpolicy

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Options are what boxes are made of.
type Options struct {
	Config   *config.Config
	Plan     runplan.Plan // its root, level, environment and agents
	StateDir string
	// Repo is the user's repository; nil is outside of git. Top is the top level of the clone
	// that is worked in, or of the user's files, which a clone takes the place of later.
	Repo *git.Repo
	Top  string
	// Env is what pawl was started with, K=V.
	Env []string
	// Outside is the environment of programs that run outside of the boxes.
	Outside []string
	// Hide are folders that no agent and no gate may see, nor what links in them lead to.
	Hide []string
	// Say prints whole sentences for the person.
	Say func(format string, args ...any)
}

// Boxes are the boxes of a run.
type Boxes struct {
	Run *runplan.Box
	// Agent is the box of one more agent.
	Agent func(name string, ag runplan.Agent) sandbox.Policy
}

// maker makes them.
type maker struct{ Options }

// cacheFolder returns the folder for the caches of agents' tools. What is left there at the level
// paranoid, no agent with a network runs.
func cacheFolder(state, level string) string {
	if level == sandbox.Paranoid {
		return filepath.Join(state, "cache-paranoid")
	}
	return filepath.Join(state, "cache")
}

// warnOfHome warns where the project holds the home folder.
func (m maker) warnOfHome(root, home string) {
	if _, inTree := files.Below(root, home); inTree || root == home {
		m.Say("Warning: the project contains your home folder, %s: agents and gates can read and change all of it. "+
			"Work in a folder below it.", home)
	}
}

// Make makes the boxes of the plan's agents and gates, on a machine that
// enforces what the verdict says.
func Make(ctx context.Context, o Options, v sandbox.Verdict) Boxes {
	m := maker{o}
	home, limits, level := m.envValue("HOME"), sandbox.DefaultLimits(), o.Plan.Safety
	path := filepath.SplitList(m.envValue("PATH"))
	shown, secrets := m.shownPaths(home, path)
	place := sandbox.Place{
		Root: cmp.Or(o.Top, o.Plan.Root), Home: home, State: o.StateDir, Shown: shown,
		Temp: []string{"/tmp", "/var/tmp", m.envValue("TMPDIR")}, Moved: program.MovedHome(m.envValue),
		Asked: presentPaths(o.Config.Safety.Show, o.Say, "Warning: safety.show: %s does not exist"),
		Write: presentPaths(o.Config.Safety.Write, o.Say, "Warning: safety.write: %s does not exist; create it first"),
		Share: o.Config.Safety.ShareTmp, Sockets: o.Config.Safety.UnixSockets,
		UID: os.Getuid(), Spare: []int{os.Getpid()},
	}
	m.warnOfHome(place.Root, home)
	var settings []git.Setting
	if o.Repo != nil {
		settings, _ = o.Repo.Config(ctx) // without, git signs nothing either
		place.Shown = append(place.Shown, repositoriesHere(settings)...)
	}
	if _, inTree := files.Below(o.Plan.Root, o.Plan.Exe); inTree { // pawl starts itself again, outside of the box
		place.Keep = append(slices.Clone(place.Keep), o.Plan.Exe)
	}
	sockets := socketPaths(m.envValue("DOCKER_HOST"), m.envValue("SSH_AUTH_SOCK"), m.envValue("CONTAINER_HOST"))
	named := lists.Each(m.Config.Safety.Hide, func(p quantity.Path) string { return string(p) })
	secret := slices.Concat(secrets, sockets, m.makeHidden(), named, m.clusterFiles(place.Root))
	place.Shut = m.clusterPorts(v.Means, level)
	place.Hide = slices.Concat(secret, agents.OthersFolders("", home, m.envValue))
	box := &runplan.Box{Agents: map[string]sandbox.Policy{}}
	lender := m.borrowedStore()
	shownSettings := m.showSettings(&place, home, settings, v)
	local, resolvers := m.localPorts(settings, shownSettings), m.resolversOf(v)
	shownSettings = append(shownSettings, resolvers...)
	box.Gates = place.Policy(level, v, limits, nil, lender)
	box.Gates.Binds, box.Gates.Judges = shownSettings, true
	environ, unsigned := m.withGoProxy(ctx, o.Plan.Environ), m.unsignCommits(ctx, settings, place.Write)
	mayWrite := slices.Concat(place.Write, place.Temp, []string{place.Root, "/dev/shm"})
	box.GateCaches = sandbox.GateCaches(environ, home, mayWrite, v.Means.Mounts)
	box.GateEnv = slices.Concat(sandbox.ModuleProxy(environ, home), unsigned)
	place.Cache = cacheFolder(o.StateDir, level)
	if err := os.MkdirAll(place.Cache, 0o700); err != nil {
		o.Say("Warning: cannot create the folder of the tools' caches: %v", err)
	}
	sums, goEnv := m.shareGoChecksums(home, place.Cache, v.Means.Mounts)
	box.Caches = slices.Concat(sandbox.Caches(environ, place.Cache, mayWrite), goEnv, box.GateEnv)
	if len(place.UsableTemp(v.Means, place.Temp)) < len(place.Temp) {
		m.useOwnTempFolder(box, place.Cache)
	}
	cachePnpm(box, o.Plan.Root, place.Cache)
	box.Setup = place.Policy(level, v, limits, nil, lender)
	binds, over := slices.Concat(sums, shownSettings), m.readThrough(home, mayWrite, v.Means.Mounts)
	box.Setup.Binds, box.Setup.Over = binds, over
	m.openDoors(local, &box.Gates, &box.Setup)
	one := func(name string, ag runplan.Agent) sandbox.Policy {
		place, binds := place, binds
		own := m.placeAgent(&place, name, ag, secret)
		if place.Home != home {
			binds = slices.Concat(sums, m.copySettings(place.Home, settings, place.Asked), resolvers)
		}
		place.Keep = slices.Concat(place.Keep, pathsBelow(own, path))
		write, ownOver := m.throughOwn(own, v.Means.Mounts)
		policy := place.Policy(level, v, limits, write, lender)
		policy.Binds, policy.Over = binds, slices.Concat(over, ownOver)
		policy.Reach, policy.Doors = splitEndpoints(ag.Endpoints)
		m.openDoors(slices.Concat(local, m.agentPorts(ag, own)), &policy)
		return policy
	}
	for name, ag := range o.Plan.Agents {
		box.Agents[name] = one(name, ag)
	}
	return Boxes{box, one}
}

// placeAgent adds to a place what one agent sees besides, and returns the folders of its
// program's own.
func (m maker) placeAgent(place *sandbox.Place, name string, ag runplan.Agent, secret []string) (own []string) {
	home := place.Home
	programName, args, own := m.ownFolders(name, ag, home)
	getenv := func(variable string) string { return lookupEnv(ag.Env, variable, m.envValue(variable)) }
	place.Hide = slices.Concat(secret, agents.OthersFolders(programName, home, getenv))
	place.Home, place.Moved = getenv("HOME"), program.MovedHome(getenv)
	place.Temp = append(slices.Clone(place.Temp), getenv("TMPDIR"))
	known := slices.Concat(own, place.Temp, place.Moved, []string{home, place.Home, m.StateDir, place.Root})
	apart := append(slices.Clone(secret), m.StateDir, place.Root, m.Plan.Root)
	isApart := func(path string) bool {
		return slices.ContainsFunc(apart, func(dir string) bool { return holdsOneOf(dir, path) })
	}
	mayShow := func(path string) bool { return !holdsOneOf(path, known...) && !isApart(path) }
	folders, read := m.namedByVariables(programName, ag.Env, mayShow)
	packages := slices.DeleteFunc(packagesOf(args, home), func(path string) bool { return !mayShow(path) })
	place.Shown = slices.Concat(place.Shown, slices.DeleteFunc(args, isApart), packages, read)
	place.Hide = append(place.Hide, m.secretsIn(slices.Concat(packages, read), maxLooked)...)
	return append(own, folders...)
}

// useOwnTempFolder has programs keep temporary files beside the tools' caches, where a folder for them
// may not be written.
func (m maker) useOwnTempFolder(box *runplan.Box, cache string) {
	dir := filepath.Join(cache, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.Say("Warning: cannot create the folder for temporary files: %v", err)
	}
	box.Caches = append(box.Caches, "TMPDIR="+dir)
	box.GateCaches = append(box.GateCaches, sandbox.Cache{Names: []string{"TMPDIR"}, Dir: "tmp"})
}

// cachePnpm moves the store of pnpm, where the project uses it, into the folder of the tools'
// caches.
func cachePnpm(box *runplan.Box, project, cache string) {
	if !usesPnpm(project) {
		return
	}
	for _, name := range pnpmPlaces {
		box.Caches = append(box.Caches, name+"="+filepath.Join(cache, "pnpm"))
	}
	for i, c := range box.GateCaches {
		if c.Dir == "pnpm" {
			box.GateCaches[i].Names = slices.Concat(c.Names, pnpmPlaces)
		}
	}
}

// borrowedStore returns the store that a clone borrows objects from. If the repository
// lies among temporary files, the box would hide it, and git in the clone would have no
// HEAD.
func (m maker) borrowedStore() []string {
	if m.Repo == nil {
		return nil
	}
	return []string{m.Repo.Objects}
}

// makeHidden returns the folders to hide. They are made: only what is there can be hidden.
func (m maker) makeHidden() []string {
	out := slices.Clone(m.Hide)
	for _, dir := range m.Hide {
		_ = os.MkdirAll(dir, 0o700) // who keeps something there says so itself
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.Type()&os.ModeSymlink != 0 {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out
}

// envValue is a variable of the environment that pawl was started with.
func (m maker) envValue(name string) string { return lookupEnv(m.Env, name, "") }

// lookupEnv returns the last value of a variable.
func lookupEnv(env []string, name, otherwise string) string {
	if value, ok := lists.LookupEnv(env, name); ok {
		return value
	}
	return otherwise
}

// ownFolders are the agent's program, the paths that its command names, and where
// it keeps what is the user's; folders that are not there yet are made, since the
// program may not.
func (m maker) ownFolders(name string, ag runplan.Agent, home string) (program string, named, own []string) {
	start, err := ag.Adapter.Start(agent.Invocation{
		PromptFile: os.DevNull, Dir: m.Plan.Root, Safety: m.Plan.Safety,
		Command: ag.Command, Env: ag.Env, Isolate: ag.Isolate, Routes: ag.Routes,
		StateDir: filepath.Join(m.StateDir, "agents", name),
	})
	if err != nil {
		return "", nil, nil // it says so when it is to work
	}
	getenv := func(variable string) string { return lookupEnv(start.Env, variable, m.envValue(variable)) }
	program = agents.Program(name, start.Parser, start.Args)
	own = agents.Folders(program, cmp.Or(getenv("HOME"), home), getenv)
	for _, dir := range own {
		if filepath.Ext(filepath.Base(dir)[1:]) == "" {
			_ = os.MkdirAll(dir, 0o700) // without it the program says what it misses
		}
	}
	if u := start.Usage; u != nil { // pawl reads what the program says there of its use
		_ = os.MkdirAll(filepath.Join(cmp.Or(getenv(u.Variable), filepath.Join(home, u.Home)), u.Days), 0o700)
	}
	return program, slices.DeleteFunc(start.Args, func(arg string) bool { return !filepath.IsAbs(arg) }), own
}

// through are names in the folders of agent programs, or in one of them, that a program writes for the
// person: sessions, logs, and logins that are renewed. All else in these folders, settings with
// programs in them above all, stays as it is.
var through = strings.Fields(`
	sessions session todos history history.jsonl conversations threads chats storage logs log checkpoints
	file-history tasks .credentials.json auth.json oauth_creds.json google_accounts.json mcp-oauth-tokens.json
	credentials.json credentials hosts.json apps.json oauth.json gemini-credentials.json a2a-oauth-tokens.json
	mcp-auth.json .claude/projects .qwen/projects .cline/data/sessions .cline/data/tasks .cline/data/logs
`)

// replaced are logins that a program renews by another file of the name, which cannot be
// done where a file is shown by itself.
var replaced = []string{
	".factory/auth.v2.file", ".factory/auth.v2.key", ".factory/auth.encrypted", ".qwen/oauth_creds.json",
	".cline/data/settings/providers.json",
}

// namesForFolder returns the names that have the base name of the folder as their prefix,
// without the prefix. With anyFolder it also returns names that have no prefix.
func namesForFolder(folder string, names []string, anyFolder bool) (out []string) {
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, filepath.Base(folder)+"/"); ok {
			out = append(out, rest)
		} else if anyFolder && !strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	return out
}

// throughOwn divides the folders of an agent's program into what it writes for the person,
// and what it may change for its run only. Those of pawl's stay as they are.
func (m maker) throughOwn(own []string, mounts bool) (write []string, over []sandbox.Over) {
	if !mounts {
		return own, nil
	}
	for _, dir := range own {
		info, err := os.Lstat(dir)
		if _, ofPawl := files.Below(m.StateDir, dir); ofPawl {
			write = append(write, dir)
			continue
		}
		if err != nil {
			continue // the box's own home folder gets it
		}
		back := namesForFolder(dir, replaced, false)
		over = append(over, sandbox.Over{To: dir, Whole: true, Back: back})
		if !info.IsDir() {
			continue
		}
		for _, name := range namesForFolder(dir, through, true) {
			path := filepath.Join(dir, name)
			if slices.Contains(back, name) {
				continue
			}
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
				write = append(write, path)
			}
		}
	}
	return write, over
}

// pathsBelow returns the paths that lie in one of the folders.
func pathsBelow(folders, paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		return !slices.ContainsFunc(folders, func(folder string) bool {
			_, inside := files.Below(folder, path)
			return inside
		})
	})
}

// splitEndpoints divides endpoints into those that the proxy of a closed box lets
// through, and ports of this machine, which get a door each.
func splitEndpoints(endpoints []string) (reach []string, doors []int) {
	for _, text := range endpoints {
		e, err := egress.ParseEndpoint(text)
		if err != nil {
			continue // the plan has no such
		}
		addr, _ := netip.ParseAddr(e.Host)
		if e.Host == "localhost" || addr.IsLoopback() {
			doors = append(doors, int(e.Port))
			continue
		}
		reach = append(reach, text)
	}
	return reach, slices.Compact(slices.Sorted(slices.Values(doors)))
}

// presentPaths returns those of a setting's paths that are there, and says of the others that they are missing.
func presentPaths(list []quantity.Path, say func(format string, args ...any), missing string) []string {
	return lists.Pick(list, func(path quantity.Path) (string, bool) {
		_, err := os.Stat(string(path))
		if err != nil {
			say(missing, path)
		}
		return filepath.Clean(string(path)), err == nil
	})
}

// readThrough has the caches that no variable moves: agents read the person's, and what
// they write there goes with the run.
func (m maker) readThrough(home string, mayWrite []string, mounts bool) []sandbox.Over {
	var out []sandbox.Over
	for _, c := range sandbox.GateCaches(nil, home, mayWrite, mounts) {
		if len(c.Names) == 0 && c.At != "" && c.Dir != "go-sumdb" {
			out = append(out, sandbox.Over{To: c.At})
		}
	}
	return out
}

// socketPaths are the paths in addresses of sockets.
func socketPaths(addresses ...string) []string {
	var out []string
	for _, a := range addresses {
		if path := strings.TrimPrefix(a, "unix://"); filepath.IsAbs(path) {
			out = append(out, path)
		}
	}
	return out
}

// pnpmPlaces are the variables by which pnpm before 11 keeps in the caches its store,
// and the version of itself that a package.json wants. npm warns of the first with
// every command, so only projects of pnpm get them.
var pnpmPlaces = []string{"npm_config_store_dir", "PNPM_HOME"}

func usesPnpm(root string) bool {
	for _, name := range []string{"pnpm-lock.yaml", "pnpm-workspace.yaml"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			return true
		}
	}
	return false
}

// shareGoChecksums gives Go a place for what it knows of the checksum database, without
// which it downloads no module: that lies in GOPATH, not in the module cache.
// A GOPATH that is there keeps its place, since tools are in it, and gets a
// folder of the caches put over; else GOPATH is in the caches.
func (m maker) shareGoChecksums(home, cache string, mounts bool) (binds []sandbox.Bind, env []string) {
	own := filepath.Join(cache, "go")
	gopath, _, _ := strings.Cut(m.envValue("GOPATH"), string(filepath.ListSeparator))
	gopath = cmp.Or(gopath, filepath.Join(home, "go"))
	if _, err := os.Stat(gopath); err != nil || !mounts {
		return nil, []string{"GOPATH=" + own}
	}
	from, to := filepath.Join(own, "pkg", "sumdb"), filepath.Join(gopath, "pkg", "sumdb")
	for _, dir := range []string{from, to} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, nil // Go says what it misses
		}
	}
	return []sandbox.Bind{{From: from, To: to}}, nil
}

// goSettingsWithin bounds how long go may take to print a setting.
const goSettingsWithin = 5 * time.Second

// withGoProxy is the environment with the place that modules come from, which
// may be set in files of Go's own; as it is where go is not installed.
func (m maker) withGoProxy(ctx context.Context, environ []string) []string {
	goEnv := process.Command{Args: []string{"go", "env", "GOPROXY"}, Env: m.Outside}
	path, err := goEnv.Resolve()
	if err != nil || m.envValue("GOPROXY") != "" {
		return environ
	}
	ctx, cancel := context.WithTimeout(ctx, goSettingsWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, goEnv.Args[1:]...)
	// In no module: its go.mod could have go fetch and start another version of itself.
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", m.Outside, time.Second
	out, err := cmd.Output()
	if proxy := strings.TrimSpace(string(out)); err == nil && proxy != "" {
		return append(slices.Clone(environ), "GOPROXY="+proxy)
	}
	return environ
}

// unsignCommits switches the signing of commits and tags off where the user's
// configuration asks for it: the keys are hidden, and no commit would succeed.
func (m maker) unsignCommits(ctx context.Context, settings []git.Setting, write []string) []string {
	home := m.envValue("HOME")
	shown := func(path string) bool {
		return path == filepath.Join(home, ".gnupg") || path == filepath.Join(home, ".ssh")
	}
	if m.Repo == nil || slices.ContainsFunc(write, shown) {
		return nil
	}
	var keys []string
	for _, key := range []string{"commit.gpgSign", "tag.gpgSign"} {
		if on, err := m.Repo.ConfigBool(ctx, settings, key); err == nil && on {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	m.Say("Note: commits in the sandbox are not signed: it hides your keys. " +
		"To sign them, add the folder of the keys to safety.write.")
	n, _ := strconv.Atoi(lookupEnv(m.Plan.Environ, "GIT_CONFIG_COUNT", ""))
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(n+len(keys))}
	for i, key := range keys {
		at := strconv.Itoa(n + i)
		env = append(env, "GIT_CONFIG_KEY_"+at+"="+key, "GIT_CONFIG_VALUE_"+at+"=false")
	}
	return env
}
