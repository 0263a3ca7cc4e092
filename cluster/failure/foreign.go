package failure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"carrick/cluster/clean"
)

// foreignError is an answer that no API server gives.
type foreignError struct{ err error }

func (e *foreignError) Error() string        { return ErrNotJSON.Error() + ": " + e.err.Error() }
func (e *foreignError) Is(target error) bool { return target == ErrNotJSON }
func (e *foreignError) Unwrap() error        { return e.err }

// NotJSON marks an error about an answer as one that no API server causes: it is ErrNotJSON, too.
func NotJSON(err error) error { return &foreignError{err} }

// errCutShort is an answer that begins as one of an API server does.
var errCutShort = errors.New("the answer ends in its middle")

// Unreadable is what is wrong with a body that can't be decoded. What begins as an
// object is not repeated: it may hold anything.
func Unreadable(body []byte, err error) error {
	switch start := bytes.TrimSpace(body); {
	case json.Valid(body):
		return NotJSON(err)
	case len(start) == 0 || start[0] == '{' || start[0] == '[':
		return NotJSON(errCutShort)
	}
	return NotJSON(errors.New(clean.Excerpt(body)))
}

// ErrTooLarge is the end of an answer that is larger than any that is of use.
var ErrTooLarge = NotJSON(fmt.Errorf("the answer is larger than %d MiB", AnswerLimit>>20))

// AnswerLimit is how large one answer may be, or one event of a watch.
const AnswerLimit = 64 << 20
