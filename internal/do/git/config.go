package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Setting is one value of the configuration.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // absolute; empty when it is not from a file
	Key   string // section and name in lower case
	Value string
}

// Config lists the effective configuration, included files too, in git's order.
func (r *Folders) Config(ctx context.Context) ([]Setting, error) {
	out, err := command.Run(ctx, r.NewCall("config", "--list", "--show-scope", "--show-origin", "--includes", "-z"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the git configuration: %w", err)
	}
	var all []Setting
	for f := range slices.Chunk(command.SplitRecords(out), 3) {
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

// latestValues returns the value that holds of each key.
func latestValues(settings []Setting) map[string]string {
	return lists.ToMap(settings, func(s Setting) (string, string) { return s.Key, s.Value })
}

// ConfigPath is the value of a key that names a file, with ~ expanded. It is
// empty when the key is not set.
func (r *Folders) ConfigPath(ctx context.Context, key string) (string, error) {
	value, err := r.configValue(ctx, "path", key)
	return strings.TrimSuffix(value, "\x00"), err
}

// ConfigBool is the value of a key that is true or false. A key that is not among
// the settings is false.
func (r *Folders) ConfigBool(ctx context.Context, settings []Setting, key string) (bool, error) {
	if v, set := latestValues(settings)[strings.ToLower(key)]; !set || v == "false" {
		return false, nil
	}
	value, err := r.configValue(ctx, "bool", key)
	return value == "true\x00", err
}

func (r *Folders) configValue(ctx context.Context, kind, key string) (string, error) {
	out, err := command.Run(ctx, r.NewCall("config", "-z", "--type="+kind, "--get", key))
	if command.ExitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s of the git configuration: %w", key, err)
	}
	return string(out), nil
}

// ignoreLine names the user's own ignore file, as an absolute path, for the
// section core of a configuration file. It is empty when the setting is not there.
func (r *Folders) ignoreLine(ctx context.Context, settings []Setting) (string, error) {
	if _, set := latestValues(settings)["core.excludesfile"]; !set {
		return "", nil
	}
	path, err := r.ConfigPath(ctx, "core.excludesFile")
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(r.Top, path)
	}
	return "\texcludesFile = " + quoteValue(path) + "\n", err
}

// configLines returns the lines of the keys that are set, for the section core of a configuration
// file.
func configLines(settings []Setting, keys ...string) string {
	var b strings.Builder
	last := latestValues(settings)
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
type Person struct {
	Name, Email string
	SignsOff    bool // each commit has the person's Signed-off-by
}

// lastLines are trailers at the end of a message: another one joins them.
var lastLines = lazy.Regexp(`\n\n([A-Z][\w-]*: .*\n)+$`)

// SignOff adds the person's Signed-off-by to the message of a commit.
func (p Person) SignOff(message string) string {
	return AddTrailers(message, fmt.Sprintf("Signed-off-by: %s <%s>\n", p.Name, p.Email))
}

// AddTrailers adds lines to the trailers of a message.
func AddTrailers(message, lines string) string {
	if message = strings.TrimRight(message, "\n") + "\n"; !lastLines().MatchString(message) {
		message += "\n"
	}
	return message + lines
}

// pawl is the author of every commit that pawl makes for itself.
var pawl = Person{Name: "pawl", Email: "pawl@localhost"}

// commitEnvironment returns the variables by which git commits as this person.
func (p Person) commitEnvironment() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + p.Name, "GIT_AUTHOR_EMAIL=" + p.Email,
		"GIT_COMMITTER_NAME=" + p.Name, "GIT_COMMITTER_EMAIL=" + p.Email,
	}
}

func identityOf(settings []Setting) Person {
	last := latestValues(settings)
	p := Person{Name: last["user.name"], Email: last["user.email"]}
	if p.Name == "" || p.Email == "" {
		return pawl
	}
	return p
}

