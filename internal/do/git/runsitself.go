package git

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Obeyed are the files and folders of the work tree, relative to its top level, that
// git's settings name: where hooks are, attributes, settings that others include.
// drivers says that the settings have programs which attributes can name, other than
// LFS's.
func (r *Repo) Obeyed(ctx context.Context) (places []string, drivers bool, err error) {
	settings, err := r.Config(ctx)
	for _, s := range settings {
		from := r.Top // of hooks and attributes
		switch {
		case s.Key == "include.path", strings.HasPrefix(s.Key, "includeif.") && strings.HasSuffix(s.Key, ".path"):
			from = filepath.Dir(s.File)
		case s.Key == "core.hookspath", s.Key == "core.attributesfile":
		default:
			drivers = drivers || namesDriver(s.Key)
			continue
		}
		for _, name := range namesOf(s.Value, from) {
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
	return places, drivers, err
}

// namesOf are the absolute names of the file that a setting names: as it says, and where
// links on its way lead.
func namesOf(value, from string) []string {
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
