// Errors as Renku's API answers them (errors/errors.py, base_api/error_handler.py). The code of an error that has none
// of its own is 1000 + its status.

package renkuapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// problem is one refusal.
type problem struct {
	status  int
	message string
}

func (p *problem) Error() string { return p.message }

func refusal(status int, format string, args ...any) error {
	return &problem{status: status, message: fmt.Sprintf(format, args...)}
}

func unauthorized() error {
	return refusal(http.StatusUnauthorized, "Please provide valid access credentials in the Authorization header.")
}

func forbidden() error {
	return refusal(http.StatusForbidden, "You do not have the required permissions for this operation.")
}

func missing(format string, args ...any) error {
	return refusal(http.StatusNotFound, format, args...)
}

func invalid(format string, args ...any) error {
	return refusal(http.StatusUnprocessableEntity, format, args...)
}

// wrongFields is what the schema has against a body.
func wrongFields(faults []string) error {
	return invalid("There are errors in the following fields, %s", strings.Join(faults, ", "))
}

// wrongType is the answer to a body that is not of the JSON type at all.
func wrongType() error {
	return invalid("The validation failed because the provided input has the wrong type")
}

// database is an error of PostgreSQL, which Renku passes on. Upstream has SQLAlchemy's text around it.
func database(format string, args ...any) error {
	return refusal(http.StatusInternalServerError, "Database error occurred: "+format, args...)
}

// tooLong is PostgreSQL's answer to a text longer than its varchar column.
func tooLong(limit int) error {
	return database("value too long for type character varying(%d)", limit)
}

// unexpected is the answer to whatever Renku does not catch, above all to a
// refusal of a remote API server.
func unexpected() error {
	return refusal(http.StatusInternalServerError, "An unexpected error occurred")
}

// answerError writes err as the API does.
func answerError(w http.ResponseWriter, err error) {
	p := &problem{}
	if !errors.As(err, &p) {
		errors.As(unexpected(), &p)
	}
	answer(w, p.status, map[string]any{"error": map[string]any{"code": 1000 + p.status, "message": p.message}})
}

// answer writes body as JSON; a nil body is none.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("X-Stand-In", "renkuapi")
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
