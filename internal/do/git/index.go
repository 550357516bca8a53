package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// File modes of tree entries.
const (
	ModeFile    = "100644"
	ModeExec    = "100755"
	ModeSymlink = "120000"
	ModeNested  = "160000" // a commit of a nested repository
)

// Entry is one line of an index.
type Entry struct {
	Mode, Object, Path string
	Stage              int  // 0, or 1 to 3 in a merge conflict
	Sparse             bool // skip-worktree: the file need not be there
	Assumed            bool // assume-unchanged: the file is not looked at
}

// Index is a private index of a shadow. One process at a time may use it.
type Index struct {
	shadow *Shadow
	file   string
	lock   *os.File
}

// Index uses the index at file, which need not exist. Git inherits lock, if
// it is not nil, so that a lock on that file is held until git has ended too.
func (s *Shadow) Index(file string, lock *os.File) *Index {
	return &Index{shadow: s, file: file, lock: lock}
}

func (x *Index) newCall(args ...string) call {
	c := x.shadow.newCall(args...)
	c.Env = append(c.Env, "GIT_INDEX_FILE="+x.file)
	c.Lock = x.lock
	return c
}

// Scan is how the work tree differs from an index, and what else [ScanOptions] asks for.
type Scan struct {
	Changed   []string // in the index and different on disk, or in conflict
	Gone      []string // in the index, and no file on disk
	Untracked []string // on disk, not in the index, not ignored; a nested repository ends with a slash

	Tracked []string // in the index, and ignored by the rules of now
	Ignored []string // on disk and ignored; a folder that is ignored itself is one entry, which ends with a slash
	Others  Others
}

// Others are what is on disk and not in an index: what is ignored, where a folder whose files are
// all ignored is one entry, which ends with a slash; and the top folders that neither the index
// nor git's rules for what is ignored know a file of: empty ones, too.
type Others struct{ Ignored, Folders []string }

// ScanOptions say what a scan lists beside what differs.
type ScanOptions struct {
	Near    string // a commit that has most of what the index has, which makes the scan faster; "" is not known
	Tracked bool   // list [Scan.Tracked]
	Ignored bool   // list [Scan.Ignored]
	Others  bool   // list [Scan.Others]
}

// Scan compares the work tree with the index. Submodules are not looked into. The
// index learns the new times of files whose content did not change, so that the next
// scan need not read them, but for what has changed since this one began.
func (x *Index) Scan(ctx context.Context, o ScanOptions) (s Scan, err error) {
	began := time.Now()
	if err := x.forgetRecent(); err != nil {
		return s, err
	}
	which := "no"
	if o.Ignored {
		which = "matching"
	}
	var warned bytes.Buffer
	status := x.newCall("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored="+which, "--no-renames",
		"--ignore-submodules=all")
	status.Env = append(status.Env, "GIT_OPTIONAL_LOCKS=1")
	status.Warned = &warned
	if o.Near != "" { // git status names each file that is not as in the commit
		own := filepath.Dir(x.file)
		if err := keepFile(filepath.Join(own, "HEAD"), []byte(o.Near+"\n")); err != nil {
			return s, fmt.Errorf("cannot scan the work tree: %w", err)
		}
		status.Env = append(status.Env, "GIT_DIR="+own, "GIT_COMMON_DIR="+x.shadow.Dir)
	}
	calls := []call{status}
	if o.Others {
		calls = append(calls, x.newIgnoredCall(), x.newFoldersCall())
	}
	if o.Tracked {
		calls = append(calls, x.newCall("ls-files", "-z", "-c", "-i", "--exclude-standard"))
	}
	outs, err := command.RunAll(ctx, calls...)
	// Files in a folder that cannot be listed are missing in the untracked ones, but can be opened.
	if bytes.Contains(warned.Bytes(), []byte("could not open directory")) && files.Mend(x.shadow.Repo.Top) {
		return x.Scan(ctx, o)
	}
	if err != nil && o.Near != "" && ctx.Err() == nil { // the commit may be what cannot be read
		o.Near = ""
		return x.Scan(ctx, o)
	}
	if err != nil {
		return s, fmt.Errorf("cannot scan the work tree: %w", err)
	}
	if o.Others {
		s.Others = Others{command.SplitRecords(outs[1]), onlyFolders(outs[2])}
	}
	if o.Tracked {
		s.Tracked = command.SplitRecords(outs[len(outs)-1])
	}
	for _, line := range command.SplitRecords(outs[0]) {
		if name, is := strings.CutPrefix(line, "! "); is {
			s.Ignored = append(s.Ignored, name)
		} else if err := s.readStatus(line); err != nil {
			return s, err
		}
	}
	return s, x.noteScan(began)
}

