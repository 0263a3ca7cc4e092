// Package action implements the actions of guides. An action applies a [Manifest], installs a [Chart], writes a [File],
// runs a [Command], edits an object of another program ([Edit]), creates a Secret once ([Mint]), or calls Go code
// ([Call]).
//
// Each type implements steps.Doer, and most can be exported ([Exporter]). Before an action creates an object, it adds
// the object to the link's inventory. [WithDrift] adds checks that compare existing objects with what the actions would
// write today.
package action
