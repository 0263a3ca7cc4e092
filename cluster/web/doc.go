// Package web calls one HTTP API with a bearer token. Responses to GET are cached as looks (package tracked), and no
// error contains the token.
package web
