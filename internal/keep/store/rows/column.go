package rows

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is one row of an answer.
type Row struct{ rows *sql.Rows }

// Scan reads the columns into what the fields point to.
func (r Row) Scan(fields ...any) error { return r.rows.Scan(scanInto(fields)...) }

// JSON is a value that is stored as JSON.
type JSON struct{ value any }

// ToJSON stores a value as JSON.
func ToJSON(value any) JSON { return JSON{value} }

// storedForm brings values into the form of their columns: times and durations are
// stored as milliseconds, JSON as text, and what has several columns as these.
func storedForm(values []any) ([]any, error) {
	var out []any
	for _, value := range values {
		switch v := value.(type) {
		case time.Time:
			value = ToMS(v)
		case time.Duration:
			value = v.Milliseconds()
		case json.RawMessage:
			value = string(v)
		case JSON:
			text, err := json.Marshal(v.value)
			if err != nil {
				return nil, err
			}
			value = string(text)
		case interface{ Columns() []any }:
			out = append(out, v.Columns()...)
			continue
		}
		out = append(out, value)
	}
	return out, nil
}

// scanInto is the other way round: it replaces the fields that columns do not fit into.
// JSON is nil for an empty column.
func scanInto(fields []any) []any {
	var out []any
	for _, field := range fields {
		switch f := field.(type) {
		case *time.Time:
			field = Column(func(stored any) error { *f = timeOfMillis(ToInteger(stored)); return nil })
		case *time.Duration:
			field = Column(func(stored any) error { *f = time.Duration(ToInteger(stored)) * time.Millisecond; return nil })
		case *json.RawMessage:
			field = scanRawJSON(f)
		case interface{ Fields() []any }:
			out = append(out, f.Fields()...)
			continue
		}
		out = append(out, field)
	}
	return out
}

// Column reads a column that is stored in another form than a field has.
type Column func(stored any) error

// Scan makes it a [sql.Scanner].
func (c Column) Scan(stored any) error { return c(stored) }

// ToInteger returns a stored number, which may be written out: a sum in PostgreSQL is.
func ToInteger(stored any) int64 {
	if n, ok := stored.(int64); ok {
		return n
	}
	n, _ := strconv.ParseInt(string(BytesOf(stored)), 10, 64)
	return n
}

func scanRawJSON(to *json.RawMessage) Column {
	return func(stored any) error {
		*to = nil
		if b := BytesOf(stored); len(b) > 0 {
			*to = b
		}
		return nil
	}
}

// ScanJSON scans JSON into what v points to.
func ScanJSON(v any) Column {
	return func(stored any) error { return json.Unmarshal(BytesOf(stored), v) }
}

// BytesOf is a copy of a stored text.
func BytesOf(stored any) []byte {
	switch text := stored.(type) {
	case string:
		return []byte(text)
	case []byte:
		return slices.Clone(text)
	}
	return nil
}

// ToMS returns a time in milliseconds, as it is stored.
func ToMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeOfMillis returns the time of stored milliseconds.
func timeOfMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func formatInt(n int) string { return strconv.Itoa(n) }

// ScanNumber scans a number that may be missing: then it is 0.
func ScanNumber(n *int64) Column {
	return func(stored any) error {
		*n, _ = stored.(int64)
		return nil
	}
}

// ScanList scans a list that is stored as one text.
func ScanList(to *[]string, by string) Column {
	return func(stored any) error {
		*to = nil
		if text := strings.Trim(string(BytesOf(stored)), by); text != "" {
			*to = strings.Split(text, by)
		}
		return nil
	}
}

// JoinList makes one text of a list, with a line break before and after each member.
func JoinList(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return "\n" + strings.Join(tags, "\n") + "\n"
}
