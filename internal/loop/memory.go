package loop

import "strings"

// Said is what a person said to the agents of a run: an answer with its question, or
// a message, whose question is empty.
type Said struct {
	// Iteration is the one before it; 0 before the first, and in an earlier run of the task.
	Iteration int    `json:"iteration,omitempty"`
	Step      string `json:"step,omitempty"` // of a workflow, that asked
	Question  string `json:"question,omitempty"`
	Text      string `json:"text"`
}

// The bounds of what a run keeps of a person's words.
const (
	maxSaid      = 40   // newest kept
	maxWhole     = 5    // newest kept whole
	maxSaidText  = 4000 // bytes of a whole one
	maxSaidAsked = 1000 // bytes of its question
	maxSaidLine  = 200  // bytes of an older one, and of its question
)

// remembers adds what a person said. It stays in every later prompt: the newest as it
// was said, older ones as one line.
func (s *State) remembers(said ...Said) {
	list := append([]Said(nil), s.Memory...) // states share what they have
	for _, one := range said {
		one.Text = cut(strings.TrimSpace(one.Text), maxSaidText)
		one.Question = cut(strings.TrimSpace(one.Question), maxSaidAsked)
		if one.Text != "" {
			list = append(list, one)
		}
	}
	list = list[max(0, len(list)-maxSaid):]
	for i := range max(0, len(list)-maxWhole) {
		list[i].Question, list[i].Text = line(list[i].Question), line(list[i].Text)
	}
	s.Memory = list
}

// told takes in the messages that an iteration's prompt had.
func (s *State) told(messages []string) {
	for _, text := range messages {
		s.remembers(Said{Iteration: s.Iteration, Text: text})
	}
}

// inherits takes over what was said in the earlier runs of the task.
func (s *State) inherits(said []Said) {
	for _, one := range said {
		one.Iteration = 0
		s.remembers(one)
	}
}

func line(text string) string { return cut(strings.Join(strings.Fields(text), " "), maxSaidLine) }

// answers are what an answered question adds to the memory.
func (f *Feedback) answers() []Said {
	var list []Said
	for _, a := range f.Answers {
		list = append(list, Said{f.Iteration, a.Step, a.Question, a.Text})
	}
	if f.Answer != "" {
		list = append(list, Said{f.Iteration, f.Asker, f.Question, f.Answer})
	}
	return list
}

// Earlier is what was said before the answers that the feedback has itself.
func (f *Feedback) Earlier(memory []Said) []Said {
	if f == nil {
		return memory
	}
	return memory[:max(0, len(memory)-len(f.answers()))]
}
