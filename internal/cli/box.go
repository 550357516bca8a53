package cli

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/egress"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/web"
)

// box decides what the operating system holds the run to, and says what it
// cannot.
func (s *session) box(ctx context.Context, unsandboxed bool) error {
	var offer sandbox.Offer
	if s.plan.Safety != sandbox.Permissive && !unsandboxed {
		offer = sandbox.Probe(ctx)
	}
	v := sandbox.Judge(s.plan.Safety, offer, unsandboxed)
	if v.Refused != "" {
		return refusedLevel(s.plan.Safety, v)
	}
	s.plan.Sandbox = s.plan.Safety + ": " + v.Enforced
	if unsandboxed {
		s.a.say("Warning: no sandbox (--unsandboxed): what the agent may touch is not confined.")
	}
	for _, gap := range v.Gaps {
		s.a.say("Note: safety level %s: %s.", s.plan.Safety, gap)
	}
	if v.Boxed {
		s.plan.Box = s.policies(ctx, v)
		s.plan.Copy = s.plan.Safety == sandbox.Paranoid
	}
	if s.plan.Copy && s.tree == nil {
		return usage("cannot run at the level paranoid outside of git: the agent works on a copy, and only git can tell what it changed").
			Hint("Make a repository: git init").Hint("Or run with --safety normal")
	}
	return nil
}

func refusedLevel(level string, v sandbox.Verdict) error {
	return usage("cannot run at the level %s: %s", level, v.Refused).
		Hint("See what this machine can enforce: pawl doctor").
		Hint("Run without a sandbox, which every report then says: --unsandboxed")
}

// policies are the boxes of the run's agents and gates.
func (s *session) policies(ctx context.Context, v sandbox.Verdict) *engine.Box {
	home, limits, level := s.a.getenv("HOME"), sandbox.DefaultLimits(), s.plan.Safety
	place := sandbox.Place{
		Root: s.plan.Root, Home: home, Runtime: s.a.getenv("XDG_RUNTIME_DIR"), State: s.stateDir, Cache: cmp.Or(s.cache, filepath.Join(s.stateDir, "cache")),
		Temp: []string{"/tmp", "/var/tmp", s.a.getenv("TMPDIR")}, Write: s.writable(), UID: os.Getuid(), Spare: []int{os.Getpid()},
	}
	if err := os.MkdirAll(place.Cache, 0o700); err != nil {
		s.a.say("Warning: cannot make the folder of the tools' caches: %v", err)
	}
	if s.tree != nil {
		place.Git = append([]string{s.tree.Repo.Dir, s.tree.Repo.Common}, s.tree.Modules()...)
	}
	secret := append(socketPaths(s.a.getenv("DOCKER_HOST"), s.a.getenv("SSH_AUTH_SOCK"), s.a.getenv("CONTAINER_HOST")), s.serverFolder())
	box := &engine.Box{Agents: map[string]sandbox.Policy{}, Caches: sandbox.Caches(s.withGoProxy(ctx, s.plan.Environ), home, place.Cache, slices.Concat(place.Write, place.Temp, []string{place.Root}))}
	box.Caches = append(box.Caches, pnpmStore(s.plan.Root, place.Cache)...)
	box.Caches = append(box.Caches, s.unsigned(ctx, place.Write)...)
	sums, path := s.goSums(home, place.Cache, v.Means.Mounts)
	box.Caches = append(box.Caches, path...)
	place.Hide = slices.Concat(secret, agents.OthersFolders("", home, s.a.getenv))
	box.Gates = place.Policy(level, v, limits, nil, nil)
	box.Gates.Binds = sums
	s.agentPolicy = func(name string, ag engine.Agent) sandbox.Policy {
		program, own := s.ownFolders(name, ag, home)
		place.Hide = slices.Concat(secret, agents.OthersFolders(program, home, s.a.getenv))
		policy := place.Policy(level, v, limits, own, nil)
		policy.Binds = sums
		policy.Reach, policy.Doors = exits(ag.Endpoints)
		return policy
	}
	for name, ag := range s.plan.Agents {
		box.Agents[name] = s.agentPolicy(name, ag)
	}
	return box
}

// serverFolder is where the token of 'pawl serve' is: who reads it can answer
// for the person. It is made, since only what is there can be hidden.
func (s *session) serverFolder() string {
	dir := web.SessionDir(s.stateDir)
	_ = os.MkdirAll(dir, 0o700) // the server says so itself
	return dir
}

// ownFolders are the agent's program and where it keeps what is the user's;
// folders that are not there yet are made, since the program may not.
func (s *session) ownFolders(name string, ag engine.Agent, home string) (program string, own []string) {
	start, err := ag.Adapter.Start(agent.Invocation{
		PromptFile: os.DevNull, Dir: s.plan.Root, Safety: s.plan.Safety, Command: ag.Command, Env: ag.Env, Isolate: ag.Isolate,
		StateDir: filepath.Join(s.stateDir, "agents", name),
	})
	if err != nil {
		return "", nil // it says so when it is to work
	}
	getenv := func(variable string) string {
		for _, kv := range slices.Backward(start.Env) {
			if v, ok := strings.CutPrefix(kv, variable+"="); ok {
				return v
			}
		}
		return s.a.getenv(variable)
	}
	program = agents.Program(name, start.Parser, start.Args)
	own = agents.Folders(program, home, getenv)
	for _, dir := range own {
		if filepath.Ext(filepath.Base(dir)[1:]) == "" {
			_ = os.MkdirAll(dir, 0o700) // without it the program says what it misses
		}
	}
	return program, own
}

// exits divides endpoints into those that the proxy of a closed box lets
// through, and ports of this machine, which get a door each.
func exits(endpoints []string) (reach []string, doors []int) {
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

// writable are the folders of safety.write.
func (s *session) writable() []string {
	out := slices.Clone(s.a.writes)
	for _, path := range s.c.Safety.Write {
		if _, err := os.Stat(string(path)); err != nil {
			s.a.say("Warning: safety.write: %s is not there, so it cannot be written; make it first", path)
			continue
		}
		out = append(out, string(path))
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
