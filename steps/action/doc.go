// Package action implements the actions of guides: apply a [Manifest], install a [Chart], write a [File], run a
// [Command], edit an object of another program ([Edit]), create Secrets once ([Mint]), or anything else ([Call]).
//
// Each of them implements steps.Doer, and most can be exported ([Exporter]). Everything that they create is entered
// into the link's inventory first. [WithDrift] adds checks to a guide that compare what exists with what its actions
// would write today.
package action
