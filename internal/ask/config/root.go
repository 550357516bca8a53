package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
		return "", fmt.Errorf("cannot find the root: %v", bareReason(err))
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

// StateDir is the folder of the authoritative state of the repository that root is in:
// below $XDG_STATE_HOME, else ~/.local/state, named after the root and the start of
// its path's hash, so that two checkouts of one name stay apart. Another repository that
// was there before, or one that was moved, has another one: see [ClaimState]. env is a
// list of K=V. The folder is not made: see [MakeState].
func StateDir(root string, env []string) string { return stateOf(root, firstStateDir(root, env)) }

// longestName are the bytes of a root's name that fit into a folder's beside hash and number.
const longestName = 240

func firstStateDir(root string, env []string) string {
	name := filepath.Base(root)
	if name == string(filepath.Separator) || name == "." {
		name = "root"
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(StateBase(env), name[:min(len(name), longestName)]+"-"+hex.EncodeToString(sum[:4]))
}

// MakeState makes the state folder of root. It returns an error if others can write to it,
// since its contents could not be trusted, or if pawl itself cannot.
func MakeState(root string, env []string) error {
	vars, dir := readVariables(env), StateDir(root, env)
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
	for _, at := range []string{StateBase(env), dir} {
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
func LimitsDir(env []string) string { return filepath.Join(StateBase(env), "limits") }

// PricesFile is the list of prices that the user took in place of the built-in one.
func PricesFile(env []string) string { return filepath.Join(StateBase(env), "prices.txt") }

// StateBase is the folder of pawl's state of all repositories of a user.
func StateBase(env []string) string {
	vars := readVariables(env)
	base := filepath.Join(os.TempDir(), "pawl-state")
	switch {
	case filepath.IsAbs(vars["XDG_STATE_HOME"]):
		base = vars["XDG_STATE_HOME"]
	case filepath.IsAbs(vars["HOME"]):
		base = filepath.Join(vars["HOME"], ".local", "state")
	}
	return filepath.Join(base, "pawl")
}

// userFile is the user-wide file; "" if the environment names no place for it.
func userFile(vars map[string]string) string {
	switch {
	case filepath.IsAbs(vars["XDG_CONFIG_HOME"]):
		return filepath.Join(vars["XDG_CONFIG_HOME"], "pawl", "config.yaml")
	case filepath.IsAbs(vars["HOME"]):
		return filepath.Join(vars["HOME"], ".config", "pawl", "config.yaml")
	}
	return ""
}

// Home is the user's home folder, as the environment names it.
func Home(env []string) string { return readVariables(env)["HOME"] }

// readVariables reads K=V; the last one of a name wins, as in a process.
func readVariables(env []string) map[string]string {
	vars := make(map[string]string, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	return vars
}

// displayPath is a file as its reader would name it: relative to where they are
// (or to the root, for what is in it), from ~, or absolute.
func displayPath(path, dir, home string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		up := strings.Count(rel, ".."+string(filepath.Separator))
		ofRoot := filepath.Base(path) == FileName && up*3+len(FileName) == len(rel)
		if up == 0 || ofRoot {
			return rel
		}
	}
	if home != "" {
		if rel, ok := strings.CutPrefix(path, filepath.Clean(home)+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rel
		}
	}
	return path
}
