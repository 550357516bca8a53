package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manual is a page for a command and each one below it, with the words of its --help.
func manual(c *cobra.Command, when time.Time) map[string][]byte {
	pages := map[string][]byte{}
	c.InitDefaultHelpFlag()
	pages["man/man1/"+pageName(c)+".1"] = page(c, when)
	for _, sub := range c.Commands() {
		if isDocumented(sub) {
			for name, text := range manual(sub, when) {
				pages[name] = text
			}
		}
	}
	return pages
}

func isDocumented(c *cobra.Command) bool {
	return c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand()
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is the manual of one command in the language of man.
func page(c *cobra.Command, when time.Time) []byte {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say(`.TH "%s" "1" "%s" "pawl" "pawl"`, strings.ToUpper(pageName(c)), when.UTC().Format("2006-01-02"))
	say(".SH NAME\n%s \\- %s", roff(pageName(c)), roff(c.Short))
	say(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	if c.Long != "" {
		say(".SH DESCRIPTION\n%s", paragraphs(c.Long))
	}
	options(say, "OPTIONS", c.NonInheritedFlags())
	options(say, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.HasExample() {
		say(".SH EXAMPLES\n.nf\n%s\n.fi", roff(strings.TrimRight(c.Example, "\n")))
	}
	commands(say, c)
	if c.HasParent() {
		say(".SH SEE ALSO\n.BR %s (1)", roff(pageName(c.Parent())))
	}
	return []byte(b.String())
}

// commands are those below a command, each with its own page.
func commands(say func(string, ...any), c *cobra.Command) {
	title := ".SH COMMANDS\n"
	for _, sub := range c.Commands() {
		if isDocumented(sub) {
			say("%s.TP\n.BR %s (1)\n%s", title, roff(pageName(sub)), roff(sub.Short))
			title = ""
		}
	}
}

// options are flags, each with its words on lines of their own.
func options(say func(string, ...any), title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	say(".SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB` + roff("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			name = `\fB` + roff("-"+f.Shorthand) + `\fP, ` + name
		}
		if value != "" {
			name += ` \fI` + roff(value) + `\fP`
		}
		say(".TP\n%s\n%s", name, roff(usage))
	})
}

// paragraphs keeps the lines that are indented as they are, and fills the others.
func paragraphs(text string) string {
	var out []string
	literal := false
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, "\n")
		switch indented := strings.TrimLeft(line, " \t") != line; {
		case line == "":
			line = ".PP"
		case indented != literal:
			literal = indented
			line = map[bool]string{true: ".nf\n", false: ".fi\n"}[indented] + roff(line)
		default:
			line = roff(line)
		}
		out = append(out, line)
	}
	if literal {
		out = append(out, ".fi")
	}
	return strings.Join(out, "\n")
}

// roff keeps man from reading a text as anything but text.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
