package script

import (
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// verb reads a step's value and returns what the step does.
type verb func(node ast.Node) (func(*player) error, error)

// of is a verb whose value is a T: a mapping, or in short what short points to.
// preset is what a mapping may leave out.
func of[T any](preset T, short func(*T) any, do func(*T, *player) error) verb {
	return func(node ast.Node) (func(*player) error, error) {
		v := preset
		if err := into(node, &v, short(&v)); err != nil {
			return nil, err
		}
		if c, ok := any(&v).(interface{ check() string }); ok {
			if wrong := c.check(); wrong != "" {
				return nil, invalid(node.GetToken(), wrong)
			}
		}
		return func(p *player) error { return do(&v, p) }, nil
	}
}

// mapping is the short form of a verb that has none.
func mapping[T any](*T) any { return nil }

// plain is a verb whose value is a T and nothing else.
func plain[T any](do func(T, *player) error) verb {
	return func(node ast.Node) (func(*player) error, error) {
		var v T
		if err := yaml.NodeToValue(node, &v, yaml.Strict()); err != nil {
			return nil, err
		}
		return func(p *player) error { return do(v, p) }, nil
	}
}

// flag is a verb that is done when its value is true.
func flag(do func(*player) error) verb {
	return plain(func(on bool, p *player) error {
		if !on {
			return nil
		}
		return do(p)
	})
}

// into reads a mapping strictly into v, and anything else into short.
func into(node ast.Node, v, short any) error {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return yaml.NodeToValue(node, v, yaml.Strict())
	}
	if short == nil {
		return invalid(node.GetToken(), "this step takes a mapping")
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
		return invalid(node.GetToken(), "a duration carries a unit: 90s, 10m")
	}
	*d = duration(v)
	return nil
}
