// Package stepstest plays states of two clusters through a guide's checks.
//
// A state is a txtar file. Its sections:
//
//	-- base --     name of a state that this one changes, which may have a base, too
//	-- local --    objects of that side, YAML documents; over a base each is a
//	-- remote --   merge patch, and "$delete: true" removes one; of kind "*" it
//	               empties a namespace
//	-- host/P --   a file of the side that is a host, /P there
//	-- machine --  what else that host is, YAML: modes: {/etc/x: 0600}, owners:
//	               {/etc/x: 1000} (uid; root's by default), links: {/a: b},
//	               commands: {"id -u": {out: "0\n", err: "", exit: 0}} (others are
//	               not there), folder: true (no commands: a folder that stands for
//	               a machine), root: false (carrick does not run as root
//	               there), here: true (this process has its network), files:
//	               {/etc/x: null}; over a base each path or
//	               command is replaced, null removes one
//	-- answers --  answers, as in a link file; over a base null removes one
//	-- denied --   permissions that the admin lacks, one per line: "remote create secrets renku"
//	-- server --   "remote: down", "remote: hangs", "remote: version v1.20.1", "remote: skew 10m",
//	               "remote: serves GROUP/VERSION Kind" (discovery lists it, in addition to the kinds of
//	               definitions), "remote: level restricted" (pod security where a namespace has
//	               none); over a base these come after its own
//	-- admission/local --  the results of dry runs, YAML: a list of resource
//	               (persistentvolumeclaims), namespace (all by default), match (fields that
//	               the object has; null: has not), and one or more of warn (a warning), patch (a merge patch),
//	               deny (why a policy rejects it) and fault (of a webhook that does not
//	               answer: "x": reason). Each that matches is applied to the result of those
//	               before it; over a base the whole list is replaced
//	-- web --      the answers of an HTTP API on loopback: "GET /path": {status,
//	               json or body and type, header, when: {header: value}}, or a list of
//	               those; over a base each path is replaced, null removes one
//	-- shows --    the certificate that this API presents instead of its own: for
//	               (a name or address), name (its common name), from ("24h": not
//	               valid before then), life ("-1h"), alone: true (self-signed,
//	               not the API's CA)
//	-- files/X --  a file on this machine; ${files} is its folder, for answers;
//	               ${file X} is its base64, for Secrets, and
//	               ${line X} its text without the last line end
//	-- logs/N/P -- what pod P of namespace N has logged; logs/N/P/C: its container C;
//	               "error 500: TEXT" is an error of its kubelet
//	-- want --     verdicts: all of a state without a base, else those that differ
//
// ${ca} is the base64 of the API server's CA, ${server} its address, and ${token
// NAMESPACE NAME} a token of that ServiceAccount; ${token … EXP} one that expires at
// that Unix time or, for "+20h", that long from now, ${token … EXP LIFE} one with that
// total validity ("24h"); jwt in place of token is the token itself. Tokens in
// files of a host are valid until they expire, others while a Secret contains them.
// Macros there, and in commands, refer to the remote side if that is a cluster,
// else to the local one. ${cert NAME LIFETIME}
// and ${key} are the base64 of a certificate for NAME and of its key. ${web} is
// the address of that HTTP API, ${web-port} its port, ${web-ca} the base64 of
// the CA that its certificate for localhost and 127.0.0.1 is trusted by, and
// ${claims ALG {"aud": …}} a token with these claims and no signature.
// ${client-cert NAME GROUPS LIFETIME} is the base64 of a client certificate that the
// side's API server accepts, ${client-csr NAME GROUPS} of a request for one, and
// ${client-key} of the key of both, which is always the same one; GROUPS are
// joined by commas, or "-". ${ca-text} is the API server's CA as a quoted scalar,
// for ConfigMaps, and a line ${ca-pem} the same as plain PEM, for files;
// ${web-ca-pem} and ${web-ca-text} are that API's, ${web-ca-fingerprint} is its
// SHA-256 in hex; ${web-cert NAME LIFETIME} and ${web-key} are a certificate that
// this API's CA has signed, and its key.
// ${helm-release FILE} is the value of key release in a Secret of Helm's, of the
// release that files/FILE describes as YAML. ${now} and ${ago 90s} are times, ${unix 20h} is one from now in seconds,
// as tokens have it. ${wireguard PRIVATE PEER} is a port of loopback where a WireGuard device with
// that private key answers handshakes of that peer (keys in base64).
//
// The API server behind a state is a fake that answers reads, reviews and dry
// runs of Services, pods, namespaces and claims: it judges roles and bindings as
// RBAC does and pods by their namespace's level, and has no admission but the
// state's. The annotation "leaked-node-port" of any object reserves a node port
// without a Service. Writes are tested elsewhere, on real API servers.
package stepstest
