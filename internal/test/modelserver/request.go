package modelserver

import (
	"encoding/json"
	"slices"
	"strings"
)

// turn is one message of a request, in any API's form.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Parts   json.RawMessage `json:"parts"`
}

// Prompt is the text of all of the request's messages that a user wrote.
func (r Request) Prompt() string {
	var body struct {
		Messages []turn          `json:"messages"`
		Input    json.RawMessage `json:"input"`
		Contents []turn          `json:"contents"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	var input []turn
	if len(body.Input) > 0 && json.Unmarshal(body.Input, &input) != nil {
		return contentText(body.Input) // a text alone
	}
	var text strings.Builder
	for _, m := range slices.Concat(body.Messages, input, body.Contents) {
		if m.Role == "user" {
			text.WriteString(contentText(m.Content) + contentText(m.Parts))
		}
	}
	return text.String()
}

// contentText reads a content that is a text or a list of blocks.
func contentText(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one + "\n"
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(b.Text + "\n")
	}
	return text.String()
}

// Tools are the names of the tools that the request offers to the model. One
// without a name counts by its type.
func (r Request) Tools() []string {
	type named struct {
		Name string `json:"name"`
	}
	var body struct {
		Tools []struct {
			Name         string  `json:"name"`
			Type         string  `json:"type"`
			Function     named   `json:"function"`
			Declarations []named `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	var names []string
	for _, t := range body.Tools {
		for _, d := range t.Declarations {
			names = append(names, d.Name)
		}
		for _, name := range []string{t.Name, t.Function.Name, t.Type} {
			if name != "" {
				names = append(names, name)
				break
			}
		}
	}
	return names
}
