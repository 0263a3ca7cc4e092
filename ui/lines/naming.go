package lines

import (
	"strings"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// suggestion is a name for the link, made of the names of both sides without
// what both begin with: kind-milan and kind-rome give milan-rome.
func (p *sides) suggestion() string {
	if p.link != "" {
		return p.link
	}
	local, remote := p.words(steps.Local), p.words(steps.Remote)
	for len(local) > 1 && len(remote) > 1 && local[0] == remote[0] {
		local, remote = local[1:], remote[1:]
	}
	name := strings.Join(append(append([]string{}, local...), remote...), "-")
	if name == "" {
		name = p.guide.Name
	}
	return strings.Trim(name[:min(len(name), linkfile.MaxName)], "-")
}

// words are the words of a side's name that a link's name may have.
func (p *sides) words(side steps.Side) []string {
	name := p.spec[side].Context
	if p.spec[side].Host != nil {
		name = p.guide.Sides[side].Name
	}
	if i := strings.LastIndexAny(name, "/@:"); i >= 0 && i+1 < len(name) {
		name = name[i+1:] // ARNs and user@cluster: the cluster says more
	}
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// same tells whether a link joins what was chosen.
func (p *sides) same(l *linkfile.Link) bool {
	for _, side := range steps.Sides {
		have, want := l.Side(side), p.spec[side]
		if have.Context != want.Context || have.Facts != want.Facts || (have.Host == nil) != (want.Host == nil) {
			return false
		}
		if have.Host != nil && have.Host.Root != want.Host.Root {
			return false
		}
	}
	return true
}
