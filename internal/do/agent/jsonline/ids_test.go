package jsonline

import (
	"strconv"
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	var ids IDs
	if !ids.Add("a", "first") || ids.Add("a", "second") || ids.Value("a") != "first" || ids.Value("b") != "" {
		t.Errorf("a is %q, b is %q", ids.Value("a"), ids.Value("b"))
	}
	if !ids.Add("", "x") || !ids.Add("", "y") || ids.Value("") != "" {
		t.Error("an empty id is remembered")
	}
	if long := strings.Repeat("x", 201); !ids.Add(long, "x") || ids.Value(long) != "" {
		t.Error("an id of 201 bytes is remembered")
	}
	for i := range 10 * maxIDs {
		ids.Add(strconv.Itoa(i), "n")
	}
	if len(ids.values) != maxIDs || len(ids.order) != maxIDs || ids.Value("a") != "" || ids.Value(strconv.Itoa(10*maxIDs-1)) != "n" {
		t.Errorf("%d ids are remembered", len(ids.values))
	}
}
