package script

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Scenario is the script that the agent plays.
type Scenario struct {
	Name   string  `yaml:"name"`
	Model  string  `yaml:"model"`
	Turns  []Turn  `yaml:"turns"`
	Scenes []Scene `yaml:"scenes"`
}

// Scene is a list of turns for some starts only.
type Scene struct {
	When  When   `yaml:"when"`
	Turns []Turn `yaml:"turns"`
}

// When holds if all that is given holds.
type When struct {
	Prompt string `yaml:"prompt"` // the prompt has this text in it
	Case   string `yaml:"case"`   // PAWL_CASE
}

// Turn is the part of a scenario that one start of the agent plays.
type Turn struct{ steps []step }

// step is one action, with its place in the file for messages.
type step struct {
	verb string
	line int
	do   func(*player) error
}

// Load reads a scenario file. Its error shows the line with a caret.
func Load(path string) (*Scenario, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the scenario: %v", err)
	}
	s, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read the scenario %s: %v", path, err)
	}
	return s, nil
}

// Parse reads a scenario. An unknown key, a wrong type or an empty scenario is
// an error that shows the line with a caret.
func Parse(b []byte) (*Scenario, error) {
	var s Scenario
	if err := yaml.UnmarshalWithOptions(b, &s, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s", yaml.FormatError(err, false, true))
	}
	if len(s.Turns) == 0 && len(s.Scenes) == 0 {
		return nil, fmt.Errorf("it has no turns")
	}
	for i, scene := range s.Scenes {
		if len(scene.Turns) == 0 {
			return nil, fmt.Errorf("scene %d has no turns", i+1)
		}
	}
	return &s, nil
}

// sceneFor returns the turns for this start, and a name for their counter.
func (s *Scenario) sceneFor(prompt, caseID string) ([]Turn, string) {
	for i, scene := range s.Scenes {
		w := scene.When
		another := w.Case != "" && w.Case != caseID
		if !another && strings.Contains(prompt, w.Prompt) {
			return scene.Turns, fmt.Sprintf("scene%d", i+1)
		}
	}
	return s.Turns, "turns"
}

// UnmarshalYAML reads a mapping of steps, or a list of them.
func (t *Turn) UnmarshalYAML(node ast.Node) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return t.readMapping(node)
	}
	for _, v := range list.Values {
		if err := t.readMapping(v); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) readMapping(node ast.Node) error {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := t.addTurnStep(v); err != nil {
				return err
			}
		}
		return nil
	case *ast.MappingValueNode:
		return t.addTurnStep(n)
	}
	return errorAtToken(node.GetToken(), "a turn is a mapping of steps, or a list of such mappings")
}

func (t *Turn) addTurnStep(v *ast.MappingValueNode) error {
	tok := v.Key.GetToken()
	verb := tok.Value
	read, ok := verbs[verb]
	if !ok {
		all := strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
		return errorAtToken(tok, "unknown step "+verb+"; the steps are "+all)
	}
	do, err := read(v.Value)
	if err != nil {
		return err
	}
	t.steps = append(t.steps, step{verb: verb, line: tok.Position.Line, do: do})
	return nil
}

// errorAtToken is an error at a place in the file.
func errorAtToken(tok *token.Token, message string) error {
	return &yaml.SyntaxError{Message: message, Token: tok}
}

// verb reads a step's value and returns what the step does.
type verb func(node ast.Node) (func(*player) error, error)

// newVerb is a verb whose value is a T: a mapping, or in short what short points to. preset is what
// a mapping may leave out.
func newVerb[T any](preset T, short func(*T) any, do func(*T, *player) error) verb {
	return func(node ast.Node) (func(*player) error, error) {
		v := preset
		if err := readInto(node, &v, short(&v)); err != nil {
			return nil, err
		}
		if c, ok := any(&v).(interface{ reasonInvalid() string }); ok {
			if wrong := c.reasonInvalid(); wrong != "" {
				return nil, errorAtToken(node.GetToken(), wrong)
			}
		}
		return func(p *player) error { return do(&v, p) }, nil
	}
}

// mappingOnly is the short form of a verb that has none.
func mappingOnly[T any](*T) any { return nil }

// plainVerb is a verb whose value is a T and nothing else.
func plainVerb[T any](do func(T, *player) error) verb {
	return func(node ast.Node) (func(*player) error, error) {
		var v T
		if err := yaml.NodeToValue(node, &v, yaml.Strict()); err != nil {
			return nil, err
		}
		return func(p *player) error { return do(v, p) }, nil
	}
}

// flagVerb is a verb that is done when its value is true.
func flagVerb(do func(*player) error) verb {
	return plainVerb(func(on bool, p *player) error {
		if !on {
			return nil
		}
		return do(p)
	})
}

// readInto reads a mapping strictly into v, and anything else into short.
func readInto(node ast.Node, v, short any) error {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return yaml.NodeToValue(node, v, yaml.Strict())
	}
	if short == nil {
		return errorAtToken(node.GetToken(), "this step takes a mapping")
	}
	return yaml.NodeToValue(node, short, yaml.Strict())
}

// texts is one text or a list of them.
type texts []string

// UnmarshalYAML reads either form.
func (t *texts) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.SequenceNode); ok {
		return yaml.NodeToValue(node, (*[]string)(t))
	}
	var one string
	if err := yaml.NodeToValue(node, &one); err != nil {
		return err
	}
	*t = texts{one}
	return nil
}

// duration carries a unit.
type duration time.Duration

// UnmarshalYAML reads "90s".
func (d *duration) UnmarshalYAML(node ast.Node) error {
	v, err := time.ParseDuration(node.GetToken().Value)
	if err != nil || v < 0 {
		return errorAtToken(node.GetToken(), "a duration carries a unit: 90s, 10m")
	}
	*d = duration(v)
	return nil
}
