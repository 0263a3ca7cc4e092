package host_test

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func answer(w http.ResponseWriter, code int, body map[string]any) {
	raw, _ := json.Marshal(body)
	answerRaw(w, code, raw)
}

func answerRaw(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

func status(w http.ResponseWriter, code int, reason, message string, details map[string]any) {
	body := map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
	}
	if details != nil {
		body["details"] = details
	}
	answer(w, code, body)
}
