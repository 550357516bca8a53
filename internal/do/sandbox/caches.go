package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// tools are the variables that tell tools where to keep what they download
// and build, with the folder below the cache, and the user's own below HOME.
var tools = []struct{ name, dir, own string }{
	{"GOCACHE", "go-build", ".cache/go-build"}, {"GOMODCACHE", "go-mod", "go/pkg/mod"},
	{"GOLANGCI_LINT_CACHE", "golangci-lint", ".cache/golangci-lint"},
	{"npm_config_cache", "npm", ".npm"}, {"YARN_CACHE_FOLDER", "yarn", ".cache/yarn"},
	{"BUN_INSTALL_CACHE_DIR", "bun", ".bun/install/cache"},
	{"pnpm_config_store_dir", "pnpm", ".local/share/pnpm/store"},
	{"PIP_CACHE_DIR", "pip", ".cache/pip"}, {"UV_CACHE_DIR", "uv", ".cache/uv"}, {"CARGO_HOME", "cargo", ".cargo"},
	{"PRE_COMMIT_HOME", "pre-commit", ".cache/pre-commit"},
}

// unmoved are caches that no variable moves in all versions of their tools, below HOME.
var unmoved = strings.Fields(`
	.m2/repository .m2/wrapper .gradle/caches .gradle/wrapper .gradle/native .gradle/jdks .konan .ivy2/cache .ivy2/local
	.sbt/boot .cache/coursier .cache/deno .nuget/packages .local/share/NuGet .cache/composer
	.composer/cache .cache/gem .bundle/cache .hex/packages .mix .cache/rebar3 .cache/zig
	.pub-cache/hosted .pub-cache/hosted-hashes .pub-cache/git .pub-cache/global_packages .cache/ccache
	.ccache .cache/sccache .cache/bazel .cache/bazelisk .cache/pypoetry .cache/pdm .local/share/virtualenv
	.conda/pkgs .cache/node/corepack .yarn/berry .cabal/packages .cabal/store .cache/cabal
	.stack/pantry .stack/snapshots .stack/setup-exe-cache .stack/setup-exe-src
	.cache/dune .cpan/build .cpan/sources .cache/luarocks .cache/org.swift.swiftpm .cache/clang .conan2/p .cache/vcpkg
	.cache/mypy .cache/ruff .cache/node-gyp .cache/turbo .julia/compiled .elm .kotlin
`)

// Caches are the variables, K=V, by which tools keep their caches in the
// folder cache instead of the user's own, which cannot be written in a box. A
// variable that names a folder in one of write already is left as it is.
func Caches(environ []string, cache string, write []string) []string {
	var out []string
	for _, t := range tools {
		own := lists.Getenv(environ, t.name)
		mayWrite := func(dir string) bool { return dir != "" && isWithin(dir, own) }
		if filepath.IsAbs(own) && slices.ContainsFunc(write, mayWrite) {
			continue
		}
		out = append(out, t.name+"="+filepath.Join(cache, t.dir))
	}
	return out
}

// Cache is that of a tool, as gates have it: what a gate writes to it is seen by
// the gates of the same verdict only.
type Cache struct {
	// Names are the variables that tell the tool.
	Names []string
	// At is the user's own, which gates see there; "" is none: it is empty at first.
	At string
	// Dir is its name in a folder of caches.
	Dir string
}

// GateCaches are the caches of gates: the user's own but those that touch a
// folder in write, which an agent may change.
func GateCaches(environ []string, home string, write []string, mounts bool) []Cache {
	write = slices.Clone(write)
	for i, dir := range write {
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			write[i] = to
		}
	}
	usable := func(dir string) string {
		dir, err := filepath.EvalSymlinks(dir)
		touches := func(w string) bool {
			if w == "" {
				return false
			}
			return isWithin(w, dir) || isWithin(dir, w)
		}
		if err != nil || !filepath.IsAbs(dir) || slices.ContainsFunc(write, touches) {
			return ""
		}
		return dir
	}
	var out []Cache
	for _, t := range tools {
		out = append(out, Cache{[]string{t.name}, usable(usersCacheFolder(environ, home, t.name, t.own)), t.dir})
	}
	for _, own := range unmoved {
		if at := usable(filepath.Join(home, own)); at != "" && mounts { // else the box's home folder gets it
			out = append(out, Cache{nil, at, flattenPath(own)})
		}
	}
	gopath := firstGoPath(environ, home)
	if _, err := os.Stat(gopath); err != nil || !mounts {
		return append(out, Cache{[]string{"GOPATH"}, "", "go"})
	}
	// What Go knows of the checksum database is in GOPATH, where its tools are, too.
	sums := filepath.Join(gopath, "pkg", "sumdb")
	_ = os.MkdirAll(sums, 0o755) // without it Go says what it misses
	return append(out, Cache{nil, usable(sums), "go-sumdb"})
}

