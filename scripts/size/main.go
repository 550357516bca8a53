// Command size prints how large the product code is, by room, and the figures
// that internal/test/archtest holds it to.  go run ./scripts/size
package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/pawl-dev/pawl/internal/test/archtest"
)

func main() {
	figures, rooms, err := archtest.Figures(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot measure:", err)
		os.Exit(1)
	}
	names := slices.SortedFunc(maps.Keys(rooms), func(a, b string) int {
		return cmp.Or(rooms[b]-rooms[a], cmp.Compare(a, b))
	})
	for _, name := range names {
		fmt.Printf("%7d  %s\n", rooms[name], name)
	}
	fmt.Println()
	for _, f := range figures {
		limit := "at most"
		if f.More {
			limit = "at least"
		}
		fmt.Printf("%7d  %s (%s %d)\n", f.Value, f.Name, limit, f.Limit)
	}
}
