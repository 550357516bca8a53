package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// LayOver is the text of a file with the keys of another one in it, which take the place of its own. Order, comments
// and lines of the first that no key changes stay as they are. It is how [Options.Over] is made to stay.
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
			printed := to.String()
			layMapping(body, keys)
			return []byte(keepLines(string(base), printed, to.String())), nil
		}
	case nil, *ast.CommentGroupNode, *ast.NullNode:
		return append(append(bytes.TrimRight(base, "\n"), '\n'), over...), nil
	}
	return nil, errors.New("both files have to be mappings of keys")
}

// keepLines is the edited form of a text, with each line that no edit changed as the text has it, and its empty lines.
// Printing alone changes blanks, as printed shows.
func keepLines(text, printed, edited string) string {
	was, now := strings.Split(text, "\n"), strings.Split(edited, "\n")
	unedited := lists.Set(strings.Split(printed, "\n"))
	isSame := func(i, k int) bool { return unedited[now[k]] && withoutBlanks(was[i]) == withoutBlanks(now[k]) }
	common := make([][]int, len(was)+1) // most lines that follow and are the same
	common[len(was)] = make([]int, len(now)+1)
	for i := len(was) - 1; i >= 0; i-- {
		common[i] = make([]int, len(now)+1)
		for k := len(now) - 1; k >= 0; k-- {
			common[i][k] = max(common[i+1][k], common[i][k+1])
			if isSame(i, k) {
				common[i][k] = 1 + common[i+1][k+1]
			}
		}
	}
	isReplaced := func(i, k int) bool { // the next line that is not empty; what takes its place comes after empty ones
		for i < len(was)-1 && withoutBlanks(was[i]) == "" {
			i++
		}
		return common[i][k] == common[i+1][k]
	}
	var out []string
	for i, k := 0, 0; i < len(was) || k < len(now); {
		atEnd := i == len(was) || k == len(now)
		switch isEmpty := i < len(was) && withoutBlanks(was[i]) == ""; {
		case !atEnd && isSame(i, k):
			out = append(out, was[i])
			i, k = i+1, k+1
		case k == len(now), !atEnd && common[i+1][k] > common[i][k+1],
			!atEnd && isEmpty && common[i+1][k] == common[i][k+1] && isReplaced(i, k):
			if isEmpty {
				out = append(out, was[i])
			}
			i++
		default:
			out = append(out, now[k])
			k++
		}
	}
	return strings.Join(out, "\n")
}

func withoutBlanks(line string) string { return strings.Join(strings.Fields(line), "") }

func layMapping(to, from *ast.MappingNode) {
	for _, v := range from.Values {
		has := findMappingKey(to, v.Key.String())
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

func findMappingKey(in *ast.MappingNode, key string) *ast.MappingValueNode {
	for _, v := range in.Values {
		if v.Key.String() == key {
			return v
		}
	}
	return nil
}

func columnOf(v *ast.MappingValueNode) int { return v.Key.GetToken().Position.Column }
