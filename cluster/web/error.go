package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"carrick/cluster/clean"
)

// Error is an unsuccessful response of an HTTP API. Its strings come from the API and are safe to display (see package
// clean).
type Error struct {
	Status          int // 300 or more
	Code            int // the API's error code; 0: none
	Message, Detail string
	OAuth           string // the OAuth error code, such as "authorization_pending"; "": not an OAuth error
	URL             string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.URL, e.Status, e.Message)
	if e.Code != 0 {
		text += fmt.Sprintf(" (code %d)", e.Code)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// problem parses an API's error. The formats are {"error":{"code":1,"message":"…","detail":"…"}}, the inner object
// alone, and OAuth's {"error":"…","error_description":"…"}.
func (a response) problem(target string) *Error {
	e := &Error{Status: a.status, URL: clean.Text(target), Message: http.StatusText(a.status)}
	if to := a.header.Get("Location"); a.status < 400 && to != "" {
		e.Detail = "it redirects to " + clean.Text(to)
		return e
	}
	var top map[string]any
	if json.Unmarshal(a.body, &top) != nil {
		e.Detail = a.text()
		return e
	}
	inner, ok := top["error"].(map[string]any)
	if !ok {
		inner = top
	}
	text := func(key string) string { s, _ := inner[key].(string); return clean.Text(s) }
	if code, ok := inner["code"].(float64); ok {
		e.Code = int(code)
	}
	e.Message = cmp.Or(text("message"), text("error_description"), text("error"), e.Message)
	e.Detail, e.OAuth = text("detail"), text("error")
	return e
}

// text describes a body that is not JSON.
func (a response) text() string {
	body := bytes.TrimSpace(a.body)
	switch {
	case len(body) == 0:
		return ""
	case strings.Contains(a.header.Get("Content-Type"), "html"):
		return "the answer is a web page, such as from a proxy or a login"
	}
	return a.excerpt()
}

// excerpt returns the start of the body, or only its size if the body might contain a token.
func (a response) excerpt() string {
	if a.secret {
		return fmt.Sprintf("%d bytes, not shown because they may contain a token", len(a.body))
	}
	return clean.Excerpt(bytes.TrimSpace(a.body))
}
