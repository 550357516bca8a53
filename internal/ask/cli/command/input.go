package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
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
	trees = append(trees, statedir.Base(a.Env))
	path, left := files.ProgramPath(a.Getenv("PATH"), trees...)
	env = slices.DeleteFunc(slices.Clone(a.Env), func(kv string) bool { return leadsInto(kv, trees) })
	return append(env, "PATH="+path), left
}

// searchName is in the names of variables whose folders programs search, or run things from.
var searchName = lazy.Regexp(`PATH|LIB|OPT|RC|ENV|CONFIG|COMMAND|PRELOAD|ARGS|FLAGS|^GIT_|HOME|INIT|STARTUP|MODULE`)

// leadsInto asks whether a variable names a file or folder in one of the trees, or one
// that depends on the working folder. Those of the person's own places are no such.
func leadsInto(kv string, trees []string) bool {
	name, value, _ := strings.Cut(kv, "=")
	switch {
	case name == "HOME", name == "PWD", name == "OLDPWD", strings.HasPrefix(name, "XDG_"),
		strings.HasPrefix(name, "PAWL_"):
		return false
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(":=, ", r) })
	dependsOnFolder := func(part string) bool { return strings.HasPrefix(part, "./") || strings.HasPrefix(part, "../") }
	return slices.ContainsFunc(parts, dependsOnFolder) || slices.ContainsFunc(trees, func(tree string) bool {
		tree = filepath.Clean(tree)
		if filepath.Clean(value) == tree && !searchName().MatchString(name) {
			return false // a folder that programs are given, and do not search
		}
		isNamed := len(tree) > 1 && strings.Contains(value, tree) // in -I/tree/lib and file:///tree, too
		return isNamed && regexp.MustCompile(regexp.QuoteMeta(tree)+`(?:[^\w.-]|$)`).MatchString(value)
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
	if fault.Is[*fault.Error](err) {
		return err
	}
	return fault.Of(fault.Refused, fmt.Errorf("cannot read %s: %w", name, err))
}

// LooksLikeFile reports whether an argument is a path, and not the name of a procedure.
// The file need not exist.
func LooksLikeFile(arg string) bool {
	return strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || strings.Contains(arg, "/")
}

// Edit opens a file in the user's editor, and waits until it is closed. Without a terminal it needs
// VISUAL or EDITOR, which may name a program that asks nothing.
func (a *App) Edit(ctx context.Context, path string) error {
	named := cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"))
	editor := cmp.Or(named, "vi")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, editor, path)
	cmd.Stdout, cmd.Stderr, cmd.Env = a.Stderr, a.Stderr, a.Env
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		defer func() { _ = tty.Close() }()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	}
	if err == nil || named != "" {
		err = cmd.Run()
	}
	if err != nil {
		return fmt.Errorf("cannot edit %s with %s: %v", path, editor, err)
	}
	return nil
}

// BranchName is a branch as people name it.
func BranchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// This file is how commands print: tables, JSON, times and counts.

// Row is one entry of a listing: what --json prints of it, and its cells.
type Row struct {
	JSON  any
	Cells []any
}

// Listing prints a list as a table below its header, or with --json as a line
// for each entry. none is printed instead of an empty table.
func Listing[T any](a *App, list []T, none, header string, show func(T) Row) error {
	if len(list) == 0 && !a.JSON {
		a.Say("%s", none)
		return nil
	}
	rows := [][]any{}
	for _, one := range list {
		r := show(one)
		if !a.JSON {
			rows = append(rows, r.Cells)
		} else if err := a.JSONLine(r.JSON); err != nil {
			return err
		}
	}
	if !a.JSON {
		a.Table(header, rows, a.Columns())
	}
	return nil
}

// Columns is the width of the terminal that results go to; 0 where they go elsewhere,
// and nothing is cut.
func (a *App) Columns() int {
	if !console.OnTerminal(a.Stdout) {
		return 0
	}
	return console.Width(a.Stdout)
}

