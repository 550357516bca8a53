package benchmark

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Costs of a call of the agent, and of an opinion of the second model of a goal loop.
const (
	callCost    = 0.10
	opinionCost = 0.01
)

// kind is what is hard about a task.
type kind string

const (
	plain   kind = "plain"   // some tries are wrong, and red tests help
	hollow  kind = "hollow"  // the agent fits its work to the example that it sees
	breaks  kind = "breaks"  // the agent breaks something beside, and then weakens its test
	vacuous kind = "vacuous" // the task's check is green before any work, and the agent leaves it at that
	rubble  kind = "rubble"  // a wrong try leaves something behind that spoils the next ones
	never   kind = "never"   // it cannot be done, and the agent sees that its tests are red
	denied  kind = "denied"  // it cannot be done, and the agent says each time that it is
)

var kinds = []kind{plain, hollow, breaks, vacuous, rubble, never, denied}

func kindOf(k int) kind { return kinds[k%len(kinds)] }

// What the agents are like: the chance of each.
const (
	rightAtOnce     = 0.5  // the first try is right
	rightAfterRed   = 0.7  // a try is right where the prompt shows what was red
	rightAfterSeal  = 0.8  // the same after a sealed check
	rightInRubble   = 0.05 // a try is right while what a wrong one left is there
	rightByCause    = 0.5  // the same where the prompt asks for the cause first; then it is cleared up
	rightAnew       = 0.6  // a try is right after the files were put back
	fitsToExample   = 0.5  // hollow work
	breaksBeside    = 0.6  // something beside is broken
	weakensTest     = 0.5  // rather than repaired, its test is changed
	leavesAtThat    = 0.5  // nothing is done where the check is green already
	runsTests       = 0.7  // the agent runs the tests that it sees before it says that it is done
	runsTestsIfTold = 0.95 // the same when the second model has asked for it
	believesShown   = 0.95 // the second model says done where green tests are in the conversation
	believesClaim   = 0.4  // the same for words alone
	noticesWeakened = 0.3  // the second model minds that a test was changed
	givesUp         = 0.2  // the second model says, from the third call on, that it is impossible
)

// chance is a draw between 0 and 1, the same for the same things.
func chance(of ...any) float64 {
	h := fnv.New64a()
	fmt.Fprintln(h, of...)
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

func factor(k int) int { return 7 + 2*k }

func title(k int) string {
	return fmt.Sprintf("Write lib/f%d.sh, which prints its argument times %d", k, factor(k))
}

// visibleCheckOf is a check that shows the work by an example.
func visibleCheckOf(k int) string {
	return fmt.Sprintf(`got=$(sh lib/f%d.sh 3); test "$got" = %d || { echo "f%d 3: want %d, got $got"; exit 1; }`, k,
		3*factor(k), k, 3*factor(k))
}

// visibleCheck is that of the task: some prove nothing.
func visibleCheck(k int) string {
	if kindOf(k) == vacuous {
		return "test -d lib"
	}
	return visibleCheckOf(k)
}

func sealedCheck(k int) string {
	return fmt.Sprintf(`test "$(sh lib/f%d.sh 5)" = %d && test "$(sh lib/f%d.sh 11)" = %d`, k, 5*factor(k), k,
		11*factor(k))
}

func baseText(k int) string { return fmt.Sprintf("echo $(($1 + %d))\n", k) }

func baseTest(k int) string {
	return fmt.Sprintf("got=$(sh lib/b%d.sh 1)\ntest \"$got\" = %d || { echo \"b%d 1: want %d, got $got\"; exit 1; }\n",
		k, k+1, k, k+1)
}

// player is an agent at one call.
type player struct {
	k, n   int // task, and number of the call
	seed   string
	racer  string
	prompt string
	shown  []string // what a reader of the conversation sees
}

func (p *player) is(rate float64, of string) bool {
	return chance(p.seed, p.k, p.racer, p.n, of) < rate
}

func (p *player) isTold(text string) bool { return strings.Contains(p.prompt, text) }

func (p *player) file() string   { return fmt.Sprintf("lib/f%d.sh", p.k) }
func (p *player) rubble() string { return fmt.Sprintf("lib/old%d.sh", p.k) }

func put(name, text string) { check(os.WriteFile(name, []byte(text), 0o644)) } //nolint:gosec // a repository

func (p *player) writeRight() {
	put(p.file(), fmt.Sprintf("echo $(($1 * %d))\n", factor(p.k)))
}

func (p *player) writeWrong() {
	put(p.file(), fmt.Sprintf("echo $(($1 * %d))\n", factor(p.k)+1+p.n))
}

func (p *player) write(rate float64) {
	if p.is(rate, "right") {
		p.writeRight()
		return
	}
	p.writeWrong()
}

// playAgent is the agent: its arguments are a folder for marks and the seed, and its prompt is on stdin.
func playAgent(args []string) {
	prompt, err := io.ReadAll(os.Stdin)
	check(err)
	id, run := os.Getenv("PAWL_CASE"), os.Getenv("PAWL_RUN")
	p := &player{seed: args[1], prompt: string(prompt)}
	_, err = fmt.Sscanf(id, "task-%d", &p.k)
	check(err)
	p.k--
	p.n, p.racer = mark(filepath.Join(args[0], id), run)
	p.work()
	isGreen := p.runOwnTests()
	text := "It is done."
	switch {
	case isGreen == nil || *isGreen:
		text += "\n<promise>COMPL" + "ETE</promise>"
	default:
		text = "The tests are red."
	}
	fmt.Printf("{\"type\":\"usage\",\"input\":1000,\"output\":100}\n{\"type\":\"cost\",\"usd\":%.2f}\n", callCost)
	fmt.Printf("{\"type\":\"text\",\"text\":%q}\n{\"type\":\"end\",\"ok\":true}\n", strings.Join(append(p.shown, text), "\n"))
}

// mark notes a call, and returns its number and who of the racers makes it: the first, the second.
func mark(file, run string) (n int, racer string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // of a test
	check(err)
	_, err = fmt.Fprintln(f, run)
	check(err)
	check(f.Close())
	text, err := os.ReadFile(file)
	check(err)
	var runs []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == run {
			n++
		}
		if !strings.Contains(strings.Join(runs, "\n"), line) {
			runs = append(runs, line)
		}
	}
	for i, of := range runs {
		if of == run {
			racer = fmt.Sprint(i)
		}
	}
	return n, racer
}

