package cli

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by the build; empty for a build without one.
var Version string

func (a *app) versionCommand() *cobra.Command {
	return leaf("version", "Print the version", atMost(0), func(context.Context, []string) error {
		a.result("pawl %s\n", version())
		return nil
	})
}

// version is what the build was told, else what Go recorded of the source.
func version() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			revision = " (" + s.Value[:12] + ")"
		}
	}
	return fmt.Sprintf("%s%s", info.Main.Version, revision)
}
