package ondemand

import (
	"strings"

	sh "mvdan.cc/sh/v3/syntax"
)

// fate is what becomes of a failure of upstream's bootstrap in a part of a script.
type fate int

const (
	absent fate = iota // the part does not run it
	ends               // the script exits with a status other than 0
	fails              // the part has a status other than 0
	hidden             // the script can go on as if nothing had happened
)

// raised is the fate where errexit may end the script.
func (r *shellReader) raised(f fate, guarded bool) fate {
	if f == fails && r.errexit && !guarded {
		return ends
	}
	return f
}

// looped is the fate in a loop, whose status is that of its last turn.
func looped(f fate) fate {
	if f == fails {
		return hidden
	}
	return f
}

// otherwise is the fate where these statements run after a failure.
func (r *shellReader) otherwise(stmts []*sh.Stmt) fate {
	for i, s := range stmts {
		if r.read++; r.read > mostRead {
			break
		}
		switch c := s.Cmd.(type) {
		case *sh.Block:
			return r.otherwise(c.Stmts)
		case *sh.CallExpr:
			words := strings.Fields(r.literals(c.Args))
			if len(words) == 0 {
				continue
			}
			switch body := r.functions[words[0]]; {
			case words[0] == "exit" && statusKept(words[1:], i == 0):
				return ends
			case words[0] == "exit":
				return hidden
			case i+1 == len(stmts) && (words[0] == "false" || words[0] == "return" && statusKept(words[1:], i == 0)):
				return fails
			case body != nil && r.depth < 16:
				r.depth++
				f := r.otherwise([]*sh.Stmt{body})
				r.depth--
				if f == ends {
					return ends
				}
			}
		}
	}
	return hidden
}

// statusKept reports whether exit or return with these arguments reports a failure. Without one, the status is that of
// the command before, which first says is the one that failed.
func statusKept(args []string, first bool) bool {
	if len(args) == 0 || args[0] == "$?" {
		return first
	}
	return args[0] != "0"
}

// judged is the fate of a failure that statements follow: they can look at the status.
func judged(rest []*sh.Stmt) fate {
	status := "$?"
	if c, ok := rest[0].Cmd.(*sh.CallExpr); ok && len(c.Args) == 0 && len(c.Assigns) == 1 && reads(c, status) {
		status, rest = "$"+c.Assigns[0].Name.Value, rest[1:]
	} else {
		rest = rest[:1]
	}
	for _, s := range rest {
		if leaves(s) && (reads(s, status) || status == "$?" && bareExit(s)) {
			return ends
		}
	}
	return hidden
}

// reads reports whether a part of a script expands a variable.
func reads(n sh.Node, name string) (found bool) {
	sh.Walk(n, func(n sh.Node) bool {
		p, ok := n.(*sh.ParamExp)
		found = found || ok && "$"+p.Param.Value == name
		return true
	})
	return found
}

// leaves reports whether a part of a script has an exit with a status other than 0.
func leaves(n sh.Node) (found bool) {
	sh.Walk(n, func(n sh.Node) bool {
		c, ok := n.(*sh.CallExpr)
		found = found || ok && len(c.Args) > 0 && c.Args[0].Lit() == "exit" && (len(c.Args) == 1 || c.Args[1].Lit() != "0")
		return true
	})
	return found
}

// bareExit reports whether a statement is an exit with the status of the command before it.
func bareExit(s *sh.Stmt) bool {
	c, ok := s.Cmd.(*sh.CallExpr)
	return ok && len(c.Args) == 1 && c.Args[0].Lit() == "exit"
}
