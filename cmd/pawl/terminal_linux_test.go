package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// onterminal COMMAND runs a command on a terminal of its own and prints what came
// out. It ends badly when a terminal would obey any of it but pawl's own colors
// and live line. With -screen WORD it types Enter when WORD is shown, and what draws a
// full screen is pawl's own, too.
//
//nolint:gochecknoinits // a program that other systems do not have
func init() { programs["onterminal"] = func() { os.Exit(onTerminal(os.Args[1:])) } }

// Pawl's own: colors, and what draws a line or a screen anew.
var (
	ownOnLines  = regexp.MustCompile(`\r\n|\x1b\[(0|1|2|31|32|33|36)m|\x1b\[[KJ]|\r(\x1b\[\d+A)?`)
	ownOnScreen = regexp.MustCompile(`\r|\x1b\[[0-9;?<=>:$]*[\x20-\x2f]?[\x40-\x7e]`)
)

func onTerminal(args []string) int {
	word, own := "", ownOnLines
	if len(args) > 2 && args[0] == "-screen" {
		word, own, args = args[1], ownOnScreen, args[2:]
	}
	master, slave, err := terminal()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = slave, slave
	if word != "" {
		cmd.Stdin = slave
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	_ = slave.Close()
	var out []byte
	for buf := make([]byte, 4096); ; {
		n, err := master.Read(buf)
		out = append(out, buf[:n]...)
		if word != "" && strings.Contains(string(out), word) {
			_, _ = master.WriteString("\n")
			word = ""
		}
		if err != nil { // nobody has the other side any more
			break
		}
	}
	_ = cmd.Wait()
	fmt.Printf("%s", out)
	obeyed := func(r rune) bool {
		joins := r == '\n' || r == '\t' || r == '\u200d'
		return !joins && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar)
	}
	rest := own.ReplaceAllString(string(out), "")
	if i := strings.IndexFunc(rest, obeyed); i >= 0 {
		fmt.Printf("\n%q is obeyed by the terminal: %q\n", args, rest[max(0, i-40):min(len(rest), i+40)])
		return 1
	}
	return 0
}

// terminal opens both sides of a new terminal, 100 columns wide.
func terminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 40}); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}
