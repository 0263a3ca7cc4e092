package ondemand

import (
	"errors"
	"path"
	"slices"
	"strings"

	sh "mvdan.cc/sh/v3/syntax"
)

// hookReading is the result of a static analysis of a shell script.
type hookReading struct {
	// words contains the words of the commands and assignments that can run. It excludes code after an unconditional
	// exit, bodies of uncalled functions, and here-documents.
	words string
	// programs lists the commands that the script runs, without their arguments.
	programs []string
	// exits is true if the script exits unconditionally before it runs a program, a function or another file.
	exits bool
	// hides is true if the script can continue, or exit with status 0, after upstream's bootstrap has failed. Upstream
	// logs only the script's exit status (OSC/ondemand: nginx_stage/lib/nginx_stage/generators/pun_config_generator.rb).
	hides bool
}

var errNoShell = errors.New("not a shell script, so carrick cannot analyze it")

var bootstrapName = path.Base(bootstrapHook)

// readHook returns errNoShell if the first line does not name a shell.
func readHook(script string) (hookReading, error) {
	line, _, _ := strings.Cut(script, "\n")
	shell, strict := interpreter(line)
	if !slices.Contains([]string{"sh", "bash", "dash", "ksh"}, shell) {
		return hookReading{}, errNoShell
	}
	file, err := sh.NewParser(sh.Variant(sh.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return hookReading{}, err
	}
	r := shellReader{vars: map[string]string{}, functions: map[string]*sh.Stmt{}, errexit: strict}
	hides := r.list(file.Stmts, false) == hidden
	if r.read > mostRead {
		return hookReading{}, errTooLong
	}
	return hookReading{hides: hides, exits: r.exited && !r.ran, programs: r.programs, words: r.words.String()}, nil
}

// interpreter parses the #! line of a script. errexit reports whether the line passes -e to the shell.
func interpreter(line string) (name string, errexit bool) {
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", false
	}
	for _, w := range strings.Fields(rest) {
		switch base := path.Base(w); {
		case strings.HasPrefix(w, "-"):
			errexit = errexit || name != "" && !strings.HasPrefix(w, "--") && strings.Contains(w, "e")
		case name == "" && base != "env":
			name = base
		}
	}
	return name, errexit
}

type shellReader struct {
	vars              map[string]string
	functions         map[string]*sh.Stmt
	words             strings.Builder
	programs          []string
	errexit, pipefail bool
	exited            bool // whether the script has exited unconditionally
	ran               bool // whether a program, a function or another file has run
	depth             int
	read              int // number of statements read; a function's statements count at each call
}

// mostRead is the maximum number of statements to read. Without this limit, the analysis of functions that call each
// other would not end.
const mostRead = 10000

var errTooLong = errors.New("too many statements to read")

// list returns the fate of consecutive statements. If guarded is true, errexit does not apply to them, for example in a
// condition.
func (r *shellReader) list(stmts []*sh.Stmt, guarded bool) fate {
	out := absent
	for i, s := range stmts {
		if r.exited || r.read > mostRead {
			break
		}
		f := r.stmt(s, guarded)
		if f == fails && i+1 < len(stmts) {
			f = fateAfter(stmts[i+1:])
		}
		out = max(out, f)
	}
	return out
}

func (r *shellReader) stmt(s *sh.Stmt, guarded bool) fate {
	if r.read++; r.read > mostRead {
		return absent
	}
	f := r.command(s.Cmd, guarded || s.Negated)
	if f == fails && s.Negated || f != absent && (s.Background || s.Coprocess) {
		return hidden
	}
	return f
}

