package reference

import (
	"path"
	"regexp"
	"strings"
)

// Guides note where upstream says something in few words:
//
//	https://… (what it says)              an address
//	liqotech/liqo#2692                    an issue
//	liqotech/liqo issue 2692, PR 2700     the same
//	liqotech/liqo: pkg/a.go (Name), docs  files and folders
//	kubernetes/ingress-nginx: x.go, issues 10501, 12648
var (
	ofRepo   = regexp.MustCompile(`^([\w.-]+/[\w.-]+?)(?:: | |#)(.*)$`)
	inBraces = regexp.MustCompile(`\([^()]*\)`)
	ofIssue  = regexp.MustCompile(`^(?:issues?|PRs?|pull requests?)? ?#?(\d+)$`)
	aPath    = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*$`)
)

const github = "https://github.com/"

// addresses are what a note of a guide leads to, as full addresses; none where
// it names none.
func addresses(note string) []string {
	if strings.HasPrefix(note, "https://") {
		address, _, _ := strings.Cut(note, " ")
		return []string{address}
	}
	var out []string
	for _, part := range strings.Split(note, "; ") {
		repo := ofRepo.FindStringSubmatch(part)
		if repo == nil || aPath.MatchString(part) {
			repo = []string{"", lastRepo(out), part} // goes on in the repository of the part before
		}
		if repo[1] != "" {
			out = append(out, inRepository(repo[1], repo[2])...)
		}
	}
	return out
}

// lastRepo is the repository of the last address.
func lastRepo(addresses []string) string {
	if len(addresses) == 0 {
		return ""
	}
	words := strings.Split(strings.TrimPrefix(addresses[len(addresses)-1], github), "/")
	return words[0] + "/" + words[1]
}

// inRepository are the files, folders and issues that a list names. Words in
// brackets behind a folder are files of it, where they look like such.
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
			item = path.Join(folder, item) // a second file of the same folder
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

// inSource are the endings of files that guides point to.
var inSource = map[string]bool{".go": true, ".py": true, ".yaml": true, ".md": true}

// inTree is the address of a file or folder as it stands today. Where the name
// is a pattern it is that of the folder.
func inTree(repo, name string) string {
	if strings.Contains(name, "*") {
		name = path.Dir(name)
	}
	if inSource[path.Ext(name)] {
		return github + repo + "/blob/HEAD/" + name
	}
	return github + repo + "/tree/HEAD/" + name
}

// outsideBraces splits a list at its commas, but not within brackets.
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
