package queue

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Class is how hard a conflict is.
type Class string

// The classes.
const (
	Simple  Class = "simple"  // a rule resolves it, and the gates judge
	Medium  Class = "medium"  // for an agent that knows both intents
	Complex Class = "complex" // for a person
)

// MediumLines is the number of conflicting lines from which on a conflict is
// for a person.
const MediumLines = 20

// Conflict is the part of a merge that git could not do. Paths beyond [MaxFiles]
// are counted in More only.
type Conflict struct {
	Files []File `json:"files"`
	More  int    `json:"more,omitempty"`
	// Regenerating says why the commands of files were of no help.
	Regenerating string `json:"regenerating,omitempty"`
}

// MaxFiles is how many files of a conflict are kept.
const MaxFiles = 100

// File is one path in conflict.
type File struct {
	Path string `json:"path"`
	// Kinds are git's words for what happened, such as "contents" or "rename/delete".
	Kinds  []string `json:"kinds,omitempty"`
	Binary bool     `json:"binary,omitempty"`
	// Special: a symbolic link, a submodule, or modes that differ.
	Special bool `json:"special,omitempty"`
	// Created: both sides made the file, so there is no common text.
	Created bool   `json:"created,omitempty"`
	Hunks   []Hunk `json:"hunks,omitempty"`
	// Regenerate is the command that makes the file anew, so that its lines need not
	// be merged. See [File.Regenerable].
	Regenerate string `json:"regenerate,omitempty"`
}

// Regenerable reports whether a command may make the file anew: both sides have
// one, as a file.
func (f *File) Regenerable() bool { return !f.Special && f.unusualPart() == "" }

// unusualPart names what of the conflict is about more than contents.
func (f *File) unusualPart() string {
	for _, k := range f.Kinds {
		if k != "contents" && k != "add/add" {
			return k
		}
	}
	return ""
}

// Hunk is one place where both sides changed the same lines. Lines have no
// line feeds.
type Hunk struct {
	Base   []string `json:"base,omitempty"`
	Ours   []string `json:"ours,omitempty"`   // the target's
	Theirs []string `json:"theirs,omitempty"` // the entry's
}

// sizeOfHunk counts the lines of its longer side.
func (h *Hunk) sizeOfHunk() int { return max(len(h.Ours), len(h.Theirs)) }

// Classify rates a conflict: as hard as its hardest file, and as long as all
// those together that no rule resolves.
func Classify(c Conflict) (Class, string) {
	if len(c.Files) == 0 {
		return Complex, "git does not say where"
	}
	lines, hard, class := 0, 0, Simple
	for i := range c.Files {
		f := &c.Files[i]
		if f.Regenerate != "" {
			continue
		}
		if reason := f.Structural(); reason != "" {
			return Complex, f.Path + ": " + reason
		}
		own := 0
		for j := range f.Hunks {
			own += f.Hunks[j].sizeOfHunk()
		}
		lines += own
		if !f.isResolvable() {
			hard, class = hard+own, Medium
		}
	}
	if class == Medium {
		lines = hard
	}
	files := fault.Numbered(len(c.Files)+c.More, "file")
	why := fmt.Sprintf("%s, %s (%s)", files, fault.Numbered(lines, "line"), firstOfList(c.Paths()))
	switch {
	case class == Simple && c.More == 0:
		return Simple, why
	case lines >= MediumLines || c.More > 0:
		return Complex, why
	}
	return Medium, why
}

// Paths of its files.
func (c *Conflict) Paths() []string {
	return lists.Each(c.Files, func(one File) string { return one.Path })
}

// Structural is the reason why a conflict is about more than lines; "" when it is not.
func (f *File) Structural() string {
	switch {
	case f.Binary:
		return "a binary file was changed on both sides"
	case f.Special:
		return "a link, a submodule or a mode was changed on both sides"
	}
	if k := f.unusualPart(); k != "" {
		return "a " + k + " conflict"
	}
	if len(f.Hunks) == 0 {
		return "git does not say in which lines"
	}
	return ""
}

func (f *File) isResolvable() bool {
	_, ok := f.Resolve()
	return ok
}

// Resolve returns the text of each hunk that a rule makes of it; ok is false when one of them has
// none. Three rules there are, and each keeps the changes of both sides:
//
//   - a side that changed nothing but blanks at the ends of lines and empty
//     lines gives way to the other;
//   - two sides that say the same but for such blanks are the target's;
//   - what both added at one place stays, the target's first; not where both
//     define the same name there.
//
// In files whose meaning is in their indentation, blanks count. A list of checksums is the sorted
// union of both.
func (f *File) Resolve() (hunks [][]string, ok bool) {
	if f.Structural() != "" {
		return nil, false
	}
	for i := range f.Hunks {
		text, ok := f.resolveHunk(&f.Hunks[i])
		if !ok {
			return nil, false
		}
		hunks = append(hunks, text)
	}
	return hunks, true
}

func (f *File) resolveHunk(h *Hunk) ([]string, bool) {
	if path.Base(f.Path) == "go.sum" || path.Base(f.Path) == "go.work.sum" {
		return uniteSides(h), true
	}
	if !f.isIndented() {
		base, ours, theirs := trimLines(h.Base), trimLines(h.Ours), trimLines(h.Theirs)
		switch {
		case slices.Equal(ours, theirs):
			return h.Ours, true
		case !f.Created && slices.Equal(base, ours):
			return h.Theirs, true
		case !f.Created && slices.Equal(base, theirs):
			return h.Ours, true
		}
	}
	if f.Created || len(h.Base) > 0 || len(h.Ours) == 0 || len(h.Theirs) == 0 || bothDefineName(h) {
		return nil, false
	}
	return slices.Concat(h.Ours, h.Theirs), true
}

// isIndented reports whether blanks carry meaning in the file.
func (f *File) isIndented() bool {
	switch strings.ToLower(path.Ext(f.Path)) {
	case ".py", ".pyi", ".yaml", ".yml", ".mk", ".mak", ".haml", ".pug", ".slim", ".sass",
		".coffee", ".nim", ".fs", ".hs", ".md", ".rst", ".patch", ".diff", ".tsv":
		return true
	}
	name := strings.ToLower(path.Base(f.Path))
	return name == "makefile" || name == "gnumakefile" || name == "snakefile"
}

// trimLines gives lines without blanks at their ends, and without empty lines.
func trimLines(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// uniteSides gives the lines of both sides, sorted, each once, less those that a side
// took away.
func uniteSides(h *Hunk) []string {
	all := slices.Concat(h.Ours, h.Theirs)
	all = slices.DeleteFunc(all, func(l string) bool {
		stays := slices.Contains(h.Ours, l) && slices.Contains(h.Theirs, l)
		return slices.Contains(h.Base, l) && !stays
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// bothDefineName is true when both sides have a line that begins alike, up to what
// opens a value or a list: they may both define it.
func bothDefineName(h *Hunk) bool {
	ours := map[string]bool{}
	for _, l := range h.Ours {
		if n := nameOfLine(l); n != "" {
			ours[n] = true
		}
	}
	return slices.ContainsFunc(h.Theirs, func(l string) bool { return ours[nameOfLine(l)] })
}

// nameOfLine gives the part of a line before its first = : ( or {; "" for a line
// without letters.
func nameOfLine(line string) string {
	if i := strings.IndexAny(line, "=:({"); i >= 0 {
		line = line[:i]
	}
	line = strings.TrimSpace(line)
	if !strings.ContainsFunc(line, func(r rune) bool { return r == '_' || r > 127 || unicode.IsLetter(r) }) {
		return ""
	}
	return line
}
