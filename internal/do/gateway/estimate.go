package gateway

import (
	"bytes"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// bytesPerToken is for what is not counted by the provider. English text has
// about four.
const bytesPerToken = 4

// imageTokens is what providers count for a large image at most, whatever its length.
const imageTokens = 1_600

// images are how an image begins in base64: PNG, JPEG, GIF and WebP.
var images = [][]byte{[]byte("iVBORw0KGgo"), []byte("/9j/"), []byte("R0lGOD"), []byte("UklGR")}

// requestLength is how long a request is, in bytes, with images for what a model sees of them.
func requestLength(body []byte) int64 {
	all := int64(len(body))
	for _, begin := range images {
		for rest := body; ; {
			at := bytes.Index(rest, begin)
			if at < 0 {
				break
			}
			rest = rest[at:]
			end := bytes.IndexByte(rest, '"')
			if end < 0 {
				break
			}
			if !bytes.ContainsAny(rest[:end], " \\") {
				all -= max(0, int64(end)-imageTokens*bytesPerToken)
			}
			rest = rest[end:]
		}
	}
	return all
}

// estimatedUsage completes what the provider has not counted yet, by the input that the
// call has in all likelihood, and by the length of what was said.
func (r *reading) estimatedUsage(input usage) usage {
	u := r.usage
	u.Usage = u.Sane()
	u.writtenHour = min(max(u.writtenHour, 0), u.CacheWrite)
	if r.final || r.page {
		return u
	}
	if !r.inputKnown() {
		input.Output = u.Output
		u = input
	}
	u.Output = max(u.Output, int64(r.said+bytesPerToken-1)/bytesPerToken)
	return u
}

// inputKnown reports whether the provider has counted the input.
func (r *reading) inputKnown() bool { return r.usage.Input+r.usage.CacheRead+r.usage.CacheWrite > 0 }

// counted is what a request of that length had in it. With a warm cache most of it
// was read from there.
type counted struct {
	input usage
	asked int64
}

// likelyInput of a request of that length: as much for its length as the last
// one of the model, if the provider has counted that.
func (a *account) likelyInput(model string, asked int64) usage {
	last := a.counted[model]
	if last.asked == 0 {
		return usage{Usage: agent.Usage{Input: asked / bytesPerToken}}
	}
	part := func(n int64) int64 { return int64(float64(n) / float64(last.asked) * float64(asked)) }
	u := last.input
	u.Input, u.CacheRead, u.CacheWrite, u.writtenHour = part(u.Input), part(u.CacheRead), part(u.CacheWrite),
		part(u.writtenHour)
	return u
}