// lastColumn is what the last column of a table should have, and the others what the widest
// and the last are never cut below.
const lastColumn, leastWidest, leastLast = 20, 16, 10

// narrowColumns takes from the widest of the columns what the last one lacks.
func narrowColumns(wide []int, width int) {
	left := width
	for _, w := range wide {
		left -= w + 2
	}
	if width == 0 || left >= lastColumn || len(wide) == 0 {
		return
	}
	widest := slices.Index(wide, slices.Max(wide))
	wide[widest] = max(min(wide[widest], leastWidest), wide[widest]-(lastColumn-left))
}

// Table prints rows in aligned columns. The header's names have tabs between
// them; "" is none. Where width is not 0 the last column and the widest are cut to it.
func (a *App) Table(header string, rows [][]any, width int) {
	var lines [][]string
	if header != "" {
		lines = append(lines, strings.Split(header, "\t"))
	}
	for _, r := range rows {
		cells := lists.Each(r, func(c any) string { return fmt.Sprint(c) })
		lines = append(lines, cells)
	}
	var wide []int
	for _, l := range lines {
		for i, c := range l[:len(l)-1] {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], ansi.StringWidth(c))
		}
	}
	narrowColumns(wide, width)
	left := width
	for _, w := range wide {
		left -= w + 2
	}
	for _, l := range lines {
		var b strings.Builder
		for i, c := range l[:len(l)-1] {
			c = ansi.Truncate(c, wide[i], "…")
			b.WriteString(c + strings.Repeat(" ", wide[i]+2-ansi.StringWidth(c)))
		}
		last := l[len(l)-1]
		if width > 0 {
			last = ansi.Truncate(last, max(left, leastLast), "…")
		}
		a.Result("%s\n", strings.TrimRight(b.String()+last, " "))
	}
}

// Ask asks on a terminal, and returns the answer in small letters; the end of input is no answer.
func (a *App) Ask(format string, args ...any) string {
	_, _ = fmt.Fprintf(a.Stderr, format, args...)
	line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	return strings.ToLower(strings.TrimSpace(line))
}

// IsYes reports whether an answer is a yes; no answer is none.
func IsYes(answer string) bool { return answer == "y" || answer == "yes" }

// JSONLine prints v as one line of JSON.
func (a *App) JSONLine(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		a.Result("%s\n", line)
	}
	return err
}

// Document prints v as one indented JSON document.
func (a *App) Document(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		a.Result("%s\n", data)
	}
	return err
}

// Minute shows a time in the listings' way.
func Minute(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Aside is a text that may be missing, in brackets.
func Aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + report.Line(text, 200) + ")"
}

// CleanLines is [report.Line] for each line of a text.
func CleanLines(text string, limit int) string {
	clean := func(line string) string { return report.Line(line, limit) }
	return strings.Join(lists.Each(strings.Split(text, "\n"), clean), "\n")
}

// Bounds of the diff in an escalation: bytes, lines, and the time to make it.
// show --diff has all.
const (
	ShownDiff  = 16 << 10
	ShownLines = 40
	DiffBound  = 10 * time.Second
)

// Done prints a task that an action changed: its document with --json, else a line.
func (a *App) Done(d action.Done, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.JSONLine(CaseJSON(&d.Case))
	}
	a.Say("%s", d.Text)
	return nil
}

// CaseDocument is a case as `--json` shows it.
type CaseDocument struct {
	board.Case
	Ready bool         `json:"ready"`
	Score int          `json:"score"`
	Parts []board.Part `json:"score_parts,omitempty"`
}

// CaseJSON is a case as --json shows it.
func CaseJSON(c *board.Case) CaseDocument {
	d := CaseDocument{Case: *c, Ready: c.IsReady()}
	d.Score, d.Parts = board.Score(c)
	return d
}
