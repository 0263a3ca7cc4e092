// Package stepstest runs the checks of guides on recorded states of two clusters, and tests guides on real control
// planes.
//
// A state is a txtar file. It can change another state, its base. It has these sections:
//
//	-- base --     name of the base, which can have its own base
//	-- local --    objects of that side as YAML documents. With a base, each is a merge patch.
//	-- remote --   "$delete: true" deletes an object; with kind "*", all objects of a namespace
//	-- host/P --   content of the file /P on the side that is a host
//	-- machine --  other properties of that host, as YAML. With a base, each path or command
//	               replaces the base's, and null removes one:
//	               modes: {/etc/x: 0600}
//	               owners: {/etc/x: 1000} (uid; default: root)
//	               links: {/a: b}
//	               commands: {"id -u": {out: "0\n", err: "", exit: 0}} (others do not exist)
//	               folder: true (a directory represents the machine; there are no commands)
//	               root: false (carrick does not run as root there)
//	               here: true (this process uses the network of that machine)
//	               files: {/etc/x: null}
//	-- answers --  answers, as in a link file. With a base, null removes one
//	-- denied --   missing permissions of the admin, one per line: "remote create secrets renku". For another user,
//	               the user's name comes first: "remote system:serviceaccount:a:b list pods a"
//	-- server --   properties of an API server, one per line, added to those of the base:
//	               "remote: down"
//	               "remote: hangs"
//	               "remote: refuses" (it accepts no credentials)
//	               "remote: version v1.20.1"
//	               "remote: skew 10m" (of its clock)
//	               "remote: serves GROUP/VERSION Kind" (in addition to the kinds of CRDs)
//	               "remote: level restricted" (Pod Security level of namespaces that set none)
//	-- admission/local --  rules for dry runs, a YAML list that replaces the base's. Each
//	-- admission/remote -- matching rule is applied to the result of those before it:
//	               resource: persistentvolumeclaims
//	               namespace: x (default: all)
//	               match: fields that the object must have; null means must not have
//	               and at least one of
//	               warn: a warning
//	               patch: a merge patch
//	               deny: why a policy rejects the object
//	               fault: "x": reason, of a webhook x that does not answer
//	-- web --      answers of an HTTP API on loopback: "GET /path": {status, json or body and
//	               type, header, when: {header: value}}, or a list of those. With a base, each
//	               path replaces the base's, and null removes one
//	-- shows --    the certificate that this API presents instead of its own:
//	               for: a name or address
//	               name: its common name
//	               from: "24h" (not valid before then)
//	               life: "-1h" (when it expires)
//	               alone: true (self-signed, not signed by the API's CA)
//	               public: true (signed by the CA of TrustPublic)
//	-- files/X --  a file on this machine, see ${files}, ${file X} and ${line X}
//	-- logs/N/P -- log of pod P in namespace N; logs/N/P/C: of its container C;
//	               "error 500: TEXT" is an error of its kubelet
//	-- want --     all verdicts, or with a base, those that differ from the base's
//
// These macros are replaced. In files and commands of a host, they refer to the remote side if that is a cluster, and
// otherwise to the local side. A LIFETIME is a duration from now. It can be negative.
//
//	${ca}                         the API server's CA, base64
//	${ca-text}                    the same as a quoted YAML scalar, for ConfigMaps
//	${ca-pem}                     the same as PEM, on a line of its own, for files
//	${server}                     address of the API server
//	${token NAMESPACE NAME}       a token of that ServiceAccount, base64
//	${token NAMESPACE NAME EXP}   one that expires at the Unix time EXP or, for "+20h", in 20 hours
//	${token NAMESPACE NAME EXP LIFE}  one with the total validity LIFE ("24h")
//	${jwt …}                      the same, not in base64. Tokens in files of a host are valid until
//	                              they expire, others while a Secret contains them
//	${cert NAME LIFETIME}, ${key} a certificate for NAME and its key, base64
//	${client-cert NAME GROUPS LIFETIME}  a client certificate that the side's API server accepts,
//	                              base64. GROUPS are joined by commas; "-" means none
//	${client-csr NAME GROUPS}     a request for such a certificate, base64
//	${client-key}                 the key of both, base64, the same in all runs
//	${files}                      the directory of the files/ sections, for answers
//	${file X}                     content of files/X in base64, for Secrets
//	${line X}                     content of files/X without the last line break
//	${helm-release FILE}          value of key release in Helm's Secret, for the release that
//	                              files/FILE describes as YAML
//	${now}, ${ago 90s}            times
//	${unix 20h}                   a time from now in seconds, as in tokens
//	${web}, ${web-port}           address and port of the HTTP API
//	${web-ca}                     its CA, base64; its certificate is for localhost and 127.0.0.1
//	${web-ca-text}, ${web-ca-pem} the same as a YAML scalar and as PEM, like ${ca-text} and ${ca-pem}
//	${web-ca-fingerprint}         SHA-256 of the same, in hex
//	${web-cert NAME LIFETIME}, ${web-key}  a certificate signed by this CA, and its key
//	${claims ALG {"aud": …}}      a token with these claims and an invalid signature
//	${wireguard PRIVATE PEER}     loopback port of a WireGuard device with this private key. It
//	                              answers handshakes from this peer. Keys are in base64.
//
// The API server behind a state is a fake. It answers reads, reviews, and dry runs of Services, pods, namespaces and
// claims. It evaluates roles and bindings as RBAC does, and pods by the Pod Security level of their namespace. Its only
// admission rules are in the state. The annotation "leaked-node-port" of any object reserves a node port without a
// Service. Writes are tested on real API servers.
package stepstest
