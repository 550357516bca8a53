package run

import (
	"testing"
	"time"
)

// Short times are shown finer than long ones.
func TestBrief(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Millisecond: "1.23s", 9994 * time.Millisecond: "9.99s", 10400 * time.Millisecond: "10s", 136 * time.Second: "2m16s",
	} {
		if got := formatBrief(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
