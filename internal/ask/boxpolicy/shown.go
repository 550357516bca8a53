package boxpolicy

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

//go:embed shown.txt
var shownTable string

// shownNames are the patterns of shown.txt by section.
var shownNames = sync.OnceValue(func() map[string][]string { return safety.WordsOf(shownTable) })

// shownPaths returns the paths of the machine that every box shows: its programs, those that
// PATH leads to, managers of versions, and what person and agent name besides; and
// the secrets in them, which no box shows.
func (m maker) shownPaths(home string, path []string) (shown, secrets []string) {
	out := existingPaths("/", shownNames()["system"]...)
	for _, name := range shownNames()["etc"] {
		out = append(out, existingPaths("/etc", name)...)
	}
	ofSystem := len(out)
	if filepath.IsAbs(home) && home != "/" {
		for _, name := range shownNames()["home"] {
			out = append(out, existingPaths("/", program.InHome(home, name, m.envValue))...)
		}
	}
	for _, name := range shownNames()["variables"] {
		for _, place := range filepath.SplitList(m.envValue(name)) {
			out = append(out, existingPaths("/", place)...)
		}
	}
	for _, venv := range []string{".venv", "venv"} { // its Python is elsewhere
		out = append(out, installedWith(filepath.Join(m.Plan.Root, venv, "bin", "python"), home)...)
	}
	out = append(out, programsIn(append([]string{"/usr/local/bin", "/usr/bin", "/etc/alternatives"}, path...), home)...)
	out = append(out, m.Plan.Exe)
	holdsAll := func(dir string) bool { return holdsOneOf(dir, home, m.StateDir) }
	secrets = m.secretsIn(slices.DeleteFunc(slices.Clone(out[ofSystem:]), holdsAll), maxLooked)
	for _, c := range sandbox.GateCaches(nil, home, nil, true) {
		secrets = append(secrets, m.secretsIn([]string{c.At}, 0)...)
	}
	return slices.DeleteFunc(out, holdsAll), secrets
}

// maxLooked bounds in how many folders of a shown one secrets are looked for.
const maxLooked = 50

// secretsIn are the sockets in shown folders, and in so many of the folders in them, and the files that hold
// secrets by their names; programs and their parts do not. In the workspace, and where the person has all
// shown, there are none.
func (m maker) secretsIn(shown []string, inThem int) (secrets []string) {
	asked := presentPaths(m.Config.Safety.Show, func(string, ...any) {}, "")
	ofPerson := lists.Each(slices.Concat(asked, []string{m.Plan.Root, m.Top}), filepath.Clean)
	look := func(dir string) (folders []string) {
		entries, _ := os.ReadDir(dir)
		if slices.ContainsFunc(ofPerson, func(of string) bool { return of != "." && holdsOneOf(of, dir+"/any") }) {
			return nil
		}
		for _, e := range entries[:min(len(entries), maxPrograms)] {
			path, name := filepath.Join(dir, e.Name()), strings.ToLower(e.Name())
			fits := func(pattern string) bool { return matchesStars(pattern, name) }
			isNamed := slices.Contains(shownNames()["secrets"], name) // in full, and not by a pattern
			isSecret := e.Type()&os.ModeSocket != 0 || isNamed || slices.ContainsFunc(shownNames()["secrets"], fits) &&
				!slices.ContainsFunc(shownNames()["code"], fits) && !isProgram(e)
			switch {
			case !e.IsDir() && !isSecret, slices.Contains(ofPerson, path):
			case e.IsDir():
				folders = append(folders, path)
			default:
				secrets = append(secrets, path)
			}
		}
		return folders
	}
	slices.Sort(shown)
	for _, dir := range slices.Compact(shown) {
		folders := look(dir)
		for _, folder := range folders[:min(len(folders), inThem)] {
			look(folder)
		}
	}
	return secrets
}

// matchesStars is filepath.Match, ten times faster, for patterns that have no other sign than stars.
func matchesStars(pattern, name string) bool {
	start, rest, isPattern := strings.Cut(pattern, "*")
	if !isPattern || !strings.HasPrefix(name, start) {
		return pattern == name
	}
	name = name[len(start):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, left, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name, rest = left, after
	}
}

