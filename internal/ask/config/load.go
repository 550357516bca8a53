package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// Options say where to look. The functions may be nil.
type Options struct {
	// Dir is where the person is; "" is the working folder.
	Dir string
	// File is used instead of the root's pawl.yaml, relative to Dir. It must
	// exist, while pawl.yaml need not.
	File string
	// Over is a file that is laid over it: the keys that it has are its own.
	Over string
	// Env is the environment, K=V.
	Env []string
	// Pinned are used instead of the files of their paths.
	Pinned []trust.File
	// Read, if it is not nil, gets the files that were read, also after an error.
	Read *[]trust.File
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
	root, err := statedir.FindRoot(dir)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // names in messages are relative to it, as the root is resolved
	}
	l := newLoader(o, dir, root)
	l.loadLayers()
	c, err := l.finishConfig()
	if o.Read != nil {
		*o.Read = l.texts.read
	}
	if err != nil {
		return nil, err
	}
	c.Files = slices.Clip(l.texts.read)
	if o.File != "" { // the next start may take its commands from there
		c.Files = append(c.Files, trust.Read(root, filepath.Join(root, statedir.FileName)))
	}
	return c, nil
}

type loader struct {
	Options
	decoder
	dir, root string
	vars      map[string]string
	config    *Config
	texts     *texts
}

func newLoader(o Options, dir, root string) *loader {
	c := &Config{Root: root, from: map[string]position{}}
	l := &loader{Options: o, dir: dir, root: root, vars: statedir.ReadVariables(o.Env), config: c,
		texts: &texts{root: root, pinned: o.Pinned}}
	l.decoder = decoder{home: l.vars["HOME"], from: c.from}
	l.fillDefaults(schema(), reflect.ValueOf(c).Elem(), "")
	return l
}

// loadLayers decodes each layer over those before it. A fault shows even where a
// higher layer hides it.
func (l *loader) loadLayers() {
	if path := userFile(l.vars); path != "" {
		l.addLayer(l.readLayer(path, userWide, false))
	}
	path, named := filepath.Join(l.root, statedir.FileName), l.File != ""
	if named {
		path = l.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
	}
	l.addLayer(l.readLayer(path, project, named))
	if file := l.config.File; l.Over != "" {
		l.addLayer(l.readLayer(l.Over, project, true))
		l.config.File = file
	}
	all, warnings := fromEnvironment(l.vars, l.Agents, l.dir, reflect.ValueOf(*l.config))
	l.config.Warnings = warnings
	flags, errs := fromFlags(l.Flags, l.dir)
	l.errs = append(l.errs, errs...)
	for _, s := range append(all, flags...) {
		n, err := s.settingAsNode()
		if err != nil {
			l.errs = append(l.errs, asErrors(err, s.src.name)...)
			continue
		}
		l.addLayer(n)
	}
}

// readLayer returns nil for a file that is not there or holds nothing.
func (l *loader) readLayer(path string, in layer, must bool) *node {
	src := &source{layer: in, name: displayPath(path, l.dir, l.vars["HOME"]), dir: filepath.Dir(path)}
	data, err := l.texts.readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		l.errs = append(l.errs, &Error{File: src.name, Message: "cannot read the configuration: " + err.Error()})
		return nil
	}
	if in == project {
		l.config.File = path
	}
	n, err := parseYAML(src, data)
	if err != nil {
		l.errs = append(l.errs, asErrors(err, src.name)...)
		return nil
	}
	return n
}

// addLayer decodes a layer over those before it.
func (l *loader) addLayer(n *node) {
	l.decodeValue(schema(), schema().expandShort(n), reflect.ValueOf(l.config).Elem(), "")
}

// inheritControl gives each procedure's iteration_control the keys of the general one
// that it does not name.
func (c *Config) inheritControl() {
	for _, name := range sortedKeys(c.Procedures) {
		own := c.Procedures[name].IterationControl
		if own == nil {
			continue
		}
		path := joinPath("procedures", name) + ".iteration_control."
		for _, key := range own.fillUnder(c.IterationControl, func(key string) bool { return c.IsSet(path + key) }) {
			c.from[path+key] = c.from["iteration_control."+key]
		}
	}
}

