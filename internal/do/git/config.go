package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Setting is one value of the configuration.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // absolute; empty when it is not from a file
	Key   string // section and name in lower case
	Value string
}

// Config lists the effective configuration, included files too, in git's order.
func (r *Repo) Config(ctx context.Context) ([]Setting, error) {
	out, err := run(ctx, r.call("config", "--list", "--show-scope", "--show-origin", "--includes", "-z"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the git configuration: %w", err)
	}
	var all []Setting
	for f := range slices.Chunk(records(out), 3) {
		if len(f) < 3 {
			return nil, errors.New("cannot read the git configuration: odd answer")
		}
		s := Setting{Scope: f[0]}
		if file, ok := strings.CutPrefix(f[1], "file:"); ok {
			s.File = file
			if !filepath.IsAbs(file) {
				s.File = filepath.Join(r.Top, file)
			}
		}
		s.Key, s.Value, _ = strings.Cut(f[2], "\n")
		all = append(all, s)
	}
	return all, nil
}

// latest is the value that holds of each key.
func latest(settings []Setting) map[string]string {
	last := make(map[string]string, len(settings))
	for _, s := range settings {
		last[s.Key] = s.Value
	}
	return last
}

// ConfigPath is the value of a key that names a file, with ~ expanded. It is
// empty when the key is not set.
func (r *Repo) ConfigPath(ctx context.Context, key string) (string, error) {
	value, err := r.configValue(ctx, "path", key)
	return strings.TrimSuffix(value, "\x00"), err
}

// ConfigBool is the value of a key that is true or false. A key that is not among
// the settings is false.
func (r *Repo) ConfigBool(ctx context.Context, settings []Setting, key string) (bool, error) {
	if v, set := latest(settings)[strings.ToLower(key)]; !set || v == "false" {
		return false, nil
	}
	value, err := r.configValue(ctx, "bool", key)
	return value == "true\x00", err
}

func (r *Repo) configValue(ctx context.Context, kind, key string) (string, error) {
	out, err := run(ctx, r.call("config", "-z", "--type="+kind, "--get", key))
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s of the git configuration: %w", key, err)
	}
	return string(out), nil
}

// ignoreLine names the user's own ignore file, as an absolute path, for the
// section core of a configuration file. It is empty when the setting is not there.
func (r *Repo) ignoreLine(ctx context.Context, settings []Setting) (string, error) {
	if _, set := latest(settings)["core.excludesfile"]; !set {
		return "", nil
	}
	path, err := r.ConfigPath(ctx, "core.excludesFile")
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(r.Top, path)
	}
	return "\texcludesFile = " + quoteValue(path) + "\n", err
}

// configLines are those of the keys that are set, for the section core of a
// configuration file.
func configLines(settings []Setting, keys ...string) string {
	var b strings.Builder
	last := latest(settings)
	for _, key := range keys {
		if v, ok := last["core."+key]; ok {
			fmt.Fprintf(&b, "\t%s = %s\n", key, quoteValue(v))
		}
	}
	return b.String()
}

func quoteValue(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v) + `"`
}

// Person is who a commit is by.
type Person struct{ Name, Email string }

// pawl is the author of every commit that pawl makes for itself.
var pawl = Person{Name: "pawl", Email: "pawl@localhost"}

// environ are the variables by which git commits as this person.
func (p Person) environ() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + p.Name, "GIT_AUTHOR_EMAIL=" + p.Email,
		"GIT_COMMITTER_NAME=" + p.Name, "GIT_COMMITTER_EMAIL=" + p.Email,
	}
}

func identity(settings []Setting) Person {
	last := latest(settings)
	p := Person{last["user.name"], last["user.email"]}
	if p.Name == "" || p.Email == "" {
		return pawl
	}
	return p
}
