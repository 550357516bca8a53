package report

import "github.com/pawl-dev/pawl/internal/loop"

// ModelUse is what was used of one model, in tokens, for programs that read it.
type ModelUse struct {
	Model      string   `json:"model"`
	Calls      int      `json:"calls"`
	Input      int64    `json:"input" doc:"Without what came from a cache."`
	CacheRead  int64    `json:"cache_read"`
	CacheWrite int64    `json:"cache_write"`
	Output     int64    `json:"output"`
	CostUSD    *float64 `json:"cost_usd" nullable:"true" doc:"null where not all of it is known."`
}

// Models are the models of an iteration as users see them.
func Models(list []loop.ModelUse) []ModelUse {
	var out []ModelUse
	for _, m := range list {
		out = append(out, ModelUse{
			Model: m.Model, Calls: m.Calls, Input: m.Input, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite, Output: m.Output,
			CostUSD: m.Cost.Dollars(!m.Unpriced),
		})
	}
	return out
}
