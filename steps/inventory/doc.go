// Package inventory records what a link has created on a cluster, and what it has changed in objects of others. Undo
// uses these records (see [Inventory]). The ownership labels on objects (ownership.go) are for people and for finding
// objects. A label alone never causes a deletion. Package action decides what an undo does with an object (planUndo in
// manifest_undo.go).
package inventory
