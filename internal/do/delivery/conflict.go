package delivery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// This file is about what both a person and an agent changed, and how a person resolves it.

// View is the workspace of a run for a process that only looks at it: another may work there.
// The error is [ErrGone] when another run has it now, or it was removed.
func View(ctx context.Context, person *workspace.Checkout, at pool.Workspace, run string) (*Workspace, error) {
	w := &Workspace{o: Options{Person: person}, at: at}
	if err := w.readAgreed(); err != nil {
		return nil, err
	}
	err := w.Continue(ctx, run)
	return w, err
}

// Conflicts for which the run rests.
func (w *Workspace) Conflicts() ([]Conflict, error) {
	var all []Conflict
	err := files.ReadJSON(filepath.Join(w.at.Own, conflictsFile), &all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the conflicts of the run: %w", err)
	}
	return all, nil
}

// InConflict reports whether a run rests for conflicts, open or resolved, by pawl's folder for
// its workspace, which another process may work in.
func InConflict(own, stateDir, run string) (bool, error) {
	for _, dir := range []string{own, runWorkFolder(stateDir, run)} {
		w := Workspace{at: pool.Workspace{Own: dir}}
		if err := w.readAgreed(); err != nil {
			return false, err
		}
		all, err := w.Conflicts()
		rests := w.agreed.Run == run && len(all) > 0
		if rests || err != nil {
			return rests, err
		}
	}
	return false, nil
}

// WorksIn reports whether a run has the workspace for which pawl's folder is own.
func WorksIn(own, run string) bool {
	w := Workspace{at: pool.Workspace{Own: own}}
	err := w.readAgreed()
	return err == nil && w.agreed.Run == run
}

// storeConflicts keeps conflicts, with what was chosen for those that are the same.
func (w *Workspace) storeConflicts(all []Conflict) error {
	settled, err := w.settledSides()
	if err != nil {
		return err
	}
	for i, c := range all {
		if s, ok := settled[c]; ok {
			all[i].Settled = &s
			delete(settled, c)
		}
	}
	for c, s := range settled { // they are merged already, in a result that is not delivered yet
		if !slices.ContainsFunc(all, func(open Conflict) bool { return open.Path == c.Path }) {
			c.Settled = &s
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Conflict) int { return cmp.Compare(a.Path, b.Path) })
	return files.ReplaceJSON(filepath.Join(w.at.Own, conflictsFile), all, true)
}

// settledSides are the sides that a person chose, by conflict.
func (w *Workspace) settledSides() (map[Conflict]Side, error) {
	all, err := w.Conflicts()
	chosen := map[Conflict]Side{}
	for _, c := range all {
		if s := c.Settled; s != nil {
			c.Settled = nil
			chosen[c] = *s
		}
	}
	return chosen, err
}

// Choice resolves a conflict.
type Choice string

// What a person may choose: one side, both sides one after the other, or a text.
const (
	Mine   Choice = "mine"
	Agents Choice = "agent"
	Both   Choice = "both"
	Edited Choice = "edit"
)

// Settle stores what a person chose for a path. Of an edit, text is the result. left is
// how many conflicts are open.
func (w *Workspace) Settle(ctx context.Context, path string, choice Choice, text []byte) (left int, err error) {
	all, err := w.Conflicts()
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all, func(c Conflict) bool { return c.Path == path })
	if i < 0 {
		return 0, fmt.Errorf("%q has no conflict", path)
	}
	side, err := w.chooseSide(ctx, all[i], choice, text)
	if err != nil {
		return 0, err
	}
	all[i].Settled = &side
	err = files.ReplaceJSON(filepath.Join(w.at.Own, conflictsFile), all, true)
	for _, c := range all {
		if c.Settled == nil {
			left++
		}
	}
	return left, err
}