// holdsOneOf asks whether one of the paths is dir or lies in it.
func holdsOneOf(dir string, paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		if _, inside := files.Below(dir, path); inside {
			return true
		}
		return path != "" && filepath.Clean(path) == filepath.Clean(dir)
	})
}

func isProgram(e os.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode()&0o111 != 0
}

// namedByVariables are the paths in the variables that a program reads, and in those that
// the person gives it: folders that are the program's own, and what it reads besides.
func (m maker) namedByVariables(name string, given []string, mayShow func(string) bool) (own, read []string) {
	patterns := agents.Variables(name, "", func(variable string) string {
		return lookupEnv(given, variable, m.envValue(variable))
	})
	for i, kv := range slices.Concat(given, m.Env) {
		variable, value, _ := strings.Cut(kv, "=")
		isGiven := i < len(given)
		isOwn := slices.ContainsFunc(patterns, func(pattern string) bool {
			match, _ := filepath.Match(pattern, variable)
			return match
		})
		for _, path := range filepath.SplitList(value) {
			ofURL := strings.HasPrefix(path, "//")
			info, err := os.Stat(path)
			switch {
			case err != nil || ofURL || !filepath.IsAbs(path) || !mayShow(path):
			case isOwn && info.IsDir():
				own = append(own, path)
			case isGiven && variable == "PATH":
				read = append(read, programsOf(path, m.envValue("HOME"))...)
			case isGiven || isOwn:
				read = append(read, path)
			}
		}
	}
	return own, slices.DeleteFunc(read, func(path string) bool { return !mayShow(path) })
}

// existingPaths returns the paths below dir, by a pattern, that are there.
func existingPaths(dir string, patterns ...string) []string {
	var out []string
	for _, pattern := range patterns {
		path := filepath.Join(dir, pattern)
		if !strings.ContainsAny(pattern, "*") {
			if _, err := os.Stat(path); err == nil {
				out = append(out, path)
			}
			continue
		}
		found, _ := filepath.Glob(path)
		out = append(out, found...)
	}
	return out
}

// programsIn looks into several folders, and only once into each, whatever links lead to it.
func programsIn(dirs []string, home string) (out []string) {
	var read []string
	for _, dir := range dirs {
		to, err := filepath.EvalSymlinks(dir)
		switch {
		case err != nil || !filepath.IsAbs(dir):
		case slices.Contains(read, to):
			out = append(out, withLibraries(filepath.Clean(dir), home))
		default:
			read = append(read, to)
			out = append(out, programsOf(dir, home)...)
		}
	}
	return out
}

// maxPrograms bounds how many programs of a folder are looked at.
const maxPrograms = 3000

// programsOf is a folder of programs, with what it is part of, and what the links in
// it lead to.
func programsOf(dir, home string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil || !filepath.IsAbs(dir) {
		return nil
	}
	out := []string{withLibraries(filepath.Clean(dir), home)}
	for _, e := range entries[:min(len(entries), maxPrograms)] {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		ofSystem := strings.HasPrefix(to, "/usr/") || strings.HasPrefix(to, "/etc/alternatives/")
		if besides := !strings.Contains(to, "/"); err != nil || besides || ofSystem {
			continue
		}
		out = append(out, installedWith(filepath.Join(dir, e.Name()), home)...)
	}
	return slices.Compact(out)
}

// installedWith lists what a program behind links belongs to.
func installedWith(path, home string) []string {
	to, err := filepath.EvalSymlinks(path)
	if err != nil || to == path {
		return nil
	}
	dir := filepath.Dir(to)
	if dir == home || filepath.Dir(dir) == home {
		return []string{to} // not the folder: anything may lie in it
	}
	return []string{withLibraries(dir, home)}
}

// withLibraries is a folder of programs, or what it is part of: libraries lie beside it.
func withLibraries(dir, home string) string {
	base, parent := filepath.Base(dir), filepath.Dir(dir)
	switch parent {
	case "/", home, filepath.Join(home, ".local"), filepath.Join(home, "go"), filepath.Join(home, ".cargo"),
		filepath.Join(home, ".bun"), filepath.Join(home, ".yarn"), os.TempDir():
		return dir
	}
	isPart := base == "bin" || base == "sbin" || base == "shims" || base == "Scripts"
	if isPart && !holdsOneOf(parent, home) {
		return parent
	}
	return dir
}

