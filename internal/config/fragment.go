package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

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

func (r *fragmentReader) all() {
	for _, name := range sortedKeys(r.config.Procedures) {
		p := r.config.Procedures[name]
		for _, phase := range []struct {
			name string
			list []Fragment
		}{{"observe", p.Observe}, {"orient", p.Orient}, {"decide", p.Decide}, {"act", p.Act}} {
			for i := range phase.list {
				r.read(&phase.list[i], fmt.Sprintf("procedure %q, %s, fragment %d", name, phase.name, i+1))
			}
		}
	}
	if f := r.config.Review.Prompt; f != nil {
		r.read(f, "review.prompt")
	}
}

func (r *fragmentReader) fail(f *Fragment, where, suggestion, format string, args ...any) {
	r.errs = append(r.errs, errorAt(f.at, suggestion, "%s: %s", where, fmt.Sprintf(format, args...)))
}

func (r *fragmentReader) read(f *Fragment, where string) {
	builtin, isBuiltin := strings.CutPrefix(f.Path, builtinPrefix)
	switch {
	case f.Path == "" && f.Content == "":
		r.fail(f, where, "", "needs a path or a content")
		return
	case f.Path != "" && f.Content != "":
		r.fail(f, where, "", "has both a path and a content: keep one")
		return
	case f.Content != "":
		f.Name, f.Source, f.Text = "content", f.at.String(), f.Content
	case isBuiltin:
		if !r.builtin(f, builtin, where) {
			return
		}
	default:
		if !r.file(f, where) {
			return
		}
	}
	if r.options.CheckTemplate != nil {
		if err := r.options.CheckTemplate(f.Name, f.Text); err != nil {
			r.fail(f, where, "", "%v", err)
		}
	}
}

func (r *fragmentReader) builtin(f *Fragment, name, where string) bool {
	f.Name, f.Source = f.Path, "builtin"
	if r.options.Builtin == nil {
		return true
	}
	text, ok := r.options.Builtin(name)
	if ok {
		f.Text = text
		return true
	}
	near := Nearest(name, r.options.BuiltinNames)
	if near != "" {
		near = builtinPrefix + near
	}
	hint := ""
	if near == "" && len(r.options.BuiltinNames) > 0 {
		hint = "; there are " + strings.Join(r.options.BuiltinNames, ", ")
	}
	r.fail(f, where, near, "no built-in fragment is called %q%s", f.Path, hint)
	return false
}

func (r *fragmentReader) file(f *Fragment, where string) bool {
	path := r.resolve(f.at.src, f.Path)
	f.Name, f.Source = f.Path, path
	data, err := r.texts.file(path)
	if err != nil {
		r.fail(f, where, "", "cannot read %s: %v (resolved to %s)", f.Path, err, path)
		return false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		r.fail(f, where, "", "%s is not UTF-8 text (resolved to %s)", f.Path, path)
		return false
	}
	f.Text = strings.ReplaceAll(string(data), "\r\n", "\n")
	return true
}
