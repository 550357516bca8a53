package board

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// TaskCheck is a command that shows whether one task is done: with exit status 0 it is.
// What is stored outlives the code: fields are added, never renamed.
type TaskCheck struct {
	Name      string `json:"name,omitempty" maxLength:"64" doc:"What it is called; without it the command."`
	Command   string `json:"command" maxLength:"4000" doc:"Run with sh -c in the workspace."`
	Criterion string `json:"criterion,omitempty" maxLength:"10000" doc:"What it shows: an acceptance criterion."`
	// Files are put in the place of those of the same path before it runs.
	Files map[string]string `json:"files,omitempty" doc:"Its own files: texts by their paths in the repository."`
}

// The limits of the checks of a task. Lengths are in bytes.
const (
	MaxChecks     = 20 // visible ones, and as many sealed ones
	maxCheckName  = 64
	maxCommand    = 4000
	maxCheckFiles = 256 << 10
)

var checkKeys = []string{"name", "command", "criterion", "files"}

// objectBegins is no "{ command; }" of a shell.
var objectBegins = lazy.Regexp(`^\{\s*["}]`)

// ReadTaskCheck reads a check as people write it: a command, or an object in JSON.
func ReadTaskCheck(text string) (c TaskCheck, err error) {
	text = strings.TrimSpace(text)
	if !objectBegins().MatchString(text) {
		return TaskCheck{Command: text}, nil
	}
	err = json.Unmarshal([]byte(text), &c)
	return c, err
}

// UnmarshalJSON reads an object, or a text that is its command.
func (c *TaskCheck) UnmarshalJSON(data []byte) error {
	*c = TaskCheck{}
	if json.Unmarshal(data, &c.Command) == nil {
		return nil
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil {
		return fmt.Errorf("a check is a command, or an object with %s", strings.Join(checkKeys, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(checkKeys, key) {
			return fmt.Errorf("a check has no key %q; it has %s", cutForMessage(key), strings.Join(checkKeys, ", "))
		}
	}
	type plain TaskCheck // without this method
	return json.Unmarshal(data, (*plain)(c))
}

// checkList is a list of checks, or one.
type checkList []TaskCheck

func (t *checkList) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		return json.Unmarshal(data, (*[]TaskCheck)(t))
	}
	var one TaskCheck
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*t = checkList{one}
	return nil
}

// Label returns the name of the check, or else its command in one line.
func (c *TaskCheck) Label() string {
	return cmp.Or(c.Name, cutForMessage(strings.Join(strings.Fields(c.Command), " ")))
}

// Checks are those of one task.
type Checks struct {
	// Verify are shown to its agent, Sealed are not.
	Verify []TaskCheck `json:"verify,omitempty" nullable:"false" doc:"Only where one case is asked for."`
	Sealed []TaskCheck `json:"sealed,omitempty" nullable:"false" doc:"Checks that its agents do not see."`
}

// Same reports whether they are the same as others.
func (c Checks) Same(other Checks) bool {
	return sameChecks(c.Verify, other.Verify) && sameChecks(c.Sealed, other.Sealed)
}

func sameChecks(a, b []TaskCheck) bool {
	return slices.EqualFunc(a, b, func(a, b TaskCheck) bool {
		return a.Name == b.Name && a.Command == b.Command && a.Criterion == b.Criterion && maps.Equal(a.Files, b.Files)
	})
}

func tidyChecks(list []TaskCheck) []TaskCheck {
	list = slices.Clone(list)
	for i := range list {
		c := &list[i]
		c.Name, c.Command, c.Criterion = strings.TrimSpace(c.Name), strings.TrimSpace(c.Command),
			strings.TrimSpace(c.Criterion)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// faultsOfChecks lists what is wrong with checks. The key is where they stand: verify or sealed.
func faultsOfChecks(key string, list []TaskCheck) (wrong []string) {
	add := func(i int, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s: check %d ", key, i+1)+fmt.Sprintf(format, args...))
	}
	if len(list) > MaxChecks {
		wrong = append(wrong, fmt.Sprintf("%s: %d checks, at most %d", key, len(list), MaxChecks))
	}
	names := map[string]bool{}
	for i, c := range list[:min(len(list), MaxChecks)] {
		switch {
		case c.Command == "":
			add(i, "has no command")
		case len(c.Command) > maxCommand, !isValidText(c.Command):
			add(i, "has a command of more than %d bytes, or one that is not UTF-8 text", maxCommand)
		}
		if len(c.Name) > maxCheckName || !isSingleLine(c.Name) {
			add(i, "has a name of more than %d bytes or lines", maxCheckName)
		}
		if names[c.Label()] {
			add(i, "is repeated: %s", c.Label())
		}
		names[c.Label()] = true
		if len(c.Criterion) > MaxCriterion || !isValidText(c.Criterion) {
			add(i, "has a criterion that is longer than %d bytes or not UTF-8 text", MaxCriterion)
		}
		if text := faultOfFiles(c.Files); text != "" {
			add(i, "%s", text)
		}
	}
	return wrong
}

// faultOfFiles finds the first file that a check cannot have; "" is none.
func faultOfFiles(list map[string]string) string {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(list)) {
		size += len(name) + len(list[name])
		first, _, _ := strings.Cut(strings.ToLower(name), "/")
		own := first == ".git" || first == ".pawl" || path.Base(name) == "pawl.yaml"
		if own || !filepath.IsLocal(name) || path.Clean(name) != name || !isSingleLine(name) {
			return fmt.Sprintf("cannot have a file %q: write a path of the project, such as test/accept.sh",
				cutForMessage(name))
		}
		if !isValidText(list[name]) {
			return fmt.Sprintf("has a file %s that is not UTF-8 text", cutForMessage(name))
		}
	}
	if size > maxCheckFiles {
		return fmt.Sprintf("has files of %d bytes, at most %d", size, maxCheckFiles)
	}
	return ""
}