// WithCaches is the policy of gates with caches, and the variables of these. What
// is written to them goes to folders of scratch, which the caller removes before
// a verdict and after it.
func (p Policy) WithCaches(caches []Cache, scratch string) (Policy, []string) {
	p.Over = slices.Clone(p.Over)
	var env []string
	for _, c := range caches {
		dir := filepath.Join(scratch, c.Dir)
		p.Over = append(p.Over, Over{To: c.At, Scratch: dir})
		if p.Means.Mounts && c.At != "" {
			dir = c.At
		}
		env = append(env, lists.Each(c.Names, func(name string) string { return name + "=" + dir })...)
	}
	return p, env
}

// coldFrom is how many bytes gates write to caches that were empty, at least: to warm ones they write less.
const coldFrom = 32 << 20

// ColdCaches is the note about a verdict whose gates [BeganCold].
func ColdCaches() string {
	home := os.Getenv("HOME")
	then := "; fill your own caches once: pawl doctor --warm"
	if why := HomeInTemp(home); why != "" {
		then = ". " + why
	}
	return "the caches of the build tools were empty, so these gates compiled or downloaded everything anew, as each " +
		"verdict will" + then
}

// HomeInTemp is the advice for a home folder in the folder of temporary files; "" for any other.
func HomeInTemp(home string) string {
	if !isWithin(os.TempDir(), home) {
		return ""
	}
	return "Your home folder is " + home + ", where agents can write, so caches in it are not used: have it elsewhere"
}

// BeganCold reports whether gates found their caches empty, by what they wrote to the folders of scratch.
func BeganCold(caches []Cache, scratch string) bool {
	written := int64(0)
	for _, c := range caches {
		if slices.Contains(c.Names, "TMPDIR") {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(scratch, c.Dir), func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read is not counted
			}
			if info, ierr := e.Info(); ierr == nil && info.Mode().IsRegular() {
				written += info.Size()
			}
			if written >= coldFrom {
				return fs.SkipAll
			}
			return nil
		})
	}
	return written >= coldFrom
}

// OpenEvidence makes a folder in which a process leaves what shows the work, with the variable that names it, and
// opens it in the process's box; where there is no box, box is nil.
func OpenEvidence(box *Policy, dir string) (environ []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of evidence: %w", err)
	}
	if box != nil {
		box.Write = append(slices.Clone(box.Write), dir)
	}
	return []string{"PAWL_EVIDENCE=" + dir}, nil
}

// usersCacheFolder is the folder of the user's that a tool uses if nobody says otherwise.
func usersCacheFolder(environ []string, home, name, below string) string {
	if dir := lists.Getenv(environ, name); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	rest, xdg := strings.CutPrefix(below, ".cache/")
	switch dir := lists.Getenv(environ, "XDG_CACHE_HOME"); {
	case name == "GOMODCACHE":
		return goModules(environ, home)
	case xdg && filepath.IsAbs(dir):
		return filepath.Join(dir, rest)
	case !filepath.IsAbs(home):
		return ""
	}
	return filepath.Join(home, below)
}

// ModuleProxy is the variable that puts the user's module cache, which is laid out
// like a proxy, before where modules come from otherwise: it is a download less.
// Nothing when environ does not say where that is.
func ModuleProxy(environ []string, home string) []string {
	dir, next := goModules(environ, home), lists.Getenv(environ, "GOPROXY")
	if dir == "" || strings.ContainsAny(dir, ",|") || next == "" {
		return nil // where they come from is not known: Go's own setting stays in force
	}
	return []string{"GOPROXY=file://" + filepath.ToSlash(filepath.Join(dir, "cache", "download")) + "," + next}
}

// goModules is the user's own module cache; "" when it is not known.
func goModules(environ []string, home string) string {
	if dir := lists.Getenv(environ, "GOMODCACHE"); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if path := firstGoPath(environ, home); path != "" {
		return filepath.Join(path, "pkg", "mod")
	}
	return ""
}

// firstGoPath is the first folder of GOPATH; "" when it is not known.
func firstGoPath(environ []string, home string) string {
	path, _, _ := strings.Cut(lists.Getenv(environ, "GOPATH"), string(filepath.ListSeparator))
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case filepath.IsAbs(home):
		return filepath.Join(home, "go")
	}
	return ""
}
