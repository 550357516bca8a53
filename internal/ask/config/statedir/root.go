// Package statedir finds the root of a project, and the folder that has pawl's state of the
// repository there: also of one that was moved, cloned again, or is on another disk now.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// FileName is the project's file, at the root.
const FileName = "pawl.yaml"

// FindRoot returns the nearest parent of dir (dir included) that holds
// pawl.yaml, else the nearest that holds .git (a folder, or the file of a
// linked worktree), else dir itself. The result is absolute and free of
// symbolic links. It fails if dir does not exist.
func FindRoot(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the root: %v", err)
	}
	start, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("cannot find the root: %v", BareReason(err))
	}
	for _, name := range []string{FileName, ".git"} {
		for at := start; ; at = filepath.Dir(at) {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at, nil
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return start, nil
}

// Of is the folder of the authoritative state of the repository that root is in:
// below $XDG_STATE_HOME, else ~/.local/state, named after the root and the start of
// its path's hash, so that two checkouts of one name stay apart. Another repository that
// was there before, or one that was moved, has another one: see [ClaimState]. env is a
// list of K=V. The folder is not made: see [MakeState].
func Of(root string, env []string) string { return findNumbered(root, firstStateDir(root, env)) }

// longestName are the bytes of a root's name that fit into a folder's beside hash and number.
const longestName = 240

func firstStateDir(root string, env []string) string {
	name := filepath.Base(root)
	if name == string(filepath.Separator) || name == "." {
		name = "root"
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(Base(env), name[:min(len(name), longestName)]+"-"+hex.EncodeToString(sum[:4]))
}

// Make makes the state folder of root. It returns an error if others can write to it,
// since its contents could not be trusted, or if pawl itself cannot.
func Make(root string, env []string) error {
	vars, dir := ReadVariables(env), Of(root, env)
	if !filepath.IsAbs(vars["XDG_STATE_HOME"]) && !filepath.IsAbs(vars["HOME"]) {
		return fault.Refuse("no folder for pawl's state: neither XDG_STATE_HOME nor HOME is set to an absolute path").
			Hint("Set one to a folder of yours: export XDG_STATE_HOME=/path/to/folder")
	}
	for _, path := range []string{root, dir} {
		if !utf8.ValidString(path) || strings.Contains(path, "\n") {
			return fault.Refuse("cannot work with %q: the path is not UTF-8, or has a line break, and could not be "+
				"written down; rename the folder", path)
		}
	}
	if err := checkLimits(); err != nil {
		return err
	}
	err := os.MkdirAll(dir, 0o700)
	for at := dir; err != nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if other := ofAnother(at); other != nil {
			err = fmt.Errorf("%v; %v", err, other)
			break
		}
	}
	for _, at := range []string{Base(env), dir} {
		if err == nil {
			err = notOnlyMine(at)
		}
	}
	entries, _ := os.ReadDir(dir) // one that cannot be read is found below
	for _, e := range entries {
		if err == nil {
			err = ofAnother(filepath.Join(dir, e.Name()))
		}
	}
	if err == nil {
		err = syscall.Access(dir, 2|1) // to write and to enter
	}
	if err == nil {
		return nil
	}
	return fault.Refuse("cannot keep pawl's state in %s: %v", dir, err).
		Hint("Make the folder yours and writable, or name another: export XDG_STATE_HOME=/path/to/folder")
}

// checkLimits refuses limits of this process under which pawl cannot work, and Linux without /proc.
func checkLimits() error {
	if _, err := os.Stat("/proc/self"); err != nil && runtime.GOOS == "linux" {
		return fault.Refuse("there is no /proc here; pawl needs it to find and stop what agents start").
			Hint("Mount it: mount -t proc proc /proc")
	}
	for _, l := range []struct {
		resource int
		least    uint64
		what     string
		raise    string
	}{
		{syscall.RLIMIT_AS, 3_000_000_000, "bytes of memory", "ulimit -v unlimited"},
		{syscall.RLIMIT_DATA, 1_000_000_000, "bytes of data", "ulimit -d unlimited"},
		{syscall.RLIMIT_FSIZE, 64_000_000, "bytes in a file", "ulimit -f unlimited"},
		{syscall.RLIMIT_NOFILE, 128, "open files", "ulimit -n 1024"},
	} {
		var is syscall.Rlimit
		if syscall.Getrlimit(l.resource, &is) == nil && is.Cur < l.least {
			return fault.Refuse("this process is limited to %d %s, and pawl needs %d", is.Cur, l.what, l.least).
				Hint("Raise the limit: %s", l.raise)
		}
	}
	return nil
}

// LimitsDir is the folder in which all repositories of a user share what is
// known of providers' limits. Its name is no root's: those end in a hash.
func LimitsDir(env []string) string { return filepath.Join(Base(env), "limits") }

// PricesFile is the list of prices that the user took in place of the built-in one.
func PricesFile(env []string) string { return filepath.Join(Base(env), "prices.txt") }

// Base is the folder of pawl's state of all repositories of a user.
func Base(env []string) string {
	vars := ReadVariables(env)
	base := filepath.Join(os.TempDir(), "pawl-state")
	switch {
	case filepath.IsAbs(vars["XDG_STATE_HOME"]):
		base = vars["XDG_STATE_HOME"]
	case filepath.IsAbs(vars["HOME"]):
		base = filepath.Join(vars["HOME"], ".local", "state")
	}
	return filepath.Join(base, "pawl")
}

// Home is the user's home folder, as the environment names it.
func Home(env []string) string { return ReadVariables(env)["HOME"] }

// ReadVariables reads K=V; the last one of a name wins, as in a process.
func ReadVariables(env []string) map[string]string {
	vars := make(map[string]string, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	return vars
}

// BareReason takes operation and path off an error, which the message names by
// itself; fs.ErrNotExist can still be found.
func BareReason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
