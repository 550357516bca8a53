package config

import (
	"strings"
)

// This file reads the section "Build/Test/Lint Commands" of AGENTS.md: labels
// in bold, each followed by code on its line or in a fenced block.

var (
	mdHeading    = lazily(`^(#{1,6})\s+(.*?)\s*#*$`)
	mdSection    = lazily(`(?i)^build\s*/\s*test\s*/\s*lint( commands)?$`)
	mdLabel      = lazily(`^\s*(?:[-*+]\s+)?(?:\*\*|__)([^*_]+?):?(?:\*\*|__)\s*:?\s*(.*)$`)
	mdCode       = lazily("`([^`]+)`")
	mdFence      = lazily("^\\s*(```+|~~~+)")
	mdUnrequired = lazily(`(?i)^\W*(not required|manual verification|none|n/a)\b`)
)

var mdKinds = map[string]string{
	"build": "build", "test": "test", "tests": "test", "lint": "lint",
	"typecheck": "typecheck", "type check": "typecheck", "type-check": "typecheck",
}

// agentsFile returns the gates that AGENTS.md names, and the kinds that it
// says are not required or verified by hand.
func (r repository) agentsFile() (gates []ProposedGate, none map[string]bool) {
	none = map[string]bool{}
	lines := mdCommands(r.text("AGENTS.md"))
	for i := 0; i < len(lines); i++ {
		m := mdLabel().FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		kind := mdKinds[strings.ToLower(strings.TrimSpace(m[1]))]
		if kind == "" {
			continue
		}
		body := []string{m[2]}
		for i+1 < len(lines) && mdLabel().FindStringSubmatch(lines[i+1]) == nil {
			i++
			body = append(body, lines[i])
		}
		if mdUnrequired().MatchString(strings.Join(body, " ")) {
			none[kind] = true
			continue
		}
		if command := mdCommand(body); command != "" {
			gates = append(gates, found(kind, command, "AGENTS.md"))
		}
	}
	return gates, none
}

// mdCommands returns the lines of the section, without its heading.
func mdCommands(text string) []string {
	var out []string
	level, fence := 0, ""
	for line := range strings.SplitSeq(text, "\n") {
		if m := mdFence().FindStringSubmatch(line); m != nil {
			switch {
			case fence == "":
				fence = m[1]
			case strings.HasPrefix(m[1], fence):
				fence = ""
			}
		}
		if m := mdHeading().FindStringSubmatch(line); m != nil && fence == "" {
			switch {
			case level == 0 && mdSection().MatchString(m[2]):
				level = len(m[1])
				continue
			case level > 0 && len(m[1]) <= level:
				return out
			}
		}
		if level > 0 {
			out = append(out, line)
		}
	}
	return out
}

// mdCommand reads a label's body: the first fenced block, else the code on
// the lines. Several commands are joined, so that the first failure stops.
func mdCommand(body []string) string {
	for i, line := range body {
		m := mdFence().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var block []string
		for _, inside := range body[i+1:] {
			if end := mdFence().FindStringSubmatch(inside); len(end) > 1 && strings.HasPrefix(end[1], m[1]) {
				break
			}
			block = append(block, inside)
		}
		return joinCommands(block)
	}
	var commands []string
	for _, line := range body {
		for _, m := range mdCode().FindAllStringSubmatch(line, -1) {
			commands = append(commands, m[1])
		}
		// Code after the first paragraph explains; it is no command.
		if len(commands) > 0 {
			break
		}
	}
	return joinCommands(commands)
}

func joinCommands(lines []string) string {
	var commands []string
	open := ""
	for _, line := range lines {
		line = strings.TrimSpace(line)
		line = strings.TrimPrefix(line, "$ ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if head, ok := strings.CutSuffix(line, `\`); ok {
			open += strings.TrimSpace(head) + " "
			continue
		}
		line, _, _ = strings.Cut(open+line, " # ")
		commands, open = append(commands, strings.TrimSpace(line)), ""
	}
	if open = strings.TrimSpace(open); open != "" {
		commands = append(commands, open)
	}
	return strings.Join(commands, " && ")
}
