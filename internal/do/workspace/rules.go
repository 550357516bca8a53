package workspace

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// rulesLimit is the size in bytes of an ignore file that is read; git's own
// limit is far above, and no such file written by a person comes near it.
const rulesLimit = 1 << 20

// start is what the run's start ignored.
type start struct {
	file    string          // the rules of then, as one file for git
	ignored map[string]bool // files and whole folders that were ignored then; folders end with a slash
	pinned  []string        // tracked then although the rules ignore it: counts as tracked
}

// wasIgnored reports whether path was there and ignored at the start.
func (s *start) wasIgnored(p string) bool {
	if s.ignored[p] {
		return true
	}
	for i := range len(p) {
		if p[i] == '/' && s.ignored[p[:i+1]] {
			return true
		}
	}
	return false
}

// loadStart reads the rules of the run's start, or captures them if this is
// the start: the file "rules" is written last and says that the rest is whole.
func (r *session) loadStart(ctx context.Context) (*start, error) {
	s := &start{file: filepath.Join(r.dir, "rules"), ignored: map[string]bool{}}
	if _, err := os.Stat(s.file); err != nil {
		if err := r.captureStart(ctx); err != nil {
			return nil, fmt.Errorf("cannot keep the ignore rules of the run's start: %w", err)
		}
	}
	ignored, err := os.ReadFile(filepath.Join(r.dir, "ignored"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the ignore rules of the run's start: %w", err)
	}
	for _, p := range splitPaths(ignored) {
		s.ignored[p] = true
	}
	pinned, err := os.ReadFile(filepath.Join(r.dir, "pinned"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the ignore rules of the run's start: %w", err)
	}
	s.pinned = splitPaths(pinned)
	return s, nil
}

// captureStart keeps what is ignored now. The scan that it needs is left for who
// scans next.
func (r *session) captureStart(ctx context.Context) error {
	scan, err := r.index.Scan(ctx, git.ScanOptions{Near: r.near, Tracked: true, Ignored: true, Others: r.others})
	if err != nil {
		return err
	}
	r.scanned = &scan
	entries, err := r.index.Entries(ctx)
	if err != nil {
		return err
	}
	r.noteNested(entries)
	rules, err := r.c.composeRules(ctx, ignoreFiles(entries, slices.Concat(scan.Untracked, scan.Ignored)))
	if err != nil {
		return err
	}
	for name, list := range map[string][]string{"ignored": scan.Ignored, "pinned": scan.Tracked} {
		if err := files.Replace(filepath.Join(r.dir, name), joinPaths(list), 0o600, true); err != nil {
			return err
		}
	}
	return files.Replace(filepath.Join(r.dir, "rules"), rules, 0o600, true)
}

// noteFolders notes the folders that files of the private index are in.
func (r *session) noteFolders(names []string) {
	for _, name := range names {
		for dir := path.Dir(name); !r.mem.folders[dir]; dir = path.Dir(dir) {
			r.mem.folders[dir] = true
		}
	}
}

// rulesNow are the rules of now that may ignore files of the private index. An error is "".
func (r *session) rulesNow(ctx context.Context) string {
	var found []string
	for dir := range r.mem.folders {
		name := path.Join(dir, ".gitignore")
		if _, err := os.Lstat(filepath.Join(r.c.Repo.Top, name)); err == nil {
			found = append(found, name)
		}
	}
	rules, _ := r.c.composeRules(ctx, higherFirst(found))
	return string(rules)
}

// ignoreFiles are the .gitignore files that count, those higher up first.
func ignoreFiles(entries []git.Entry, others []string) []string {
	var found []string
	add := func(p string) {
		if path.Base(p) == ".gitignore" {
			found = append(found, p)
		}
	}
	for _, e := range entries {
		add(e.Path)
	}
	for _, p := range others {
		add(p)
	}
	return slices.Compact(higherFirst(found))
}

// higherFirst sorts paths: those in fewer folders come first.
func higherFirst(paths []string) []string {
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	return paths
}

// composeRules makes one list of all ignore rules, relative to the top level.
// Later lines beat earlier ones, as deeper files beat higher ones in git.
func (c *Checkout) composeRules(ctx context.Context, files []string) ([]byte, error) {
	global, err := c.globalIgnore(ctx)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	writeRules(&b, "", readRules(global))
	writeRules(&b, "", readRules(c.Repo.Exclude))
	for _, f := range files {
		dir := path.Dir(f)
		if dir == "." {
			dir = ""
		}
		writeRules(&b, dir, c.readTreeRules(f))
	}
	b.WriteString(".pawl/\n")
	return b.Bytes(), nil
}

// globalIgnore is the user's own ignore file.
func (c *Checkout) globalIgnore(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.global == "" {
		var err error
		if c.global, err = findGlobalIgnore(ctx, c.of, c.Repo.Top); err != nil {
			return "", err
		}
	}
	return c.global, nil
}

func findGlobalIgnore(ctx context.Context, of *git.Repo, top string) (string, error) {
	set, err := of.ConfigPath(ctx, "core.excludesFile")
	if err != nil {
		return "", err
	}
	if set != "" {
		if !filepath.IsAbs(set) {
			set = filepath.Join(top, set)
		}
		return set, nil
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "git", "ignore"), nil
	}
	return filepath.Join(os.Getenv("HOME"), ".config", "git", "ignore"), nil
}

// readRules reads an ignore file. One that cannot be read has no rules, as in git.
func readRules(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, rulesLimit))
	if err != nil {
		return nil
	}
	return data
}

// readTreeRules reads a .gitignore of the work tree. Git does not follow one
// that is a symbolic link.
func (c *Checkout) readTreeRules(p string) []byte {
	data, err := files.ReadBelow(c.Repo.Top, filepath.FromSlash(p), rulesLimit)
	if err != nil {
		return nil
	}
	return data
}

func writeRules(b *bytes.Buffer, dir string, data []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range bytes.Lines(data) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if rule := anchorRule(dir, text); rule != "" {
			b.WriteString(rule + "\n")
		}
	}
}

// anchorRule rewrites a rule of the .gitignore in dir for one at the top level. A
// blank line or a comment is "".
func anchorRule(dir, rule string) string {
	if rule == "" || rule[0] == '#' || dir == "" {
		if strings.HasPrefix(rule, "#") {
			return ""
		}
		return rule
	}
	not := ""
	if rule[0] == '!' {
		not, rule = "!", rule[1:]
	}
	body := strings.TrimSuffix(strings.TrimRight(rule, " "), "/")
	if body == "" {
		return ""
	}
	if strings.Contains(body, "/") {
		return not + "/" + escapeGlob(dir) + "/" + strings.TrimPrefix(rule, "/")
	}
	return not + "/" + escapeGlob(dir) + "/**/" + rule
}

// escapeGlob makes a path a pattern that matches it. A rule is one line, so a
// newline becomes "any character".
func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, "\n", "?").Replace(p)
}

func joinPaths(paths []string) []byte {
	if len(paths) == 0 {
		return nil
	}
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

func splitPaths(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}
