package steps

import "fmt"

// Plural formats a number with its noun, such as "1 change" or "3 changes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