// readStatus takes one line of git status. The first letter says how the index differs from a
// commit; only the second one counts.
func (s *Scan) readStatus(line string) error {
	kind, path, _ := strings.Cut(line, " ")
	if kind == "?" {
		s.Untracked = append(s.Untracked, path)
		return nil
	}
	fields := map[string]int{"1": 8, "u": 10}[kind]
	f := strings.SplitN(line, " ", fields+1)
	if fields == 0 || len(f) <= fields || len(f[1]) != 2 {
		return fmt.Errorf("cannot scan the work tree: git status said %q", line)
	}
	path = f[fields]
	switch {
	case kind == "u":
		s.Changed = append(s.Changed, path)
	case f[1][1] == 'D':
		s.Gone = append(s.Gone, path)
	case f[1][1] != '.':
		s.Changed = append(s.Changed, path)
	}
	return nil
}

// UntrackedBy lists the files that are not in the index and not ignored by the
// rules in the file, which stand alone: no .gitignore is read.
func (x *Index) UntrackedBy(ctx context.Context, rules string) ([]string, error) {
	out, err := command.Run(ctx, x.newCall("ls-files", "-z", "-o", "--exclude-from="+rules))
	return command.SplitRecords(out), err
}

// ListOthers lists [Scan.Others].
func (x *Index) ListOthers(ctx context.Context) (Others, error) {
	outs, err := command.RunAll(ctx, x.newIgnoredCall(), x.newFoldersCall())
	return Others{command.SplitRecords(outs[0]), onlyFolders(outs[1])}, err
}

// ListIgnored lists [Others.Ignored].
func (x *Index) ListIgnored(ctx context.Context) ([]string, error) {
	out, err := command.Run(ctx, x.newIgnoredCall())
	return command.SplitRecords(out), err
}

// ListFolders lists [Others.Folders].
func (x *Index) ListFolders(ctx context.Context) ([]string, error) {
	out, err := command.Run(ctx, x.newFoldersCall())
	return onlyFolders(out), err
}

func (x *Index) newIgnoredCall() call {
	return x.newCall("ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard")
}

func (x *Index) newFoldersCall() call {
	return x.newCall("ls-files", "-z", "-o", "--directory", "--exclude-standard")
}

func onlyFolders(out []byte) []string {
	isFile := func(name string) bool { return !strings.HasSuffix(name, "/") }
	return slices.DeleteFunc(command.SplitRecords(out), isFile)
}

// Names lists the paths of the index.
func (x *Index) Names(ctx context.Context) ([]string, error) {
	out, err := command.Run(ctx, x.newCall("ls-files", "-z"))
	return command.SplitRecords(out), err
}

// Entries lists the index.
func (x *Index) Entries(ctx context.Context) ([]Entry, error) {
	return ListEntries(ctx, x.newCall())
}

// IndexEntries lists the user's index, whatever its format; no index is no entries.
func (r *Repo) IndexEntries(ctx context.Context) ([]Entry, error) {
	return ListEntries(ctx, r.NewCall())
}

