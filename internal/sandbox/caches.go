package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// tools are the variables that tell tools where to keep what they download
// and build, with the folder below the cache.
var tools = []struct{ name, dir string }{
	{"GOCACHE", "go-build"}, {"GOMODCACHE", "go-mod"}, {"GOLANGCI_LINT_CACHE", "golangci-lint"},
	{"npm_config_cache", "npm"}, {"YARN_CACHE_FOLDER", "yarn"}, {"BUN_INSTALL_CACHE_DIR", "bun"},
	{"pnpm_config_store_dir", "pnpm"},
	{"PIP_CACHE_DIR", "pip"}, {"UV_CACHE_DIR", "uv"}, {"CARGO_HOME", "cargo"}, {"PRE_COMMIT_HOME", "pre-commit"},
}

// Caches are the variables, K=V, by which tools keep their caches in the
// folder cache instead of the user's own, which cannot be written in a box. A
// variable that names a folder in one of write already is left as it is, and
// what the user's own Go modules hold is used first, as it is a download less.
func Caches(environ []string, home, cache string, write []string) []string {
	var out []string
	for _, t := range tools {
		own := lookup(environ, t.name)
		mayWrite := func(dir string) bool { return dir != "" && within(dir, own) }
		if filepath.IsAbs(own) && slices.ContainsFunc(write, mayWrite) {
			continue
		}
		out = append(out, t.name+"="+filepath.Join(cache, t.dir))
		if proxy := moduleProxy(environ, home); proxy != "" && t.name == "GOMODCACHE" {
			out = append(out, "GOPROXY="+proxy)
		}
	}
	return out
}

// moduleProxy puts the user's module cache, which is laid out like a proxy,
// before where modules come from otherwise; "" when environ does not say where.
func moduleProxy(environ []string, home string) string {
	dir := lookup(environ, "GOMODCACHE")
	if dir == "" {
		if path, _, _ := strings.Cut(lookup(environ, "GOPATH"), string(filepath.ListSeparator)); path != "" {
			dir = filepath.Join(path, "pkg", "mod")
		} else if home != "" {
			dir = filepath.Join(home, "go", "pkg", "mod")
		}
	}
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ",|") {
		return ""
	}
	next := lookup(environ, "GOPROXY")
	if next == "" {
		return "" // not known: Go's own setting stays in force
	}
	return "file://" + filepath.ToSlash(filepath.Join(dir, "cache", "download")) + "," + next
}

// lookup is the value of a variable; the last of two equal names counts.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}
