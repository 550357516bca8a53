package queue

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// ReadHunks splits a text with conflict markers of that size into hunks and what is between them.
func ReadHunks(text []byte, markerSize int) ([]Hunk, [][]byte) {
	var hunks []Hunk
	var parts [][]byte
	var now *Hunk
	var side *[]string
	var plain bytes.Buffer
	for line := range bytes.Lines(text) {
		switch mark := markerOf(line, markerSize); {
		case mark == '<' && now == nil:
			parts = append(parts, bytes.Clone(plain.Bytes()))
			plain.Reset()
			now = &Hunk{}
			side = &now.Ours
		case mark == '|' && now != nil:
			side = &now.Base
		case mark == '=' && now != nil:
			side = &now.Theirs
		case mark == '>' && now != nil:
			hunks = append(hunks, *now)
			now = nil
		case now != nil:
			*side = append(*side, strings.TrimSuffix(string(line), "\n"))
		default:
			plain.Write(line)
		}
	}
	return hunks, append(parts, plain.Bytes())
}

// markerOf a line is its character, and 0 for a line that is no marker.
func markerOf(line []byte, markerSize int) byte {
	if len(line) < markerSize {
		return 0
	}
	c := line[0]
	if strings.IndexByte("<|=>", c) < 0 || bytes.Count(line[:markerSize], []byte{c}) != markerSize {
		return 0
	}
	if rest := line[markerSize:]; len(rest) > 0 && rest[0] != ' ' && rest[0] != '\n' && rest[0] != '\r' {
		return 0
	}
	return c
}

// FindUnmerged finds a file of a resolution that still has markers, or a place where it kept one side's lines as
// they were and nothing of what the other side had there. It names the file, and what is wrong; "" if there is
// none. text returns the lines of a file of the resolution. One that takes a landing back may keep one side, and not
// what the landing put there.
func (c *Conflict) FindUnmerged(takesBack bool, text func(path string) ([]string, error)) (string, error) {
	for i := range c.Files {
		f := &c.Files[i]
		if f.Regenerate != "" || len(f.Hunks) == 0 {
			continue // a command made it, or it has no lines
		}
		lines, err := text(f.Path)
		if err != nil {
			return "", err
		}
		if hasMarkers(lines) {
			return f.Path + " still has the markers of its conflict", nil
		}
		for _, h := range f.Hunks {
			switch {
			case takesBack && len(h.Base) > 0 && keepsOnly(lines, h.Base, slices.Concat(h.Ours, h.Theirs)):
				return f.Path + " has again what the landing put there", nil
			case takesBack:
			case keepsOnly(lines, h.Ours, h.Theirs):
				return f.Path + " lacks what the task has there", nil
			case keepsOnly(lines, h.Theirs, h.Ours):
				return f.Path + " lacks what the target has there", nil
			}
		}
	}
	return "", nil
}

// hasMarkers reports whether lines have a conflict as git marks it.
func hasMarkers(lines []string) bool {
	begins := func(mark string) bool {
		return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, mark) })
	}
	return begins("<<<<<<< ") && begins("=======") && begins(">>>>>>> ")
}

// keepsOnly reports whether lines have all of kept in one piece, and no line that only other has.
func keepsOnly(lines, kept, other []string) bool {
	trim := func(list []string) []string { return lists.Each(list, strings.TrimSpace) }
	lines, kept, other = trim(lines), trim(kept), trim(other)
	others := slices.DeleteFunc(slices.Clone(other), func(l string) bool { return l == "" || slices.Contains(kept, l) })
	hasOther := slices.ContainsFunc(others, func(l string) bool { return slices.Contains(lines, l) })
	if len(others) == 0 || hasOther {
		return false
	}
	for i := range len(lines) - len(kept) + 1 {
		if slices.Equal(lines[i:i+len(kept)], kept) {
			return true
		}
	}
	return false
}
