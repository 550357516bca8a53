// Package fault is the one form of an error that a person is to act on: of
// what kind it is, what is wrong, and what to do next. Commands, the dashboard
// and the API all show it; cli makes the exit status of the kind, web the
// status of HTTP. It decides nothing and says nothing to anybody.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the kind of a fault, by who has to act next.
type Kind string

// The kinds.
const (
	// Failed: pawl could not do its part.
	Failed Kind = "failed"
	// Refused is that what was asked for cannot be done: the words or the
	// configuration are wrong, or it does not fit how things are now.
	Refused Kind = "refused"
	// Waiting: a person has to act before it continues.
	Waiting Kind = "waiting"
)

// Error is a fault with advice for the next step.
type Error struct {
	Kind  Kind
	Err   error
	Hints []string // what to do next, a line each; may be pasted
}

// Refuse is an error of what was asked for.
func Refuse(format string, args ...any) *Error {
	return &Error{Kind: Refused, Err: fmt.Errorf(format, args...)}
}

// Of is err, which is not nil, as an error of a kind, without a hint.
func Of(kind Kind, err error) *Error { return &Error{Kind: kind, Err: err} }

// Is reports whether err is, or wraps, an error of a type.
func Is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// Hint adds a line about what to do next, and returns e.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Error has the message without the hints.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Cut is the beginning of a text in a message: at most so many bytes in whole letters,
// and then an ellipsis for the rest.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Numbered is a number of things in a message: "3 files", "1 file", "2 entries".
func Numbered(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// QuoteShell quotes a word for a shell, where it needs that.
func QuoteShell(word string) string {
	plain := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@") == ""
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellLine is a line for a shell that runs the commands one after another while they succeed, each in the folder
// where the line starts.
func ShellLine(commands []string) string {
	var parts []string
	for _, c := range commands {
		folder, rest, _ := strings.Cut(c, " && ")
		isBelow := strings.HasPrefix(folder, "cd ")
		if n := len(parts) - 1; isBelow && n >= 0 && strings.HasPrefix(parts[n], "("+folder+" && ") {
			parts[n] = strings.TrimSuffix(parts[n], ")") + " && " + rest + ")"
			continue
		}
		isList := isBelow || strings.ContainsAny(c, "|;")
		if isList && len(commands) > 1 {
			c = "(" + c + ")"
		}
		parts = append(parts, c)
	}
	return strings.Join(parts, " && ")
}
