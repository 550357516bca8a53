package config

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// quotes finds what a description quotes; an apostrophe is none.
var quotes = lazy.Regexp(`(^|[\s(])'([^']+)'`)

// referenceTable is the table of every key in Markdown: docs/configuration.md
// holds it between two markers.
func referenceTable() string {
	var b strings.Builder
	sp := schema()
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|\n")
	for _, f := range sp.fields {
		if f.plain() {
			f.row(&b, f.name)
		}
	}
	for _, f := range sp.fields {
		if f.plain() {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
			f.name, quotes().ReplaceAllString(f.meaningOf(), "$1`$2`"))
		f.rows(&b, f.name)
	}
	return b.String()
}

// plain is true for a key whose value has no keys of its own.
func (sp *spec) plain() bool {
	return sp.isSingleValue() && (sp.shape != listShape || sp.elem.shape != sectionShape)
}

// rows writes a row for every key below sp.
func (sp *spec) rows(b *strings.Builder, path string) {
	switch sp.shape {
	case sectionShape:
		for _, f := range sp.fields {
			below := path + "." + f.name
			if f.inline {
				below = path
			}
			if p, ok := sp.defaultNode().pairOfKey(f.name); ok { // the section's default, key by key
				with := *f
				with.def = p.value.text
				f = &with
			}
			f.rows(b, below)
		}
	case tableShape:
		if sp.elem.isSingleValue() {
			sp.row(b, path)
			return
		}
		sp.elem.rows(b, path+".NAME")
	case listShape:
		if sp.elem.shape == sectionShape && sp.elem.short != "path" {
			if sp.name == "commands" {
				sp.row(b, path)
			}
			sp.elem.rows(b, path+"[]")
			return
		}
		sp.row(b, path)
	default:
		sp.row(b, path)
	}
}

func (sp *spec) row(b *strings.Builder, path string) {
	def := sp.def
	if def != "" {
		def = "`" + def + "`"
	}
	meaning := quotes().ReplaceAllString(strings.ReplaceAll(sp.meaningOf(), "|", `\|`), "$1`$2`")
	takes := sp.typeName()
	if sp.lists != nil {
		takes += ", or " + sp.lists.typeName()
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path, takes, def, meaning)
}

// typeName says in a few words what a key takes.
func (sp *spec) typeName() string {
	switch sp.shape {
	case listShape:
		switch {
		case sp.elem.short == "path":
			return "list of fragments"
		case sp.elem.shape == sectionShape:
			return "list of maps"
		case len(sp.elem.enum) > 0:
			return "list of: " + strings.Join(sp.elem.enum, ", ")
		}
		return "list of texts"
	case argvShape:
		return "list of texts, or text"
	case tableShape:
		return "map of texts"
	case durationShape:
		if sp.bare != "" {
			return "duration, or " + sp.bare
		}
		return "duration"
	case bytesShape:
		return "size"
	case usdShape:
		return "US dollars"
	case wholeShape:
		if least, ok := sp.minimumOf(); ok {
			return fmt.Sprintf("whole number ≥ %d", least)
		}
		return "whole number"
	case switchShape:
		return "true, false"
	case pathShape:
		return "path"
	case anyShape:
		return "anything"
	case sectionShape:
		return "map"
	case textShape:
	}
	switch {
	case len(sp.enum) > 0:
		return strings.Join(sp.enum, ", ")
	case sp.loose:
		return "text or number"
	}
	return "text"
}

// workflowReference is the table of docs/workflows.md: all keys, pawl's own
// first and then those of the dialects.
func workflowReference() string {
	var own, dialect strings.Builder
	var walk func(sp *spec, path string)
	walk = func(sp *spec, path string) {
		b := &own
		if strings.HasPrefix(sp.meaningOf(), "Dialect") {
			b = &dialect
		}
		if path != "" {
			sp.row(b, path)
		}
		below := sp
		switch {
		case sp.shape == listShape && sp.elem.shape == sectionShape:
			path, below = path+"[]", sp.elem
		case sp.shape != sectionShape:
			return
		}
		for _, f := range below.fields {
			name := f.name
			if f.inline {
				name = "NAME"
			}
			walk(f, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	walk(workflowSpec(), "")
	head := "| key | type | default | meaning |\n|---|---|---|---|\n"
	return fmt.Sprintf("%s%s\n### Keys of the dialects\n\n%s%s", head, own.String(), head, dialect.String())
}

//go:embed keys.yaml
var keysText []byte

// meanings are what keys.yaml says, as "Loop.max_iterations" and its text.
var meanings = sync.OnceValue(func() map[string]string { return readTable(keysText) })

// readTable reads a file of ours with sections of keys: "Section.key" to its text.
func readTable(file []byte) map[string]string {
	var sections map[string]map[string]string
	if err := yaml.Unmarshal(file, &sections); err != nil {
		panic("config: a table: " + err.Error()) // read by every test
	}
	all := map[string]string{}
	for section, keys := range sections { // order does not show: a map becomes a map
		for key, text := range keys {
			all[section+"."+key] = text
		}
	}
	return all
}

func (sp *spec) meaningOf() string { return meanings()[sp.key] }
