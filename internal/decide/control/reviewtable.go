package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// This file reads tables of findings.

// readRow reads a row of a table of findings.
func (r *reviewReader) readRow(said string) bool {
	cells := cellsOf(said)
	if len(cells) < 2 {
		return false
	}
	if divider().MatchString(said) {
		return true
	}
	if r.table == nil {
		if r.i+1 >= len(r.lines) || !divider().MatchString(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(r.lines[r.i+1]), "> "))) {
			return false
		}
		for _, c := range cells {
			r.table = append(r.table, plainWords(c))
		}
		return true
	}
	if asksInTable(r.table) || r.in.severity != "" {
		r.cellsSay(cells)
	}
	r.open = nil
	return true
}

func cellsOf(said string) []string {
	if !strings.Contains(said, "|") {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(strings.Trim(said, "| "), `\|`, "¦"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "¦", "|"))
	}
	return cells
}

var (
	severityHeads = words.Set(`severity priority level sev prio importance impact`)
	fileHeads     = words.Set(`file location path where filename place`)
	lineHeads     = words.Set(`line lines`)
	statusHeads   = words.Set(`status result verdict ok pass state`)
	countHeads    = words.Set(`id no nr category type area confidence`)
	askingHeads   = words.Set(`issue issues problem problems finding findings concern concerns comment comments bug suggestion recommendation fix action
		violation defect risk todo request feedback`)
	wellWords = words.Set(`pass passed passes ok okay good done yes fixed resolved approved fine addressed complete completed correct none na praise`)
)

// asksInTable reports whether a table with these heads lists findings, and not what a change does.
func asksInTable(heads []string) bool {
	return slices.ContainsFunc(heads, func(h string) bool {
		return severityHeads()[h] || statusHeads()[h] ||
			slices.ContainsFunc(strings.Fields(h), func(w string) bool { return askingHeads()[w] })
	})
}

func (r *reviewReader) cellsSay(cells []string) {
	d := draft{}
	var said []string
	for i, c := range cells {
		head, bare := "", strings.Trim(unmarkedText(c), "` ")
		if i < len(r.table) {
			head = r.table[i]
		}
		name := plainWords(bare)
		switch s, graded := severities()[name]; {
		case severityHeads()[head] && graded:
			d.Severity, d.labelled = s, true
			if s == praiseLabel {
				return
			}
		case severityHeads()[head] || statusHeads()[head]:
			if wellWords()[words.Cut(name, strings.IndexByte(name+" ", ' '))] || strings.HasPrefix(bare, "✅") || strings.HasPrefix(bare, "✔") {
				return
			}
			if said = append(said, leadingMark(bare)); name == "" {
				said = said[:len(said)-1]
			}
		case fileHeads()[head]:
			d.setField("file", bare, true)
		case lineHeads()[head]:
			d.setField("line", bare, true)
		case countHeads()[head], bare == "", bare == "-", bare == "—", head == "" && strings.Trim(bare, "#0123456789") == "":
		default:
			said = append(said, bare)
		}
	}
	if len(said) == 0 {
		return
	}
	f := r.beginFinding(strings.Join(said, ": "), true)
	if d.labelled {
		f.Severity, f.labelled = d.Severity, true
	}
	f.File, f.Line = cmp.Or(d.File, f.File), cmp.Or(d.Line, f.Line)
}

func leadingMark(s string) string {
	return strings.TrimLeft(s, "❌✗✘✖⚠️🔴🟠🟡🟢⛔🚫 ")
}
