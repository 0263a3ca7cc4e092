package failure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"carrick/cluster/clean"
)

// foreignError is an answer that does not come from an API server.
type foreignError struct{ err error }

func (e *foreignError) Error() string        { return ErrNotJSON.Error() + ": " + e.err.Error() }
func (e *foreignError) Is(target error) bool { return target == ErrNotJSON }
func (e *foreignError) Unwrap() error        { return e.err }

// NotJSON marks an error as caused by an answer that does not come from an API server, so that errors.Is(err,
// ErrNotJSON) is true.
func NotJSON(err error) error { return &foreignError{err} }

// errCutShort means that an answer of an API server is truncated.
var errCutShort = errors.New("the answer is truncated")

// Unreadable returns the error for a body that cannot be decoded. It does not repeat a body that starts like an object,
// because that may contain secrets.
func Unreadable(body []byte, err error) error {
	switch start := bytes.TrimSpace(body); {
	case json.Valid(body):
		return NotJSON(err)
	case len(start) == 0 || start[0] == '{' || start[0] == '[':
		return NotJSON(errCutShort)
	}
	return NotJSON(errors.New(clean.Excerpt(body)))
}

// ErrTooLarge means that an answer exceeds AnswerLimit.
var ErrTooLarge = NotJSON(fmt.Errorf("the answer is larger than %d MiB", AnswerLimit>>20))

// AnswerLimit is the maximum size of one answer, or of one event of a watch.
const AnswerLimit = 64 << 20
