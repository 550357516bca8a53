package command

import "github.com/pawl-dev/pawl/internal/console"

// Painted is a text in a color, where stdout has colors.
func (a *App) Painted(color, text string) string {
	inColor := console.OnTerminal(a.Stdout) && a.wantsColor()
	if a.Color == "always" {
		inColor = true
	}
	if a.Color == "never" || !inColor {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Interactive is true when a person can answer.
func (a *App) Interactive() bool {
	return !a.JSON && console.OnTerminal(a.Stdin) && a.onTerminal()
}

// Terminal is where runs are shown.
func (a *App) Terminal() console.Terminal {
	return console.Terminal{
		Results: a.Stdout, Progress: a.Stderr, Drawn: a.onTerminal(), Color: a.colored(), Verbose: a.Verbose, Quiet: a.Quiet,
		JSON: a.JSON,
	}
}

// onTerminal is true when progress is drawn on a terminal.
func (a *App) onTerminal() bool {
	return console.OnTerminal(a.Stderr) && a.Getenv("TERM") != "dumb"
}

// wantsColor is false where the environment speaks against color.
func (a *App) wantsColor() bool { return a.Getenv("TERM") != "dumb" && a.Getenv("NO_COLOR") == "" }

// colored says whether to use color on stderr.
func (a *App) colored() bool {
	if a.Color == "auto" {
		return a.onTerminal() && a.wantsColor()
	}
	return a.Color == "always"
}
