package ondemand

import (
	"strings"

	sh "mvdan.cc/sh/v3/syntax"
)

// fate describes what happens in a part of a script if upstream's bootstrap fails. The fate of a sequence is the
// greatest fate of its parts.
type fate int

const (
	absent fate = iota // the part does not run the bootstrap
	ends               // the script exits with a nonzero status
	fails              // the part has a nonzero status
	hidden             // the script can continue without reporting the failure
)

// raised applies errexit to f: an unguarded failure ends the script.
func (r *shellReader) raised(f fate, guarded bool) fate {
	if f == fails && r.errexit && !guarded {
		return ends
	}
	return f
}

// looped returns the fate of a loop whose body has the fate f. The status of a loop is the status of its last
// iteration, so a failure in an earlier iteration is hidden.
func looped(f fate) fate {
	if f == fails {
		return hidden
	}
	return f
}

// handled returns the fate of a failure that stmts handle. For example, stmts can be the right side of ||.
func (r *shellReader) handled(stmts []*sh.Stmt) fate {
	for i, s := range stmts {
		if r.read++; r.read > mostRead {
			break
		}
		switch c := s.Cmd.(type) {
		case *sh.Block:
			return r.handled(c.Stmts)
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
				f := r.handled([]*sh.Stmt{body})
				r.depth--
				if f == ends {
					return ends
				}
			}
		}
	}
	return hidden
}

// statusKept reports whether exit or return with args reports a failure. Without arguments, exit and return use the
// status of the preceding command. If first is true, the preceding command is the one that failed.
func statusKept(args []string, first bool) bool {
	if len(args) == 0 || args[0] == "$?" {
		return first
	}
	return args[0] != "0"
}

// fateAfter returns the fate of a failed statement. The statements in rest follow it and can check its status.
func fateAfter(rest []*sh.Stmt) fate {
	status := "$?"
	if c, ok := rest[0].Cmd.(*sh.CallExpr); ok && len(c.Args) == 0 && len(c.Assigns) == 1 && reads(c, status) {
		status, rest = "$"+c.Assigns[0].Name.Value, rest[1:]
	} else {
		rest = rest[:1]
	}
	for _, s := range rest {
		if exitsNonzero(s) && (reads(s, status) || status == "$?" && bareExit(s)) {
			return ends
		}
	}
	return hidden
}

// reads reports whether n expands the given variable, such as "$?".
func reads(n sh.Node, name string) (found bool) {
	sh.Walk(n, func(n sh.Node) bool {
		p, ok := n.(*sh.ParamExp)
		found = found || ok && "$"+p.Param.Value == name
		return true
	})
	return found
}

// exitsNonzero reports whether n contains an exit with a nonzero status, or an exit without arguments.
func exitsNonzero(n sh.Node) (found bool) {
	sh.Walk(n, func(n sh.Node) bool {
		c, ok := n.(*sh.CallExpr)
		found = found || ok && len(c.Args) > 0 && c.Args[0].Lit() == "exit" && (len(c.Args) == 1 || c.Args[1].Lit() != "0")
		return true
	})
	return found
}

// bareExit reports whether s is exit without arguments, which uses the status of the preceding command.
func bareExit(s *sh.Stmt) bool {
	c, ok := s.Cmd.(*sh.CallExpr)
	return ok && len(c.Args) == 1 && c.Args[0].Lit() == "exit"
}
