package config

import (
	"bytes"
	"errors"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// LayOver is the text of a file with the keys of another one in it, which take the place of its own. Order and
// comments of the first stay. It is how [Options.Over] is made to stay.
func LayOver(base, over []byte) ([]byte, error) {
	to, err := parser.ParseBytes(base, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	from, err := parser.ParseBytes(over, 0)
	if err != nil {
		return nil, err
	}
	if len(to.Docs) == 0 || len(bytes.TrimSpace(base)) == 0 {
		return over, nil
	}
	keys, ok := from.Docs[0].Body.(*ast.MappingNode)
	switch body := to.Docs[0].Body.(type) {
	case *ast.MappingNode:
		if ok {
			layMapping(body, keys)
			return []byte(to.String()), nil
		}
	case nil, *ast.CommentGroupNode, *ast.NullNode:
		return append(append(bytes.TrimRight(base, "\n"), '\n'), over...), nil
	}
	return nil, errors.New("both files have to be mappings of keys")
}

func layMapping(to, from *ast.MappingNode) {
	for _, v := range from.Values {
		has := findKey(to, v.Key.String())
		if has == nil {
			if len(to.Values) > 0 && !to.IsFlowStyle {
				v.AddColumn(columnOf(to.Values[0]) - columnOf(v))
			}
			to.Values = append(to.Values, v)
			continue
		}
		inner, isMapping := has.Value.(*ast.MappingNode)
		newer, alsoMapping := v.Value.(*ast.MappingNode)
		if isMapping && alsoMapping {
			layMapping(inner, newer)
			continue
		}
		comment := has.Value.GetComment()
		v.AddColumn(columnOf(has) - columnOf(v))
		has.Value = v.Value
		if _, isScalar := v.Value.(ast.ScalarNode); isScalar && comment != nil {
			_ = has.Value.SetComment(comment) // else it is lost, and nothing else
		}
	}
}

func findKey(in *ast.MappingNode, key string) *ast.MappingValueNode {
	for _, v := range in.Values {
		if v.Key.String() == key {
			return v
		}
	}
	return nil
}

func columnOf(v *ast.MappingValueNode) int { return v.Key.GetToken().Position.Column }