// ListEntries lists the index that a call works on.
func ListEntries(ctx context.Context, c call) ([]Entry, error) {
	c.Args = []string{"ls-files", "-z", "-s", "-v"}
	lines, err := command.Records(ctx, c, "list the index")
	if err != nil {
		return nil, err
	}
	all := make([]Entry, 0, len(lines))
	for _, l := range lines {
		meta, path, _ := strings.Cut(l, "\t")
		f := strings.Fields(meta)
		if len(f) != 4 {
			return nil, fmt.Errorf("cannot list the index: git ls-files said %q", l)
		}
		stage, _ := strconv.Atoi(f[3])
		tag := f[0]
		all = append(all, Entry{
			Mode: f[1], Object: f[2], Stage: stage, Path: path,
			Sparse: tag == "S" || tag == "s", Assumed: tag == strings.ToLower(tag),
		})
	}
	return all, nil
}

// Add stores the files at paths as they are on disk and enters them; a path
// where nothing is leaves the index. It does
// all or nothing; the objects that were written stay.
func (x *Index) Add(ctx context.Context, paths []string) error {
	return x.updatePaths(ctx, paths, "--add", "--remove", "--replace", "--stdin")
}

// Remove takes paths out of the index. A path that is not in it is no error.
func (x *Index) Remove(ctx context.Context, paths []string) error {
	return x.updatePaths(ctx, paths, "--force-remove", "--stdin")
}

func (x *Index) updatePaths(ctx context.Context, paths []string, flags ...string) error {
	if len(paths) == 0 {
		return nil
	}
	c := x.newCall(append([]string{"update-index", "-z"}, flags...)...)
	c.Stdin = command.JoinPaths(paths)
	_, err := command.Run(ctx, c)
	return err
}

// Set enters entries without looking at the files, so that the next scan
// compares their content. It clears the flags of a path that is there.
func (x *Index) Set(ctx context.Context, all []Entry) error { return setEntries(ctx, x.newCall(), all) }

func setEntries(ctx context.Context, c call, all []Entry) error {
	if len(all) == 0 {
		return nil
	}
	var in strings.Builder
	for _, e := range all {
		in.WriteString(e.Mode + " " + e.Object + " " + strconv.Itoa(e.Stage) + "\t" + e.Path + "\x00")
	}
	c.Args = []string{"update-index", "-z", "--add", "--replace", "--index-info"}
	c.Stdin = strings.NewReader(in.String())
	_, err := command.Run(ctx, c)
	return err
}

// ReadTree makes the index that of a tree. An empty tree empties it.
func (x *Index) ReadTree(ctx context.Context, tree string) error {
	args := []string{"read-tree", tree}
	if tree == "" {
		args[1] = "--empty"
	}
	_, err := command.Run(ctx, x.newCall(args...))
	return err
}

// Fill makes the files and the index those of a tree, byte for byte. Only what differs
// is written. Files that the tree does not have go, ignored ones aside. Nothing else may
// work on the files meanwhile.
func (x *Index) Fill(ctx context.Context, tree string) error {
	fill := x.newCall("read-tree", "--reset", "-u", tree)
	if _, err := command.Run(ctx, fill); err != nil {
		return err
	}
	if _, err := command.Run(ctx, x.newCall("clean", "-ffdq")); err != nil {
		return err
	}
	return x.noteScan(time.Now())
}

// Restore makes the files at paths those that the index has. What is in the way of one goes.
func (x *Index) Restore(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	c := x.newCall("checkout-index", "-f", "-u", "-z", "--stdin")
	c.Stdin = command.JoinPaths(paths)
	_, err := command.Run(ctx, c)
	return err
}

// Refresh reads the files whose times are not those that the index knows. Only pawl may
// have worked on the files since the last scan.
func (x *Index) Refresh(ctx context.Context) error {
	c := x.newCall("update-index", "-q", "--refresh")
	_, err := command.Run(ctx, c)
	if code := command.ExitCode(err); err != nil && code <= 0 { // it was killed, or never began
		return err
	}
	return x.noteScan(time.Now())
}

// WriteTree stores the index as a tree. Objects that a partial clone has not
// fetched may be missing.
func (x *Index) WriteTree(ctx context.Context) (string, error) {
	return command.Text(ctx, x.newCall("write-tree", "--missing-ok"), "store the tree")
}

