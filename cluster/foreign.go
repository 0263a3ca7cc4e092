package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
)

// foreignError is an answer that no API server gives.
type foreignError struct{ err error }

func (e *foreignError) Error() string        { return errNotJSON.Error() + ": " + e.err.Error() }
func (e *foreignError) Is(target error) bool { return target == errNotJSON }
func (e *foreignError) Unwrap() error        { return e.err }

// notJSON marks an error about an answer as one that no API server causes: it is errNotJSON, too.
func notJSON(err error) error { return &foreignError{err} }

// errCutShort is an answer that begins as one of an API server does.
var errCutShort = errors.New("the answer ends in its middle")

// unreadable is what is wrong with a body that can't be decoded. What begins as an
// object is not repeated: it may hold anything.
func unreadable(body []byte, err error) error {
	switch start := bytes.TrimSpace(body); {
	case json.Valid(body):
		return notJSON(err)
	case len(start) == 0 || start[0] == '{' || start[0] == '[':
		return notJSON(errCutShort)
	}
	return notJSON(errors.New(excerpt(body)))
}
