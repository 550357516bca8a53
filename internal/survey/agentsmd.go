package survey

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file reads the section "Build/Test/Lint Commands" of AGENTS.md: labels
// in bold, each followed by code on its line or in a fenced block.

var (
	mdHeading    = lazy.Regexp(`^(#{1,6})\s+(.*?)\s*#*$`)
	mdSection    = lazy.Regexp(`(?i)^build\s*/\s*test\s*/\s*lint( commands)?$`)
	mdLabel      = lazy.Regexp(`(?m)^\s*(?:[-*+]\s+)?(?:\*\*|__)([^*_]+?):?(?:\*\*|__)\s*:?`)
	mdCode       = lazy.Regexp("`([^`]+)`")
	mdFence      = lazy.Regexp("^\\s*(?:```|~~~)")
	mdBlock      = lazy.Regexp("(?s)(?:```|~~~)[^\n]*\n(.*?)(?:```|~~~|$)")
	mdContinued  = lazy.Regexp(`[ \t]*\\\n\s*`)
	mdUnrequired = lazy.Regexp(`(?i)^\W*(not required|manual verification|none|n/a)\b`)
)

var mdKinds = map[string]string{
	"build": "build", "test": "test", "tests": "test", "lint": "lint",
	"typecheck": "typecheck", "type check": "typecheck", "type-check": "typecheck",
}

// agentsFile returns the gates that AGENTS.md names, and the kinds that it
// says are not required or verified by hand.
func (r repository) agentsFile() (gates []Gate, none map[string]bool) {
	none = map[string]bool{}
	section := mdCommands(r.text("AGENTS.md"))
	labels := mdLabel().FindAllStringSubmatchIndex(section, -1)
	for i, at := range labels {
		end := len(section)
		if i+1 < len(labels) {
			end = labels[i+1][0]
		}
		kind := mdKinds[strings.ToLower(strings.TrimSpace(section[at[2]:at[3]]))]
		body := section[at[1]:end]
		switch command := mdCommand(body); {
		case kind == "":
		case mdUnrequired().MatchString(body):
			none[kind] = true
		case command != "":
			gates = append(gates, found(kind, command, "AGENTS.md"))
		}
	}
	return gates, none
}

// mdCommands is the text of the section, without its heading.
func mdCommands(text string) string {
	var out strings.Builder
	level, fenced := 0, false
	for line := range strings.Lines(text) {
		if mdFence().MatchString(line) {
			fenced = !fenced
		}
		if m := mdHeading().FindStringSubmatch(strings.TrimSpace(line)); m != nil && !fenced {
			switch {
			case level == 0 && mdSection().MatchString(m[2]):
				level = len(m[1])
				continue
			case level > 0 && len(m[1]) <= level:
				return out.String()
			}
		}
		if level > 0 {
			out.WriteString(line)
		}
	}
	return out.String()
}

// mdCommand reads what follows a label: the first fenced block, else the code on
// the first line that has some; what comes later explains. Several commands are
// joined, so that the first failure stops.
func mdCommand(body string) string {
	var commands []string
	add := func(line string) {
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " # ")
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	if m := mdBlock().FindStringSubmatch(body); m != nil {
		for line := range strings.Lines(mdContinued().ReplaceAllString(m[1], " ")) {
			add(line)
		}
		return strings.Join(commands, " && ")
	}
	for line := range strings.Lines(body) {
		for _, m := range mdCode().FindAllStringSubmatch(line, -1) {
			add(m[1])
		}
		if len(commands) > 0 {
			break
		}
	}
	return strings.Join(commands, " && ")
}
