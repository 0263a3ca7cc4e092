package clean

import (
	"fmt"
	"strings"
)

// List joins the first 12 names and appends the number of the other names.
func List(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
