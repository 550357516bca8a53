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
// files say. An empty variable is as if it were not set.
func fromEnvironment(
	vars map[string]string, agents []string, dir string, have reflect.Value,
) (all []setting, warnings []string) {
	known := &variableList{agents: agents}
	known.addBelow(schema(), strings.TrimSuffix(envPrefix, "_"), nil, have)
	for _, name := range sortedKeys(vars) {
		own := strings.HasPrefix(name, envPrefix) && vars[name] != ""
		if !own || slices.Contains(childVariables, name) {
			continue
		}
		v, ok := known.findVariable(name)
		if !ok {
			warnings = append(warnings, known.warnUnknown(name))
			continue
		}
		all = append(all, setting{&source{layer: environment, name: name, dir: dir}, v.keys, v.leaf, vars[name]})
	}
	return all, warnings
}

// fromFlags are the settings of flags: path of the key to value.
func fromFlags(values map[string]string, dir string) (all []setting, errs Errors) {
	for _, path := range sortedKeys(values) {
		keys, leaf := strings.Split(path, "."), schema()
		for _, key := range keys {
			if leaf != nil {
				leaf = leaf.childSpec(key)
			}
		}
		if leaf == nil || !leaf.isSingleValue() {
			errs = append(errs, &Error{File: "flags", Message: fmt.Sprintf("no key has the path %q", path)})
			continue
		}
		name := "--" + strings.ReplaceAll(keys[len(keys)-1], "_", "-")
		all = append(all, setting{&source{layer: flags, name: name, dir: dir}, keys, leaf, values[path]})
	}
	return all, errs
}

// settingAsNode is a file's tree with nothing but the setting in it.
func (s setting) settingAsNode() (*node, error) {
	n, err := s.leaf.fromText(s.text, s.src)
	for _, key := range slices.Backward(s.keys) {
		n = &node{kind: mapNode, at: position{src: s.src}, size: 1, pairs: []pair{{key, position{src: s.src}, n}}}
	}
	return n, err
}

// variable is one that sets a key. What follows a name with _ at its end is a key of
// the user's own, as in the environment of an agent.
type variable struct {
	name string
	keys []string
	leaf *spec
}

// variableList has the variables of every key. Entries of tables are those of the
// files; of the agents there are the built-in ones, too.
type variableList struct {
	agents []string
	all    []variable
}

// addBelow lists what is below sp; have is the value that the files give it.
func (l *variableList) addBelow(sp *spec, name string, keys []string, have reflect.Value) {
	switch {
	case sp.isSingleValue():
		l.all = append(l.all, variable{name, keys, sp})
	case sp.shape == tableShape && sp.elem.isSingleValue():
		l.all = append(l.all, variable{name + "_", keys, sp.elem})
	case sp.shape == tableShape:
		entries := map[string]reflect.Value{}
		if name == envPrefix+"AGENTS" {
			for _, agent := range l.agents {
				entries[agent] = reflect.Value{}
			}
		}
		if have.IsValid() {
			for _, key := range have.MapKeys() { // order does not show: sorted below
				entries[key.String()] = have.MapIndex(key)
			}
		}
		for _, key := range sortedKeys(entries) {
			l.addBelow(sp.elem, name+"_"+variableNameOf(key), append(slices.Clone(keys), key), entries[key])
		}
	default:
		for _, f := range sp.fields {
			if f.inline {
				l.addBelow(f, name, keys, sectionFieldOf(have, f))
				continue
			}
			l.addBelow(f, name+"_"+strings.ToUpper(f.name), append(slices.Clone(keys), f.name), sectionFieldOf(have, f))
		}
	}
}

// findVariable is the variable with that name, with the user's own key where it ends in one.
func (l *variableList) findVariable(name string) (v variable, ok bool) {
	for _, v := range l.all {
		own, open := strings.CutPrefix(name, v.name)
		switch {
		case open && own == "" && !strings.HasSuffix(v.name, "_"):
			return v, true
		case open && own != "" && strings.HasSuffix(v.name, "_"):
			v.keys = append(slices.Clone(v.keys), own)
			return v, true
		}
	}
	return variable{}, false
}

// warnUnknown is the warning about a variable that sets nothing.
func (l *variableList) warnUnknown(name string) string {
	best, bestDistance := "", 4
	for _, v := range l.all {
		if d := Distance(name, v.name); d < bestDistance {
			best, bestDistance = v.name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("the variable %s is unknown and ignored (did you mean %s?)", name, best)
	}
	return fmt.Sprintf("the variable %s is unknown and ignored; "+
		"a variable is PAWL_ and the path of a key, e.g. PAWL_LOOP_MAX_ITERATIONS", name)
}

// sectionFieldOf is a section's value of a field; none where the section is not there.
func sectionFieldOf(v reflect.Value, f *spec) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return v
	}
	return v.Field(f.index)
}

// variableNameOf is a key as a variable spells it.
func variableNameOf(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
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
		return parseYAML(src, []byte(text))
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
