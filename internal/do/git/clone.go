package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Clone is a work tree with a repository of its own that borrows the objects
// of another. Its .git is made for an agent, who may do with it what it likes,
// so no call here obeys it: pawl's own calls on the clone use a git directory
// and an index beside it. Of the agent's .git they read HEAD, refs and objects,
// as data; objects are checked when they are taken over.
//
// There is no remote in the clone: an agent cannot push into the lender.
// Content is converted as .gitattributes asks (line ends, encodings), but
// programs that filter content (LFS and the like) are never run: such files are
// as git stores them.
type Clone struct {
	Of  *Repo  // the lender
	Top string // the work tree; an agent's
	Own string // pawl's folder for it, outside of Top: git directory, index, packs

	// Lent is where the agent's git reads the objects of the lender; "" is where they are.
	Lent string

	more     []string
	shadow   *Shadow
	index    *Index
	settings []Setting // of the lender, as they were when the clone was opened
}

// CloneRefs are the refs of a new .git.
type CloneRefs struct {
	Branch string // the branch that is checked out, without refs/heads/
	Commit string // where it is
	Beside string // full name of a branch that is there as well, at the same commit; "" is none
}

// OpenClone makes or refreshes pawl's own git directory of a clone; the clone
// itself need not be there. Paths with a newline are refused. Git inherits lock,
// under which one process at a time uses the clone, so that it is held until git
// has ended too. more are further folders of objects that pawl's own calls read.
func OpenClone(ctx context.Context, of *Repo, top, own string, lock *os.File, more ...string) (*Clone, error) {
	if strings.Contains(top+own+of.Objects, "\n") {
		return nil, errors.New("cannot make a clone: there is a newline in a path")
	}
	c := of.CloneAt(top, own, more...)
	dir := c.shadow.Dir
	c.index = c.shadow.Index(c.shadow.Repo.Index, lock)
	settings, err := of.Config(ctx)
	if err != nil {
		return nil, err
	}
	c.settings = settings
	conversions, err := of.conversionConfig(ctx, settings)
	if err != nil {
		return nil, err
	}
	config := "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n\tattributesFile = /dev/null\n" +
		"\tlogAllRefUpdates = false\n\tuntrackedCache = false\n" +
		conversions + "[extensions]\n\tobjectFormat = " + of.Format + "\n"
	if err := keepGitDir(dir, config, ""); err != nil {
		return nil, err
	}
	_ = os.Remove(c.shadow.Repo.Index + ".lock") // of a git that was killed: the holder of the shadow's lock is alone
	if beforeBoot(c.shadow.Repo.Index) {
		_ = os.Remove(c.shadow.Repo.Index) // files may not be what it says: they are looked into again
	}
	if err := c.writeAlternates(); err != nil {
		return nil, err
	}
	if err := of.copyExcludesTo(dir); err != nil {
		return nil, fmt.Errorf("cannot make pawl's git directory: %w", err)
	}
	return c, nil
}

// writeAlternates lets pawl's own git directory read the objects of the lender, and of the clone
// when it has a .git.
func (c *Clone) writeAlternates() error {
	from := c.objectDirs()
	objects := filepath.Join(c.Top, ".git", "objects")
	if info, err := os.Stat(objects); err == nil && info.IsDir() {
		from = objects + "\n" + from
	}
	if err := keepFile(filepath.Join(c.shadow.Repo.Objects, "info", "alternates"), []byte(from)); err != nil {
		return fmt.Errorf("cannot make pawl's git directory: %w", err)
	}
	return nil
}

// objectDirs returns the folders of objects that no agent writes, as the file of alternates has
// them.
func (c *Clone) objectDirs() string {
	return strings.Join(append([]string{c.Of.Objects}, c.more...), "\n") + "\n"
}

// copyExcludesTo copies to a git directory what r says about ignored files and missing
// history.
func (r *Folders) copyExcludesTo(dir string) error {
	for from, to := range map[string]string{
		r.Exclude:                          filepath.Join(dir, "info", "exclude"),
		filepath.Join(r.Common, "shallow"): filepath.Join(dir, "shallow"),
	} {
		data, err := files.ReadBelow(filepath.Dir(from), filepath.Base(from), packedLimit)
		if errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(to) // mostly not there
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(to, "exclude") {
			data = append(data, "\n/.pawl/\n"...)
		}
		if err := keepFile(to, data); err != nil {
			return err
		}
	}
	return nil
}