func (w *Workspace) chooseSide(ctx context.Context, c Conflict, choice Choice, text []byte) (Side, error) {
	var err error
	side := Side{Mode: cmp.Or(c.Agent.Mode, c.Mine.Mode)}
	switch choice {
	case Edited:
		marked, err := w.mergedText(ctx, c)
		if err := cmp.Or(err, checkEdited(marked, text)); err != nil {
			return Side{}, err
		}
	case Mine, Agents:
		side = map[Choice]Side{Mine: c.Mine, Agents: c.Agent}[choice]
		if text, err = w.mergedText(ctx, c); err != nil || text == nil {
			return side, err
		}
	case Both:
		if text, err = w.Text(ctx, c); err != nil {
			return Side{}, err
		}
	default:
		return Side{}, fmt.Errorf("%q cannot settle a conflict: use mine, agent, both or edit", choice)
	}
	if choice != Edited {
		text = resolveMarkers(text, choice)
	}
	side.Object, err = w.tree.StoreFile(ctx, text)
	return side, err
}

// ErrMarkers is that a text has markers of a conflict yet.
var ErrMarkers = errors.New("the text still has lines with conflict markers")

// checkEdited refuses a text in which a person left markers.
func checkEdited(marked, text []byte) error {
	both := resolveMarkers(marked, Both)
	for line := range bytes.Lines(text) {
		if markerOf(line) != 0 && !bytes.Contains(both, line) {
			return fmt.Errorf("%w: remove %q", ErrMarkers, bytes.TrimSpace(line))
		}
	}
	return nil
}

// resolveMarkers takes the lines that were chosen where both sides conflict, of both the person's
// first, out of a text with markers. All others stay.
func resolveMarkers(text []byte, choice Choice) []byte {
	var out bytes.Buffer
	side := byte('>') // the last marker; what follows is of both, of the person, of the base, of the agent
	left := map[byte]bool{'|': true, '<': choice == Agents, '=': choice == Mine}
	next := map[byte]byte{'>': '<', '<': '|', '|': '=', '=': '>'}
	for line := range bytes.Lines(text) {
		if sign := markerOf(line); sign == next[side] {
			side = sign
		} else if !left[side] {
			out.Write(line)
		}
	}
	return out.Bytes()
}

var markers = func() map[string]byte {
	all := map[string]byte{}
	named := map[string][]string{"<": {" ours", " mine"}, "|": {" base"}, "=": {""}, ">": {" theirs", " agent"}}
	for sign, names := range named {
		for _, name := range names {
			all[strings.Repeat(sign, marker)+name] = sign[0]
		}
	}
	return all
}()

// markerOf is the sign of a line that is a marker, else 0: a title may be underlined with as many.
func markerOf(line []byte) byte { return markers[string(bytes.TrimRight(line, " \t\r\n"))] }

// Text is a file in conflict, with markers: the person's side is "mine", the agent's
// "agent". A conflict that is none of lines is an error.
func (w *Workspace) Text(ctx context.Context, c Conflict) ([]byte, error) {
	text, err := w.mergedText(ctx, c)
	switch {
	case err != nil || text != nil:
	case c.isOfFiles():
		err = fmt.Errorf("%q is not text, or too large: choose mine or agent", c.Path)
	case c.Base.Object == "" && slices.Contains([]string{c.Mine.Object, c.Agent.Object}, ""):
		err = fmt.Errorf("%q is a file of one side, where the other made a folder: choose mine or agent", c.Path)
	case c.Mine.Object == "":
		err = fmt.Errorf("you removed %q, and the agent changed it: choose mine or agent", c.Path)
	case c.Agent.Object == "":
		err = fmt.Errorf("the agent removed %q, and you changed it: choose mine or agent", c.Path)
	default:
		err = fmt.Errorf("%q is a link on one side: choose mine or agent", c.Path)
	}
	text = bytes.ReplaceAll(text, append(bytes.Repeat([]byte("<"), marker), " ours"...),
		append(bytes.Repeat([]byte("<"), marker), " mine"...))
	return bytes.ReplaceAll(text, append(bytes.Repeat([]byte(">"), marker), " theirs"...),
		append(bytes.Repeat([]byte(">"), marker), " agent"...)), err
}
