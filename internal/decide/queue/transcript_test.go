package queue_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/test/transcript"
)

// TestTranscripts plays the files in testdata. Each block is one event in
// words; below the line of dashes stands what the queue made of it. The notation:
//
//	open [batch=N] [retries=N] [timeout=D] [action=A] [resolve] [push] [propose] [ask] [checks] [key=K] [tip=T] [lost=a,b]
//	add ID [priority=N] [needs=a,b] [commit=C] [done]
//	merged [tip=T] [rewritten] [missing] [ID=conflict:N|complex|later|empty|gone|settled|kept ...]: the others merge
//	green [empty] [cached] · red WHY [by WHO] [cached] · absent WHY: a check of the forge is not reported · busy: its checks go on
//	landed · moved · in-the-way WHY [ID ...]
//	ahead ID=path,… · pushed [diverged|failed|refused] · looked [tip=T] [theirs=T [apart]]
//	together [theirs=T apart]: what the remote has is merged with the target, or cannot be
//	resolved ID [commit=C] [why=W]
//	proposal ID=url|merged|closed
//	settle ID from=C commit=C · hold|release|retry|drop ID · pause · resume · verify · look
//	time-over · stumbled WHY · later D · again (the last event once more) · queue (shows it)
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) func(string) string {
		p := &player{t: t, at: time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC), tip: "tip0"}
		return p.line
	})
}

type player struct {
	t    *testing.T
	s    queue.State
	at   time.Time
	tip  string
	last queue.Event
}

func (p *player) line(line string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "later":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.at = p.at.Add(d)
		return p.at.Format("15:04:05") + "\n"
	case "queue":
		return p.show()
	}
	e := p.event(words, strings.TrimPrefix(line, words[0]+" "))
	if words[0] != "again" {
		e.At = p.at
	}
	p.last = e
	kept, _ := json.Marshal(p.s)
	after, c := queue.Step(p.s, e)
	if now, _ := json.Marshal(p.s); !bytes.Equal(now, kept) {
		p.t.Fatalf("%q changed the state before it", line)
	}
	before := p.s.Command.Seq
	p.s = after
	return p.tell(before, c)
}

func (p *player) tell(before int64, c queue.Command) string {
	var b strings.Builder
	if c.Kind == "" {
		return "nothing\n"
	}
	for _, l := range p.s.Out.Landings {
		fmt.Fprintf(&b, "landed %s: %s -> %s\n", l.Task, l.From, l.To)
	}
	for _, n := range p.s.Out.Notes {
		fmt.Fprintf(&b, "%s %s: %s\n", n.Kind, n.ID, n.Text)
	}
	for _, m := range p.s.Out.Cases {
		fmt.Fprintf(&b, "case %s %s\n", m.ID, m.Move)
	}
	if c.Seq == before {
		return b.String() + "-> as before\n"
	}
	fmt.Fprintf(&b, "-> %s", c.Kind)
	if len(c.IDs) > 0 {
		b.WriteString(" " + strings.Join(c.IDs, " "))
	}
	if c.Kind == queue.DoPrepare && c.Commit != "" {
		b.WriteString(" " + c.Commit)
	}
	if c.Kind == queue.DoPrepare && c.From != "" {
		b.WriteString(" onto " + c.From)
	}
	if c.Kind == queue.DoVerify {
		b.WriteString(" " + c.Tree)
	}
	if c.Kind == queue.DoLand {
		fmt.Fprintf(&b, " %s..%s", c.From, c.To)
	}
	if !c.Until.IsZero() {
		b.WriteString(" until " + c.Until.Format("15:04:05"))
	}
	return b.String() + " (" + c.Why + ")\n"
}

