// Package action has what the actions of guides do: apply a [Manifest], install a [Chart], write a [File], run a
// [Command], edit an object of another program ([Edit]), create Secrets once ([Mint]), or anything else ([Call]).
//
// Each plans, does, plans the undo, and undoes (steps.Doer), and most can be exported ([Exporter]). What they create is
// in the inventory of the link before they create it. [WithDrift] adds checks to a guide that compare what exists with
// what its actions would write today.
package action
