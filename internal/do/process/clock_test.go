package process

import (
	"testing"
	"time"
)

func TestClockSet(t *testing.T) {
	t.Parallel()
	then := reading{time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), time.Hour}
	for _, c := range []struct{ passed, wall, want time.Duration }{
		{0, 0, 0},
		{5 * time.Hour, 5 * time.Hour, 0}, // asleep or not
		{time.Hour, time.Hour + time.Second, 0},
		{time.Minute, 24*time.Hour + time.Minute, 24 * time.Hour},
		{time.Minute, time.Minute - 24*time.Hour, -24 * time.Hour},
	} {
		if got := then.clockSetBy(reading{then.wall.Add(c.wall), then.up + c.passed}); got != c.want {
			t.Errorf("after %s the clock tells %s more: set by %s, want %s", c.passed, c.wall, got, c.want)
		}
	}
	if by := ClockSet(); by != 0 {
		t.Skipf("somebody set the clock by %s during the test", by)
	}
	if late := time.Until(Cautious()); late > 0 {
		t.Errorf("the cautious time is %s ahead", late)
	}
}
