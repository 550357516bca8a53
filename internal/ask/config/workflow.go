package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// Workflow is a workflow file that was read and planned.
type Workflow struct {
	// Path is absolute.
	Path string
	Plan *workflow.Plan
	// Notes are what a person should know: keys that are read and not acted on.
	Notes []string
	// Nested are the workflows of steps, by the step's id. Steps that run the
	// same file share it. A file whose name has a placeholder is not there.
	Nested map[string]*Workflow
	// Files are those that were read, the nested ones too.
	Files []trust.File
	// Controlled is true for a workflow whose policy is iteration control.
	Controlled bool

	control *IterationControl
	named   func(key string) bool // of control
}

// IterationControl of the workflow, over the general one.
func (w *Workflow) IterationControl(general IterationControl) IterationControl {
	if w.control == nil {
		return general
	}
	own := *w.control
	own.fillUnder(general, w.named)
	return own
}

// Limits of workflows in workflows.
const (
	maxNesting = 8
	maxNested  = 64
)

// LoadWorkflow reads a workflow file and those that its steps run, and plans
// them. name is how the person named it, relative to dir. What is wrong with a
// file is an [*Error] or [Errors] with its place; then the workflow has its Files
// only. pinned are used instead of the files of their paths.
func LoadWorkflow(dir, name string, pinned ...trust.File) (*Workflow, error) {
	root, err := statedir.FindRoot(dir)
	if err != nil {
		return &Workflow{}, err
	}
	l := workflowLoader{texts: &texts{root: root, pinned: pinned}, read: map[string]*Workflow{}}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return &Workflow{}, fmt.Errorf("cannot tell where the workflow is: %v", err)
	}
	w, err := l.loadWorkflow(path, name, nil)
	if err != nil {
		w = &Workflow{}
	}
	w.Files = l.texts.read
	return w, err
}

type workflowLoader struct {
	texts *texts
	read  map[string]*Workflow
}

func (l *workflowLoader) loadWorkflow(path, name string, above []string) (*Workflow, error) {
	if w := l.read[path]; w != nil {
		return w, nil
	}
	data, err := l.texts.readFile(path)
	if err != nil {
		return nil, &Error{File: name, Message: fmt.Sprintf("cannot read the workflow: %v", err)}
	}
	r, err := readWorkflow(name, data)
	if err != nil {
		return nil, err
	}
	w := &Workflow{Path: path, Notes: r.notes, Nested: map[string]*Workflow{}, Controlled: r.raw.Policy == "controlled",
		control: r.raw.IterationControl, named: func(key string) bool {
			at, ok := r.from["iteration_control."+key]
			return ok && at.src.layer != builtIn
		}}
	if w.control != nil && !w.Controlled {
		w.Notes = append(w.Notes, fmt.Sprintf("%s:%d: iteration_control holds with policy: controlled only", name,
			r.positionOfPath("iteration_control").line))
	}
	if w.Controlled && len(above) > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%s:%d: policy holds for a workflow that is started itself, not for a "+
			"step", name, r.positionOfPath("policy").line))
	}
	above = append(above, path)
	for i := range r.file.Steps {
		s := &r.file.Steps[i]
		if s.Kind != workflow.Nested || strings.Contains(s.Content, "{{") {
			continue
		}
		below, err := l.loadNested(r, s, above, name)
		if err != nil {
			return nil, err
		}
		w.Nested[s.ID], s.Digest = below, below.Plan.Hash
		w.Notes = lists.Union(w.Notes, below.Notes...)
	}
	if w.Plan, err = r.planWorkflow(); err != nil {
		return nil, err
	}
	l.read[path] = w
	return w, nil
}

// loadNested loads the workflow of a step; above are the files that led to it.
func (l *workflowLoader) loadNested(r *workflowReader, s *workflow.Step, above []string, name string,
) (*Workflow, error) {
	at := r.positionOfPath(s.Where + ".workflow")
	path := s.Content
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(above[len(above)-1]), path)
	}
	shown := s.Content
	if !filepath.IsAbs(shown) {
		shown = filepath.Join(filepath.Dir(name), shown)
	}
	for i, p := range above {
		if p == path {
			names := lists.Each(append(above[i:len(above):len(above)], path), filepath.Base)
			return nil, errorAtPlace(at, "", "Dependency cycle detected: %s", strings.Join(names, " → "))
		}
	}
	if len(above) >= maxNesting {
		return nil, errorAtPlace(at, "", "workflows are nested too deeply (over %d levels)", maxNesting)
	}
	if len(l.read) >= maxNested {
		return nil, errorAtPlace(at, "", "too many workflows are nested (over %d files)", maxNested)
	}
	if _, err := l.texts.readFile(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errorAtPlace(at, "", "there is no workflow file %s", shown)
	}
	return l.loadWorkflow(path, shown, above)
}

