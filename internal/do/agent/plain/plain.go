// Package plain is the table of the programs that print plain text and need
// nothing but data. It is made from documentation; none of them was recorded.
// It starts nothing and reads nothing.
package plain

import (
	_ "embed" // of the programs' files

	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

var (
	//go:embed crush.json
	crushFile string
	//go:embed kiro.json
	kiroFile string
	//go:embed aider.json
	aiderFile string
)

// Crush is Charm's crush, whose run mode asks for no permissions. Its data
// folder would be .crush in the repository.
func Crush() program.Program { return program.Read(crushFile, nil) }

// Kiro is the Kiro CLI.
func Kiro() program.Program { return program.Read(kiroFile, nil) }

// Aider is aider with one message, in a file. By itself it commits, the user's own changes too, and
// writes its history and a line of .gitignore into the repository; all of that is off here. It
// breaks lines at the width of a terminal, 80 where there is none, which would break a signal's
// line: a variable sets a wide one. Its library looks for OpenAI's address in two variables.
func Aider() program.Program { return program.Read(aiderFile, nil) }
