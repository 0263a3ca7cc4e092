package check

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Together runs functions at the same time, so that what they read takes one
// round trip, and returns the error of the first that has one, in their order.
// What panics in one of them panics here.
func Together(funcs ...func() error) error {
	errs, panics := make([]error, len(funcs)), make([]any, len(funcs))
	var all sync.WaitGroup
	for i, f := range funcs {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics[i] = fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			errs[i] = f()
		})
	}
	all.Wait()
	for i := range funcs {
		if panics[i] != nil {
			panic(panics[i])
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