// packagesOf are the folders that programs and scripts which are named by their path
// belong to: an interpreter and modules lie beside them.
func packagesOf(paths []string, home string) []string {
	var out []string
	for _, path := range paths {
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if dir := filepath.Dir(to); filepath.Base(dir) == "bin" {
			out = append(out, withLibraries(dir, home))
		}
		for _, folder := range []string{"node_modules", "site-packages", "dist-packages"} {
			if before, _, ok := strings.Cut(to, "/"+folder+"/"); ok {
				out = append(out, filepath.Join(before, folder))
			}
		}
	}
	return out
}

// copySettings copies the settings of package managers and git, without what is secret, to
// be shown in the place of the originals.
func (m maker) copySettings(home string, git []git.Setting, asked []string) []sandbox.Bind {
	var out []sandbox.Bind
	show := func(name, text string) {
		to := program.InHome(home, name, m.envValue)
		from := filepath.Join(m.StateDir, "settings", strings.ReplaceAll(strings.Trim(to, "/"), "/", "-"))
		if old, err := os.ReadFile(from); err != nil || string(old) != text {
			if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
				return // the tool works without
			}
			if err := files.Replace(from, []byte(text), 0o600, false); err != nil {
				return
			}
		}
		out = append(out, sandbox.Bind{From: from, To: to, ReadOnly: true})
	}
	for _, name := range shownNames()["settings"] {
		path := program.InHome(home, name, m.envValue)
		if slices.Contains(asked, path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() < maxSettings {
			if text, err := os.ReadFile(path); err == nil {
				show(name, safety.WithoutSecrets(string(text)))
			}
		}
	}
	if m.Repo != nil && !slices.Contains(asked, filepath.Join(home, ".gitconfig")) {
		show(".gitconfig", ofGitAlone(git))
	}
	return out
}

// repositoriesHere are the folders of this machine that a repository names as where it, or
// a submodule of it, comes from: a set-up fetches from there.
func repositoriesHere(settings []git.Setting) []string {
	var out []string
	for _, s := range settings {
		from := strings.HasPrefix(s.Key, "remote.") || strings.HasPrefix(s.Key, "submodule.")
		if from && strings.HasSuffix(s.Key, ".url") {
			if path := strings.TrimPrefix(s.Value, "file://"); filepath.IsAbs(path) {
				out = append(out, filepath.Clean(path))
			}
		}
	}
	return out
}

// maxSettings bounds a file of settings.
const maxSettings = 1 << 20

// ofGit are the settings of a person's that an agent's git works by.
var ofGit = strings.Fields(`
	user.name user.email init.defaultbranch core.autocrlf core.eol core.safecrlf core.ignorecase
	core.precomposeunicode core.quotepath core.longpaths core.filemode core.symlinks pull.rebase pull.ff
	merge.conflictstyle diff.algorithm filter.lfs.clean filter.lfs.smudge filter.lfs.process filter.lfs.required
	safe.directory
`)

// gitFiles are where a person's settings of git are.
var gitFiles = []string{".gitconfig", ".config/git/config"}

// ofGitAlone is a file of git's with those of the settings of the person and the machine.
func ofGitAlone(settings []git.Setting) string {
	var out strings.Builder
	for _, s := range settings {
		ofPerson := s.Scope == "system" || s.Scope == "global"
		transport := strings.HasPrefix(s.Key, "protocol.") && strings.HasSuffix(s.Key, ".allow")
		if !ofPerson || !transport && !slices.Contains(ofGit, s.Key) {
			continue
		}
		at := strings.LastIndex(s.Key, ".")
		section, name := s.Key[:max(at, 0)], s.Key[at+1:]
		head := "[" + section + "]"
		if section, sub, ok := strings.Cut(section, "."); ok {
			head = "[" + section + " " + strconv.Quote(sub) + "]"
		}
		fmt.Fprintf(&out, "%s\n\t%s = %s\n", head, name, strconv.Quote(s.Value))
	}
	return out.String()
}

// showSettings shows the settings of package managers and git, or without mounts the originals.
func (m maker) showSettings(place *sandbox.Place, home string, of []git.Setting, v sandbox.Verdict) []sandbox.Bind {
	if v.Means.Mounts {
		return m.copySettings(home, of, place.Asked)
	}
	place.Shown = append(place.Shown, existingPaths(home, slices.Concat(shownNames()["settings"], gitFiles)...)...)
	return nil
}
