package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/cli"
)

// A command that pawl prints in a script works as printed, there and then. Those that only show
// something are run at once, in the folder where they were printed; a complaint about the command
// itself is noted, and fails the script at its end.

// printedCommand is a command in a message: after a colon, a comma, a quote or blanks.
var printedCommand = regexp.MustCompile("(?m)(?:^|[:,(] |['`]|  )pawl ([a-z][^\\n,;'`)]*)")

// shows are the commands that only show something, as printed commands begin.
var shows = []string{
	"autopilot status", "case list", "case show", "config", "logs", "prices", "ps", "queue", "show", "sprint list", "sprint show",
}

// stands is a word that stands for a value, as in RUN TEXT, or is no word of a command line.
var stands = regexp.MustCompile(`^[A-Z]|[…|%"<>#]|^-f$|^-fi?$`)

// complaint is what pawl says of a command that there is not, or of a name that there is not.
var complaint = regexp.MustCompile(`unknown (command|flag|shorthand)|unexpected argument|there is no (run|task)|needs (a run|the id)`)

// watched is a stream of pawl's, of which a copy is kept.
func watched(f *os.File, copied *bytes.Buffer) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return f // a terminal stays one
	}
	return io.MultiWriter(f, copied)
}

// tryPrinted runs what was printed and only shows something, each once in a script.
func tryPrinted(text string) {
	path := os.Getenv(exitsVar)
	if path == "" || os.Getenv("TEST_PRINTED") == "off" { // a script whose git hangs, for example
		return
	}
	done, _ := os.ReadFile(path + ".printed") // none yet
	for _, found := range printedCommand.FindAllStringSubmatch(text, -1) {
		line := strings.TrimRight(strings.TrimSpace(found[1]), ".")
		isShown := func(begin string) bool { return line == begin || strings.HasPrefix(line, begin+" ") }
		words := strings.Fields(line)
		acts := words[0] == "queue" && len(words) > 1 && !strings.HasPrefix(words[1], "-") // as queue resume does
		if acts || !slices.ContainsFunc(shows, isShown) || slices.ContainsFunc(words, stands.MatchString) ||
			strings.Contains("\n"+string(done), "\n"+line+"\n") {
			continue
		}
		var said bytes.Buffer
		cli.Main(nil, words, strings.NewReader(""), &said, &said, os.Environ())
		note := line + "\n"
		if complaint.Match(said.Bytes()) {
			note += fmt.Sprintf("BAD pawl %s: %s\n", line, strings.TrimSpace(said.String()))
		}
		done = append(done, note...)
		if f, err := os.OpenFile(path+".printed", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(note)
			_ = f.Close()
		}
	}
}

// badPrinted are the commands of a script that did not work as printed.
func badPrinted(path string) string {
	text, _ := os.ReadFile(path + ".printed") // none, if nothing was printed
	_, bad, found := strings.Cut("\n"+string(text), "\nBAD ")
	if !found {
		return ""
	}
	return bad
}
