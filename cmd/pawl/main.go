// Command pawl runs AI coding agents in bounded, verified iterations.
package main

import (
	"os"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	clicommand "github.com/pawl-dev/pawl/internal/ask/cli/command"
)

// version is set by the build.
var version string

func main() {
	clicommand.Version = version
	os.Exit(cli.Main(nil, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
