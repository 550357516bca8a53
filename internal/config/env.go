package config

import (
	"fmt"
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

// fromEnvironment makes the layer of the variables PAWL_…. below is what the
// files say: it decides which procedures and agents a name can mean. An empty
// variable is as if it were not set.
func fromEnvironment(vars map[string]string, ignore []string, dir string, below *node) (*node, []string, Errors) {
	root := &node{kind: mapNode, at: position{src: &source{layer: environment, name: "environment"}}}
	var warnings []string
	var errs Errors
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, envPrefix)
		if !ok || vars[name] == "" || slices.Contains(childVariables, name) || slices.Contains(ignore, name) {
			continue
		}
		keys, leaf := findVariable(schema(), rest, below)
		if leaf == nil {
			warnings = append(warnings, unknownVariable(name, below))
			continue
		}
		src := &source{layer: environment, name: name, dir: dir}
		value, err := leaf.fromText(vars[name], src)
		if err != nil {
			errs = append(errs, asErrors(err, name)...)
			continue
		}
		root = put(root, keys, value)
	}
	return root, warnings, errs
}

// findVariable finds the key that a variable's name, without its prefix,
// stands for. Keys hold underscores too, so it tries every way to read it.
func findVariable(sp *spec, rest string, have *node) ([]string, *spec) {
	switch sp.shape {
	case sectionShape:
		for _, f := range sp.fields {
			if f.inline {
				continue
			}
			up := strings.ToUpper(f.name)
			if rest == up && f.leaf() {
				return []string{f.name}, f
			}
			tail, ok := strings.CutPrefix(rest, up+"_")
			if !ok || f.leaf() {
				continue
			}
			p, _ := have.get(f.name)
			if keys, leaf := findVariable(f, tail, p.value); leaf != nil {
				return append([]string{f.name}, keys...), leaf
			}
		}
		if r := sp.rest(); r != nil {
			return findVariable(r, rest, have)
		}
	case tableShape:
		if sp.elem.leaf() { // the environment of an agent: the name as it stands
			return []string{rest}, sp.elem
		}
		return findNamed(sp, rest, have)
	default: // a value has nothing below it
	}
	return nil, nil
}

// findNamed reads the name of an entry: one that the files have, else the
// shortest that leaves a key.
func findNamed(sp *spec, rest string, have *node) ([]string, *spec) {
	if have != nil {
		for _, p := range have.pairs {
			tail, ok := strings.CutPrefix(rest, envName(p.key)+"_")
			if !ok {
				continue
			}
			if keys, leaf := findVariable(sp.elem, tail, p.value); leaf != nil {
				return append([]string{p.key}, keys...), leaf
			}
		}
	}
	for i := 1; i < len(rest)-1; i++ {
		if rest[i] != '_' {
			continue
		}
		if keys, leaf := findVariable(sp.elem, rest[i+1:], nil); leaf != nil {
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

func unknownVariable(name string, below *node) string {
	var known []string
	collectNames(schema(), strings.TrimSuffix(envPrefix, "_"), below, &known)
	best, bestDistance := "", 4
	for _, k := range known {
		if d := Distance(name, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("the variable %s is not known and ignored (did you mean %s?)", name, best)
	}
	return fmt.Sprintf("the variable %s is not known and ignored; a variable is PAWL_ and the path of a key, e.g. PAWL_LOOP_MAX_ITERATIONS", name)
}

// collectNames lists the variables of every key, those of entries that the
// files have included.
func collectNames(sp *spec, prefix string, have *node, out *[]string) {
	switch {
	case sp.leaf():
		*out = append(*out, prefix)
	case sp.shape == tableShape && have != nil:
		for _, p := range have.pairs {
			collectNames(sp.elem, prefix+"_"+envName(p.key), p.value, out)
		}
	case sp.shape == sectionShape:
		for _, f := range sp.fields {
			if f.inline {
				continue
			}
			p, _ := have.get(f.name)
			collectNames(f, prefix+"_"+strings.ToUpper(f.name), p.value, out)
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

// put sets the value at keys in a copy of the map n.
func put(n *node, keys []string, value *node) *node {
	if len(keys) == 1 {
		return n.with(keys[0], value.at, value)
	}
	p, ok := n.get(keys[0])
	if !ok || p.value.kind != mapNode {
		p.value = &node{kind: mapNode, at: value.at, size: 1}
	}
	return n.with(keys[0], value.at, put(p.value, keys[1:], value))
}

// fromFlags makes the layer of the flags: path of the key to value.
func fromFlags(values map[string]string, dir string) (*node, Errors) {
	root := &node{kind: mapNode, at: position{src: &source{layer: flags, name: "flags"}}}
	var errs Errors
	paths := make([]string, 0, len(values))
	for path := range values {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		keys, ok := splitPath(path)
		leaf := schema()
		for _, key := range keys {
			if leaf != nil {
				leaf = leaf.child(key)
			}
		}
		if !ok || leaf == nil || !leaf.leaf() {
			errs = append(errs, &Error{File: "flags", Message: fmt.Sprintf("no key has the path %q", path)})
			continue
		}
		src := &source{layer: flags, name: "--" + strings.ReplaceAll(keys[len(keys)-1], "_", "-"), dir: dir}
		value, err := leaf.fromText(values[path], src)
		if err != nil {
			errs = append(errs, asErrors(err, src.name)...)
			continue
		}
		root = put(root, keys, value)
	}
	return root, errs
}
