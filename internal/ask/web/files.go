package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/activity"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"

	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxPart is how many bytes of a file are read at once.
const maxPart = 1 << 20

// fileNames are the files of an iteration that a person may see. What else is
// in its folder (environment, policies) is pawl's own.
var fileNames = lazy.Regexp(`^(prompt\.md|agent\.(out|err)|gate-[0-9]{1,4}\.(out|err)` +
	`|review(-[0-9]{1,3})?\.(prompt\.md|out|err))$`)

// openAttempt opens the folder of an attempt. Nothing outside of it can be reached
// through what is returned, by no name and no symbolic link.
func (s *core) openAttempt(ctx context.Context, in *rest.IterationPath) (*os.Root, store.Run, error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, r, err
	}
	root, err := s.openOutputs(r, in.Number)
	if err == nil && in.Attempt > 0 && !isAttempt(root, in.Attempt) {
		all := root
		root, err = all.OpenRoot(strconv.Itoa(in.Attempt)) // one that was cut off is kept aside
		_ = all.Close()
	}
	if err != nil {
		return nil, r, filesNotFound(r.ID, in.Number)
	}
	return root, r, nil
}

// openOutputs opens the folder of an iteration, on this machine or in the shared folder.
func (s *core) openOutputs(r store.Run, number int) (*os.Root, error) {
	return outputs.Open(filepath.Join(s.o.StateDir, "runs"), s.o.Store.OutputsFolder(), r.ID, strconv.Itoa(number))
}

// isAttempt is true when the folder's files are those of the attempt.
func isAttempt(root *os.Root, attempt int) bool {
	begun, _, ok := attemptdir.ReadBegun(root)
	return ok && begun == attempt
}

func filesNotFound(run string, n int) *rest.ProblemError {
	return rest.Problem(http.StatusNotFound, "FILES_NOT_FOUND",
		"Run %s has no files of iteration %d: it has not started, or its folder was removed", run, n).
		Suggest("See what the run has: GET " + rest.Base + "/runs/" + run + "/iterations")
}

func (s iterationHandlers) listFiles(ctx context.Context, in *rest.IterationPath) (*rest.Body[view.FileList], error) {
	root, _, err := s.openAttempt(ctx, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("cannot list the files: %v", err)
	}
	out := view.FileList{Files: []view.File{}}
	for _, e := range entries {
		name := spool.NameOf(e.Name())
		if !fileNames().MatchString(name) {
			continue
		}
		f, err := spool.Open(root, name)
		if err != nil {
			continue // it has just gone, or is no file
		}
		size, err := f.Size()
		_, changed, _ := f.File()
		_ = f.Close()
		if err == nil {
			out.Files = append(out.Files, view.File{Name: name, Size: size, ChangedAt: changed.UTC()})
		}
	}
	return rest.Answer(out), nil
}

// openFile opens one of the files that may be seen. What is returned must be closed.
func (s iterationHandlers) openFile(ctx context.Context, in *rest.IterationPath, name string) (*output, error) {
	if !fileNames().MatchString(name) {
		return nil, rest.Problem(http.StatusNotFound, "FILE_NOT_FOUND", "An iteration has no file of the name %q",
			fault.Cut(name, 100)).
			Suggest("List them: GET " + rest.Base + "/runs/{run}/iterations/{number}/files")
	}
	root, r, err := s.openAttempt(ctx, in)
	if err != nil {
		return nil, err
	}
	if action.WayOf(ctx) == action.MCP && isSealed(ctx, s.core, in, r, name) {
		_ = root.Close()
		return nil, rest.Problem(http.StatusForbidden, "SEALED",
			"%s may belong to a sealed check, and a tool may ask for an agent that works on the task", name).
			Suggest("Read it in a terminal: pawl logs " + r.Name + " --gate NAME")
	}
	f, err := spool.Open(root, name)
	if err == nil {
		return &output{f, root}, nil
	}
	_ = root.Close()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, rest.Problem(http.StatusNotFound, "FILE_NOT_FOUND",
			"Iteration %d of run %s has no %s: nothing was printed", in.Number, r.ID, name).
			Suggest(fmt.Sprintf("See what there is: GET %s/runs/%s/iterations/%d/files", rest.Base, r.ID, in.Number))
	}
	return nil, fmt.Errorf("cannot open %s: %v", name, err)
}

// isSealed reports whether a file is the output of a sealed check. What is not known to be of another gate, as in
// an attempt that has not ended, may be.
func isSealed(ctx context.Context, s *core, in *rest.IterationPath, r store.Run, name string) bool {
	var number int
	if n, _ := fmt.Sscanf(name, "gate-%d.", &number); n == 0 {
		return false
	}
	if _, rec, err := s.findRecord(ctx, in); err == nil && number > 0 && number <= len(rec.Gates) {
		return rec.Gates[number-1].Origin == loop.Sealed
	}
	return slices.ContainsFunc(action.SetupOf(r).Checks, func(c runplan.Check) bool { return c.Origin == loop.Sealed })
}

// output is a stream that was, or is being, kept, and its folder.
type output struct {
	*spool.Reader
	root *os.Root
}

