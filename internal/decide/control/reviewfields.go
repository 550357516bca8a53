package control

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file reads records of findings, "Severity: high".

// fieldNames are the names of what a record says of a finding.
var fieldNames = lazy.Regexp(`^(?i)(file|path|location|where|lines?|severity|priority|level|issue|problem` +
	`|finding|description|details|title|impact|risk|why|` +
	`fix|suggestion|suggested fix|recommendation|recommended fix|proposed fix|solution|action|rationale|reason` +
	`|evidence|category|type|confidence|expected|actual|current|example|note)s?`)

// splitField reads "Severity: high" and the like.
func splitField(said string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(said, ":")
	if !ok || strings.TrimSpace(value) == "" || fieldNames().FindString(name) != name {
		return "", "", false
	}
	return strings.TrimSuffix(strings.ToLower(name), "s"), strings.TrimSpace(value), true
}

func (in *section) setField(name, value string) bool {
	d := draft{}
	switch name {
	case "severity", "priority", "level":
		in.severity = knownSeverities()[plainWords(value)]
		return in.severity != ""
	case "file", "path", "location", "where":
		d.setField(name, value, true)
		in.file, in.line = d.File, d.Line
		return in.file != ""
	}
	return false
}

// setField takes what a record says; false for what is a finding itself. What stands below a finding is none.
func (d *draft) setField(name, value string, below bool) bool {
	value = strings.Trim(value, "`* ")
	switch name {
	case "severity", "priority", "level":
		if s, ok := knownSeverities()[plainWords(value)]; ok {
			d.Severity, d.labelled = s, true
		}
	case "file", "path", "location", "where":
		if at, ok := placeAlone(value); ok {
			d.setPlace(at)
		} else if file, _, _ := strings.Cut(value, " "); places.IsFile(strings.Trim(file, "`,")) {
			d.File = strings.Trim(file, "`,")
		}
	case "line":
		d.Line, _ = words.Number(strings.TrimLeft(value, "L"), 0)
	case "category", "type", "confidence":
	default:
		if !below && d.title == "" && !d.fields {
			return false // a label of the next one
		}
		if name != "issue" && name != "problem" && name != "finding" && name != "title" && name != "description" {
			value = name + ": " + value
		}
		d.appendFindingLine(value)
	}
	d.fields = true
	return true
}