// fillUnder fills in the keys that are not named, and returns them.
func (i *IterationControl) fillUnder(general IterationControl, named func(key string) bool) (keys []string) {
	for _, f := range schema().findField("iteration_control").fields {
		if !named(f.name) {
			reflect.ValueOf(i).Elem().Field(f.index).Set(reflect.ValueOf(general).Field(f.index))
			keys = append(keys, f.name)
		}
	}
	return keys
}

// finishConfig checks what depends on several keys, and reads the fragments.
func (l *loader) finishConfig() (*Config, error) {
	if err := l.errs.sortedErrorOrNil(); err != nil {
		return nil, err
	}
	c := l.config
	c.inheritControl()
	k := &checker{Config: c, agents: l.Agents, strategies: l.Strategies}
	k.checkEverything()
	r := &fragmentReader{config: c, options: l.Options, texts: l.texts, resolve: l.resolvePath}
	r.readAllFragments()
	if err := append(k.errs, r.errs...).sortedErrorOrNil(); err != nil {
		return nil, err
	}
	return c, nil
}

// builtinPrefix marks the fragments that pawl brings.
const builtinPrefix = "builtin:"

// fragmentReader fills in the names and texts of all fragments, so that a
// missing file or a broken template shows before anything runs.
type fragmentReader struct {
	config  *Config
	options Options
	texts   *texts
	resolve func(src *source, path string) string
	errs    Errors
}

func (r *fragmentReader) readAllFragments() {
	for _, name := range sortedKeys(r.config.Procedures) {
		p := r.config.Procedures[name]
		for _, phase := range []struct {
			name string
			list []Fragment
		}{{"observe", p.Observe}, {"orient", p.Orient}, {"decide", p.Decide}, {"act", p.Act}} {
			for i := range phase.list {
				r.readFragment(&phase.list[i], fmt.Sprintf("procedure %q, %s, fragment %d", name, phase.name, i+1))
			}
		}
	}
	if f := r.config.Review.Prompt; f != nil {
		r.readFragment(f, "review.prompt")
	}
}

func (r *fragmentReader) addFragmentError(f *Fragment, where, suggestion, format string, args ...any) {
	r.errs = append(r.errs, errorAtPlace(f.at, suggestion, "%s: %s", where, fmt.Sprintf(format, args...)))
}

func (r *fragmentReader) readFragment(f *Fragment, where string) {
	builtin, isBuiltin := strings.CutPrefix(f.Path, builtinPrefix)
	switch {
	case f.Path == "" && f.Content == "":
		r.addFragmentError(f, where, "", "needs a path or a content")
		return
	case f.Path != "" && f.Content != "":
		r.addFragmentError(f, where, "", "has both a path and a content: keep one")
		return
	case f.Content != "":
		f.Name, f.Source, f.Text = "content", f.at.String(), f.Content
	case isBuiltin:
		if !r.readBuiltin(f, builtin, where) {
			return
		}
	default:
		if !r.readFromFile(f, where) {
			return
		}
	}
	if r.options.CheckTemplate != nil {
		if err := r.options.CheckTemplate(f.Name, f.Text); err != nil {
			r.addFragmentError(f, where, "", "%v", err)
		}
	}
}

func (r *fragmentReader) readBuiltin(f *Fragment, name, where string) bool {
	f.Name, f.Source = f.Path, "builtin"
	if r.options.Builtin == nil {
		return true
	}
	text, ok := r.options.Builtin(name)
	if ok {
		f.Text = text
		return true
	}
	near, hint := nearestOrAll(name, r.options.BuiltinNames)
	if near != "" {
		near = builtinPrefix + near
	}
	r.addFragmentError(f, where, near, "no built-in fragment is called %q%s", f.Path, hint)
	return false
}

func (r *fragmentReader) readFromFile(f *Fragment, where string) bool {
	path := r.resolve(f.at.src, f.Path)
	f.Name, f.Source = f.Path, path
	data, err := r.texts.readFile(path)
	if err != nil {
		r.addFragmentError(f, where, "", "cannot read %s: %v (resolved to %s)", f.Path, err, path)
		return false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		r.addFragmentError(f, where, "", "%s is not UTF-8 text (resolved to %s)", f.Path, path)
		return false
	}
	f.Text = strings.ReplaceAll(string(data), "\r\n", "\n")
	return true
}
