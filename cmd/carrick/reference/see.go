package reference

import (
	"path"
	"regexp"
	"strings"
)

// Guides cite upstream sources in a short form:
//
//	https://… (what it says)              an address
//	liqotech/liqo#2692                    an issue
//	liqotech/liqo issue 2692, PR 2700     the same
//	liqotech/liqo: pkg/a.go (Name), docs  files and directories
//	kubernetes/ingress-nginx: x.go, issues 10501, 12648
var (
	ofRepo   = regexp.MustCompile(`^([\w.-]+/[\w.-]+?)(?:: | |#)(.*)$`)
	inBraces = regexp.MustCompile(`\([^()]*\)`)
	ofIssue  = regexp.MustCompile(`^(?:issues?|PRs?|pull requests?)? ?#?(\d+)$`)
	aPath    = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*$`)
)

const github = "https://github.com/"

// addresses returns the URLs for a citation, or nil if it has none.
func addresses(note string) []string {
	if strings.HasPrefix(note, "https://") {
		address, _, _ := strings.Cut(note, " ")
		return []string{address}
	}
	var out []string
	for _, part := range strings.Split(note, "; ") {
		repo := ofRepo.FindStringSubmatch(part)
		if repo == nil || aPath.MatchString(part) {
			repo = []string{"", lastRepo(out), part} // the same repository as in the previous part
		}
		if repo[1] != "" {
			out = append(out, inRepository(repo[1], repo[2])...)
		}
	}
	return out
}

func lastRepo(addresses []string) string {
	if len(addresses) == 0 {
		return ""
	}
	words := strings.Split(strings.TrimPrefix(addresses[len(addresses)-1], github), "/")
	return words[0] + "/" + words[1]
}

// inRepository returns the URLs of the files, directories and issues in list. File names in parentheses after a
// directory are files in that directory.
func inRepository(repo, list string) []string {
	var out []string
	folder := ""
	for _, item := range outsideBraces(list) {
		braces := strings.Trim(inBraces.FindString(item), "()")
		item = strings.TrimSpace(inBraces.ReplaceAllString(item, ""))
		if n := ofIssue.FindStringSubmatch(item); n != nil {
			out = append(out, github+repo+"/issues/"+n[1])
			continue
		}
		if !aPath.MatchString(item) {
			continue
		}
		if folder != "" && !strings.Contains(item, "/") && path.Ext(item) != "" {
			item = path.Join(folder, item) // another file in the same directory
		}
		if folder = item; path.Ext(item) != "" {
			folder = path.Dir(item)
		}
		files := 0
		for _, file := range strings.Split(braces, ", ") {
			if path.Ext(item) == "" && aPath.MatchString(file) && inSource[path.Ext(file)] {
				out = append(out, inTree(repo, path.Join(item, file)))
				files++
			}
		}
		if files == 0 {
			out = append(out, inTree(repo, item))
		}
	}
	return out
}

var inSource = map[string]bool{".go": true, ".py": true, ".yaml": true, ".md": true}

// inTree returns the URL of a file or directory on the default branch. For a glob pattern, it returns the URL of the
// directory.
func inTree(repo, name string) string {
	if strings.Contains(name, "*") {
		name = path.Dir(name)
	}
	if inSource[path.Ext(name)] {
		return github + repo + "/blob/HEAD/" + name
	}
	return github + repo + "/tree/HEAD/" + name
}

// outsideBraces splits list at commas that are not in parentheses.
func outsideBraces(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}
