package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// listed are the issues of a state and a label.
func (h *Hub) listed(all []object, r *http.Request) []object {
	q := r.URL.Query()
	list := []object{}
	for _, i := range all {
		state := q.Get("state")
		if state == "" {
			state = "open"
		}
		if i["state"] != state && state != "all" {
			continue
		}
		if q.Get("type") != "" { // of an organisation; none is of one
			continue
		}
		if label := q.Get("labels"); label != "" && !strings.Contains(fmt.Sprint(i["labels"]), "name:"+label) {
			continue
		}
		list = append(list, i)
	}
	return list
}

func one(list []object, number int) any {
	for _, o := range list {
		if o["number"] == number {
			return o
		}
	}
	return nil
}

func change(list []object, number int, body object) any {
	o, ok := one(list, number).(object)
	if !ok {
		return nil
	}
	maps.Copy(o, body)
	o["updated_at"] = now()
	return o
}

// label gives an issue the labels that are named, or none.
func (h *Hub) label(n int, body object) any {
	labels := []object{}
	names, _ := body["labels"].([]any)
	for _, name := range names {
		labels = append(labels, object{"name": name})
	}
	change(h.issues, n, object{"labels": labels})
	return labels
}

// rewrite is a comment of an issue, written anew.
func (h *Hub) rewrite(id string, body object) any {
	for n, list := range h.comments {
		for _, o := range list {
			if fmt.Sprint(o["id"]) == id {
				maps.Copy(o, body)
				o["updated_at"] = now()
				change(h.issues, n, nil)
				return o
			}
		}
	}
	return nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func (h *Hub) said(login string, body object) object {
	h.numbers++
	return object{"id": h.numbers, "user": person(login), "body": body["body"], "created_at": now(),
		"updated_at": now(), "html_url": ""}
}

func (h *Hub) addIssue(login string, body object) (any, refusal) {
	if title, _ := body["title"].(string); title == "" {
		return nil, refusal{http.StatusUnprocessableEntity, "Validation Failed"}
	}
	labels := []object{}
	names, _ := body["labels"].([]any)
	for _, name := range names {
		labels = append(labels, object{"name": name})
	}
	number := len(h.issues) + 1
	o := object{
		"comments": 0,
		"number":   number, "title": body["title"], "body": body["body"], "state": "open", "labels": labels,
		"user":     person(login),
		"html_url": fmt.Sprintf("%s/issues/%d", h.site, number), "created_at": now(), "updated_at": now(),
	}
	h.issues = append(h.issues, o)
	return o, refusal{}
}
