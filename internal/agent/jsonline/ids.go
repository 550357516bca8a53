package jsonline

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
)

// maxIDs is how many ids are remembered; a call is answered long before.
const maxIDs = 128

// maxID is the longest id or value that is remembered, in bytes.
const maxID = 200

// IDs remembers the last few ids of a stream, each with a value. The zero
// value remembers none.
type IDs struct {
	values map[string]string
	order  []string
}

// Add remembers id; it returns false when id is remembered already. An empty
// id, and one that is too long to be one, is not remembered.
func (s *IDs) Add(id, value string) bool {
	if id == "" || len(id) > maxID {
		return true
	}
	if _, known := s.values[id]; known {
		return false
	}
	if s.values == nil {
		s.values = make(map[string]string, maxIDs)
	}
	if len(s.order) == maxIDs {
		delete(s.values, s.order[0])
		s.order = append(s.order[:0], s.order[1:]...)
	}
	s.values[id] = strings.Clone(agent.Clip(value, maxID))
	s.order = append(s.order, id)
	return true
}

// Value is what was remembered with id, "" when it is not known.
func (s *IDs) Value(id string) string { return s.values[id] }
