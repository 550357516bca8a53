package gate

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// TaskSpecs are the checks of a task as gates, after those of its project: those that its
// agent is shown, then the sealed ones. Time and retries are those of like.
func TaskSpecs(task *board.Case, like Spec) []Spec {
	var specs []Spec
	add := func(name, origin string, c *board.TaskCheck) {
		s := like
		s.Name, s.Command, s.Origin, s.Criterion, s.Files = name, c.Command, origin, c.Criterion, c.Files
		s.Required = true
		if task.ID != "" {
			s.Name = task.ID + ": " + name
		}
		specs = append(specs, s)
	}
	for i := range task.Verify {
		add(task.Verify[i].Label(), loop.OfTask, &task.Verify[i])
	}
	for i := range task.Sealed { // the name goes where an agent reads it
		add(fmt.Sprintf("sealed check %d", i+1), loop.Sealed, &task.Sealed[i])
	}
	return specs
}

// OnCopy reports whether the gate runs on a copy of the files that are judged: it has files
// of its own, or nothing of it may be left where an agent works.
func (s Spec) OnCopy() bool { return s.Origin == loop.Sealed || len(s.Files) > 0 }

// Key is another one for each other gate, for stored verdicts.
func (s Spec) Key() string {
	key := fmt.Sprintf("%q %q %s %t %t %q", s.Name, s.Command, s.Timeout, s.Required, s.AllowEmpty, s.Kind)
	if len(s.Affected) > 0 {
		key += fmt.Sprintf(" affected %q", s.Affected)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		key += fmt.Sprintf(" %q %q", path, s.Files[path])
	}
	return key + "\n"
}

// Mark differs for each check of a task. Nothing of a sealed one can be read from it.
func (s Spec) Mark() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", s.Command, s.Files))
	return fmt.Sprintf("%s %x", s.Name, sum[:4])
}

func (s Spec) newGateRecord() loop.Gate {
	return loop.Gate{
		Name: s.labelOf(), Required: s.Required, Status: loop.GateNotRun, Total: -1,
		Origin: s.Origin, Criterion: s.Criterion,
	}
}

// hideDetails leaves of a sealed check that ran whether it is green. The code under test can read the check, and could
// say what it read by an exit status, a count or a limit that is reached.
func hideDetails(g *loop.Gate) {
	g.Test, g.Passed, g.Total, g.Note = false, 0, -1, ""
	if g.Status != loop.GatePassed {
		g.Status, g.ExitCode = loop.GateFailed, 1
	}
}

// sealedFailure makes of a red sealed check what its agent may know. Why it did not start is no secret of it.
func sealedFailure(s Spec, g *loop.Gate, red failure.Analysis) (failure.Analysis, string) {
	what := cmp.Or(s.Criterion, "a check that you are not shown")
	if g.Status != loop.GateError {
		red = failure.Analysis{Kind: failure.Work}
	}
	a := failure.Analysis{
		Class: failure.TestFailure, Kind: red.Kind, Transient: red.Transient, Severity: failure.Medium,
		Step: s.labelOf(), Summary: shortenToSummary("this does not hold yet: " + what),
	}
	a.Items = []failure.Item{{Message: "This does not hold yet: " + what + ". The check that shows it is sealed: " +
		"nothing more is told of it. Do what the task asks for, in general and not for examples alone."}}
	a.Fingerprint = failure.Fingerprint(a, s.labelOf())
	return a, shortenToSummary(s.labelOf() + ": " + a.Summary)
}

var (
	testFiles = lazy.Regexp(`(?i)(^|/)(test_[^/]*\.py|conftest\.py|[^/]*[._-](test|spec)s?\.[a-z]+)$`)
	// In other languages a class's name says it, in capitals.
	testClasses = lazy.Regexp(`(Test|Tests|TestCase|Spec|IT)\.(java|kt|kts|scala|groovy|cs|swift|php|vb)$`)
	testFolders = lazy.Regexp(`(^|/)(test|tests|spec|specs|__tests__|testdata|fixtures)/`)
)

// IsTest reports whether a file is one of tests, by the conventions of languages.
func IsTest(path string) bool {
	return testFiles().MatchString(path) || testClasses().MatchString(path) || testFolders().MatchString(path)
}

// LayFiles puts the files of a check below a folder, and returns their paths. What an agent
// left in the way of one, such as a link, goes. Call back when the check has ended: then
// what was there is there again.
func LayFiles(dir string, list map[string]string) (paths []string, back func() error, err error) {
	var undo []func() error
	top, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	back = func() error {
		defer top.Close()
		var err error
		for _, do := range slices.Backward(undo) {
			err = errors.Join(err, do())
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		for i := range len(name) + 1 {
			isFolder := i < len(name) && name[i] == '/'
			if i < len(name) && !isFolder {
				continue
			}
			again, rerr := removeForNow(top, name[:i], isFolder)
			if err = errors.Join(err, rerr); again != nil {
				undo = append(undo, again)
			}
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(list[name], "#!") {
			mode = 0o755
		}
		err = errors.Join(err, top.MkdirAll(path.Dir(name), 0o755))
		if err = errors.Join(err, top.WriteFile(name, []byte(list[name]), mode)); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("cannot put the file %s of a check there: %w", name, err), back())
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, back, nil
}

// removeForNow removes what is at a name, unless it is a folder that is wanted there. again puts
// back what was there; nil when nothing has to be.
func removeForNow(top *os.Root, name string, folder bool) (again func() error, err error) {
	info, err := top.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return func() error { return top.RemoveAll(name) }, nil
	case err != nil, folder && info.IsDir():
		return nil, err
	}
	aside := name + ".pawl-aside"
	if err := top.Rename(name, aside); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(top.RemoveAll(name), top.Rename(aside, name)) }, nil
}

// badShell matches what a shell says of a command that it cannot read; a script that is work has a name of its own.
var badShell = lazy.Regexp(`(^|[: ])sh: (-c: )?(line )?\d+: [Ss]yntax error`)

// IsOfItsOwn reports whether a check is red for what no work on the task would change.
func IsOfItsOwn(f *failure.Analysis) bool {
	return badShell().MatchString(f.Summary) || slices.Contains([]failure.Class{
		failure.Timeout, failure.Network, failure.Permission, failure.MissingCommand, failure.Dependency,
		failure.ResourceExhausted, failure.ServiceUnavailable, failure.Auth, failure.PortConflict, failure.RateLimit,
	}, f.Class)
}
