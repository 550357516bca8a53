package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// ReadText is a flag's text; "-" reads it from stdin.
func (a *App) ReadText(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.Stdin, board.MaxDescription+1))
	if err != nil {
		return "", fmt.Errorf("cannot read stdin: %v", err)
	}
	return string(data), nil
}

// InDir is a path as the person means it: from the folder of -C.
func (a *App) InDir(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// LookPath finds a program in the PATH that Main was given; a name with a
// slash is a path.
func (a *App) LookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	for _, d := range filepath.SplitList(a.Getenv("PATH")) {
		d = cmp.Or(d, ".")
		if p, err := exec.LookPath(filepath.Join(d, name)); err == nil && name != "" {
			return p, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// Outside is the environment of programs that run outside of a box, and the folders
// that its PATH lacks: those in trees, where agents may put programs. It has no variable
// that leads a program to files there either.
func (a *App) Outside(trees ...string) (env, left []string) {
	trees = append(trees, config.StateBase(a.Env))
	path, left := files.ProgramPath(a.Getenv("PATH"), trees...)
	env = slices.DeleteFunc(slices.Clone(a.Env), func(kv string) bool { return leadsInto(kv, trees) })
	return append(env, "PATH="+path), left
}

// leadsInto asks whether a variable names a file or folder in one of the trees, or one
// that depends on the working folder. Those of the person's own places are no such.
func leadsInto(kv string, trees []string) bool {
	name, value, _ := strings.Cut(kv, "=")
	switch {
	case name == "HOME", name == "PWD", name == "OLDPWD", strings.HasPrefix(name, "XDG_"), strings.HasPrefix(name, "PAWL_"):
		return false
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(":=, ", r) })
	return slices.ContainsFunc(parts, func(part string) bool {
		if strings.HasPrefix(part, "./") || strings.HasPrefix(part, "../") {
			return true
		}
		return slices.ContainsFunc(trees, func(tree string) bool {
			_, inside := files.Below(tree, part)
			return inside && filepath.IsAbs(part)
		})
	})
}

// OpenInput opens FILE, or stdin for "-" and "". name is what messages call it.
func (a *App) OpenInput(from string) (in io.ReadCloser, name string, err error) {
	if from == "" || from == "-" {
		return io.NopCloser(a.Stdin), "stdin", nil
	}
	f, err := os.Open(a.InDir(from))
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if err == nil {
		info, serr := f.Stat()
		if serr == nil && info.IsDir() {
			_ = f.Close()
			err = errors.New("it is a folder")
		}
	}
	if err != nil {
		return nil, from, CannotRead(from, err)
	}
	return f, from, nil
}

// CannotRead is the error that an input cannot be read.
func CannotRead(name string, err error) error {
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	return fault.Of(fault.Refused, fmt.Errorf("cannot read %s: %w", name, err))
}

// IsFile is true for an argument that means a file and not a procedure.
func IsFile(arg string) bool {
	return strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || strings.Contains(arg, "/")
}

// Edit opens a file in the editor of the person at the terminal, and waits until it is closed.
func (a *App) Edit(ctx context.Context, path string) error {
	editor := cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"), "vi")
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		defer func() { _ = tty.Close() }()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, editor, path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = tty, tty, tty, a.Env
		err = cmd.Run()
	}
	if err != nil {
		return fmt.Errorf("cannot edit %s with %s: %v", path, editor, err)
	}
	return nil
}
