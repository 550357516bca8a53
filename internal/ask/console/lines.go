package console

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// This file is about lines of an agent's words and of gates.

// Bounds of one message: lines, and characters of a line.
const (
	maxSaidLines = 60
	maxSaidLine  = 2000
)

// printLines shows a text of several lines below each other, with its head in front of the
// first. On a terminal long lines are wrapped.
func (s *Screen) printLines(run, head, text string) {
	if !s.to.Verbose {
		return
	}
	width := 0
	if OnTerminal(s.to.Progress) {
		width = max(Width(s.to.Progress)-len(noteIndent)-len(head)-1, 20)
	}
	indent := strings.Repeat(" ", len(head))
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		if i == maxSaidLines {
			s.sayDetail("%s… %s more; all of it: pawl logs %s -i N", indent, fault.Numbered(len(lines)-i, "line"), run)
			return
		}
		l = Printable(strings.TrimRight(fault.Cut(l, maxSaidLine), " \t\r"))
		for part := range strings.SplitSeq(ansi.Wrap(l, width, ""), "\n") {
			s.sayDetail("%s%s", head, part)
			head = indent
		}
	}
}

// GateLine is how a gate ended, in a line.
func GateLine(g loop.Gate) string {
	how := ""
	if g.Status != loop.GatePassed {
		how = " " + string(g.Status)
	}
	if g.Test && g.Total >= 0 {
		how += fmt.Sprintf(", %d of %d passed", g.Passed, g.Total)
	}
	if !g.Required {
		how += ", optional"
	}
	if g.Note != "" {
		how += ", " + report.Line(g.Note, 200)
	}
	return fmt.Sprintf("%s gate %s%s (%s)", report.GateMark(g), g.Name, how, loop.Duration(g.Elapsed))
}