func (o *output) closeFiles() {
	_ = o.Close()
	_ = o.root.Close()
}

type partQuery struct {
	rest.IterationPath
	File   string `path:"file" maxLength:"40"`
	Offset int64  `query:"offset" minimum:"-1099511627776" maximum:"1099511627776" doc:"From which byte; a negative one counts from the end."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1048576" default:"65536" doc:"The most bytes."`
}

func (s iterationHandlers) readPart(ctx context.Context, in *partQuery) (*rest.Body[view.FilePart], error) {
	f, err := s.openFile(ctx, &in.IterationPath, in.File)
	if err != nil {
		return nil, err
	}
	defer f.closeFiles()
	spans, err := f.Spans()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %v", in.File, err)
	}
	size, offset := spans[len(spans)-1].To, in.Offset
	if offset < 0 {
		offset = max(0, size+offset)
	}
	buf := make([]byte, min(int64(min(in.Limit, maxPart)), max(0, size-offset)))
	n, at, err := f.ReadAt(buf, offset)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %v", in.File, err)
	}
	end := at + int64(n)
	buf = wholeRunes(buf[:n], slices.ContainsFunc(spans, func(s spool.Span) bool { return s.To == end }))
	out := view.FilePart{Name: in.File, Size: max(size, end), Offset: at, Next: at + int64(len(buf)),
		Text: view.ValidUTF8(string(buf))}
	out.More = out.Next < out.Size
	return rest.Answer(out), nil
}

// wholeRunes leaves out a character that is cut off at the end, unless the file
// ends there: the next part begins with it.
func wholeRunes(b []byte, end bool) []byte {
	if end {
		return b
	}
	for i := 1; i <= min(utf8.UTFMax-1, len(b)-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// serveRaw sends a whole file to be kept, or a range of it. It is never shown
// by the browser as a page.
func (s iterationHandlers) serveRaw(c huma.Context, in *rest.IterationPath, name string) {
	r, w := humago.Unwrap(c)
	f, err := s.openFile(r.Context(), in, name)
	if err != nil {
		if p, ok := errors.AsType[*rest.ProblemError](rest.ExplainError(err)); ok {
			p.WriteTo(w)
		}
		return
	}
	defer f.closeFiles()
	file, changed, all := f.File()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d-%s"`, in.Run, in.Number, name))
	if all {
		http.ServeContent(w, r, "", changed, file)
		return
	}
	_, _ = io.Copy(w, f) // who asked has gone
}

type conversationQuery struct {
	rest.IterationPath
	From   int64 `query:"from" minimum:"0" maximum:"1099511627776" doc:"Events from this offset on, which may be within one: then from the next."`
	Before int64 `query:"before" minimum:"0" maximum:"1099511627776" doc:"Instead: the last events before this offset."`
	Tail   bool  `query:"tail" doc:"Instead: the last events of all."`
	Limit  int   `query:"limit" minimum:"1" maximum:"1000" default:"200"`

	Step string `query:"step" maxLength:"1000" doc:"Of a workflow: the step whose agent it is with."`
}

func (s iterationHandlers) getConversation(ctx context.Context, in *conversationQuery,
) (*rest.Body[view.Conversation], error) {
	out := view.Conversation{Events: []view.AgentEvent{}}
	root, r, err := s.openAttempt(ctx, &in.IterationPath)
	if _, missing := errors.AsType[*rest.ProblemError](err); missing && r.ID != "" && lacksConversation(r, in.Number) {
		return rest.Answer(out), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	name := activity.EventsFile
	if in.Step != "" {
		if name, err = s.eventsOfStep(ctx, r, in); err != nil {
			return nil, err
		}
	}
	f, err := spool.Open(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return rest.Answer(out), nil // it has said nothing yet
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the events of run %s: %v", r.ID, err)
	}
	defer func() { _ = f.Close() }()
	spans, err := f.Spans()
	if err != nil {
		return nil, fmt.Errorf("cannot read the events of run %s: %v", r.ID, err)
	}
	out.Size = spans[len(spans)-1].To
	if in.Tail {
		in.Before = out.Size
	}
	if in.Before > 0 {
		return rest.Answer(activity.ReadEventsBefore(f, spans, min(in.Before, out.Size), in.Limit, out)), nil
	}
	return rest.Answer(activity.ReadEventsFrom(f, in.From, in.Limit, out)), nil
}

// eventsOfStep names the file of what the agent of a step did, as it was begun last in an iteration.
func (s *core) eventsOfStep(ctx context.Context, r store.Run, in *conversationQuery) (string, error) {
	rows, err := s.o.Store.Steps(ctx, r.ID)
	for _, row := range slices.Backward(rows) {
		if files, broken := flow.Files(row); row.Step == in.Step && row.Iteration == in.Number && broken == nil {
			return files + ".events.jsonl", nil
		}
	}
	return "", cmp.Or(err, error(noIteration(r.ID, in.Number)))
}

// lacksConversation reports whether an iteration has just begun, or is of a workflow,
// whose steps have a conversation each.
func lacksConversation(r store.Run, number int) bool {
	begins := loop.Status(r.Status).Active() && number == r.Iteration
	return begins || r.Kind == "workflow" && number <= r.Iteration
}
