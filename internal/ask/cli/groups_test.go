package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each command that a group names is there, and in it.
func TestGroups(t *testing.T) {
	t.Parallel()
	root := Root()
	for _, g := range groups {
		for _, name := range strings.Fields(g[1]) {
			if c, _, err := root.Find([]string{name}); err != nil || c.GroupID != g[0] {
				t.Errorf("%s is not in %q: %v", name, g[0], err)
			}
		}
	}
}

// Tab offers something for each argument and each value of a flag, or says that it is a text of the
// person's own; each command with an argument has an example to copy.
func TestEachCommandHelps(t *testing.T) {
	t.Parallel()
	argument := regexp.MustCompile(`[A-Z]{2,}`)
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		if c.HasSubCommands() || c.Hidden || c.Name() == "help" || c.Parent() != nil && c.Parent().Name() == "completion" {
			return
		}
		if argument.MatchString(c.Use) && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			t.Errorf("%s: tab offers nothing for %s", c.CommandPath(), c.Use)
		}
		if argument.MatchString(c.Use) && c.Example == "" && !strings.HasPrefix(c.CommandPath(), "pawl workflow ") {
			t.Errorf("%s: has no example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" || f.Hidden {
				return
			}
			if _, is := c.GetFlagCompletionFunc(f.Name); !is {
				t.Errorf("%s: tab offers nothing for --%s", c.CommandPath(), f.Name)
			}
		})
	}
	each(Root())
}
