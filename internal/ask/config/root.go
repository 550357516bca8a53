package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
// list of K=V. Without both variables it is below the system's temporary folder. The
// folder is not made.
func StateDir(root string, env []string) string { return stateOf(root, firstStateDir(root, env)) }

func firstStateDir(root string, env []string) string {
	name := filepath.Base(root)
	if name == string(filepath.Separator) || name == "." {
		name = "root"
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(StateBase(env), name+"-"+hex.EncodeToString(sum[:4]))
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
