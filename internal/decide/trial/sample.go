package trial

import "math"

// sure is the share of trials in which the true rate lies within the interval, and the rest is the chance below
// which two rates are held to differ.
const (
	sure     = 0.95
	deviates = 1.959963984540054 // of the normal distribution, for sure
)

// Wilson is the interval in which the true rate lies, given the rate of a sample of n. Of nothing it is 0 to 1.
func Wilson(rate float64, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	z2, count := deviates*deviates, float64(n)
	middle := rate + z2/(2*count)
	wide := deviates * math.Sqrt(rate*(1-rate)/count+z2/(4*count*count))
	return max(0, (middle-wide)/(1+z2/count)), min(1, (middle+wide)/(1+z2/count))
}

// SignTest is the chance of a difference at least so large where neither is better: of wins and losses on the same
// tasks, those that both or neither solved left out. It is the exact test of McNemar.
func SignTest(wins, losses int) float64 {
	n := wins + losses
	p, term := 0.0, math.Pow(0.5, float64(n))
	for k := 0; k <= min(wins, losses); k++ {
		p += term
		term *= float64(n-k) / float64(k+1)
	}
	return min(1, 2*p)
}
