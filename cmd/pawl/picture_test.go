package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var drawPicture = flag.Bool("draw", false, "draw the moving picture of the README anew")

// The moving picture of the README shows what 'pawl demo' prints today: run make picture.
func TestPicture(t *testing.T) {
	t.Parallel()
	printed := playDemo(t)
	name := filepath.Join("..", "..", "docs", "images", "demo.svg")
	if *drawPicture {
		if err := os.WriteFile(name, draw(printed), 0o644); err != nil { //nolint:gosec // of the repository
			t.Fatal(err)
		}
	}
	svg, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, l := range printed {
		out.WriteString(l.text + "\n")
	}
	var drawn strings.Builder
	for _, m := range regexp.MustCompile(`<text [^>]*>(.*)</text>`).FindAllSubmatch(svg, -1) {
		drawn.WriteString(html.UnescapeString(string(m[1])) + "\n")
	}
	hasLines(t, "pawl demo does not print", drawn.String(), out.String())
	hasLines(t, "the picture does not show", out.String(), drawn.String())
}

// hasLines looks for the lines of a text in another, times, names and the folding of lines aside.
func hasLines(t *testing.T, trouble, lines, text string) {
	t.Helper()
	same := func(s string) string {
		s = regexp.MustCompile(`\S*pawl-demo[-\d]*|\b[0-9a-f]{7,}\b|\brun [0-9a-z]{8}\b|[\d.]+m?s?|\S*pawl (init|doctor|run)`).ReplaceAllString(s, "0")
		return strings.Join(strings.Fields(s), "")
	}
	text = same(text)
	for line := range strings.Lines(lines) {
		if !strings.Contains(text, same(line)) {
			t.Errorf("%s: %s", trouble, line)
		}
	}
}

// playDemo runs the demo. Its folder and the path of the program are of no interest to a reader.
func playDemo(t *testing.T) []line {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "pawl", "demo", "--color", "never")
	cmd.Env = documentEnv(t, t.TempDir(), "demo")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := []line{{text: "$ pawl demo"}}
	for s := bufio.NewScanner(out); s.Scan(); {
		text := program.ReplaceAllString(scratch.ReplaceAllString(s.Text(), "/tmp/pawl-demo"), "pawl $1")
		for _, part := range fold(text) {
			lines = append(lines, line{part, time.Since(begun)})
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v", err, lines)
	}
	return lines
}

// program is pawl by its path.
var program = regexp.MustCompile(`\S*/pawl (init|doctor|run)`)

// The size of the window, and how long a line stays alone on it at least and at most.
const (
	columns, rows      = 100, 26
	charWide, lineHigh = 8.43, 18.0
	shortest, longest  = 120 * time.Millisecond, 1500 * time.Millisecond
	atEnd              = 8 * time.Second
)

// line is a line of the window, and when it comes.
type line struct {
	text string
	at   time.Duration
}

var scratch = regexp.MustCompile(`\S*/pawl-demo-\d+`)

// fold breaks a line that is wider than the window between words.
func fold(text string) (parts []string) {
	for len([]rune(text)) > columns {
		cut := strings.LastIndex(string([]rune(text)[:columns]), " ")
		if cut <= 8 {
			cut = len(string([]rune(text)[:columns]))
		}
		parts = append(parts, text[:cut])
		text = "    " + strings.TrimLeft(text[cut:], " ")
	}
	return append(parts, text)
}

// colours are those of lines, by how they begin after the time.
var colours = []struct{ pattern, colour string }{
	{`^\$ `, "#ffffff"}, {`✗|WARNING|^Warning|failed|^-[^-]`, "#f0883e"}, {`✓|Completed|landed:|Delivered|: 3 done|^\+[^+]`, "#56d364"},
	{`^\d\. `, "#79c0ff"}, {`^ +(agent|tool|feedback)|^@@|^(diff|index|---|\+\+\+)`, "#8b949e"},
}

var clock = regexp.MustCompile(`^\[[0-9:]+\] `)

func colourOf(text string) string {
	text = clock.ReplaceAllString(text, "")
	for _, c := range colours {
		if regexp.MustCompile(c.pattern).MatchString(text) {
			return c.colour
		}
	}
	return "#c9d1d9"
}

// draw moves a strip of all lines behind a window, up by as many as came. While the window
// is not full, a curtain hides the lines that have not come.
func draw(lines []line) []byte {
	var text, moves, hides bytes.Buffer
	times := make([]time.Duration, len(lines))
	for i := 1; i < len(lines); i++ {
		times[i] = times[i-1] + min(max(lines[i].at-lines[i-1].at, shortest), longest)
	}
	whole := times[len(times)-1] + atEnd
	for i, l := range lines {
		fmt.Fprintf(&text, `<text y="%.0f" fill="%s">`, float64(i+1)*lineHigh, colourOf(l.text))
		_ = xml.EscapeText(&text, []byte(l.text)) // a buffer takes all
		text.WriteString("</text>\n")
		at := 100 * times[i].Seconds() / whole.Seconds()
		if i < rows {
			fmt.Fprintf(&hides, "%.2f%%{transform:translateY(%.0fpx)}", at, float64(i+1)*lineHigh)
		}
		fmt.Fprintf(&moves, "%.2f%%{transform:translateY(%.0fpx)}", at, min(0, float64(rows-i-1)*lineHigh))
	}
	last := fmt.Sprintf("translateY(%.0fpx)", float64(rows-len(lines))*lineHigh)
	wide, high := columns*charWide+32, rows*lineHigh+56
	page := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0[1]f %.0[2]f" role="img" aria-label="A recording of pawl demo">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
.strip{transform:%[3]s;animation:up %.1[4]fs step-end infinite}
.curtain{transform:translateY(100%%);animation:fall %.1[4]fs step-end infinite}
@media (prefers-reduced-motion:reduce){.strip,.curtain{animation:none}}
@keyframes up{%[5]s100%%{transform:%[3]s}}
@keyframes fall{%[6]s100%%{transform:translateY(%.0[8]fpx)}}</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<circle cx="20" cy="18" r="6" fill="#ff5f56"/><circle cx="40" cy="18" r="6" fill="#ffbd2e"/><circle cx="60" cy="18" r="6" fill="#27c93f"/>
<svg x="16" y="36" width="%.0[7]f" height="%.0[8]f" overflow="hidden"><g class="strip">
%[9]s</g><rect class="curtain" y="5" width="100%%" height="100%%" fill="#0d1117"/></svg>
</svg>
`, wide, high, last, whole.Seconds(), moves.String(), hides.String(), wide-32, rows*lineHigh+5, text.String())
	return []byte(page)
}