// readAttributes returns the values of attributes by path, of more than one the last. A path for
// which none is set has none.
func readAttributes(ctx context.Context, c call, paths []string, names ...string) (map[string]string, error) {
	c.Args = append([]string{"check-attr", "-z", "--stdin"}, names...)
	c.Stdin = command.JoinPaths(paths)
	out, err := command.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot read the attributes of files: %w", err)
	}
	values := map[string]string{}
	for f := range slices.Chunk(command.SplitRecords(out), 3) {
		if len(f) == 3 && f[2] != "unspecified" && f[2] != "unset" {
			values[f[0]] = f[2]
		}
	}
	return values, nil
}

// TreeWith stores a tree in which entries are put in the place of what a tree has; one
// without an object takes its path away. The index, which is made that of the tree, is
// scratch.
func (x *Index) TreeWith(ctx context.Context, tree string, entries []Entry) (string, error) {
	if err := x.ReadTree(ctx, tree); err != nil {
		return "", err
	}
	var gone []string
	var put []Entry
	for _, e := range entries {
		if e.Object == "" {
			gone = append(gone, e.Path)
		} else {
			put = append(put, e)
		}
	}
	// What is to go comes first: a file may take the place of a folder.
	if err := x.Remove(ctx, gone); err != nil {
		return "", err
	}
	if err := x.Set(ctx, put); err != nil {
		return "", err
	}
	return x.WriteTree(ctx)
}

// EmptyTree is the tree without files. Git has it without storing it.
func (r *History) EmptyTree(context.Context) (string, error) {
	sum := r.newObjectHash()
	_, _ = sum.Write([]byte("tree 0\x00"))
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// writeIndex makes the index of a repository that has none yet, of entries with their
// flags.
func (r *Repo) writeIndex(ctx context.Context, all []Entry) error {
	if err := setEntries(ctx, r.NewCall(), all); err != nil {
		return err
	}
	for flag, has := range map[string]func(Entry) bool{
		"--skip-worktree":    func(e Entry) bool { return e.Sparse },
		"--assume-unchanged": func(e Entry) bool { return e.Assumed },
	} {
		paths := lists.Pick(all, func(e Entry) (string, bool) { return e.Path, has(e) })
		if len(paths) == 0 {
			continue
		}
		c := r.NewCall("update-index", "-z", flag, "--stdin")
		c.Stdin = command.JoinPaths(paths)
		if _, err := command.Run(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Tracked lists the files that git tracks at or below one of the paths, which are relative to
// the top level.
func (r *Repo) Tracked(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	c := r.NewCall(append([]string{"ls-files", "-z", "--"}, paths...)...)
	c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	return command.Records(ctx, c, "list the tracked files")
}

// InHistory returns the first file at or below one of the paths, which are relative to the top level,
// that a commit of any branch or tag has or had; "" for none.
func (r *Repo) InHistory(ctx context.Context, paths []string) (string, error) {
	if len(paths) == 0 {
		return "", nil
	}
	c := r.NewCall(append([]string{"log", "-1", "-z", "--all", "--format=", "--name-only", "--"}, paths...)...)
	c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	found, err := command.Records(ctx, c, "search the commits")
	return strings.TrimSpace(slices.Concat(found, []string{""})[0]), err
}

// Untracked lists the files that git does not track and that fit one of the
// patterns, which are relative to dir, a folder of the work tree: those that are
// ignored, and the others. A pattern without signs (* ? [) names a file or a
// folder; ** stands for any folders. Paths are relative to the top level.
func (r *Repo) Untracked(ctx context.Context, dir string, patterns []string) (ignored, other []string, err error) {
	specs := lists.Each(patterns, func(p string) string { return ":(glob)" + strings.TrimPrefix(p, "./") })
	ask := func(args ...string) call {
		c := r.NewCall(append(append([]string{"ls-files", "-z", "-o", "--exclude-standard", "--full-name"}, args...),
			append([]string{"--"}, specs...)...)...)
		c.Dir = dir
		return c
	}
	outs, err := command.RunAll(ctx, ask("-i"), ask())
	if err != nil {
		return nil, nil, err
	}
	return command.SplitRecords(outs[0]), command.SplitRecords(outs[1]), nil
}
