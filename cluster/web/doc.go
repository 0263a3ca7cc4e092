// Package web calls an HTTP API with a bearer token. Responses to GET are cached (see tracked.LookOf). Errors do not
// contain the token.
package web
