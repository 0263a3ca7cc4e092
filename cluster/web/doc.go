// Package web calls one HTTP API with a bearer token. Answers to GET are kept
// as looks (package tracked), and no error shows the token.
package web