func (r *shellReader) command(c sh.Command, guarded bool) fate {
	switch c := c.(type) {
	case *sh.CallExpr:
		return r.call(c, guarded)
	case *sh.BinaryCmd:
		return r.binary(c, guarded)
	case *sh.Block:
		return r.list(c.Stmts, guarded)
	case *sh.Subshell:
		return r.raised(r.inSubshell(func() fate { return r.list(c.Stmts, guarded) }), guarded)
	case *sh.IfClause:
		return r.conditional(c, guarded)
	case *sh.WhileClause:
		return max(looped(r.list(c.Cond, true)), looped(r.conditionally(func() fate { return r.list(c.Do, guarded) })))
	case *sh.ForClause:
		if each, ok := c.Loop.(*sh.WordIter); ok {
			r.vars[each.Name.Value] = r.literals(each.Items)
		}
		return looped(r.conditionally(func() fate { return r.list(c.Do, guarded) }))
	case *sh.CaseClause:
		out := absent
		for _, item := range c.Items {
			out = max(out, r.conditionally(func() fate { return r.list(item.Stmts, guarded) }))
		}
		return out
	case *sh.FuncDecl:
		r.functions[c.Name.Value] = c.Body
	case *sh.DeclClause: // declare and export hide the status of a command substitution
		if f := r.assign(c.Args); f != absent {
			return hidden
		}
	case *sh.TimeClause:
		if c.Stmt != nil {
			return r.stmt(c.Stmt, guarded)
		}
	}
	return absent
}

func (r *shellReader) binary(c *sh.BinaryCmd, guarded bool) fate {
	if c.Op == sh.Pipe || c.Op == sh.PipeAll {
		x := r.inSubshell(func() fate { return r.stmt(c.X, guarded) })
		if x == fails && !r.pipefail {
			x = hidden
		}
		return r.raised(max(x, r.inSubshell(func() fate { return r.stmt(c.Y, guarded) })), guarded)
	}
	x := r.stmt(c.X, true)
	if c.Op == sh.OrStmt && x == fails {
		x = r.handled([]*sh.Stmt{c.Y})
	}
	return max(x, r.conditionally(func() fate { return r.stmt(c.Y, guarded) }))
}

func (r *shellReader) conditional(c *sh.IfClause, guarded bool) fate {
	cond := absent
	if n := len(c.Cond); n > 0 {
		last := c.Cond[n-1]
		cond = max(r.list(c.Cond[:n-1], true), r.command(last.Cmd, true))
		switch {
		case cond == fails && last.Negated:
			cond = r.handled(c.Then)
		case cond == fails && c.Else != nil && len(c.Else.Cond) == 0:
			cond = r.handled(c.Else.Then)
		case cond == fails:
			cond = hidden
		}
	}
	out := max(cond, r.conditionally(func() fate { return r.list(c.Then, guarded) }))
	if c.Else != nil {
		out = max(out, r.conditionally(func() fate { return r.conditional(c.Else, guarded) }))
	}
	return out
}

// quiet lists commands that do not run the files in their arguments.
var quiet = []string{":", "[", "echo", "logger", "ls", "printf", "stat", "test", "true"}

func (r *shellReader) call(c *sh.CallExpr, guarded bool) fate {
	inner := r.assign(c.Assigns)
	if len(c.Args) == 0 {
		return r.raised(inner, guarded)
	}
	for _, w := range c.Args {
		inner = max(inner, r.substituted(w))
	}
	if inner != absent {
		inner = hidden
	}
	words := strings.Fields(r.literals(c.Args))
	if len(words) == 0 {
		r.ran = true
		return inner
	}
	name := path.Base(words[0])
	body, isFunction := r.functions[name]
	switch {
	case name == "exit":
		r.exited = true
	case name == "set":
		r.set(words[1:])
	case name == "trap" && slices.Contains(words, "ERR"):
		r.errexit = r.errexit ||
			slices.ContainsFunc(words, func(w string) bool { return strings.TrimRight(w, ";") == "exit" })
	case isFunction && r.depth < 16:
		r.ran = true
		r.words.WriteString(strings.Join(words[1:], " ") + "\n") // the function's arguments can contain a command
		r.depth++
		defer func() { r.depth-- }()
		return max(inner, r.raised(r.stmt(body, guarded), guarded))
	case !slices.Contains(quiet, name):
		return max(inner, r.run(name, words, guarded))
	}
	return inner
}

