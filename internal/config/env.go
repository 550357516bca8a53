package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

const envPrefix = "PAWL_"

// childVariables are set by pawl for the programs that it starts. A pawl that
// runs inside of one must not take them for configuration.
var childVariables = []string{
	"PAWL_RUN", "PAWL_CASE", "PAWL_ITERATION", "PAWL_PORT_BASE", "PAWL_MARK", "PAWL_ROOT", "PAWL_EVENT",
	"PAWL_STATUS", "PAWL_BRANCH", "PAWL_PROMPT_FILE", "PAWL_SCRIPT_STATE",
}

// setting is the text of a variable or a flag for the key of a leaf.
type setting struct {
	src  *source
	keys []string
	leaf *spec
	text string
}

// fromEnvironment are the settings of the variables PAWL_…. have is what the
// files say: it decides which procedures and agents a name can mean. An empty
// variable is as if it were not set.
func fromEnvironment(
	vars map[string]string, ignore []string, dir string, have reflect.Value,
) (all []setting, warnings []string) {
	for _, name := range sortedKeys(vars) {
		rest, ok := strings.CutPrefix(name, envPrefix)
		if !ok || vars[name] == "" || slices.Contains(childVariables, name) || slices.Contains(ignore, name) {
			continue
		}
		keys, leaf := findVariable(schema(), rest, have)
		if leaf == nil {
			warnings = append(warnings, unknownVariable(name, have))
			continue
		}
		all = append(all, setting{&source{layer: environment, name: name, dir: dir}, keys, leaf, vars[name]})
	}
	return all, warnings
}

// fromFlags are the settings of flags: path of the key to value.
func fromFlags(values map[string]string, dir string) (all []setting, errs Errors) {
	for _, path := range sortedKeys(values) {
		keys, leaf := strings.Split(path, "."), schema()
		for _, key := range keys {
			if leaf != nil {
				leaf = leaf.child(key)
			}
		}
		if leaf == nil || !leaf.leaf() {
			errs = append(errs, &Error{File: "flags", Message: fmt.Sprintf("no key has the path %q", path)})
			continue
		}
		name := "--" + strings.ReplaceAll(keys[len(keys)-1], "_", "-")
		all = append(all, setting{&source{layer: flags, name: name, dir: dir}, keys, leaf, values[path]})
	}
	return all, errs
}

// node is a file's tree with nothing but the setting in it.
func (s setting) node() (*node, error) {
	n, err := s.leaf.fromText(s.text, s.src)
	for _, key := range slices.Backward(s.keys) {
		n = &node{kind: mapNode, at: position{src: s.src}, size: 1, pairs: []pair{{key, position{src: s.src}, n}}}
	}
	return n, err
}

// findVariable finds the key that a variable's name, without its prefix,
// stands for. Keys hold underscores too, so it tries every way to read it.
func findVariable(sp *spec, rest string, have reflect.Value) ([]string, *spec) {
	switch {
	case sp.leaf():
		return nil, nil
	case sp.shape == tableShape && sp.elem.leaf(): // the environment of an agent: the name as it stands
		return []string{rest}, sp.elem
	case sp.shape == tableShape:
		return findNamed(sp, rest, have)
	}
	for _, f := range sp.fields {
		if f.inline {
			continue
		}
		up := strings.ToUpper(f.name)
		if rest == up && f.leaf() {
			return []string{f.name}, f
		}
		if tail, ok := strings.CutPrefix(rest, up+"_"); ok {
			if keys, leaf := findVariable(f, tail, fieldOf(have, f)); leaf != nil {
				return append([]string{f.name}, keys...), leaf
			}
		}
	}
	if r := sp.rest(); r != nil {
		return findVariable(r, rest, fieldOf(have, r))
	}
	return nil, nil
}

// fieldOf is a section's value of a field; none where the section is not there.
func fieldOf(v reflect.Value, f *spec) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return v
	}
	return v.Field(f.index)
}

