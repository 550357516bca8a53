package rows

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Conditions collects what rows must hold, and the values in it.
type Conditions struct {
	all  []string
	Args []any
}

// Add adds a condition with a value for each "?" in it.
func (c *Conditions) Add(cond string, values ...any) {
	for _, v := range values {
		c.Args = append(c.Args, v)
		cond = strings.Replace(cond, "?", "$"+formatInt(len(c.Args)), 1)
	}
	c.all = append(c.all, cond)
}

// AnyOf adds a condition that is repeated for each of some values: its "…" is
// "?, ?, ?".
func AnyOf[T ~string](c *Conditions, cond string, values []T) {
	args := lists.Each(values, func(v T) any { return string(v) })
	c.Add(strings.Replace(cond, "…", strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", "), 1), args...)
}

// Where returns the SQL of all conditions; "" without any.
func (c *Conditions) Where() string {
	if len(c.all) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(c.all, ` AND `)
}

// Limit returns the SQL for at most n rows.
func (c *Conditions) Limit(n int) string {
	c.Args = append(c.Args, n)
	return ` LIMIT $` + formatInt(len(c.Args))
}