func (r *shellReader) run(name string, words []string, guarded bool) fate {
	r.ran = true
	r.words.WriteString(strings.Join(words, " ") + "\n")
	replaced := name == "exec" && len(words) > 1
	r.exited = r.exited || replaced
	if replaced {
		r.programs = append(r.programs, words[1])
	}
	r.programs = append(r.programs, words[0])
	switch {
	case !strings.Contains(strings.Join(words, " "), bootstrapName):
		return absent
	case replaced || name == "." || name == "source":
		return ends
	}
	return r.raised(fails, guarded)
}

// set tracks errexit and pipefail from the arguments of the set builtin.
func (r *shellReader) set(options []string) {
	for i, o := range options {
		if o == "--" {
			break
		}
		if len(o) < 2 || o[0] != '-' && o[0] != '+' || strings.HasPrefix(o, "--") {
			continue
		}
		on, long := o[0] == '-', ""
		if strings.HasSuffix(o, "o") && i+1 < len(options) {
			long = options[i+1]
		}
		if strings.Contains(o, "e") || long == "errexit" {
			r.errexit = on
		}
		if long == "pipefail" {
			r.pipefail = on
		}
	}
}

// assign records variable assignments and returns the fate of their command substitutions.
func (r *shellReader) assign(all []*sh.Assign) fate {
	out := absent
	for _, a := range all {
		if a.Name != nil && a.Array != nil {
			var all []*sh.Word
			for _, one := range a.Array.Elems {
				if one.Value != nil {
					all = append(all, one.Value)
				}
			}
			r.vars[a.Name.Value] = r.literals(all)
			r.words.WriteString(r.vars[a.Name.Value] + "\n")
		}
		if a.Name == nil || a.Value == nil {
			continue
		}
		out = max(out, r.substituted(a.Value))
		r.vars[a.Name.Value] = r.literal(a.Value)
		r.words.WriteString(r.vars[a.Name.Value] + "\n")
	}
	return out
}

// substituted returns the fate of the command substitutions in w.
func (r *shellReader) substituted(w *sh.Word) fate {
	out := absent
	sh.Walk(w, func(n sh.Node) bool {
		s, ok := n.(*sh.CmdSubst)
		if ok {
			out = max(out, r.inSubshell(func() fate { return r.list(s.Stmts, false) }))
		}
		return !ok
	})
	return out
}

// conditionally calls read for code that might not run. An exit in such code does not set r.exited.
func (r *shellReader) conditionally(read func() fate) fate {
	exited := r.exited
	defer func() { r.exited = exited }()
	return read()
}

// inSubshell calls read for code that runs in a subshell. An exit in this code ends only the subshell.
func (r *shellReader) inSubshell(read func() fate) fate {
	exited, errexit, pipefail := r.exited, r.errexit, r.pipefail
	defer func() { r.exited, r.errexit, r.pipefail = exited, errexit, pipefail }()
	if f := read(); f != ends {
		return f
	}
	return fails
}

func (r *shellReader) literals(words []*sh.Word) string {
	var out []string
	for _, w := range words {
		out = append(out, r.literal(w))
	}
	return strings.Join(out, " ")
}

// literal returns w with its known variables expanded.
func (r *shellReader) literal(w *sh.Word) string {
	var b strings.Builder
	r.expand(&b, w.Parts)
	return b.String()
}

func (r *shellReader) expand(b *strings.Builder, parts []sh.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *sh.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *sh.SglQuoted:
			b.WriteString(p.Value)
		case *sh.DblQuoted:
			r.expand(b, p.Parts)
		case *sh.ParamExp:
			value, known := r.vars[p.Param.Value]
			switch {
			case known:
				b.WriteString(value)
			case p.Exp != nil && p.Exp.Word != nil:
				r.expand(b, p.Exp.Word.Parts)
			default:
				b.WriteString("$" + p.Param.Value)
			}
		}
	}
}
