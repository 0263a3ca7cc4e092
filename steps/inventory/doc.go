// Package inventory keeps what a link has created on a cluster, and what it has changed in objects of others: undo goes
// by it. An inventory is a ClusterRole without rules, see [Inventory]. The marks on objects (ownership.go) are for
// people and for finding objects; no decision to delete goes by them alone.
package inventory
