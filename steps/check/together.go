package check

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Together runs functions concurrently, so that their reads take one round trip. If several functions fail, it returns
// the error from the first one in argument order. If a function panics, Together panics too.
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
