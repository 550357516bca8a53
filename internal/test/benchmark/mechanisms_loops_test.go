package benchmark

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The loops that people use instead of pawl. All work on the branch itself, one task after the other, with the same
// agents and as many calls.
const (
	// untilClaimed gives the same prompt again until the agent says that it is done.
	untilClaimed = "claimed"
	// untilGreen runs the tests after each call and shows what was red.
	untilGreen = "green"
	// untilBelieved asks a second model after each call, which runs nothing and judges by the conversation alone. It
	// says done, gives a reason for another turn, or says that it is impossible: what vendors write of their goal
	// commands, such as code.claude.com/docs/en/goal.
	untilBelieved = "believed"
)

func (w *world) workLoops(sum *outcome) []bool {
	done := make([]bool, w.tasks)
	for k := range w.tasks {
		prompt := title(k)
		for n := 1; n <= maxCalls && !done[k]; n++ {
			said := w.callAgent(k, prompt)
			over := false
			switch w.loop {
			case untilClaimed:
				done[k] = strings.Contains(said, "<promise>")
			case untilGreen:
				out, isGreen := w.run("", nil, "sh", "-c", "sh run.sh && { "+visibleCheck(k)+"; }")
				done[k], prompt = isGreen, title(k)+"\nRed: "+out
			case untilBelieved:
				done[k], over = w.believes(sum, k, n, said)
				prompt = title(k) + "\nNot yet: Show the tests.\n" + said
			}
			if over {
				break
			}
		}
		w.run("", nil, "git", "add", "-A")
		w.run("", nil, "git", "commit", "-qm", title(k))
	}
	return done
}

// callAgent returns what the agent said.
func (w *world) callAgent(k int, prompt string) string {
	env := []string{"PAWL_CASE=" + taskID(k), "PAWL_RUN=loop"}
	out, ok := w.run(prompt, env, w.path("bin", "agent"), "agent", w.path("marks"), strconv.Itoa(w.seed))
	if !ok {
		panic("the agent failed")
	}
	for line := range strings.Lines(out) {
		var e struct{ Type, Text string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "text" {
			return e.Text
		}
	}
	return ""
}

// believes is the second model's opinion: whether it is done, and whether it cannot be.
func (w *world) believes(sum *outcome, k, n int, said string) (done, impossible bool) {
	sum.opinions++
	draw := func(rate float64, of string) bool { return chance(w.seed, k, n, of) < rate }
	switch {
	case strings.Contains(said, "up to date") && draw(noticesWeakened, "notice"):
		return false, false
	case strings.Contains(said, "all green"):
		return draw(believesShown, "believe"), false
	case strings.Contains(said, "<promise>"):
		return draw(believesClaim, "believe"), false
	}
	return false, n >= 3 && draw(givesUp, "impossible")
}
