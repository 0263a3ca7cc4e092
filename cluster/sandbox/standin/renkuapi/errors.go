// Errors in the format of Renku's API (errors/errors.py, base_api/error_handler.py). The default error code is 1000 +
// HTTP status.

package renkuapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

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

// wrongFields returns the error for a body that violates the schema. faults contains one sentence per violation.
func wrongFields(faults []string) error {
	return invalid("There are errors in the following fields, %s", strings.Join(faults, ", "))
}

// wrongType returns the error for a body with the wrong JSON type.
func wrongType() error {
	return invalid("The validation failed because the provided input has the wrong type")
}

// database returns a PostgreSQL error, which Renku passes to the client. Upstream adds text from SQLAlchemy.
func database(format string, args ...any) error {
	return refusal(http.StatusInternalServerError, "Database error occurred: "+format, args...)
}

// tooLong returns PostgreSQL's error for a string that exceeds its varchar column.
func tooLong(limit int) error {
	return database("value too long for type character varying(%d)", limit)
}

// unexpected returns the error for failures that Renku does not catch, mainly errors from a remote API server.
func unexpected() error {
	return refusal(http.StatusInternalServerError, "An unexpected error occurred")
}

// answerError writes err as an error response.
func answerError(w http.ResponseWriter, err error) {
	p := &problem{}
	if !errors.As(err, &p) {
		errors.As(unexpected(), &p)
	}
	answer(w, p.status, map[string]any{"error": map[string]any{"code": 1000 + p.status, "message": p.message}})
}

// answer writes body as JSON. If body is nil, it writes no body.
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
