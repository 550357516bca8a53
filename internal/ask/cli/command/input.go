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
// that its PATH lacks: those in trees, where agents may put programs.
func (a *App) Outside(trees ...string) (env, left []string) {
	path, left := files.ProgramPath(a.Getenv("PATH"), append(trees, config.StateBase(a.Env))...)
	return append(slices.Clone(a.Env), "PATH="+path), left
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