// conversionConfig returns the settings by which content is converted and files are compared, for a
// configuration file.
func (r *Folders) conversionConfig(ctx context.Context, settings []Setting) (string, error) {
	lines := configLines(settings,
		"ignorecase", "precomposeunicode", "autocrlf", "eol", "filemode", "symlinks", "sharedrepository")
	ignore, err := r.ignoreLine(ctx, settings)
	return lines + ignore, err
}

// newCall makes a call on the clone, in pawl's own git directory.
func (c *Clone) newCall(args ...string) call {
	return c.index.newCall(args...)
}

// Checkout makes the files those of a commit: a new folder is filled, of one
// that was cleaned only what differs is written. The agent's .git is not used
// and not touched.
func (c *Clone) Checkout(ctx context.Context, commit string) error {
	_, err := command.Run(ctx, c.newCall("read-tree", "--reset", "-u", commit))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if partial, cerr := c.Of.isPartial(ctx); cerr == nil && partial {
		return fmt.Errorf("cannot check out %s: the repository is a partial clone, and some files of this commit "+
			"were never fetched; fetch them by checking it out there once: git checkout %s (%w)", commit, commit, err)
	}
	return fmt.Errorf("cannot check out %s: %w", commit, err)
}

// isPartial reports whether objects may be missing, to be fetched when needed.
func (r *Folders) isPartial(ctx context.Context) (bool, error) {
	settings, err := r.Config(ctx)
	for _, s := range settings {
		promisor := strings.HasPrefix(s.Key, "remote.") && strings.HasSuffix(s.Key, ".promisor")
		if promisor || s.Key == "extensions.partialclone" {
			return true, err
		}
	}
	return false, err
}

// Clean removes all that the last [Clone.Checkout] did not write, ignored
// files and nested repositories too, and puts back what was changed. It leaves
// .git alone.
func (c *Clone) Clean(ctx context.Context, commit string) error {
	if _, err := command.Run(ctx, c.newCall("clean", "-ffdxq")); err != nil {
		return fmt.Errorf("cannot clean the work tree: %w", err)
	}
	if err := c.emptyModules(ctx); err != nil {
		return fmt.Errorf("cannot clean the work tree: %w", err)
	}
	return c.Checkout(ctx, commit)
}

// emptyModules makes the folders of submodules, which git leaves alone, empty
// as a checkout makes them.
func (c *Clone) emptyModules(ctx context.Context) error {
	entries, err := c.index.Entries(ctx)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.Top)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range entries {
		if e.Mode != ModeNested {
			continue
		}
		dir := filepath.FromSlash(e.Path)
		if err := root.RemoveAll(dir); err != nil {
			return err
		}
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// CreateRepository makes a new .git with these refs and the index of the last checkout.
// One that is there is an error: the caller removes it.
func (c *Clone) CreateRepository(ctx context.Context, refs CloneRefs) error {
	if !plainRef("refs/heads/" + refs.Branch) {
		return fmt.Errorf("cannot make a clone: %q cannot be the name of a branch", refs.Branch)
	}
	config, err := c.Of.agentConfig(ctx, c.settings)
	if err != nil {
		return err
	}
	tags, objects, err := c.Of.Tags(ctx, refs.Commit)
	if err != nil {
		return err
	}
	made := made{config: config, refs: packedRefs(refs, tags), head: "ref: refs/heads/" + refs.Branch,
		objects: c.lenderObjects()}
	if err := c.Of.writeGitDir(filepath.Join(c.Top, ".git"), made); err != nil {
		return fmt.Errorf("cannot make the clone's repository: %w", err)
	}
	if err := c.copyTags(ctx, objects); err != nil {
		return err
	}
	if err := c.writeAlternates(); err != nil {
		return err
	}
	return c.giveIndex()
}

// LayRules writes to the folder dir what git goes by in a new clone: settings, no hooks, and what it ignores. An
// agent may have changed these. It returns whether the clone's .git is a folder that goes by its own.
func (c *Clone) LayRules(ctx context.Context, dir string) (ownFolder bool, err error) {
	config, err := c.Of.agentConfig(ctx, c.settings)
	info := filepath.Join(dir, "info")
	if err == nil {
		err = os.MkdirAll(info, 0o700)
	}
	for name, text := range map[string]string{
		filepath.Join(dir, "config"):   config + "[core]\n\thooksPath = /dev/null\n",
		filepath.Join(info, "exclude"): "", filepath.Join(info, "attributes"): "",
	} {
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
	}
	if err == nil {
		err = c.Of.copyExcludesTo(dir)
	}
	if err != nil {
		return false, fmt.Errorf("cannot lay out git's rules for gates: %w", err)
	}
	led := c.withGitDir(func(root *os.Root) error { return root.RemoveAll("commondir") }) // no clone has one
	return led == nil, nil
}

// made are the texts of a new .git.
type made struct {
	config, refs, head string
	objects            string // the folder from which it borrows
}

// writeGitDir writes a new git directory that borrows from r.
func (r *Folders) writeGitDir(dir string, m made) error {
	if err := os.Mkdir(dir, 0o777); err != nil { //nolint:gosec // git's own mode, less the umask
		return err
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil { //nolint:gosec // as above
			return err
		}
	}
	if err := r.copyExcludesTo(dir); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{"config", m.config}, {"packed-refs", m.refs}, {"objects/info/alternates", m.objects + "\n"},
		{"HEAD", m.head + "\n"}, // last: without it this is no repository
	} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o666); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// lenderObjects returns the folder that the clone's .git names for more objects.
