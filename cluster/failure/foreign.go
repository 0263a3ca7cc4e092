package failure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"carrick/cluster/clean"
)

// foreignError is the error for a response that does not come from an API server.
type foreignError struct{ err error }

func (e *foreignError) Error() string        { return ErrNotJSON.Error() + ": " + e.err.Error() }
func (e *foreignError) Is(target error) bool { return target == ErrNotJSON }
func (e *foreignError) Unwrap() error        { return e.err }

// NotJSON wraps an error whose cause is a response that does not come from an API server. errors.Is(err, ErrNotJSON) is
// then true.
func NotJSON(err error) error { return &foreignError{err} }

// errCutShort means that an API server's response is truncated.
var errCutShort = errors.New("the answer is truncated")

// Unreadable returns the error for a body that cannot be decoded. If the body starts like a JSON object or list, the
// error does not quote it, because it might contain secrets.
func Unreadable(body []byte, err error) error {
	switch start := bytes.TrimSpace(body); {
	case json.Valid(body):
		return NotJSON(err)
	case len(start) == 0 || start[0] == '{' || start[0] == '[':
		return NotJSON(errCutShort)
	}
	return NotJSON(errors.New(clean.Excerpt(body)))
}

// ErrTooLarge means that a response is larger than AnswerLimit.
var ErrTooLarge = NotJSON(fmt.Errorf("the answer is larger than %d MiB", AnswerLimit>>20))

// AnswerLimit is the maximum size of one response, or of one watch event, in bytes.
const AnswerLimit = 64 << 20
