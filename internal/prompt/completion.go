package prompt

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/loop"
)

// maxGates bounds the checks that are listed by name.
const maxGates = 50

//go:embed protocol.md
var protocolText string

// protocol describes the signals in pieces, so that no line of it is one and
// an agent that echoes it says nothing.
var protocol = strings.TrimSpace(protocolText)

// completion is the last section: where the loop stands, how to end, and what
// is checked then.
func completion(in Input) string {
	parts := []string{position(in), protocol, checks(in)}
	if rules := list("What else holds:", in.Rules, maxRules); rules != "" {
		parts = append(parts, rules)
	}
	if r := reviewed(in.Reviewer); r != "" {
		parts = append(parts, r)
	}
	return strings.Join(parts, "\n\n")
}

// reviewed says who looks at the work when it is green.
func reviewed(reviewer string) string {
	who := "another agent (" + oneLine(reviewer) + ")"
	switch reviewer {
	case "":
		return ""
	case loop.Person:
		who = "a person"
	}
	return "Work that is complete and green is then reviewed by " + who + ", who sees the whole change since the run " +
		"began. It counts only when that review approves."
}

func position(in Input) string {
	const fresh = "You start without a memory of the ones before: what the next one must know has to be in files."
	switch {
	case in.Iteration <= 0:
		return "This is one iteration of a loop. " + fresh
	case in.MaxIterations > 0:
		return fmt.Sprintf("This is iteration %d of at most %d. %s", in.Iteration, in.MaxIterations, fresh)
	}
	return fmt.Sprintf("This is iteration %d. %s", in.Iteration, fresh)
}

// checks names the gates.
func checks(in Input) string {
	switch {
	case len(in.Gates) > 0:
		const rule = "A COMPLETE is accepted only if every required one is green, so run them yourself first. Do not weaken " +
			"them."
		return list("These checks run when you have ended, in this order:", firstGates(in.commands()), maxGates+1) + "\n\n" + rule
	case in.NoGates:
		return "No checks are configured, so nobody looks behind your COMPLETE: make sure yourself, and say how."
	}
	return "Checks may run when you have ended. A COMPLETE is accepted only if they are green."
}

// commands are the checks by name and command.
func (in *Input) commands() []string {
	lines := make([]string, len(in.Gates))
	for i, name := range in.Gates {
		lines[i] = oneLine(name)
		if command := in.commandOf(i); command != "" && command != lines[i] {
			lines[i] += ": " + command
		}
	}
	return lines
}

// commandOf is the command of a check as one line; "" when none is known.
func (in *Input) commandOf(i int) string {
	if i < 0 || i >= len(in.Commands) {
		return ""
	}
	return oneLine(in.Commands[i])
}

// maxRules bounds the sentences about what holds.
const maxRules = 20

// firstGates bounds the list and says how many more there are.
func firstGates(gates []string) []string {
	if len(gates) <= maxGates {
		return gates
	}
	return append(append([]string{}, gates[:maxGates]...), fmt.Sprintf("and %d more", len(gates)-maxGates))
}