func (c *Clone) lenderObjects() string { return cmp.Or(c.Lent, c.Of.Objects) }

// RestoreAlternates makes the clone borrow from its lender again, and reports whether it
// did not: an agent wrote something else, or the lender was moved.
func (c *Clone) RestoreAlternates() (bool, error) {
	const name = "objects/info/alternates"
	want := c.lenderObjects() + "\n"
	changed := false
	err := c.withGitDir(func(root *os.Root) error {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			if data, err := root.ReadFile(name); err == nil && string(data) == want {
				return nil
			}
		}
		changed = true
		_ = root.RemoveAll(name)                                     // a folder, a link: whatever is in the way
		if err := root.MkdirAll("objects/info", 0o777); err != nil { //nolint:gosec // git's own mode, less the umask
			return err
		}
		return root.WriteFile(name, []byte(want), 0o666)
	})
	return changed, err
}

// giveIndex makes the agent's index that of the last checkout, with its time,
// by which git knows which files may have changed right after it. The folder
// is opened as it is: a link that an agent put there leads nowhere.
func (c *Clone) giveIndex() error {
	info, err := os.Stat(c.shadow.Repo.Index)
	data, rerr := os.ReadFile(c.shadow.Repo.Index)
	if err := errors.Join(err, rerr); err != nil {
		return fmt.Errorf("cannot make the clone's index: %w", err)
	}
	return c.withGitDir(func(root *os.Root) error {
		if err := root.WriteFile("index.pawl", data, 0o666); err != nil {
			return err
		}
		if err := root.Chtimes("index.pawl", info.ModTime(), info.ModTime()); err != nil {
			return err
		}
		return root.Rename("index.pawl", "index")
	})
}

// withGitDir works in the agent's .git and nowhere else.
func (c *Clone) withGitDir(do func(*os.Root) error) error {
	dir := filepath.Join(c.Top, ".git")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("cannot use the clone's repository: %s is no longer a folder", dir)
	}
	root, err := c.openGit()
	if err != nil {
		return fmt.Errorf("cannot use the clone's repository: %w", err)
	}
	defer root.Close()
	if err := do(root); err != nil {
		return fmt.Errorf("cannot write the clone's repository: %w", err)
	}
	return nil
}

// agentConfig is the configuration of an agent's .git: what r says about files,
// and who commits. Nothing is signed, since a key is nothing for an agent, and
// nothing is collected behind its back.
func (r *Folders) agentConfig(ctx context.Context, settings []Setting) (string, error) {
	conversions, err := r.conversionConfig(ctx, settings)
	if err != nil {
		return "", err
	}
	version, format := 0, ""
	if r.Format != "sha1" {
		version, format = 1, "[extensions]\n\tobjectformat = "+r.Format+"\n"
	}
	if partial, err := r.isPartial(ctx); err != nil {
		return "", err
	} else if partial { // else git would not commit where a sparse checkout lacks files
		version, format = 1, format+"[extensions]\n\tpartialclone = person\n"
	}
	who := identityOf(settings)
	modules, err := r.moduleURLs(ctx, settings)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tlogallrefupdates = true\n%s%s"+
		"[user]\n\tname = %s\n\temail = %s\n[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n"+
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n%s",
		version, conversions, format, quoteValue(who.Name), quoteValue(who.Email), modules), nil
}