// namesIn are the entries of a table.
func namesIn(v reflect.Value) []string {
	var names []string
	if v.IsValid() {
		for _, key := range v.MapKeys() { // order does not show: sorted below
			names = append(names, key.String())
		}
	}
	slices.Sort(names)
	return names
}

// findNamed reads the name of an entry: one that the files have, else the
// shortest that leaves a key.
func findNamed(sp *spec, rest string, have reflect.Value) ([]string, *spec) {
	for _, name := range namesIn(have) {
		if tail, ok := strings.CutPrefix(rest, envName(name)+"_"); ok {
			if keys, leaf := findVariable(sp.elem, tail, have.MapIndex(reflect.ValueOf(name))); leaf != nil {
				return append([]string{name}, keys...), leaf
			}
		}
	}
	for i := 1; i < len(rest)-1; i++ {
		if rest[i] != '_' {
			continue
		}
		if keys, leaf := findVariable(sp.elem, rest[i+1:], reflect.Value{}); leaf != nil {
			return append([]string{strings.ToLower(rest[:i])}, keys...), leaf
		}
	}
	return nil, nil
}

// envName is a key as a variable spells it.
func envName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}

func unknownVariable(name string, have reflect.Value) string {
	var known []string
	collectNames(schema(), strings.TrimSuffix(envPrefix, "_"), have, &known)
	best, bestDistance := "", 4
	for _, k := range known {
		if d := Distance(name, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("the variable %s is not known and ignored (did you mean %s?)", name, best)
	}
	return fmt.Sprintf("the variable %s is not known and ignored; "+
		"a variable is PAWL_ and the path of a key, e.g. PAWL_LOOP_MAX_ITERATIONS", name)
}

// collectNames lists the variables of every key, those of entries that the
// files have included.
func collectNames(sp *spec, prefix string, have reflect.Value, out *[]string) {
	switch {
	case sp.leaf():
		*out = append(*out, prefix)
	case sp.shape == tableShape:
		for _, name := range namesIn(have) {
			collectNames(sp.elem, prefix+"_"+envName(name), have.MapIndex(reflect.ValueOf(name)), out)
		}
	default:
		for _, f := range sp.fields {
			if !f.inline {
				collectNames(f, prefix+"_"+strings.ToUpper(f.name), fieldOf(have, f), out)
			}
		}
	}
}

// fromText turns the text of a variable or flag into a node: a list in YAML's
// brackets or a single item (or several with commas, for lists of names),
// anything else as it stands.
func (sp *spec) fromText(text string, src *source) (*node, error) {
	at := position{src: src}
	scalar := func(s string) *node { return &node{kind: textNode, text: s, at: at, loose: true, size: 1} }
	trimmed := strings.TrimSpace(text)
	isList := sp.shape == listShape || sp.shape == argvShape
	if isList && strings.HasPrefix(trimmed, "[") {
		n, err := parse(&source{layer: src.layer, name: src.name, dir: src.dir}, []byte(text))
		if err != nil {
			return nil, withoutPlace(err)
		}
		return at.everywhere(n), nil
	}
	if sp.shape != listShape {
		return scalar(text), nil
	}
	list := &node{kind: listNode, at: at, size: 1}
	items := []string{trimmed}
	if sp.names {
		items = strings.Split(trimmed, ",")
	}
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" {
			list.items = append(list.items, scalar(item))
		}
	}
	return list, nil
}

// withoutPlace drops the line of an error in a variable, which has none.
func withoutPlace(err error) error {
	for _, e := range asErrors(err, "") {
		e.Line, e.Column, e.Excerpt = 0, 0, ""
		return e
	}
	return err
}

// everywhere gives a tree one position.
func (p position) everywhere(n *node) *node {
	c := *n
	c.at = p
	c.items, c.pairs = nil, nil
	for _, item := range n.items {
		c.items = append(c.items, p.everywhere(item))
	}
	for _, q := range n.pairs {
		c.pairs = append(c.pairs, pair{q.key, p, p.everywhere(q.value)})
	}
	return &c
}