func (p *player) show() string {
	var b strings.Builder
	for _, e := range p.s.InOrder(p.at) {
		fmt.Fprintf(&b, "%s %s", e.ID, e.Status)
		if e.Why != "" {
			b.WriteString(": " + e.Why)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "window %d\n", p.s.Window)
	if p.s.Unpushed.Stuck() {
		b.WriteString("a person is needed for the push\n")
	}
	return b.String()
}

func (p *player) event(words []string, rest string) queue.Event {
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	num := func(key string) int {
		n, _ := strconv.Atoi(args[key])
		return n
	}
	open := p.s.Command.Seq
	if t := args["tip"]; t != "" {
		p.tip = t
	}
	facts := queue.Facts{Tip: p.tip, Tree: "tree-" + p.tip, Past: true}
	if _, ok := args["rewritten"]; ok {
		facts.Past = false
	}
	if _, ok := args["missing"]; ok {
		facts.Tip = ""
	}
	has := func(key string) bool { _, ok := args[key]; return ok }
	if theirs := args["theirs"]; theirs != "" {
		facts.Diverged, facts.Theirs, facts.Apart = "main and its remote each have commits of their own", theirs, has("apart")
	}
	switch words[0] {
	case "open":
		d, _ := time.ParseDuration(args["timeout"])
		if has("lost") {
			facts.Lost = strings.Split(args["lost"], ",")
		}
		if !has("batch") {
			args["batch"] = "8"
		}
		p.s.Target = "refs/heads/main"
		return queue.Event{Kind: queue.Opened, Facts: &facts, Policy: &queue.Policy{
			Batch: num("batch"), Retries: num("retries"), Timeout: d, Action: queue.Action(args["action"]),
			Resolve: has("resolve"), Push: has("push"), Propose: has("propose"), Ask: has("ask"), Checks: has("checks"), Key: args["key"],
		}}
	case "add":
		e := queue.Entry{ID: words[1], Title: words[1], Commit: "c-" + words[1], Priority: num("priority")}
		if has("needs") {
			e.Needs = strings.Split(args["needs"], ",")
		}
		if has("commit") {
			e.Commit = args["commit"]
		}
		return queue.Event{Kind: queue.Added, Entry: &e, Done: has("done")}
	case "together": // what the remote has, with the target
		head := p.tip + "*" + p.s.Command.Commit
		return queue.Event{Kind: queue.Prepared, For: open, Prepared: &queue.Prepare{Facts: facts, Head: head, Result: "tree-" + head}}
	case "merged":
		return queue.Event{Kind: queue.Prepared, For: open, Prepared: p.merge(facts, args)}
	case "busy":
		return queue.Event{Kind: queue.Checked, For: open, Busy: true}
	case "green", "red", "absent":
		c := p.s.Command
		kind := queue.Verified
		if c.Kind == queue.DoCheck {
			b := p.s.Checking[0]
			if kind, c.Tree = queue.Checked, b.Result; b.Target {
				c.Tree = b.Tree
			}
		}
		v := queue.Verdict{Tree: c.Tree, Green: words[0] == "green", Empty: has("empty"), Cached: has("cached"), Retried: c.Again,
			Absent: words[0] == "absent", Transient: has("away")}
		if !v.Green {
			v.Summary = strings.TrimSuffix(strings.TrimSuffix(rest, " cached"), " away")
			v.Summary, v.By, _ = strings.Cut(v.Summary, " by ")
			if v.By != "" {
				v.By = "by " + v.By
			}
		}
		return queue.Event{Kind: kind, For: open, Verdict: &v}
	case "landed":
		p.tip = p.s.Command.To
		e := queue.Event{Kind: queue.Landed, For: open}
		if has("pushed") {
			e.Push = &queue.Push{}
		}
		return e
	case "commits-refused":
		return queue.Event{Kind: queue.Refused, For: open, Refusal: &queue.Refusal{Why: rest, Commits: true}}
	case "moved":
		return queue.Event{Kind: queue.Refused, For: open, Refusal: &queue.Refusal{Moved: true}}
	case "in-the-way":
		return queue.Event{Kind: queue.Refused, For: open, Refusal: &queue.Refusal{Why: words[1], IDs: words[2:]}}
	case "ahead":
		var list []queue.Ahead
		for _, w := range words[1:] {
			id, paths, _ := strings.Cut(w, "=")
			list = append(list, queue.Ahead{ID: id, Paths: strings.FieldsFunc(paths, func(r rune) bool { return r == ',' })})
		}
		return queue.Event{Kind: queue.Foreseen, For: open, Ahead: list}
	case "pushed":
		push := queue.Push{}
		if has("diverged") {
			push.Diverged = "origin has commits that are not here"
		}
		if has("failed") || has("refused") {
			push.Failed, push.Refused = "no network", has("refused")
		}
		return queue.Event{Kind: queue.Pushed, For: open, Push: &push}
	case "looked":
		return queue.Event{Kind: queue.Looked, For: open, Facts: &facts}
	case "resolved":
		e, _ := p.s.Find(words[1])
		return queue.Event{Kind: queue.Resolved, Resolution: &queue.Resolution{ID: words[1], Attempt: e.Attempts, Commit: args["commit"], Why: args["why"]}}
	case "proposal":
		var list []queue.Request
		for _, w := range words[1:] {
			id, what, _ := strings.Cut(w, "=")
			r := queue.Request{ID: id}
			switch what {
			case "merged":
				r.Merged = "host-" + id
			case "closed":
				r.Closed = "its pull request was closed"
			case "refused":
				r.Refused = "origin refuses it: no sign-off"
			default:
				r.URL, what, _ = strings.Cut(what, ",")
				switch kind, text, _ := strings.Cut(what, ":"); kind {
				case "behind":
					r.Behind = true
				case "said":
					r.Said, r.Heard = text, []string{text}
				case "red":
					r.Red, r.Heard = text, []string{text}
				case "why":
					r.Why = text
				}
			}
			list = append(list, r)
		}
		return queue.Event{Kind: queue.Proposals, For: open, Requests: list}
	case "hold", "release", "retry", "drop", "settle":
		return queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.Wish(words[0]), ID: words[1], From: args["from"], Commit: args["commit"]}}
	case "pause", "resume", "verify", "look":
		return queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.Wish(words[0])}}
	case "time-over":
		if p.s.Command.Until.After(p.at) {
			p.at = p.s.Command.Until
		}
		return queue.Event{Kind: queue.WaitOver, For: open}
	case "stumbled", "cannot":
		return queue.Event{Kind: queue.Stumbled, For: open, Why: rest, Lasting: words[0] == "cannot"}
	case "again":
		return p.last
	}
	p.t.Fatalf("unknown event %q", words[0])
	return queue.Event{}
}