// moduleURLs are the lines that say where submodules come from: as r resolved their
// addresses, which may be relative to a remote that a clone does not have.
func (r *Folders) moduleURLs(ctx context.Context, settings []Setting) (string, error) {
	known := latestValues(settings)
	file := filepath.Join(r.Top, ".gitmodules")
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // it has none
	}
	out, err := command.Run(ctx, r.NewCall("config", "--file", file, "-z", "--get-regexp", `^submodule\..*\.url$`))
	if command.ExitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read .gitmodules: %w", err)
	}
	remote := cmp.Or(known["remote.origin.url"], r.Top)
	var lines strings.Builder
	for _, record := range command.SplitRecords(out) {
		key, url, _ := strings.Cut(record, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".url")
		if own := known[key]; own != "" {
			url = own
		} else if strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../") {
			url = resolveAddress(remote, url)
		}
		fmt.Fprintf(&lines, "[submodule %s]\n\turl = %s\n", quoteValue(name), quoteValue(url))
	}
	return lines.String(), nil
}

// resolveAddress resolves a relative address of a submodule as git does: relative to a remote's.
func resolveAddress(remote, relative string) string {
	base := strings.TrimRight(remote, "/")
	for {
		switch rest, up := strings.CutPrefix(relative, "../"); {
		case up:
			relative = rest
			if at := strings.LastIndexAny(base, "/:"); at >= 0 {
				base = base[:at+strings.Count(base[at:at+1], ":")]
			}
		case strings.HasPrefix(relative, "./"):
			relative = relative[2:]
		case strings.HasSuffix(base, ":"):
			return base + relative
		default:
			return base + "/" + relative
		}
	}
}

// packedHead is the first line of a file with many refs.
const packedHead = "# pack-refs with: sorted \n"

// packedRefs is the file with all refs of a new .git.
func packedRefs(refs CloneRefs, tags []Ref) string {
	all := append(slices.Clone(tags), Ref{Name: "refs/heads/" + refs.Branch, Commit: refs.Commit})
	if refs.Beside != "" && refs.Beside != "refs/heads/"+refs.Branch && plainRef(refs.Beside) {
		all = append(all, Ref{Name: refs.Beside, Commit: refs.Commit})
	}
	slices.SortFunc(all, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(packedHead)
	for _, r := range all {
		fmt.Fprintf(&b, "%s %s\n", r.Commit, r.Name)
	}
	return b.String()
}

// Forget drops what pawl knows of the files of the clone: the next checkout
// writes all of them.
func (c *Clone) Forget() error {
	if err := os.Remove(c.shadow.Repo.Index); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot drop the index of a clone: %w", err)
	}
	return nil
}

// DropAgentObjects makes pawl's own git directory read no object of the clone, so that
// files which are entered after it are stored anew. It lasts until the clone
// is opened again.
func (c *Clone) DropAgentObjects() error {
	if err := keepFile(filepath.Join(c.shadow.Repo.Objects, "info", "alternates"), []byte(c.objectDirs())); err != nil {
		return fmt.Errorf("cannot leave out the objects of the clone: %w", err)
	}
	return c.Forget()
}

// AfterBoot takes away what a power loss broke of a clone's objects, so that its files
// can be saved. An error is that the clone cannot be worked in; its files are as they are.
func (c *Clone) AfterBoot(ctx context.Context, base string) error {
	dir := filepath.Join(c.Top, ".git")
	for _, r := range []*Repo{unsharedRepoAt(c.Top, dir, filepath.Join(dir, "index"), c.Of.Format), c.shadow.Repo} {
		if _, err := r.dropBroken(ctx, filepath.Join(c.Own, "after-power-loss")); err != nil {
			return err
		}
	}
	head, err := c.Head()
	if err != nil {
		return err
	}
	if _, err := command.Run(ctx, c.newCall("rev-list", "--objects", "--quiet", head.Commit, "^"+base)); err != nil {
		return fmt.Errorf("%w: the history of %q is not whole", ErrBroken, head.Commit)
	}
	return nil
}
