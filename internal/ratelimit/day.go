package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
)

// This file counts what all runs of a user spend in a day, where the day is that
// of this machine's zone. One small file has it, in the folder of the limits.

// day is what the file has. It is stored: names must not change.
type day struct {
	Date string        `json:"date"` // 2026-11-23
	Cost loop.MicroUSD `json:"micro_usd"`
}

// NextDay is when the day of now ends.
func NextDay(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.Local)
}

// Spend adds to what was spent on the day of now, and returns all of it. It takes
// less than 0 back. With 0 it only looks.
func Spend(dir string, add loop.MicroUSD, now time.Time) (loop.MicroUSD, error) {
	path := filepath.Join(dir, "day.json")
	if add == 0 {
		d, err := readDay(path, now)
		return d.Cost, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("cannot keep what the day costs: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(dir, "day.lock"), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return 0, fmt.Errorf("cannot keep what the day costs: %v", err)
	}
	defer func() { _ = lock.Close() }()
	d, err := readDay(path, now)
	if err != nil {
		return 0, err
	}
	d.Cost = max(0, d.Cost+add)
	data, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("cannot encode what the day costs: %v", err)
	}
	if err := files.Replace(path, data, 0o600, false); err != nil {
		return 0, fmt.Errorf("cannot keep what the day costs: %v", err)
	}
	return d.Cost, nil
}

// readDay is the day of now. Clocks and zones of processes may differ by a day: the
// later one counts, so that nothing is counted from zero twice.
func readDay(path string, now time.Time) (day, error) {
	today := day{Date: now.Local().Format(time.DateOnly)}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return today, nil
	case err != nil:
		return today, fmt.Errorf("cannot read what the day costs: %v", err)
	}
	var d day
	if json.Unmarshal(data, &d) != nil || d.Cost < 0 {
		return today, fmt.Errorf("cannot read what the day costs: %s is damaged; remove it to count from 0", path)
	}
	if d.Date < today.Date || d.Date > now.Local().AddDate(0, 0, 1).Format(time.DateOnly) {
		return today, nil
	}
	return d, nil
}

// Dir is the folder; "" of a nil one.
func (s *Store) Dir() string {
	if s == nil {
		return ""
	}
	return s.dir
}
