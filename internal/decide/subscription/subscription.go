// Package subscription is the windows of time of an agent's plan, in each of which a part of
// it may be used.
package subscription

import (
	"fmt"
	"strings"
	"time"
)

// Window of time of a subscription's plan, in which a part of it may be used.
type Window struct {
	Name   string    `json:"name"` // five_hour, seven_day
	Used   int       `json:"used"` // per cent
	Resets time.Time `json:"resets,omitzero"`
}

// Known keeps of windows what can be believed at the time of now, each once.
func Known(list []Window, now time.Time) (known []Window) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
	for _, w := range list {
		isName := w.Name != "" && len(w.Name) <= 32 && strings.Trim(w.Name, letters) == ""
		if ahead := w.Resets.Sub(now); isName && ahead > 0 && ahead < 366*24*time.Hour && w.Used >= 0 {
			known = append(known, w)
		}
	}
	return known
}

// Fullest picks the window of which most is used; the zero one for none.
func Fullest(list []Window) (most Window) {
	for _, w := range list {
		if w.Used >= most.Used {
			most = w
		}
	}
	return most
}

// String is for people, with the time as it is here.
func (w Window) String() string {
	return fmt.Sprintf("%s %d %%, until %s", strings.ReplaceAll(w.Name, "_", " "), w.Used,
		w.Resets.Local().Format("2006-01-02 15:04"))
}
