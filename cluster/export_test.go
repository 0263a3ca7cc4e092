package cluster

// NewAccess is New with the parts of Access that are not about kubeconfigs.
var NewAccess = open