// workflowReader turns the file's keys into a workflow, and knows where they
// stand.
type workflowReader struct {
	decoder
	src   *source
	raw   workflowFile
	file  workflow.File
	as    map[string]string // key as the workflow package calls it: as it was written
	notes []string
}

func readWorkflow(name string, data []byte) (*workflowReader, error) {
	r := &workflowReader{src: &source{layer: project, name: name}, as: map[string]string{}}
	root, err := parseYAML(r.src, data)
	if err != nil {
		return nil, err
	}
	if root == nil || root.kind == nullNode {
		return nil, &Error{File: name, Message: "the workflow is empty: it needs steps"}
	}
	sp := workflowSpec()
	root = sp.expandShort(root)
	r.decoder = decoder{from: map[string]position{}, top: sp}
	raw := reflect.ValueOf(&r.raw).Elem()
	r.fillDefaults(sp, raw, "")
	r.decodeValue(sp, root, raw, "")
	if err := r.errs.sortedErrorOrNil(); err != nil {
		return nil, err
	}
	r.noteIgnored(root)
	r.unifyDialects(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	return r, r.errs.sortedErrorOrNil()
}

// planWorkflow plans the workflow, and gives its faults their places.
func (r *workflowReader) planWorkflow() (*workflow.Plan, error) {
	p, faults := workflow.New(r.file)
	if len(faults) == 0 {
		return p, nil
	}
	for _, f := range faults {
		at := r.positionOfPath(f.Path)
		if f.Find != "" {
			at = r.findText(at, f.Find, f.Offset)
		}
		if f.First != "" {
			f.Message += fmt.Sprintf("; the first is in line %d", r.positionOfPath(f.First).line)
		}
		r.errs = append(r.errs, errorAtPlace(at, Nearest(f.Word, f.Among), "%s", f.Message))
	}
	return nil, r.errs.sortedErrorOrNil()
}

// positionOfPath the key at path, or the nearest one above it.
func (r *workflowReader) positionOfPath(path string) position {
	for path != "" {
		written := path
		for canonical, as := range r.as {
			if rest, ok := strings.CutPrefix(path, canonical); ok && strings.IndexAny(rest+".", ".[") == 0 {
				written = as + rest
			}
		}
		if at, ok := r.from[written]; ok && at.src.layer != builtIn {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return position{src: r.src, line: 1, column: 1}
}

// findText looks for a text from a place on: a value in quotes or of several lines
// begins later than its place says.
func (r *workflowReader) findText(at position, text string, offset int) position {
	for line := at.line; line >= 1 && line <= len(r.src.lines) && line < at.line+1000; line++ {
		runes := []rune(r.src.lines[line-1])
		from := 0
		if line == at.line {
			from = min(at.column-1, len(runes))
		}
		if i := strings.Index(string(runes[from:]), text); i >= 0 {
			column := from + len([]rune(string(runes[from:])[:i])) + offset + 1
			return position{at.src, line, min(column, len(runes)+1)}
		}
	}
	return at
}

// workflowIgnored are keys of dialects that a person may count on.
var workflowIgnored = []string{"monitoring", "rollback"}

func (r *workflowReader) noteIgnored(root *node) {
	for _, key := range workflowIgnored {
		if p, ok := root.pairOfKey(key); ok {
			r.notes = append(r.notes, fmt.Sprintf("%s:%d: %s is ignored", r.src.name, p.at.line, key))
		}
	}
}

// Procedure is a named loop. A nil pointer or an empty text means that the
// general setting holds.
type Procedure struct {
	Summary          string             `yaml:"summary"`
	Observe          []Fragment         `yaml:"observe"`
	Orient           []Fragment         `yaml:"orient"`
	Decide           []Fragment         `yaml:"decide"`
	Act              []Fragment         `yaml:"act"`
	Policy           string             `yaml:"policy" default:"procedure" enum:"procedure|task|controlled"`
	Agent            string             `yaml:"agent"`
	MaxIterations    *int               `yaml:"max_iterations" min:"0"`
	FailureThreshold *int               `yaml:"failure_threshold" min:"0"`
	Timeout          *quantity.Duration `yaml:"timeout"`
	IterationTimeout *quantity.Duration `yaml:"iteration_timeout"`
	IdleTimeout      *quantity.Duration `yaml:"idle_timeout"`
	Safety           string             `yaml:"safety" enum:"permissive|normal|paranoid"`
	Strategy         string             `yaml:"strategy"`
	Allow            []string           `yaml:"allow" names:"true"`
	IterationControl *IterationControl  `yaml:"iteration_control"`
}

// Fragment is one piece of a prompt. A plain text is its path.
type Fragment struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`

	// Name is the path as written, or "content" for a text of its own.
	Name string `yaml:"-"`
	// Source is the file's absolute path, "builtin", or the place of the
	// content, e.g. "pawl.yaml:12".
	Source string `yaml:"-"`
	// Text is what goes into the prompt.
	Text string `yaml:"-"`

	at position
}

// Verification is the gates and what they protect.
type Verification struct {
	DefaultTimeout quantity.Duration `yaml:"default_timeout" default:"300s" min:"1ms" bare:"seconds"`
	Protect        []string          `yaml:"protect"`
	ProtectNew     bool              `yaml:"protect_new" default:"false"`
	Retries        int               `yaml:"retries" default:"2" min:"0"`
	OnBase         bool              `yaml:"on_base" default:"true"`
	LaterEvery     quantity.Duration `yaml:"later_every" default:"1h" min:"0s"`
	Commands       []Gate            `yaml:"commands"`
}

// Gates are the commands that run here, before work lands.
func (v Verification) Gates() []Gate {
	return slices.DeleteFunc(slices.Clone(v.Commands), func(g Gate) bool { return g.Forge != "" || g.When == "later" })
}

// LaterGates are the commands that run on what has landed.
func (v Verification) LaterGates() []Gate {
	return slices.DeleteFunc(slices.Clone(v.Commands), func(g Gate) bool { return g.Forge != "" || g.When != "later" })
}

// Checks is the gate that asks the forge's CI before work lands; Forge is empty where
// there is none.
func (v Verification) Checks() Gate {
	for _, g := range v.Commands {
		if g.Forge != "" {
			return g
		}
	}
	return Gate{}
}

// Gate is one verification command, or the forge's checks. A plain text is its command.
type Gate struct {
	// Name is the command where the key is absent.
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	// Forge is "checks" for the gate that asks the forge, and Checks are the names of
	// its statuses and jobs that have to be green.
	Forge string `yaml:"forge" enum:"checks"`
	// Timeout is verification.default_timeout where the key is absent, and an hour for
	// the forge's checks.
	Timeout    quantity.Duration `yaml:"timeout" min:"1ms" bare:"seconds"`
	Required   bool              `yaml:"required" default:"true"`
	Checks     []string          `yaml:"required" names:"true"`
	Kind       string            `yaml:"kind" enum:"test|build|lint|typecheck|other"`
	AllowEmpty bool              `yaml:"allow_empty" default:"false"`
	When       string            `yaml:"when" default:"iteration" enum:"iteration|landing|later"`
	Affected   []string          `yaml:"affected"`
}

// Review says who reviews.
type Review struct {
	Mode   string     `yaml:"mode" default:"skip" enum:"skip|agent|person|batch"`
	Agent  string     `yaml:"agent"`
	Prompt *Fragment  `yaml:"prompt" whole:"true"`
	When   ReviewWhen `yaml:"when"`
}

// ReviewWhen says which tasks a person reviews, whatever the mode.
type ReviewWhen struct {
	Files    int      `yaml:"files" default:"0" min:"0"`
	Lines    int      `yaml:"lines" default:"0" min:"0"`
	Paths    []string `yaml:"paths"`
	Unproved bool     `yaml:"unproved" default:"false"`
}

// Sprint is a run of the autopilot up to a target.
type Sprint struct {
	Target  quantity.SprintTarget `yaml:"target" whole:"true"`
	Filters SprintFilters         `yaml:"filters"`
	Options SprintOptions         `yaml:"options"`
}

// SprintFilters choose tasks; an empty list chooses all, or excludes none.
type SprintFilters struct {
	IncludeOperations []string `yaml:"include_operations" names:"true"`
	IncludeTags       []string `yaml:"include_tags" names:"true"`
	ExcludeTags       []string `yaml:"exclude_tags" names:"true"`
}

// SprintOptions are the sprint's switches.
type SprintOptions struct {
	CheckpointBefore bool `yaml:"checkpoint_before" default:"true"`
	PauseOnError     bool `yaml:"pause_on_error" default:"false"`
	BatchReview      bool `yaml:"batch_review" default:"false"`
}
