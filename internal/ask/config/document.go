package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Ignored are keys of a document that are accepted and not read; the tag of the field names them.
type Ignored struct{}

// IterationCheck is what `pawl check` reads: one attempt at a task, and what
// tests and review said about it.
type IterationCheck struct {
	TaskID           string `yaml:"task_id"`                   // names the task; attempts are recorded by it
	CurrentIteration int    `yaml:"current_iteration" min:"1"` // the number of the attempt that was just made, from 1
	// MaxIterations is 0 where the key is absent: the configuration's holds.
	MaxIterations int          `yaml:"max_iterations" min:"1"` // attempts before a person is asked
	TestResult    CheckTests   `yaml:"test_result"`            // what the tests said
	ReviewResult  *CheckReview `yaml:"review_result"`          // what the review said; without it, pending
	// Attempts are nil where the key is absent: the recorded ones hold.
	Attempts []CheckAttempt `yaml:"attempts"` // the attempts before this one, instead of the recorded ones

	// JSON is true when the document was JSON.
	JSON bool `yaml:"-"`
}

// CheckTests is the result of the tests.
type CheckTests struct {
	Status string `yaml:"status" enum:"pass|fail"` // how they ended
	Output string `yaml:"output"`                  // what they printed
}

// CheckReview is the result of the review.
type CheckReview struct {
	Status   string `yaml:"status" enum:"approve|reject|pending"` // how it ended
	Feedback string `yaml:"feedback"`                             // what the reviewer wrote
}

// CheckAttempt is an earlier attempt. A plain text is its summary.
type CheckAttempt struct {
	// Iteration is 0 where the key is absent.
	Iteration int    `yaml:"iteration" min:"1"` // its number
	Summary   string `yaml:"summary"`           // how it ended, in a line
}

// GuardHistory is what `pawl check --history` reads: the iterations so far.
type GuardHistory struct {
	// IterationNumber is the next one's.
	IterationNumber int            `yaml:"iterationNumber" min:"1"` // the number of the iteration that would come next
	Config          GuardConfig    `yaml:"config"`                  // the guards' limits
	History         []GuardedEntry `yaml:"history"`                 // the iterations so far, oldest first
}

// GuardConfig are the limits of the guards.
type GuardConfig struct {
	MaxIterations           int `yaml:"maxIterations" min:"0"`                       // the highest of an iteration
	CircuitBreakerThreshold int `yaml:"circuitBreakerThreshold" default:"3" min:"0"` // failures in a row; 0 is off
	ThrashingThreshold      int `yaml:"thrashingThreshold" default:"5" min:"0"`      // failures with a file; 0 is off
	Ignored                 `yaml:"completionPromises|validationRules"`
}

// GuardedEntry is one iteration of a history.
type GuardedEntry struct {
	Iteration        int              `yaml:"iteration" min:"0"` // its number
	ValidationResult ValidationResult `yaml:"validationResult"`  // what its validation said
	Ignored          `yaml:"timestamp|checkpointId"`
}

// ValidationResult is what a validation said; without "passed" it failed.
type ValidationResult struct {
	Passed bool             `yaml:"passed"` // whether the iteration is valid
	Flags  []ValidationFlag `yaml:"flags"`  // what was found
}

// ValidationFlag is one finding. A message may name files, as "file: PATH".
type ValidationFlag struct {
	Message string `yaml:"message"`
	Ignored `yaml:"ruleId|severity"`
}

// MaxDocument is the most bytes that a document may have.
const MaxDocument = 4 << 20

// ReadIterationCheck reads an iteration_check, YAML or JSON. What is wrong with
// it is an [*Error] or [Errors] with its place in the document name.
func ReadIterationCheck(name string, data []byte) (IterationCheck, error) {
	var doc struct {
		Check IterationCheck `yaml:"iteration_check"` // the attempt to decide about
	}
	isJSON, err := readDocument(name, data, &doc,
		"iteration_check", "iteration_check.task_id", "iteration_check.current_iteration",
		"iteration_check.test_result", "iteration_check.test_result.status", "iteration_check.review_result?.status")
	doc.Check.JSON = isJSON
	return doc.Check, err
}

// ReadGuardHistory reads the document of `pawl check --history`, YAML or JSON.
// Its errors are those of [ReadIterationCheck].
func ReadGuardHistory(name string, data []byte) (GuardHistory, error) {
	var doc GuardHistory
	_, err := readDocument(name, data, &doc, "iterationNumber", "config", "config.maxIterations", "history")
	return doc, err
}

// readDocument decodes a document that others write. required are paths that
// must be there; "?" after a key allows it to be absent with all below it.
func readDocument(name string, data []byte, into any, required ...string) (isJSON bool, err error) {
	isJSON = json.Valid(data) // which is YAML, too
	root, err := parseYAML(&source{layer: project, name: name}, withoutControls(data))
	if err != nil {
		return isJSON, err
	}
	v := reflect.ValueOf(into).Elem()
	sp := newFieldSpec(v.Type(), reflect.StructField{})
	if root == nil || root.kind == nullNode {
		return isJSON, &Error{File: name, Message: "the document is empty: it needs " + required[0]}
	}
	root = sp.expandShort(root)
	d := &decoder{from: map[string]position{}, top: sp}
	d.fillDefaults(sp, v, "")
	d.decodeValue(sp, root, v, "")
	if root.kind == mapNode {
		for _, path := range required {
			d.requireKey(root, path)
		}
	}
	return isJSON, d.errs.sortedErrorOrNil()
}

// requireKey reports the key at path if the one above it is there and it is not.
func (d *decoder) requireKey(root *node, path string) {
	n, at, above := root, root.at, ""
	keys := strings.Split(path, ".")
	for i, key := range keys {
		key, optional := strings.CutSuffix(key, "?")
		p, ok := n.pairOfKey(key)
		missing := !ok || p.value.kind == nullNode
		excused := optional || i < len(keys)-1 // not needed, or reported for its own path
		switch {
		case missing && excused:
			return
		case missing:
			d.addError(at, "", "%s is missing", joinPath(above, key))
			return
		case p.value.kind != mapNode:
			return
		}
		n, at, above = p.value, p.at, joinPath(above, key)
	}
}

var escapes = lazy.Regexp("\x1b(?:\\[[0-9;:?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// withoutControls takes out the colours and other control characters that come
// with a terminal's output; YAML allows none of them.
func withoutControls(data []byte) []byte {
	data = escapes().ReplaceAll(data, nil)
	return bytes.Map(func(r rune) rune {
		control := unicode.IsControl(r) && r <= unicode.MaxASCII
		if control && !strings.ContainsRune("\x00\t\n\r", r) {
			return -1
		}
		return r
	}, data)
}
