package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// SaveAdopted writes the link file with the discovered answers. The questions that the user must answer are comments at
// the end of the file.
func (s *Session) SaveAdopted(found []Adopted) error {
	if _, err := s.AdoptedFile(found); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.Save()
}

// AdoptedFile returns the link file that SaveAdopted writes.
func (s *Session) AdoptedFile(found []Adopted) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.link.Marshal()
	if err != nil {
		return nil, err
	}
	data = append(data, manualAnswers(s.guide, s.link, found)...)
	read, err := linkfile.Parse(s.link.Path, data, []*steps.Guide{s.guide}) // validate it like any other link file
	if err != nil {
		return nil, err
	}
	s.link.KeepLayoutOf(read)
	return data, nil
}

// NewAdoption returns a new link between the same sides, without answers.
func NewAdoption(l *linkfile.Link) *linkfile.Link {
	out := linkfile.New(l.Guide, l.Name())
	out.Path, out.Local, out.Remote = l.Path, l.Local, l.Remote
	return out
}

// manualAnswers returns the comments of the link file. Each question has its kind, its help, and an example that can be
// uncommented.
func manualAnswers(g *steps.Guide, l *linkfile.Link, found []Adopted) string {
	var b strings.Builder
	for _, a := range found {
		if !a.ByHand() {
			continue
		}
		q := a.Question
		why := a.Why
		if why == "" {
			why = "not found in the existing objects"
		}
		kind := string(q.Kind)
		if q.Many {
			kind = "list of " + kind
		}
		comment(&b, fmt.Sprintf("%s (%s). %s", q.Title, kind, q.Help))
		for _, c := range q.Of {
			comment(&b, fmt.Sprintf("- %s: %s", c.Value, c.Title))
		}
		comment(&b, "Not discovered: "+why)
		b.WriteString("#   " + q.Key + ": " + exampleOf(q, a.Value) + "\n#\n")
	}
	if b.Len() == 0 {
		return ""
	}
	head := "# Answer these manually: move each answer below to answers, remove its #, and\n# correct the value if " +
		"necessary. carrick guides " + g.Name + " lists all questions.\n"
	if len(l.Answers) == 0 {
		head += "#answers:\n"
	}
	return head + strings.TrimSuffix(b.String(), "#\n")
}

const commentWidth = 100

// comment adds text as comment lines.
func comment(b *strings.Builder, text string) {
	for _, line := range strings.Split(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		at := "# " + indent
		for _, word := range strings.Fields(line) {
			if len(at)+len(word) > commentWidth && strings.TrimSpace(at) != "#" {
				b.WriteString(at + "\n")
				at = "# " + indent
			}
			if strings.TrimSpace(at) != "#" {
				at += " "
			}
			at += word
		}
		b.WriteString(strings.TrimRight(at, " ") + "\n")
	}
}

// exampleOf returns the current answer, stands, as YAML. If there is none, it returns an example of the question's
// kind.
func exampleOf(q *steps.Question, stands any) string {
	if stands != nil && q.Kind != steps.YAML {
		if q.Many {
			stands = steps.ListOf(stands)
		}
		if text, err := json.Marshal(stands); err == nil { // JSON is valid YAML
			return string(text)
		}
	}
	one := map[steps.AnswerKind]string{
		steps.Text: "some text", steps.Name: "a-name", steps.Namespace: "a-namespace", steps.HostName: "host.example.org",
		steps.Port: "443", steps.Number: "1",
		steps.CIDR: "10.0.0.0/16", steps.Label: "key=value", steps.Quantity: "4", steps.URL: "https://host.example.org",
		steps.Path: "./file", steps.YesNo: "true", steps.YAML: "|",
	}[q.Kind]
	if q.Kind == steps.Pick && len(q.Of) > 0 {
		one = q.Of[0].Value
	}
	if q.Many {
		return "[" + one + "]"
	}
	return one
}

// SuggestLinkName returns a name for a link. It joins the names of both sides without their common prefix. For example,
// kind-milan and kind-rome give milan-rome. If nothing is left of the names, it returns otherwise.
func SuggestLinkName(otherwise, local, remote string) string {
	a, b := nameWords(local), nameWords(remote)
	for len(a) > 1 && len(b) > 1 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	name := strings.Join(append(append([]string{}, a...), b...), "-")
	if name == "" {
		name = otherwise
	}
	return strings.Trim(name[:min(len(name), linkfile.MaxName)], "-")
}

// nameWords returns the words of a side's name that are valid in a link name. In an ARN or user@cluster, it uses only
// the cluster part.
func nameWords(name string) []string {
	if i := strings.LastIndexAny(name, "/@:"); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