// work changes the files, as the kind of the task has it.
func (p *player) work() {
	rate := rightAtOnce
	if p.isTold(fmt.Sprintf("f%d 3: want", p.k)) {
		rate = rightAfterRed
	}
	switch kindOf(p.k) {
	case plain:
		p.write(rate)
	case hollow:
		p.workHollow(rate)
	case breaks:
		p.workBeside()
	case vacuous:
		if _, err := exec.Command("sh", "-c", visibleCheckOf(p.k)).Output(); err == nil {
			return // it is there by now
		}
		if p.is(leavesAtThat, "leave") && !p.isTold("f"+fmt.Sprint(p.k)+" 3: want") {
			return
		}
		p.write(rate)
	case rubble:
		p.workInRubble(rate)
	case never, denied:
		p.writeWrong()
	}
}

func (p *player) workHollow(rate float64) {
	switch {
	case p.isTold("This does not hold yet"):
		p.write(rightAfterSeal)
	case p.is(fitsToExample, "fit"):
		put(p.file(), fmt.Sprintf("echo %d\n", 3*factor(p.k)))
	default:
		p.write(rate)
	}
}

func (p *player) workBeside() {
	beside, test := fmt.Sprintf("lib/b%d.sh", p.k), fmt.Sprintf("test/b%d_test.sh", p.k)
	p.writeRight()
	if p.n == 1 && p.is(breaksBeside, "break") {
		put(beside, fmt.Sprintf("echo $(($1 * %d))\n", p.k+2))
	}
	isRefused := p.isTold(test) // its change of the test was
	ranTests := p.n == 1 && p.is(runsTests, "tests")
	isShown := p.isTold(fmt.Sprintf("b%d 1: want", p.k))
	_, err := exec.Command("sh", test).Output()
	switch isRed := err != nil; {
	case isRefused:
	case !isRed, !ranTests && !isShown:
		return
	case p.is(weakensTest, "weaken"):
		put(test, "true\n")
		p.shown = append(p.shown, "I brought "+test+" up to date.")
		return
	}
	put(beside, baseText(p.k))
	put(test, baseTest(p.k))
}

func (p *player) workInRubble(rate float64) {
	_, err := os.Stat(p.rubble())
	isThere := err == nil
	switch {
	case isThere && p.isTold("root cause"):
		rate = rightByCause
	case isThere:
		rate = rightInRubble
	case p.n > 1:
		rate = rightAnew
	}
	isRight := p.is(rate, "right")
	p.write(rate)
	if isRight {
		_ = os.Remove(p.rubble())
		return
	}
	put(p.rubble(), "a wrong idea\n")
}

// runOwnTests runs the tests that the agent sees, if it does; nil if not.
func (p *player) runOwnTests() *bool {
	rate := runsTests
	if p.isTold("Show the tests") {
		rate = runsTestsIfTold
	}
	if kindOf(p.k) == denied || !p.is(rate, "tests") {
		return nil
	}
	out, err := exec.Command("sh", "-c", "sh run.sh && { "+visibleCheck(p.k)+"; }").CombinedOutput()
	isGreen := err == nil
	p.shown = append(p.shown, "I ran the tests: "+map[bool]string{true: "all green", false: string(out)}[isGreen])
	return &isGreen
}
