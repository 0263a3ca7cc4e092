package steps

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PatchOp is one operation of a JSON patch (RFC 6902).
type PatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// JSONPatch returns a JSON patch as arguments of kubectl patch, such as --type=json -p '…'.
func JSONPatch(ops ...PatchOp) string {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ops); err != nil {
		panic(err) // values are strings and maps of strings
	}
	return "--type=json -p " + Quoted(strings.TrimSpace(text.String()))
}

// Pointer returns the JSON pointer (RFC 6901) to the field at the given path of keys and indexes.
func Pointer(keys ...any) string {
	var out strings.Builder
	for _, k := range keys {
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(k)))
	}
	return out.String()
}
