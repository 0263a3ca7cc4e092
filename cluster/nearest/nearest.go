package nearest

import "strings"

// Name returns the name in names that the user probably meant. It returns "" if none is similar.
func Name(name string, names []string) string {
	best, at := "", max(2, len(name)/3)+1
	for _, candidate := range names {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if strings.Contains(strings.ToLower(candidate), strings.ToLower(name)) {
			d = min(d, 1)
		}
		if d < at {
			best, at = candidate, d
		}
	}
	return best
}

// Hint returns " (did you mean NAME?)" with the name in names that the user probably meant, or "" if none is similar.
func Hint(name string, names []string) string {
	if near := Name(name, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// distance returns the Levenshtein distance between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