// Obeyed are the files and folders of the work tree, relative to its top level, that
// git's settings and the person's variables name: where hooks are, attributes, settings that others include, and
// programs of any setting; and those that links among git's hooks lead to. drivers says
// that the settings have programs which attributes can name, other than LFS's.
func (r *Folders) Obeyed(ctx context.Context) (places []string, drivers bool, err error) {
	settings, err := r.Config(ctx)
	for _, s := range settings {
		from := r.Top // of hooks and attributes
		switch {
		case s.Key == "include.path", strings.HasPrefix(s.Key, "includeif.") && strings.HasSuffix(s.Key, ".path"):
			from = filepath.Dir(s.File)
		case s.Key == "core.hookspath", s.Key == "core.attributesfile":
		default:
			drivers = drivers || namesDriver(s.Key)
			places = append(places, r.filesNamed(s.Value, !strings.HasPrefix(s.Key, "user."))...)
			continue
		}
		for _, name := range namesOfSettingFile(s.Value, from) {
			below, ok := files.Below(r.Top, name)
			if !ok {
				continue
			}
			below = filepath.ToSlash(below)
			places = append(places, below)
			if s.Key == "core.hookspath" && path.Base(below) == "_" { // husky's, whose files call those above
				places = append(places, path.Dir(below))
			}
		}
	}
	for _, kv := range os.Environ() { // GIT_CONFIG_GLOBAL, BASH_ENV, GIT_SSH_COMMAND, …
		name, value, _ := strings.Cut(kv, "=")
		if isOfGit := strings.HasPrefix(name, "GIT_"); isOfGit || shellFile[name] {
			places = append(places, r.filesNamed(value, isOfGit)...)
		} else if filepath.IsAbs(value) { // of others, what they name in full
			places = append(places, r.filesNamed(value, false)...)
		}
	}
	hooks := filepath.Join(r.Common, "hooks")
	entries, _ := os.ReadDir(hooks) // mostly there are none
	links := lists.Each(entries, func(e os.DirEntry) string { return filepath.Join(hooks, e.Name()) })
	for _, link := range append(links, hooks) {
		to, _ := filepath.EvalSymlinks(link)
		if below, ok := files.Below(r.Top, to); ok && to != link && strings.SplitN(below, "/", 2)[0] != ".git" {
			places = append(places, filepath.ToSlash(below))
		}
	}
	return places, drivers, err
}

// shellFile has the variables whose file a shell runs when it starts.
var shellFile = map[string]bool{"BASH_ENV": true, "ENV": true}

// interpreter is a program that runs the file that the next word names.
var interpreter = lazy.Regexp(`^!?(?:.*/)?(?:[a-z]*sh|python[\d.]*|perl|ruby|node|php|deno|bun)$`)

// filesNamed are the files of the work tree that a value names, such as a command of a
// filter or an alias: git starts commands at the top level. They may be orComing: not there yet, where the word has the
// form of a file's name, or stands behind an interpreter.
func (r *Folders) filesNamed(value string, orComing bool) (places []string) {
	isBetween := func(c rune) bool { return strings.ContainsRune(" \t\"';&|(),:=", c) }
	last := ""
	for word := range strings.FieldsFuncSeq(value, isBetween) {
		for _, name := range namesOfSettingFile(strings.TrimPrefix(word, "!"), r.Top) {
			below, ok := files.Below(r.Top, name)
			info, err := os.Lstat(name)
			isArgument := last != "" && strings.Contains(word, ".")
			isName := isArgument || strings.Contains(word, "/") || interpreter().MatchString(last)
			mayCome := orComing && isName && errors.Is(err, fs.ErrNotExist)
			isFile := err == nil && info.Mode().IsRegular()
			if isObeyed := mayCome || isFile; ok && isObeyed {
				places = append(places, filepath.ToSlash(below))
			}
		}
		last = word
	}
	return places
}

// namesOfSettingFile are the absolute names of the file that a setting names: as it says, and where
// links on its way lead.
func namesOfSettingFile(value, from string) []string {
	if rest, ofHome := strings.CutPrefix(value, "~/"); ofHome {
		value = filepath.Join(os.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(from, value)
	}
	whole, err := filepath.EvalSymlinks(value)
	if err != nil { // it may not be there yet
		whole, err = filepath.EvalSymlinks(filepath.Dir(value))
		whole = filepath.Join(whole, filepath.Base(value))
	}
	if err != nil || whole == value {
		return []string{value}
	}
	return []string{value, whole}
}

// namesDriver reports whether a setting is a program that attributes can name.
func namesDriver(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	programs := map[string][]string{
		"filter": {"clean", "smudge", "process"}, "diff": {"command", "textconv"}, "merge": {"driver"},
	}[section]
	at := strings.LastIndexByte(rest, '.')
	return at > 0 && rest[:at] != "lfs" && slices.Contains(programs, rest[at+1:])
}
