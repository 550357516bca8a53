package boxpolicy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sandbox"
)

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

// goSums gives Go a place for what it knows of the checksum database, without
// which it downloads no module: that lies in GOPATH, not in the module cache.
// A GOPATH that is there keeps its place, since tools are in it, and gets a
// folder of the caches put over; else GOPATH is in the caches.
func (m maker) goSums(home, cache string, mounts bool) (binds []sandbox.Bind, env []string) {
	own := filepath.Join(cache, "go")
	gopath, _, _ := strings.Cut(m.getenv("GOPATH"), string(filepath.ListSeparator))
	if gopath == "" {
		gopath = filepath.Join(home, "go")
	}
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

// goSettingsWithin bounds how long go may take to tell a setting.
const goSettingsWithin = 5 * time.Second

// withGoProxy is the environment with the place that modules come from, which
// may be set in files of Go's own; as it is where go is not installed.
func (m maker) withGoProxy(ctx context.Context, environ []string) []string {
	goEnv := process.Command{Args: []string{"go", "env", "GOPROXY"}, Env: m.Outside}
	path, err := goEnv.Resolve()
	if err != nil || m.getenv("GOPROXY") != "" {
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

// unsigned switches the signing of commits and tags off where the user's
// configuration asks for it: the keys are hidden, and no commit would succeed.
func (m maker) unsigned(ctx context.Context, write []string) []string {
	home := m.getenv("HOME")
	shown := func(path string) bool {
		return path == filepath.Join(home, ".gnupg") || path == filepath.Join(home, ".ssh")
	}
	if m.Tree == nil || slices.ContainsFunc(write, shown) {
		return nil
	}
	var keys []string
	for _, key := range []string{"commit.gpgSign", "tag.gpgSign"} {
		if on, err := m.Tree.Repo.ConfigBool(ctx, key); err == nil && on {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	m.Say("Note: commits in the sandbox are not signed: it hides your keys. " +
		"To have them signed, add their folder to safety.write.")
	n, _ := strconv.Atoi(m.getenv("GIT_CONFIG_COUNT"))
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(n+len(keys))}
	for i, key := range keys {
		at := strconv.Itoa(n + i)
		env = append(env, "GIT_CONFIG_KEY_"+at+"="+key, "GIT_CONFIG_VALUE_"+at+"=false")
	}
	return env
}
