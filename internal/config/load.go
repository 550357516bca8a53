package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
)

// Options say where to look. The functions may be nil.
type Options struct {
	// Dir is where the person is; "" is the working folder.
	Dir string
	// File is used instead of the root's pawl.yaml, relative to Dir. It must
	// exist, while pawl.yaml need not.
	File string
	// Env is the environment, K=V.
	Env []string
	// IgnoreEnv are further variables PAWL_… that are no configuration.
	IgnoreEnv []string
	// Flags are values by the path of their key, e.g. loop.max_iterations.
	Flags map[string]string
	// Builtin returns the text of a built-in fragment, named without
	// "builtin:". Without it such fragments have no text.
	Builtin func(name string) (text string, ok bool)
	// BuiltinNames are all of them, for suggestions.
	BuiltinNames []string
	// CheckTemplate says what is wrong with a fragment's text.
	CheckTemplate func(name, text string) error
	// Agents are the built-in agents. With nil, names of agents are not checked.
	Agents []string
	// Strategies are the built-in strategies. With nil, names of strategies
	// are not checked.
	Strategies []string
}

// Load reads all layers and checks the result. What is wrong in a file, a
// variable or a flag is an [*Error], or [Errors] if there are several.
func Load(o Options) (*Config, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration: %v", err)
	}
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // names in messages are relative to it, as the root is resolved
	}
	l := &loader{Options: o, dir: dir, root: root, vars: variables(o.Env)}
	merged := l.layers()
	if err := l.errs.asError(); err != nil {
		return nil, err
	}
	return l.finish(merged)
}

type loader struct {
	Options
	dir, root string
	vars      map[string]string
	file      string // of the project, if there is one
	warnings  []string
	errs      Errors
}

// layers reads every layer, checks each by itself, so that a fault shows even
// where a higher layer hides it, and merges them.
func (l *loader) layers() *node {
	merged := &node{kind: mapNode, at: position{src: builtInSource}}
	if path := userFile(l.vars); path != "" {
		merged = l.add(merged, l.read(path, userWide, false))
	}
	path, named := filepath.Join(l.root, FileName), l.File != ""
	if named {
		path = l.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
	}
	merged = l.add(merged, l.read(path, project, named))
	env, warnings, errs := fromEnvironment(l.vars, l.IgnoreEnv, l.dir, merged)
	l.warnings, l.errs = append(l.warnings, warnings...), append(l.errs, errs...)
	merged = l.add(merged, env)
	flags, errs := fromFlags(l.Flags, l.dir)
	l.errs = append(l.errs, errs...)
	return inherit(l.add(merged, flags))
}

// read returns nil for a file that is not there or holds nothing.
func (l *loader) read(path string, in layer, must bool) *node {
	src := &source{layer: in, name: display(path, l.dir, l.vars["HOME"]), dir: filepath.Dir(path)}
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		l.errs = append(l.errs, &Error{File: src.name, Message: "cannot read the configuration: " + err.Error()})
		return nil
	}
	if in == project {
		l.file = path
	}
	n, err := parse(src, data)
	if err != nil {
		l.errs = append(l.errs, asErrors(err, src.name)...)
		return nil
	}
	return n
}

func (l *loader) add(merged, n *node) *node {
	if n == nil || n.kind == nullNode {
		return merged
	}
	n = schema().expand(n)
	d := &decoder{home: l.vars["HOME"], from: map[string]position{}}
	d.value(schema(), n, reflect.ValueOf(&Config{}).Elem(), "")
	l.errs = append(l.errs, d.errs...)
	if n.kind != mapNode {
		return merged
	}
	return merge(schema(), merged, n)
}

// inherit lays each procedure's iteration_control over the general one.
func inherit(merged *node) *node {
	general, _ := merged.get("iteration_control")
	all, ok := merged.get("procedures")
	if !ok || general.value == nil || all.value.kind != mapNode {
		return merged
	}
	control := schema().field("iteration_control")
	procedures := all.value
	for _, p := range procedures.pairs {
		own, ok := p.value.get("iteration_control")
		if !ok || own.value.kind != mapNode {
			continue
		}
		both := p.value.with(own.key, own.at, merge(control, general.value, own.value))
		procedures = procedures.with(p.key, p.at, both)
	}
	return merged.with(all.key, all.at, procedures)
}

// finish decodes the merged tree, checks what depends on several keys, and
// reads the fragments.
func (l *loader) finish(merged *node) (*Config, error) {
	c := &Config{Root: l.root, File: l.file, Warnings: l.warnings, from: map[string]position{}}
	d := &decoder{home: l.vars["HOME"], from: c.from}
	d.value(schema(), merged, reflect.ValueOf(c).Elem(), "")
	if err := d.errs.asError(); err != nil {
		return nil, err
	}
	k := &checker{Config: c, agents: l.Agents, strategies: l.Strategies}
	k.all()
	r := &fragmentReader{config: c, options: l.Options, resolve: d.resolve}
	r.all()
	if err := append(k.errs, r.errs...).asError(); err != nil {
		return nil, err
	}
	return c, nil
}