// merge is what a repository would make of the open command.
func (p *player) merge(facts queue.Facts, args map[string]string) *queue.Prepare {
	out := &queue.Prepare{Facts: facts, Head: facts.Tip, Result: facts.Tree}
	if from := p.s.Command.From; from != "" {
		out.Head, out.Result = from, "tree-"+from
	}
	for _, id := range p.s.Command.IDs {
		m := queue.Merged{ID: id}
		how, n, _ := strings.Cut(args[id], ":")
		switch how {
		case "conflict":
			m.Conflict = conflictOf(n)
		case "complex":
			m.Conflict = &queue.Conflict{Files: []queue.File{{Path: "a.txt", Kinds: []string{"modify/delete"}}}}
		case "later":
			m.Later = true
		case "gone":
			m.Lost = "its commit is gone"
		case "empty":
			m.Empty, m.Commit = true, out.Head
		default:
			if how == "settled" {
				m.Settled = []string{"a.txt"}
			}
			if how == "kept" {
				m.Kept = []string{"a_test.go"}
			}
			out.Head += "+" + id
			out.Result = "tree-" + out.Head
			m.Commit = out.Head
		}
		out.Steps = append(out.Steps, m)
	}
	return out
}

// conflictOf is a conflict in that many lines.
func conflictOf(lines string) *queue.Conflict {
	n, _ := strconv.Atoi(lines)
	return &queue.Conflict{Files: []queue.File{{Path: "a.txt", Kinds: []string{"contents"}, Hunks: []queue.Hunk{{
		Base: []string{"old"}, Ours: slices.Repeat([]string{"mine"}, n), Theirs: []string{"yours"},
	}}}}}
}
