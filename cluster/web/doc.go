// Package web calls an HTTP API with a bearer token. Responses to GET are cached as looks (see package tracked). Errors
// do not contain the token.
package web
