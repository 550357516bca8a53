package loop

import "github.com/pawl-dev/pawl/internal/failure"

// Feedback is what the next prompt says about the iterations before it.
type Feedback struct {
	Iteration int    `json:"iteration"` // the one that it is about, 1-based
	Summary   string `json:"summary,omitempty"`
	Step      string `json:"step,omitempty"` // the gate that was red; empty for the agent itself
	// ExitCode is that of the red gate; 0 where it had none.
	ExitCode int            `json:"exit_code,omitempty"`
	Items    []failure.Item `json:"items,omitempty"` // at most 20
	// Dropped counts the items that iteration control left no room for.
	Dropped int `json:"dropped,omitempty"`
	// Malformed are sentences about signals that did not count.
	Malformed []string `json:"malformed,omitempty"`
	// Tried has one line for each earlier failed iteration, oldest first, at most 5.
	Tried []string `json:"tried,omitempty"`
	// Strategy and Instruction say how this iteration is to differ.
	Strategy    string `json:"strategy,omitempty"`
	Instruction string `json:"instruction,omitempty"`
	// Answer is a person's, to the question in Question.
	Question string `json:"question,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Asker is the step that asked; "" where it was none.
	Asker string `json:"asker,omitempty"`
	// Answers are those to the questions of steps, where each has its own.
	Answers []StepAnswer `json:"answers,omitempty"`
	// Notes are pawl's own, e.g. that the iteration before was interrupted.
	Notes []string `json:"notes,omitempty"`
}

// StepAnswer is a person's answer to a step that asks.
type StepAnswer struct {
	Step     string `json:"step"`
	Question string `json:"question"`
	Text     string `json:"text"`
}

// AnswerTo is what a person answered to a step; ok is false where nothing was.
func (f *Feedback) AnswerTo(step string) (a StepAnswer, ok bool) {
	if f == nil {
		return a, false
	}
	for _, a := range f.Answers {
		if a.Step == step && a.Text != "" {
			return a, true
		}
	}
	return StepAnswer{f.Asker, f.Question, f.Answer}, f.Asker == step && f.Answer != ""
}
