// Command testsum reads the events of `go test -json` on its standard input,
// prints what go test itself would have printed, and closes with the tests
// that were skipped and a line of totals, such as "412 passed, 0 failed".
//
// The totals are counted from the events and from nothing else. Its exit
// status is 1 when a test or a package failed, when a test did not end, or
// when there was no test at all. With -v it prints what passing tests say too.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	verbose := flag.Bool("v", false, "print what passing tests say too")
	flag.Parse()
	failed, err := sum(os.Stdin, os.Stdout, *verbose)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testsum: %v\n", err)
		os.Exit(1)
	}
	if failed {
		os.Exit(1)
	}
}
