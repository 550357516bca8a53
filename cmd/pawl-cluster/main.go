// Command pawl-cluster is pawl with the client of an engine: its autopilot has
// tasks worked by workers, and it is the worker.
package main

import (
	"os"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	clicommand "github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/do/cluster"
)

// version is set by the build.
var version string

func main() {
	clicommand.Version = version
	os.Exit(cli.Main(cluster.Program{}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
